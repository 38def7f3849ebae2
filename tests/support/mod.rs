//! What several test crates share: the hash that every fixture's inputs come from (`noise`), a naive reference of both networks
//! (`reference`), the PyTorch fixtures (`fixture`), a small study run by the program (`study`), and the CUDA double (`double`). Nothing
//! here may use the `dps` crate: its worth is that it shares no code with what it tests.
#![allow(dead_code)] // each test crate uses a part

pub mod double;
pub mod fixture;
pub mod noise;
pub mod reference;
pub mod study;

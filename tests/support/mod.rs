//! What several test crates share: the hash that every fixture's inputs come from (`noise`), a naive reference of both networks
//! (`reference`) and the PyTorch fixtures (`fixture`). Nothing here may use the `dps` crate: its worth is that it shares no code with
//! what it tests.
#![allow(dead_code)] // each test crate uses a part

pub mod fixture;
pub mod noise;
pub mod reference;

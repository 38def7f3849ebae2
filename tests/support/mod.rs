//! Code that several test programs share.
//!
//! `noise`, `fixture`, `study` and `double` do not use the `dps` crate: their worth is that they share no code with what they
//! test.
//!
//! - `noise`: the hash that the inputs of all fixtures come from;
//! - `fixture`: PyTorch's numbers (`tests/fixtures`);
//! - `study`: a study small enough for a test, and the program run on it;
//! - `double`: the stand-in for CUDA (`tests/cuda-double`);
//! - `records`: records of studies as tests compare them;
//! - `synthetic`: results that follow a known law, to report;
//! - `faults`: a storage whose operations fail;
//! - `foreign`: what back ends must refuse because it is of another network;
//! - `inputs`: data sets and masks for back ends;
//! - `gpu`: the GPU, small problems and lanes on it.

// Each program of tests/ compiles all of this folder and uses a part of it. The compiler would call the rest unused.
#![allow(dead_code)]

pub mod double;
pub mod faults;
pub mod fixture;
pub mod foreign;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod inputs;
pub mod noise;
pub mod records;
pub mod study;
pub mod synthetic;

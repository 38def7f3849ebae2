//! The back end of the threads of a rank: gradients of lanes, optimizer steps, evaluations. What one thread computes of a leaf is the worker's.

mod backend;
mod context;
mod gradients;
mod job;
mod squares;
mod steps;
mod sums;
mod team;
mod threads;

pub use backend::{Cpu, CpuBackend, SHARING};

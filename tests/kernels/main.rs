//! The CPU's kernels and the reference: against PyTorch's numbers, finite differences and each other.

mod evaluation;
mod listed;
mod networks;
mod optimizers;
mod pruned_kernels;
#[path = "../random_networks/mod.rs"]
mod random_networks;
mod reference;
#[path = "../support/mod.rs"]
mod support;
mod synflow;

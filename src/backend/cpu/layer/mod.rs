//! A room for each kind of layer: all that the CPU knows of it.
//!
//! `kind.rs` says what a kind of layer is asked ([`CpuLayer`]), `choose.rs` which kind computes a layer; a file for each kind answers: convolutions
//! row by row (`rows.rs`), those that visit kept weights alone (`sparse.rs`) and those that end in a pool (`pooled.rs`), fully connected layers
//! (`matrix.rs`) and logits (`logits.rs`), pools (`pool.rs`), means (`mean.rs`) and group normalisation (`norm.rs`). `workspace.rs` and
//! `buffers.rs` have what a thread computes in. Nothing here knows of batches, leaves' sums, ranks or trials; kernels'
//! arithmetic is in the folders beside this one.

mod buffers;
mod choose;
mod kind;
mod logits;
mod matrix;
mod mean;
mod norm;
mod pool;
mod pooled;
mod rows;
mod sparse;
mod workspace;

pub(super) use buffers::{Buffers, Scratch};
pub(super) use choose::{LayerPlan, layers};
pub(super) use kind::{CpuLayer, DenseLayer, Place};
pub(super) use workspace::{Pass, Workspace};

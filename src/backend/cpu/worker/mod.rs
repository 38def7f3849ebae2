//! One thread's share of the work: the buffers for a few images of one lane, and the network's operations on them.
//!
//! The plan of a lane says for each layer which kernels compute it (`Path`); there is a file for each kind here: convolutions row
//! by row (`rows.rs`), those with a pool (`pooled.rs`), fully connected layers (`matrix.rs`) and logits (`logits.rs`), layers without
//! parameters (`pool.rs`), the loss (`loss.rs`). `pass.rs` has the buffers, `operations.rs` sends each layer to its file,
//! and `together.rs` brings several leaves to fully connected layers at once. Nothing here knows of batches, ranks or trials.

mod backward;
mod buffers;
mod collect;
mod logits;
mod loss;
mod matrix;
mod operations;
mod pass;
mod pool;
mod pooled;
mod prepare;
mod rows;
mod tail;
mod together;

pub(super) use buffers::{image_floats, images_a_pass};
pub(super) use collect::collect;
pub(super) use pass::Worker;
pub(super) use tail::images_at_once;

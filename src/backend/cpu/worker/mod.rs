//! One thread's share of the work: the images of one lane, sent through the layers of its plan.
//!
//! `images.rs` gathers images, `passes.rs` sends them forward and backward layer by layer, `together.rs` brings several leaves to fully connected
//! layers at once, `loss.rs` has the loss. What computes a layer is in the folder `layer`. Nothing here knows of batches, ranks or trials.

mod images;
mod loss;
mod passes;
mod room;
#[cfg(test)]
mod rounding;
mod tail;
mod together;

pub(super) use room::{Worker, image_floats, images_a_pass};
pub(super) use tail::images_at_once;

//! Convolutions on one image: forward into rows of sums, and backward from rows of gradients.
//!
//! Both work on groups of output rows small enough for the first-level cache; what follows a forward sum (ReLU, pool, shortcut) is applied while the
//! rows are there (`epilogue.rs`, `pooled`). Layers that fit are computed by `winograd.rs`.

mod forward;
mod gradients;
mod layout;
mod shape;
#[cfg(test)]
mod tests;

pub(super) use forward::ForwardRows;
pub(super) use gradients::{add_positions, data_gradient_rows, filter_gradient_rows};
pub(super) use layout::{laid_out_len, lay_out, transpose, transpose_matrix};
pub(super) use shape::{RESIDENT_WEIGHTS, adjoint, group_rows};

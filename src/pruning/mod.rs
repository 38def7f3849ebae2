//! Pruning at initialisation: scores of connections, and the masks cut from them.
//!
//! Scores depend on the trial's seed alone, so one scoring serves every sparsity and batch size. Nothing here may train or know of ranks.

mod mask;
mod score;

pub use mask::{Mask, keep_highest, kept_parameters};
pub use score::{connection_sensitivity, gradient_signal, without_data};

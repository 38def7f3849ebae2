//! Magnitude at initialisation.

use crate::pruning::criterion::{Criterion, Given, Untrained};

/// The magnitude of each initial weight.
pub struct Magnitude;

impl Criterion for Magnitude {
    fn given(&self) -> Given {
        Given::Nothing
    }

    fn scores(&self, start: &Untrained, _: &[f32]) -> Vec<f32> {
        start.weights.iter().map(|weight| weight.abs()).collect()
    }
}

//! Magnitude at initialisation.

use crate::pruning::criterion::{Criterion, Nothing, Untrained};

/// The magnitude of each initial weight.
pub struct Magnitude;

impl Criterion for Magnitude {
    type Given = Nothing;

    fn scores(&self, start: &Untrained, _: &Nothing) -> Vec<f32> {
        start.weights.iter().map(|weight| weight.abs()).collect()
    }
}

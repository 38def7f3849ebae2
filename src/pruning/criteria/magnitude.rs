//! Magnitude at initialisation.

use crate::pruning::criterion::{Criterion, Nothing, Start};

/// The magnitude of each initial weight.
pub struct Magnitude;

impl Criterion for Magnitude {
    type Given = Nothing;

    fn scores(&self, start: &Start, _: &Nothing) -> Vec<f32> {
        start.weights.iter().map(|weight| weight.abs()).collect()
    }
}

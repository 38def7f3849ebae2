//! Records by which ranks tell each other of the lanes that they train.

use serde::{Deserialize, Serialize};

/// Record of a trial's mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskFacts {
    /// Parameters kept.
    pub kept: u32,
    /// The mask's hash.
    pub hash: u64,
    /// Layers of which no weight is kept.
    pub dead_layers: u32,
}

/// Outcome of a lane's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The lane's loss was NaN or infinite in an earlier step; the lane was not evaluated.
    Broken {
        /// The step with that loss (from 0), which was not taken.
        step: u32,
    },
    /// The lane was evaluated on the validation set.
    Evaluated {
        /// Mean training loss over the batch of its last step.
        loss: f32,
        /// Examples classified wrongly among those seen.
        errors: u32,
        /// Examples seen.
        examples: u32,
    },
}

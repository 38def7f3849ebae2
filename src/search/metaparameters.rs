//! One trial's metaparameters.

use serde::{Deserialize, Serialize};

/// The values one trial trains with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metaparameters {
    /// Initial learning rate η.
    pub learning_rate: f64,
    /// Momentum m, where the optimizer has one.
    pub momentum: Option<f64>,
    /// Decay steps D, where the schedule decays.
    pub decay_steps: Option<u32>,
    /// η_end / η, where the schedule decays.
    pub end_learning_rate_factor: Option<f64>,
}

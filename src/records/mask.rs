//! The record of a mask.

use serde::{Deserialize, Serialize};

/// The mask of a trial's network at one sparsity, where it took seconds to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskRecord {
    /// The trial's number.
    pub seed: u64,
    /// The sparsity.
    pub sparsity: f64,
    /// The kept parameters, in ascending order.
    pub kept: Vec<u32>,
}

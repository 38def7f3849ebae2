//! A cell in the middle of its training, as it outlives a process.

use serde::{Deserialize, Serialize};

use crate::backend::{LaneState, floats};
use crate::records::Trial;

/// Where a cell is. It says nothing of ranks, threads or devices, so any number of ranks can go on from it. The default is a cell that has
/// not begun.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CellState {
    /// Steps that all living trials have taken.
    pub step: u32,
    /// Living trials that have taken steps.
    pub lanes: Vec<LaneRecord>,
    /// Trials that have ended.
    pub ended: Vec<Trial>,
    /// Test errors of the trial that reached the goal first, where one has.
    pub test_errors: Option<u32>,
    /// Wall-clock seconds so far.
    pub seconds: f64,
}

/// One trial under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneRecord {
    /// Record of the trial so far.
    pub trial: Trial,
    /// Weights, and the optimizer's numbers of them.
    pub state: LaneState,
    /// The margin of each validation example when the trial was last evaluated on it; empty before its first bounded evaluation.
    #[serde(with = "floats")]
    pub margins: Vec<f32>,
}

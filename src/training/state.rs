//! A cell in the middle of its training, as it outlives a process.

use serde::{Deserialize, Serialize};

use crate::backend::{LaneState, floats};
use crate::records::{CurvePoint, Measurement, Trial};

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
    /// Index of the trial in the cell.
    pub trial: u32,
    /// Weights, and what its optimizer keeps of them.
    pub state: LaneState,
    /// Evaluations so far.
    pub curve: Vec<CurvePoint>,
    /// Measurements of the loss surface so far.
    pub measurements: Vec<Measurement>,
    /// The margin of each validation example when the trial was last evaluated on it; empty before its first bounded evaluation.
    #[serde(with = "floats")]
    pub margins: Vec<f32>,
    /// The trial's share of the seconds so far.
    pub seconds: f64,
}

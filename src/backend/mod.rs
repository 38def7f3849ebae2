//! Back ends: where weights live and arithmetic happens.
//!
//! A back end holds the data set and the state of many lanes, a lane being one trial with its own weights, mask, metaparameters and data
//! order. It advances lanes, evaluates them and scores connections; it may not know what a trial's outcome means, what a cell is, or
//! that files exist.

pub mod cpu;

use crate::optimizer::Rule;
use crate::pruning::Mask;

/// What a lane begins with.
#[derive(Debug, Clone)]
pub struct LaneStart {
    /// The trial's number: its data order's seed.
    pub seed: u64,
    /// Initial weights, flat as the network lays them out; masked ones are set to zero by the back end.
    pub weights: Vec<f32>,
    /// Which parameters train.
    pub mask: Mask,
    /// The optimizer.
    pub rule: Rule,
}

/// How a lane did in the steps it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Mean loss over the batch of the last step taken.
    pub loss: f32,
    /// The step (from 0) whose loss was NaN or infinite; the lane stopped there and did not take it.
    pub broken: Option<u32>,
}

/// Which examples to evaluate on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// The held-out part of the training file.
    Validation,
    /// The test file.
    Test,
}

/// An evaluation's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    /// Examples classified wrongly among those seen.
    pub errors: u32,
    /// Examples seen: all, unless the errors exceeded the limit before the end.
    pub examples: u32,
}

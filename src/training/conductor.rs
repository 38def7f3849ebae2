//! Conductor of a cell: it gets the cell's reports while the cell is measured.

use super::state::CellState;
use crate::Result;
use crate::records::Trial;

/// Where a wave is; the same on every rank, but for the times. Examples, seconds and the fewest errors count from when the wave began or went on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment {
    /// Steps that the trials in training have taken.
    pub step: u32,
    /// Whether all lanes have just been evaluated.
    pub evaluated: bool,
    /// Lanes still training.
    pub alive: usize,
    /// Trials of the cell that have ended.
    pub ended: usize,
    /// The step at which the trials end at the latest: with their budget, or with the race once one has reached the goal.
    pub last_step: u32,
    /// Fewest errors of a whole evaluation.
    pub best_errors: Option<u32>,
    /// Fewest errors that any evaluation counted. An evaluation that was decided early did not count all errors, so the true number may be larger.
    pub least_errors: Option<u32>,
    /// The training loss of the trial that was nearest the goal at the last evaluation.
    pub loss: Option<f32>,
    /// Gradients of one example each that all lanes have taken, with the steps of lanes that have broken since the last evaluation.
    pub examples: u64,
    /// This rank's seconds.
    pub seconds: f64,
    /// Seconds a step, lately.
    pub step_seconds: f64,
    /// Seconds of the last evaluation; 0 before the first.
    pub evaluation_seconds: f64,
}

/// Decision of a [`Conductor`] after a [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Hand the cell's state to [`Conductor::checkpoint`].
    pub checkpoint: bool,
    /// Stop training the cell, after a last checkpoint.
    pub stop: bool,
    /// Steps to take before asking again; an evaluation comes before, if it is due.
    pub steps: u32,
    /// Whether to ask in the middle of steps and evaluations, too, if they are to stop. It costs a copy of the lanes.
    pub interruptible: bool,
}

/// Receives a cell's reports, and may interrupt it. Every rank has one; all must decide alike. By default nothing is kept, and nothing stops.
pub trait Conductor {
    /// A trial has ended before its cell.
    fn ended(&mut self, _trial: &Trial) -> Result<()> {
        Ok(())
    }
    /// Some steps were taken.
    fn moment(&mut self, moment: &Moment) -> Result<Decision>;
    /// Whether to stop at once, in the middle of something long. Every rank must ask alike, and all get the same answer.
    fn stop(&mut self) -> bool {
        false
    }
    /// Takes the state to go on from: this rank's lanes, where it leads its group, else none; the rest is the same on all ranks.
    fn checkpoint(&mut self, _state: CellState) -> Result<()> {
        Ok(())
    }
}

//! Work of a cell: the trials that it is to measure, and how.

use std::time::Instant;

use super::probe::Probe;
use crate::backend::Interrupt;
use crate::optimizer::Metaparameters;
use crate::records::{CellKey, Seeds};
use crate::settings::{Race, Workload};

/// One training that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The trial's metaparameters.
    pub metaparameters: Metaparameters,
    /// Seeds of the trial's random numbers.
    pub seeds: Seeds,
}

/// Work of a cell: its trials, their goal and limits, and the places where it may be stopped.
#[derive(Debug, Clone, Copy)]
pub struct CellWork<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Batch size and sparsity.
    pub key: CellKey,
    /// Every trial, in the order of their numbers.
    pub trials: &'a [Run],
    /// The number of the first trial.
    pub first: usize,
    /// Most validation errors with which a trial reaches the goal: it is complete at the first evaluation that finds no more.
    pub threshold: u32,
    /// When trials end because another has reached the goal.
    pub race: Race,
    /// Count every evaluation to its end, though it is decided.
    pub full_evaluation: bool,
    /// Whether trials that have reached the goal train on until their steps are spent. Only where no race, test error or measurement waits for them.
    pub goes_on: bool,
    /// Whether the errors of the best trial on the test set are counted.
    pub tested: bool,
    /// Lanes that all groups together may train at once; trials beyond that wait for the next wave.
    pub lanes: usize,
    /// Whether an earlier run finished the cell with fewer trials: a race with the new trials may still cut the old ones short.
    pub extended: bool,
    /// Asked in the middle of what takes long; true once on a rank, [`Conductor::stop`](super::Conductor::stop) says so on all.
    pub interrupt: Interrupt,
    /// The time, as this rank's clock has it.
    pub now: fn() -> Instant,
    /// Measurement of the loss surface, where there is any. Trials that complete or spend their steps are measured at their end too, censored ones
    /// are not.
    pub probe: Option<Probe>,
}

impl CellWork<'_> {
    /// Whether a trial's record stays what it is once the trial has ended, where `begun` trials have begun or ended. In a race a trial of a later
    /// wave may yet cut it short. How many lanes there are does not say whether one comes: an earlier run may have had fewer.
    pub(super) fn ends_are_final(&self, begun: usize) -> bool {
        !self.extended && (self.race == Race::Off || begun == self.trials.len())
    }

    /// The metaparameters and seeds of a trial.
    pub(super) fn run(&self, trial: usize) -> Run {
        self.trials[trial - self.first]
    }

    /// The trials among those numbered `trials` whose smoothness is measured.
    pub(super) fn measured(&self, trials: &[usize]) -> Vec<usize> {
        let is_measured = |trial: &usize| self.probe.is_some_and(|probe| probe.measures(*trial));
        trials.iter().copied().filter(is_measured).collect()
    }
}

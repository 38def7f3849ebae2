//! Steps-to-result at other goals than the study's, by the recorded curves. A trial was trained no further than the study's own goal, and most
//! evaluations of a race stopped as soon as they could no longer reach that, so often no more than bounds are known.

use crate::analysis::studies::StudyResults;
use crate::records::{Cell, Status, Trial};

/// Bounds of a number of a cell: of its steps-to-result at a goal, or of its errors within a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least so many. None, of steps: no trial can have reached the goal within the step budget.
    pub low: Option<u32>,
    /// At most so many. None: no evaluation is known to have reached the goal, or to be of the whole validation set.
    pub high: Option<u32>,
}

impl Bounds {
    /// The bounds of a cell's steps-to-result, at the goal of at most so many errors on the validation set.
    pub fn new(study: &StudyResults, cell: &Cell, threshold: u32) -> Bounds {
        let trials = || cell.trials.iter().map(|trial| of_trial(study, trial, threshold));
        Bounds { low: trials().filter_map(|bounds| bounds.low).min(), high: trials().filter_map(|bounds| bounds.high).min() }
    }

    /// The number itself, where it is known.
    pub fn exact(self) -> Option<u32> {
        self.high.filter(|high| self.low == Some(*high))
    }
}

/// The most validation errors at a goal error, by the study's own rule. None where its configuration cannot be read.
pub fn threshold(study: &StudyResults, goal_error: f64) -> Option<u32> {
    let mut workload = study.configuration.as_ref().ok()?.workload.clone();
    workload.goal_error = goal_error;
    u32::try_from(workload.goal_threshold(u64::from(study.results.workload.validation_examples))).ok()
}

fn of_trial(study: &StudyResults, trial: &Trial, threshold: u32) -> Bounds {
    let workload = &study.results.workload;
    // An evaluation that stopped early gives a lower bound of the errors.
    let may_reach = trial.curve.iter().find(|point| point.errors <= threshold);
    let reaches = trial.curve.iter().find(|point| point.errors <= threshold && point.examples == workload.validation_examples);
    // The next evaluation of a trial that ended before its budget might have reached it.
    let next = trial.steps_run.saturating_add(workload.evaluate_every);
    let ended = matches!(trial.status, Status::Infeasible | Status::Incomplete) || next > workload.max_steps;
    Bounds { low: may_reach.map(|point| point.step).or((!ended).then_some(next)), high: reaches.map(|point| point.step) }
}

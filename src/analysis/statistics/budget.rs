//! The best error of a cell within a fixed budget of steps, as far as the recorded curves say it.

use super::goals::Bounds;
use crate::analysis::studies::StudyResults;
use crate::records::{Cell, Status, Trial};

/// The fewest validation errors of any evaluation of a cell's trials within `steps` steps: at least 0 where a trial ended before, and might have
/// gone on to any; at most those of an evaluation of the whole validation set. None where no trial was evaluated by then.
pub fn least_errors(study: &StudyResults, cell: &Cell, steps: u32) -> Option<Bounds> {
    let workload = &study.results.workload;
    let within = || cell.trials.iter().flat_map(|trial| &trial.curve).filter(|point| point.step <= steps);
    // A trial that reached the goal or was cut off by a race might have come to fewer errors; a trial that broke would not.
    let cut =
        |trial: &&Trial| matches!(trial.status, Status::Complete | Status::Censored) && trial.steps_run < steps.min(workload.max_steps);
    let least = within().map(|point| point.errors).min()?;
    // The next evaluation after the end would have been within the budget.
    let next = |trial: &Trial| trial.steps_run.saturating_add(workload.evaluate_every) <= steps;
    let low = if cell.trials.iter().filter(cut).any(next) { 0 } else { least };
    let high = within().filter(|point| point.examples == workload.validation_examples).map(|point| point.errors).min();
    Some(Bounds { low: Some(low), high })
}

/// A budget of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// A number of steps.
    Steps(u32),
    /// A number of training examples, each counted as often as it is trained on.
    Examples(u64),
}

impl Budget {
    /// The steps that it is at a batch size.
    pub fn steps(self, batch_size: u32) -> u32 {
        match self {
            Budget::Steps(steps) => steps,
            Budget::Examples(examples) => u32::try_from(examples / u64::from(batch_size.max(1))).unwrap_or(u32::MAX),
        }
    }

    /// How many, and of what.
    pub fn amount(self) -> (u64, &'static str) {
        match self {
            Budget::Steps(steps) => (steps.into(), "steps"),
            Budget::Examples(examples) => (examples, "examples"),
        }
    }
}

/// Budgets of each kind at most.
const MOST: usize = 4;

/// Budgets of steps and of examples that tell the cells of a study apart: from the largest K*, and the most examples K*·B, down by halves, or further
/// apart.
pub fn budgets(study: &StudyResults) -> Vec<Budget> {
    let every = u64::from(study.results.workload.evaluate_every.max(1));
    let reached =
        || study.results.cells.iter().filter_map(|cell| Some((u64::from(cell.key.batch_size), u64::from(cell.steps_to_result()?))));
    let spread = |amount: fn((u64, u64)) -> u64| {
        let least = reached().map(amount).min().unwrap_or(1).max(1);
        let most = reached().map(amount).max().unwrap_or(0);
        let ratio = (most as f64 / least as f64).max(1.0).powf(1.0 / (MOST - 1) as f64).max(2.0);
        (0..MOST as i32)
            .map(move |number| (most as f64 / ratio.powi(number)) as u64)
            .filter(move |&amount| amount >= least)
            .collect::<Vec<_>>()
    };
    let (steps, examples) = (spread(|(_, steps)| steps), spread(|(size, steps)| size * steps));
    let whole = |steps: u64| u32::try_from(steps.div_ceil(every) * every).unwrap_or(u32::MAX);
    let mut all: Vec<Budget> = steps.into_iter().map(|steps| Budget::Steps(whole(steps))).collect();
    all.dedup();
    all.extend(examples.into_iter().map(Budget::Examples));
    all
}

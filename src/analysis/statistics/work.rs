//! Work of measuring cells, as it was and as it would have been by other rules.

use super::timing::{cores, is_of_one_place};
use crate::analysis::studies::StudyResults;
use crate::data::{DatasetChoice, DatasetName};
use crate::records::{Cell, Status, Trial};
use crate::results::WorkloadSummary;

/// An amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Example-gradients: gradients of one training example.
    pub gradients: u64,
    /// Validation examples evaluated.
    pub validation: u64,
}

/// Work that is known within limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub low: Work,
    /// At most.
    pub high: Work,
}

/// The paper's step budget for its workloads (appendix B); none for others.
pub fn papers_steps(workload: &WorkloadSummary) -> Option<u32> {
    let name = workload.dataset.parse::<DatasetName>().ok()?;
    let usual = DatasetChoice::from(name).usual();
    (name.spec().is_papers && workload.network == usual.network.name()).then_some(usual.max_steps)
}

/// Core-hours that a study's cells took, of its search and of its confirmations: seconds times ranks times threads. Of a file that does not say which
/// of its starts measured a cell, they are the least ([`has_least_core_hours`]).
pub fn core_hours(study: &StudyResults) -> [f64; 2] {
    let mut hours = [0.0; 2];
    for cell in &study.results.cells {
        let cores = cores_of(study, cell);
        hours[0] += cell.seconds * cores / 3600.0;
        hours[1] += cell.confirmation_seconds() * cores / 3600.0;
    }
    hours
}

/// Whether one device, with as many ranks and threads, measured all cells of a study.
pub fn is_of_one_machine(study: &StudyResults) -> bool {
    let mut machines = study.results.cells.iter().map(|cell| study.environment(cell.key).machine());
    let first = machines.next();
    !has_least_core_hours(study) && machines.all(|other| Some(other) == first)
}

/// Whether the core-hours of a study are the least that its cells may have taken.
pub fn has_least_core_hours(study: &StudyResults) -> bool {
    study.results.cells.iter().any(|cell| !is_of_one_place(study.environment(cell.key)))
}

/// Processors that measured a cell: of several starts, those of the smallest.
fn cores_of(study: &StudyResults, cell: &Cell) -> f64 {
    let environment = study.environment(cell.key);
    if is_of_one_place(environment) {
        return cores(environment.ranks, environment.threads);
    }
    environment.starts.iter().map(|start| cores(start.ranks, start.threads)).reduce(f64::min).unwrap_or(1.0)
}

/// Core-hours that `trainings` more of a cell would take, each of `times` its K*, by the seconds of a step of its trials. None without a K*.
pub fn core_hours_of(study: &StudyResults, cell: &Cell, trainings: f64, times: f64) -> Option<f64> {
    let steps = cell.trials.iter().map(|trial| f64::from(trial.steps_run)).sum::<f64>().max(1.0);
    let of_one = cell.seconds / steps * f64::from(cell.steps_to_result()?) * times;
    Some(trainings * of_one * cores_of(study, cell) / 3600.0)
}

/// Work of some cells by their records.
pub fn computed(cells: &[Cell]) -> Work {
    sum(cells, |trial| (trial.steps_run, trial.curve.iter().map(|point| u64::from(point.examples)).sum()))
}

/// Steps and evaluated examples if each trial had gone on until it reached the goal, else to step `budget`, as the authors' public code trains. An
/// infeasible trial ends where it did, and each evaluation is of the whole validation set. A trial that was cut off, or spent a smaller budget, might
/// have reached the goal at its next evaluation, or never.
pub fn to_goal(workload: &WorkloadSummary, cells: &[Cell], budget: u32) -> Range {
    let next = |trial: &Trial| trial.steps_run.saturating_add(workload.evaluate_every);
    let limit = |end: &dyn Fn(&Trial) -> u32| rule(workload, cells, &|trial| trial.steps.unwrap_or_else(|| end(trial)).min(budget));
    Range { low: limit(&next), high: limit(&|_| budget) }
}

/// Steps and evaluated examples if every trial had gone on to step `budget`, as the authors count their cost.
pub fn to_end(workload: &WorkloadSummary, cells: &[Cell], budget: u32) -> Range {
    let work = rule(workload, cells, &|_| budget);
    Range { low: work, high: work }
}

fn rule(workload: &WorkloadSummary, cells: &[Cell], steps: &dyn Fn(&Trial) -> u32) -> Work {
    sum(cells, |trial| {
        let steps = if trial.status == Status::Infeasible { trial.steps_run } else { steps(trial) };
        (steps, u64::from(steps / workload.evaluate_every.max(1)) * u64::from(workload.validation_examples))
    })
}

/// Over all trials, each of so many steps and validation examples.
fn sum(cells: &[Cell], of: impl Fn(&Trial) -> (u32, u64)) -> Work {
    let mut work = Work::default();
    for cell in cells {
        for trial in &cell.trials {
            let (steps, validation) = of(trial);
            // Counts of a file that somebody made up may be anything.
            work.gradients = work.gradients.saturating_add(u64::from(steps) * u64::from(cell.key.batch_size));
            work.validation = work.validation.saturating_add(validation);
        }
    }
    work
}

//! How long the best trial of each cell takes, and which batch size is the quickest or the cheapest.

use super::fit::Estimate;
use super::studies::StudyResults;
use crate::readable::{count, significant, some};
use crate::records::{Cell, CellKey};
use crate::results::Environment;

/// The time of a cell's steps.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Which cell.
    pub key: CellKey,
    /// K*.
    pub steps: u32,
    /// Ranks that measured it.
    pub ranks: u32,
    /// Threads a rank.
    pub threads: u32,
    /// What trained it.
    pub device: String,
    /// Seconds a step: geometric mean over the cell's trials of their seconds over their steps.
    pub step_seconds: Estimate,
    /// Seconds to the goal: K* steps. The interval also holds what is not known of K* between two evaluations.
    pub seconds: Estimate,
    /// The same times ranks and threads a rank.
    pub core_seconds: Estimate,
}

/// Every cell that reached the goal, by sparsity, batch size and ranks; several times where it was measured on several numbers of ranks.
pub fn times(study: &StudyResults) -> Vec<Timed> {
    let timed = |(cell, environment): (&Cell, &Environment)| {
        let steps = cell.steps_to_result()?;
        let per_step = cell.trials.iter().filter(|trial| trial.steps_run > 0 && trial.seconds > 0.0);
        let step_seconds = Estimate::geometric(per_step.map(|trial| trial.seconds / f64::from(trial.steps_run)));
        let before = f64::from(steps.saturating_sub(study.results.workload.evaluate_every));
        let seconds = Estimate { low: before * step_seconds.low, ..step_seconds.scaled(f64::from(steps)) };
        let cores = f64::from(environment.ranks.max(1)) * f64::from(environment.threads.max(1));
        step_seconds.value.is_finite().then(|| Timed {
            key: cell.key,
            steps,
            ranks: environment.ranks,
            threads: environment.threads,
            device: environment.device.clone(),
            step_seconds,
            seconds,
            core_seconds: seconds.scaled(cores),
        })
    };
    let mut all: Vec<Timed> = study.measurements().filter_map(timed).collect();
    let order = |timed: &Timed| (timed.key.batch_size, timed.ranks, timed.threads);
    all.sort_by(|a, b| a.key.sparsity.total_cmp(&b.key.sparsity).then_with(|| order(a).cmp(&order(b))));
    all
}

/// What is said of each sparsity: the batch size with the shortest time to the goal and the cheapest one. One is said to be so where its interval
/// lies below those of all others; else those that cannot be told from the best are named.
pub fn sentences(times: &[Timed]) -> Vec<String> {
    let mut sparsities: Vec<f64> = times.iter().map(|timed| timed.key.sparsity).collect();
    sparsities.dedup();
    let of = |sparsity: f64| times.iter().filter(move |timed| timed.key.sparsity == sparsity).collect::<Vec<_>>();
    let several = sparsities.into_iter().map(|sparsity| (sparsity, of(sparsity))).filter(|(_, cells)| cells.len() > 1);
    several
        .flat_map(|(sparsity, cells)| {
            [
                sentence(sparsity, &cells, "the shortest time to the goal", "seconds", |timed| timed.seconds),
                sentence(sparsity, &cells, "the fewest core-seconds to the goal", "core-seconds", |timed| timed.core_seconds),
            ]
        })
        .flatten()
        .collect()
}

/// None where no cell has an interval.
fn sentence(sparsity: f64, cells: &[&Timed], what: &str, unit: &str, of: fn(&Timed) -> Estimate) -> Option<String> {
    let best = cells.iter().filter(|timed| of(timed).high.is_finite()).min_by(|a, b| of(a).value.total_cmp(&of(b).value))?;
    let Estimate { value, low, high } = of(best);
    let place = |timed: &Timed| format!("batch size {} on {}", count(timed.key.batch_size), some(timed.ranks as usize, "rank"));
    let number = format!("{} {unit} [{} … {}]", significant(value), significant(low), significant(high));
    // A cell without an interval may be as quick as the best one.
    let others = cells.iter().filter(|timed| !std::ptr::eq(**timed, *best));
    let alike: Vec<String> = others.filter(|timed| of(timed).low.is_nan() || of(timed).low <= high).map(|timed| place(timed)).collect();
    Some(if alike.is_empty() {
        format!("Sparsity {sparsity}: {what} of the measured cells is that of {}, {number}.", place(best))
    } else {
        format!(
            "Sparsity {sparsity}: {what} is not decided: {} takes {number}, and {} cannot be told from it.",
            place(best),
            alike.join(", ")
        )
    })
}

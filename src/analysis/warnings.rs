//! Warnings: why a cell's result may be wrong or missing.

use super::grid::Grid;
use super::studies::StudyResults;
use crate::config::{Metaparameter, Range, Scale, Search, Setting};
use crate::records::{Cell, Status, Trial};
use crate::results::Results;

/// Share of a searched range, in u, at each end that counts as its edge.
pub const EDGE: f64 = 0.05;

/// Trials of a cell that must have reached the goal, or in a race stayed feasible, so that no warning is given.
pub const FEWEST_TRIALS: usize = 3;

/// One sentence a problem: layers without a weight, cells that are missing or reached no goal, whose best point lies at an edge of the
/// search space, or that too few trials decided.
pub fn warnings(study: &StudyResults) -> Vec<String> {
    let mut found = study.notes.clone();
    match &study.configuration {
        Err(problem) => found.push(format!(
            "The configuration in the file cannot be read ({problem}): edges of the search space and missing cells are unchecked."
        )),
        Ok(_) => {
            let missing: Vec<String> =
                study.missing().iter().map(|key| format!("{} at sparsity {}", key.batch_size, key.sparsity)).collect();
            if !missing.is_empty() {
                found.push(format!("Not measured yet: batch size {}.", missing.join(", ")));
            }
        }
    }
    if !study.results.complete && study.configuration.is_err() {
        found.push("The study is not finished: cells are still to come.".to_owned());
    }
    found.extend(dead_layers(&study.results));
    for cell in &study.results.cells {
        let name = format!("Batch size {}, sparsity {}", cell.key.batch_size, cell.key.sparsity);
        match cell.best() {
            None if study.measures_alone() => {}
            None => found.push(format!(
                "{name}: no trial reached the goal within {} steps ({} incomplete, {} infeasible).",
                study.results.workload.max_steps,
                cell.count(Status::Incomplete),
                cell.count(Status::Infeasible)
            )),
            Some(best) => {
                let edges = study.configuration.as_ref().map(|study| edges(&study.search, best)).unwrap_or_default();
                found.extend(edges.into_iter().map(|edge| format!("{name}: {edge}; the true K* may be lower, widen the range.")));
                found.extend(few_trials(study, cell).map(|few| format!("{name}: {few}")));
            }
        }
    }
    found
}

/// A sentence for each sparsity at which trials have a dead layer. A trial's mask is the same at every batch size.
pub fn dead_layers(results: &Results) -> Vec<String> {
    let of_sparsity = |&sparsity: &f64| {
        let cells = results.cells.iter().filter(|cell| cell.key.sparsity == sparsity);
        let trials = &cells.max_by_key(|cell| cell.trials.len())?.trials;
        let dead = trials.iter().filter(|trial| trial.dead_layers > 0).count();
        (dead > 0)
            .then(|| format!("Sparsity {sparsity}: trials with a dead layer (pruning left it no weight): {dead} of {}.", trials.len()))
    };
    Grid::new(results).sparsities.iter().filter_map(of_sparsity).collect()
}

/// Which searched metaparameters of the trial lie within [`EDGE`] of a limit of their range, in the search's own scale.
fn edges(search: &Search, best: &Trial) -> Vec<String> {
    let edge = |(name, setting): (Metaparameter, Setting)| {
        let (Setting::Range(range), Some(value)) = (setting, best.metaparameters.get(name)) else { return None };
        let share = share(&range, value)?;
        let (side, limit) = if share < EDGE {
            ("lower", range.min)
        } else if share > 1.0 - EDGE {
            ("upper", range.max)
        } else {
            return None;
        };
        Some(format!("the best {}, {}, lies at the {side} edge of its range ({limit})", name.name().replace('_', " "), name.show(value)))
    };
    search.settings.iter().filter_map(edge).collect()
}

/// Where in its range a value lies, 0 at the lower limit: the inverse of the search's maps, but for the direction of
/// reverse-log. None where the range has no width or the scale no such value.
fn share(range: &Range, value: f64) -> Option<f64> {
    let position = |value: f64| match range.scale {
        Scale::Integer | Scale::Linear => value,
        Scale::Log => value.log10(),
        Scale::ReverseLog => -(1.0 - value).log10(),
    };
    let share = (position(value) - position(range.min)) / (position(range.max) - position(range.min));
    share.is_finite().then_some(share)
}

/// What to say of a cell that too few trials decided. A race ends with its winner, so there the trials that stayed feasible count.
fn few_trials(study: &StudyResults, cell: &Cell) -> Option<String> {
    let raced = cell.count(Status::Censored) > 0 || study.configuration.as_ref().is_ok_and(|study| study.execution.race);
    if raced {
        let feasible = cell.trials.len() - cell.count(Status::Infeasible);
        (feasible < FEWEST_TRIALS).then(|| {
            format!(
                "only {feasible} of {} trials stayed feasible, fewer than {FEWEST_TRIALS} (a race ends with its winner, so complete trials cannot be counted).",
                cell.trials.len()
            )
        })
    } else {
        let complete = cell.count(Status::Complete);
        (complete < FEWEST_TRIALS)
            .then(|| format!("only {complete} of {} trials reached the goal, fewer than {FEWEST_TRIALS}.", cell.trials.len()))
    }
}

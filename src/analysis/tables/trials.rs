//! Trials, the best ones' curves, and what fewer trials would have found.

use super::fields::{of_cell, optional, words};
use crate::analysis::fewer::FewerTrials;
use crate::analysis::others::{has_trials, is_of_dps};
use crate::analysis::page::Section;
use crate::analysis::studies::StudyResults;
use crate::analysis::table::Table;
use crate::config::Metaparameter;
use crate::records::{Cell, CellKey, CurvePoint, Trial};

/// Columns of the table of trials, but for those of metaparameters and what comes after them.
const TRIALS: [&str; 8] = ["study", "batch_size", "sparsity", "trial", "status", "steps", "steps_run", "best_errors"];

/// Columns behind those of metaparameters.
const REST: [&str; 7] = ["parameters_kept", "mask_hash", "dead_layers", "seconds", "best_validation_error", "final_loss", "evaluations"];

/// Columns of the table of curves.
const CURVES: [&str; 8] = ["study", "batch_size", "sparsity", "trial", "step", "training_loss", "errors", "examples"];

/// Columns of the table of what fewer trials would have found.
const FEWER: [&str; 7] = ["study", "batch_size", "sparsity", "trials", "steps_to_result", "steps_to_result_low", "steps_to_result_high"];

/// A row a trial, `shown` being the metaparameters that any trial has.
pub(super) fn trials(sections: &[Section], shown: &[Metaparameter]) -> Table {
    let names = shown.iter().map(|name| name.name());
    let heading = TRIALS.into_iter().chain(names).chain(REST);
    Table {
        name: "trials",
        heading: heading.map(str::to_owned).collect(),
        rows: sections.iter().flat_map(|section| trial_rows(section.study, shown)).collect(),
    }
}

/// A row an evaluation of a cell's best trial.
pub(super) fn curves(sections: &[Section]) -> Table {
    Table { name: "curves", heading: words(&CURVES), rows: sections.iter().flat_map(|section| curve_rows(section.study)).collect() }
}

/// A row a cell and number of trials.
pub(super) fn fewer_trials(sections: &[Section]) -> Table {
    Table { name: "fewer-trials", heading: words(&FEWER), rows: sections.iter().flat_map(|section| fewer_rows(section.study)).collect() }
}

fn trial_rows(study: &StudyResults, shown: &[Metaparameter]) -> Vec<Vec<String>> {
    let is_of_dps = is_of_dps(&study.results);
    let own = |field: String| if is_of_dps { field } else { String::new() };
    let row = |(key, trial): (CellKey, &Trial)| {
        let mut row = of_cell(study, key);
        row.push(trial.index.to_string());
        // The fewest errors of a whole evaluation: others have bounds.
        let all = study.results.workload.validation_examples;
        let best_errors = trial.curve.iter().filter(|point| point.examples == all).map(|point| point.errors).min();
        row.extend([trial.status.name().to_owned(), optional(trial.steps), trial.steps_run.to_string(), optional(best_errors)]);
        row.extend(shown.iter().map(|&name| optional(trial.metaparameters.get(name))));
        let kept = Some(trial.parameters_kept).filter(|&kept| kept > 0 || is_of_dps);
        row.extend([optional(kept), own(format!("{:016x}", trial.mask_hash)), own(trial.dead_layers.to_string())]);
        row.push(own(trial.seconds.to_string()));
        row.push(optional(best_errors.filter(|_| all > 0).map(|errors| f64::from(errors) / f64::from(all))));
        let last = trial.curve.last().map(|point| point.loss).filter(|loss| loss.is_finite());
        row.extend([optional(last), trial.curve.len().to_string()]);
        row
    };
    if !has_trials(&study.results) {
        return Vec::new();
    }
    study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial))).map(row).collect()
}

/// The evaluations of each cell's best trial, those that the figures of curves show. Where examples are fewer than the validation set's, errors are a
/// lower bound.
fn curve_rows(study: &StudyResults) -> Vec<Vec<String>> {
    let row = |(key, trial, point): (CellKey, &Trial, &CurvePoint)| {
        let mut row = of_cell(study, key);
        row.extend([trial.index.to_string(), point.step.to_string(), point.loss.to_string()]);
        row.extend([point.errors.to_string(), point.examples.to_string()]);
        row
    };
    let best = study.results.cells.iter().filter_map(|cell| Some((cell.key, cell.best()?)));
    best.flat_map(|(key, best)| best.curve.iter().map(move |point| (key, best, point))).map(row).collect()
}

/// A row for each number of trials: the median of what so many find, and the limits between which 95 % of choices lie; empty beyond what is known.
fn fewer_rows(study: &StudyResults) -> Vec<Vec<String>> {
    let rows = |cell: &Cell| {
        let trials = FewerTrials::new(cell);
        let row = |count: usize| {
            let mut row = of_cell(study, cell.key);
            row.push(count.to_string());
            row.extend([0.5, 0.025, 0.975].map(|share| optional(trials.quantile(count, share))));
            row
        };
        (1..=cell.trials.len()).map(row).collect::<Vec<_>>()
    };
    let cells = study.results.cells.iter().filter(|cell| has_trials(&study.results) && cell.steps_to_result().is_some());
    cells.flat_map(rows).collect()
}

//! Trials, the best ones' curves, and what fewer trials would have found.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::figures::shown;
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::optimizer::Metaparameter;
use crate::records::{Cell, CellKey, Confirmation, CurvePoint, Trial};
use crate::results::{ConfirmationRow, CurveRow, TrialRow};

/// A trial of a cell of a study.
type Of<'a> = (&'a StudyResults, (&'a Cell, &'a Trial));

/// Columns of `/trials` with which the table of trials begins.
const FIRST: [&str; 6] = ["batch_size", "sparsity", "trial", "status", "steps", "steps_run"];

/// Columns of `/trials` that the table of trials has otherwise.
const TOLD_OTHERWISE: [&str; 3] = ["parameters_kept", "best_validation_error", "final_loss"];

/// Columns of `/trials` that only studies of dps have, and which the table of trials has had from the start.
const MASK_AND_TIME: [&str; 3] = ["mask_hash", "dead_layers", "seconds"];

/// A row a trial, `shown` being the metaparameters that any trial has.
pub(super) fn trials(sections: &[Section], shown: &[Metaparameter]) -> Table {
    let row = |&(study, (cell, trial)): &Of| Some(TrialRow::new(trial, cell.key, 0, 0, &study.results.workload));
    let own = move |of: &Of| row(of).filter(|_| is_of_dps(&of.0.results));
    let kept = |&(study, (_, trial)): &Of| optional(Some(trial.parameters_kept).filter(|&kept| kept > 0 || is_of_dps(&study.results)));
    let final_loss = |trial: &Trial| optional(trial.curve.last().map(|point| point.loss).filter(|loss| loss.is_finite()));
    Rows::of("trials", sections, |section| {
        let cells = section.study.results.cells.iter().filter(|_| has_trials(&section.study.results));
        cells.flat_map(|cell| cell.trials.iter().map(move |trial| (cell, trial)))
    })
    .declared(|column| FIRST.contains(&column.name), row)
    .column("best_errors", |(study, (_, trial))| optional(trial.best_errors(study.results.workload.validation_examples)))
    .metaparameters(shown, |&(_, (_, trial))| Some(trial))
    .column("parameters_kept", kept)
    .declared(|column| MASK_AND_TIME.contains(&column.name), own)
    .declared(|column| column.name == "best_validation_error", row)
    .column("final_loss", |(_, (_, trial))| final_loss(trial))
    .column("evaluations", |(_, (_, trial))| trial.curve.len().to_string())
    .declared(|column| !column.is_place && ![&FIRST[..], &TOLD_OTHERWISE, &MASK_AND_TIME].concat().contains(&column.name), own)
    .table()
}

/// A row a confirmation, with the metaparameters of its point.
pub(super) fn confirmations(sections: &[Section], shown: &[Metaparameter]) -> Table {
    type Confirmed<'a> = (&'a StudyResults, (CellKey, &'a Confirmation));
    Rows::of("confirmations", sections, |section| {
        section.study.results.cells.iter().flat_map(|cell| cell.confirmations.iter().map(|one| (cell.key, one)))
    })
    .declared(|column| !column.is_place, |&(_, (key, one)): &Confirmed| Some(ConfirmationRow::new(one, key, 0, 0)))
    .metaparameters(shown, |&(_, (_, one))| Some(&one.run))
    .table()
}

/// A row an evaluation of the trial of each cell whose curves the figures show. Where examples are fewer than the validation set's, errors are a
/// lower bound.
pub(super) fn curves(sections: &[Section]) -> Table {
    type Point<'a> = (&'a StudyResults, (CellKey, u32, &'a CurvePoint));
    Rows::of("curves", sections, |section| {
        let trials = section.study.results.cells.iter().filter_map(|cell| Some((cell.key, shown(cell)?)));
        trials.flat_map(|(key, trial)| trial.curve.iter().map(move |point| (key, trial.index, point)))
    })
    .of_cell(|(_, (key, ..))| *key)
    .column("trial", |(_, (_, trial, _))| trial.to_string())
    .declared(|column| column.name == "step", |(_, (.., point)): &Point| Some(CurveRow::new(point)))
    .column("training_loss", |(_, (.., point))| point.loss.to_string())
    .declared(|column| !["step", "loss"].contains(&column.name), |(_, (.., point)): &Point| Some(CurveRow::new(point)))
    .table()
}

/// A row a cell and number of trials: the median of what so many find, and the limits between which 95 % of choices lie; empty beyond what is known.
pub(super) fn fewer_trials(sections: &[Section]) -> Table {
    Rows::of("fewer-trials", sections, |section| {
        let results = &section.study.results;
        let cells = results.cells.iter().filter(|cell| has_trials(results) && cell.steps_to_result().is_some());
        cells.flat_map(|cell| {
            let trials = FewerTrials::new(cell);
            let quantiles = move |count| [0.5, 0.025, 0.975].map(|share| optional(trials.quantile(count, share))).to_vec();
            (1..=cell.trials.len()).map(move |count| (cell.key, count, quantiles(count)))
        })
    })
    .of_cell(|(_, (key, ..))| *key)
    .column("trials", |(_, (_, count, _))| count.to_string())
    .columns(&["steps_to_result", "steps_to_result_low", "steps_to_result_high"], |(_, (.., quantiles))| quantiles.clone())
    .table()
}

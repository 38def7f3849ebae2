//! Trials, the best ones' curves, and what fewer trials would have found.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::optimizer::Metaparameter;
use crate::records::{Cell, Confirmation, CurvePoint, Trial};
use crate::results::{ConfirmationRow, CurveRow, TrialRow};

/// A trial of a cell of a study.
type Of<'a> = (&'a StudyResults, &'a Cell, &'a Trial);

/// All trials of a study.
fn all<'a>(study: &'a StudyResults) -> impl Iterator<Item = Of<'a>> {
    study.results.cells.iter().flat_map(move |cell| cell.trials.iter().map(move |trial| (study, cell, trial)))
}

/// Columns of `/trials` with which the table of trials begins.
const FIRST: [&str; 6] = ["batch_size", "sparsity", "trial", "status", "steps", "steps_run"];

/// Columns of `/trials` that the table of trials has otherwise.
const TOLD_OTHERWISE: [&str; 3] = ["parameters_kept", "best_validation_error", "final_loss"];

/// Columns of `/trials` that only studies of dps have, and which the table of trials has had from the start.
const MASK_AND_TIME: [&str; 3] = ["mask_hash", "dead_layers", "seconds"];

/// A row a trial, `shown` being the metaparameters that any trial has.
pub(super) fn trials(sections: &[Section], shown: &[Metaparameter]) -> Table {
    let row = |&(study, cell, trial): &Of| Some(TrialRow::new(trial, cell.key, 0, 0, &study.results.workload));
    let own = move |of: &Of| row(of).filter(|_| is_of_dps(&of.0.results));
    let kept = |&(study, _, trial): &Of| optional(Some(trial.parameters_kept).filter(|&kept| kept > 0 || is_of_dps(&study.results)));
    let final_loss = |trial: &Trial| optional(trial.curve.last().map(|point| point.loss).filter(|loss| loss.is_finite()));
    Rows::new("trials", sections.iter().map(|section| section.study).filter(|study| has_trials(&study.results)).flat_map(all))
        .column("study", |(study, ..)| study.slug.clone())
        .declared(|column| FIRST.contains(&column.name), row)
        .column("best_errors", |(study, _, trial)| optional(trial.best_errors(study.results.workload.validation_examples)))
        .metaparameters(shown, |&(.., trial)| Some(trial))
        .column("parameters_kept", kept)
        .declared(|column| MASK_AND_TIME.contains(&column.name), own)
        .declared(|column| column.name == "best_validation_error", row)
        .column("final_loss", |(.., trial)| final_loss(trial))
        .column("evaluations", |(.., trial)| trial.curve.len().to_string())
        .declared(|column| !column.is_place && ![&FIRST[..], &TOLD_OTHERWISE, &MASK_AND_TIME].concat().contains(&column.name), own)
        .table()
}

/// A row a confirmation, with the metaparameters of its point.
pub(super) fn confirmations(sections: &[Section], shown: &[Metaparameter]) -> Table {
    type Confirmed<'a> = (&'a StudyResults, &'a Cell, &'a Confirmation);
    Rows::new(
        "confirmations",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let cells = study.results.cells.iter();
            cells.flat_map(move |cell| cell.confirmations.iter().map(move |confirmation| (study, cell, confirmation)))
        }),
    )
    .column("study", |(study, ..): &Confirmed| study.slug.clone())
    .declared(|column| !column.is_place, |&(_, cell, confirmation): &Confirmed| Some(ConfirmationRow::new(confirmation, cell.key, 0, 0)))
    .metaparameters(shown, |&(.., confirmation)| Some(&confirmation.run))
    .table()
}

/// A row an evaluation of a cell's best trial: those that the figures of curves show. Where examples are fewer than the validation set's, errors are
/// a lower bound.
pub(super) fn curves(sections: &[Section]) -> Table {
    type Point<'a> = (Of<'a>, &'a CurvePoint);
    Rows::new(
        "curves",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let trials = study.results.cells.iter().filter_map(move |cell| Some((study, cell, cell.best()?)));
            trials.flat_map(|of| of.2.curve.iter().map(move |point| (of, point))).collect::<Vec<_>>()
        }),
    )
    .of_cell(|&((study, cell, _), _): &Point| (study, cell.key))
    .column("trial", |((.., trial), _)| trial.index.to_string())
    .declared(|column| column.name == "step", |(_, point): &Point| Some(CurveRow::new(point)))
    .column("training_loss", |(_, point)| point.loss.to_string())
    .declared(|column| !["step", "loss"].contains(&column.name), |(_, point): &Point| Some(CurveRow::new(point)))
    .table()
}

/// A row a cell and number of trials: the median of what so many find, and the limits between which 95 % of choices lie; empty beyond what is known.
pub(super) fn fewer_trials(sections: &[Section]) -> Table {
    Rows::new(
        "fewer-trials",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let cells = study.results.cells.iter().filter(move |cell| has_trials(&study.results) && cell.steps_to_result().is_some());
            let of_cell = move |cell| {
                let trials = FewerTrials::new(cell);
                let quantiles = move |count| [0.5, 0.025, 0.975].map(|share| optional(trials.quantile(count, share))).to_vec();
                (1..=cell.trials.len()).map(move |count| (study, cell.key, count, quantiles(count)))
            };
            cells.flat_map(of_cell).collect::<Vec<_>>()
        }),
    )
    .of_cell(|&(study, key, ..)| (study, key))
    .column("trials", |(_, _, count, _)| count.to_string())
    .columns(&["steps_to_result", "steps_to_result_low", "steps_to_result_high"], |(.., quantiles)| quantiles.clone())
    .table()
}

//! Studies, their cells and fits.

use super::fields::{limits, of_cell, optional, words};
use crate::analysis::fit::Regime;
use crate::analysis::fits::{EnoughTrials, Fitted, Shift};
use crate::analysis::others::{has_trials, is_of_dps};
use crate::analysis::page::Section;
use crate::analysis::studies::StudyResults;
use crate::analysis::table::Table;
use crate::config::Metaparameter;
use crate::records::{Cell, CellKey, Status};
use crate::results::Environment;

/// Columns of the table of studies.
const STUDIES: [&str; 19] = [
    "study",
    "files",
    "dataset",
    "network",
    "optimizer",
    "schedule",
    "goal_error",
    "goal_threshold",
    "validation_examples",
    "test_examples",
    "max_steps",
    "evaluate_every",
    "parameters",
    "criterion",
    "shuffle",
    "race",
    "data_sha256",
    "program_version",
    "device",
];

/// Columns of the table of cells, but for those of statuses and metaparameters, which come before the last two.
const CELLS: [&str; 6] = ["study", "batch_size", "sparsity", "steps_to_result", "regime", "trials"];

/// Columns of the table of fits.
const FITS: [&str; 29] = [
    "study",
    "sparsity",
    "points",
    "left_out",
    "c1",
    "c1_low",
    "c1_high",
    "c2",
    "c2_low",
    "c2_high",
    "critical_batch_size",
    "critical_batch_size_low",
    "critical_batch_size_high",
    "deviation",
    "exponent",
    "exponent_low",
    "exponent_high",
    "enough_trials",
    "c1_over_dense",
    "c1_over_dense_low",
    "c1_over_dense_high",
    "c2_over_dense",
    "c2_over_dense_low",
    "c2_over_dense_high",
    "shift",
    "shift_low",
    "shift_high",
    "shift_points",
    "no_fit_because",
];

/// The steps-to-result of a cell that has not been measured.
const TO_COME: &str = "·";

/// What studies are of, and where they were run.
pub(super) fn studies(sections: &[Section]) -> Table {
    Table { name: "studies", heading: words(&STUDIES), rows: sections.iter().map(|section| study(section.study)).collect() }
}

/// A row a cell, `shown` being the metaparameters that any trial has.
pub(super) fn cells(sections: &[Section], shown: &[Metaparameter]) -> Table {
    let names = shown.iter().map(|name| name.name());
    let heading =
        CELLS.into_iter().chain(Status::ALL.map(Status::name)).chain(["best_trial"]).chain(names).chain(["test_error", "seconds"]);
    Table {
        name: "cells",
        heading: heading.map(str::to_owned).collect(),
        rows: sections.iter().flat_map(|section| cell_rows(section.study, section.fits, shown)).collect(),
    }
}

/// A row a sparsity.
pub(super) fn fits(sections: &[Section]) -> Table {
    Table { name: "fits", heading: words(&FITS), rows: sections.iter().flat_map(|section| fit_rows(section.study, section.fits)).collect() }
}

/// What a study is of, and where it was run; several places are joined by semicolons.
fn study(study: &StudyResults) -> Vec<String> {
    let workload = &study.results.workload;
    let configured = study.configuration.as_ref().ok();
    let of_all = |of: fn(&Environment) -> &String| {
        // A file that was merged names several itself.
        let mut texts: Vec<&str> = Vec::new();
        for text in study.environments.iter().flat_map(|environment| of(environment).split("; ")) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts.join("; ")
    };
    // In others' measurements 0 stands for what they do not say.
    let known = |number: u32| optional(Some(number).filter(|&number| number > 0 || is_of_dps(&study.results)));
    let races: Vec<String> = study.races.iter().map(|race| race.factor().map_or("false".to_owned(), |factor| factor.to_string())).collect();
    vec![
        study.slug.clone(),
        study.sources.join("; "),
        workload.dataset.clone(),
        workload.network.clone(),
        workload.optimizer.clone(),
        workload.schedule.clone(),
        workload.goal_error.to_string(),
        known(workload.goal_threshold),
        known(workload.validation_examples),
        known(workload.test_examples),
        known(workload.max_steps),
        known(workload.evaluate_every),
        known(workload.parameters),
        optional(configured.map(|study| study.pruning.criterion)),
        optional(configured.map(|study| study.pruning.shuffle)),
        races.join("; "),
        of_all(|environment| &environment.data_digest),
        of_all(|environment| &environment.program_version),
        of_all(|environment| &environment.device),
    ]
}

fn cell_rows(study: &StudyResults, fits: &[Fitted], shown: &[Metaparameter]) -> Vec<Vec<String>> {
    let (has_trials, is_of_dps) = (has_trials(&study.results), is_of_dps(&study.results));
    let row = |cell: &Cell| {
        let best = cell.best().filter(|_| has_trials);
        let fitted = fits.iter().find(|fitted| fitted.sparsity == cell.key.sparsity && fitted.fit.is_ok());
        let mut row = of_cell(study, cell.key);
        row.push(optional(cell.steps_to_result()));
        row.push(fitted.map_or("", |fitted| fitted.regime(cell.key.batch_size).map_or("undecided", Regime::name)).to_owned());
        row.push(optional(has_trials.then_some(cell.trials.len())));
        row.extend(Status::ALL.map(|status| optional(has_trials.then(|| cell.count(status)))));
        row.push(optional(best.map(|trial| trial.index)));
        row.extend(shown.iter().map(|&name| optional(best.and_then(|trial| trial.metaparameters.get(name)))));
        row.push(optional(study.results.workload.test_error(cell)));
        row.push(optional(is_of_dps.then_some(cell.seconds)));
        row
    };
    let width = 9 + Status::ALL.len() + shown.len();
    // A cell that is still to come has its place and nothing else.
    let to_come = |key: &CellKey| {
        let mut row = of_cell(study, *key);
        row.extend([TO_COME, "", "0"].map(str::to_owned));
        row.resize(width, String::new());
        row
    };
    let mut rows: Vec<(CellKey, Vec<String>)> = study.results.cells.iter().map(|cell| (cell.key, row(cell))).collect();
    rows.extend(study.missing().iter().map(|key| (*key, to_come(key))));
    rows.sort_by(|(a, _), (b, _)| a.sparsity.total_cmp(&b.sparsity).then(a.batch_size.cmp(&b.batch_size)));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn fit_rows(study: &StudyResults, fits: &[Fitted]) -> Vec<Vec<String>> {
    let row = |fitted: &Fitted| {
        let fit = fitted.fit.as_ref().ok();
        let left_out: Vec<String> = fitted.left_out.iter().map(u32::to_string).collect();
        let mut row = vec![study.slug.clone(), fitted.sparsity.to_string(), optional(fit.map(|fit| fit.points)), left_out.join(" ")];
        row.extend([fit.map(|fit| fit.c1), fit.map(|fit| fit.c2), fit.map(|fit| fit.critical)].into_iter().flat_map(limits));
        row.push(optional(fit.map(|fit| fit.deviation)));
        row.extend(limits(fitted.exponent));
        row.push(fitted.enough_trials.map_or(String::new(), EnoughTrials::name));
        row.extend(limits(fitted.c1_ratio));
        row.extend(limits(fitted.c2_ratio));
        row.extend(limits(fitted.shift.map(Shift::estimate)));
        row.push(optional(fitted.shift.map(|shift| shift.points)));
        row.push(fitted.fit.as_ref().err().cloned().unwrap_or_default());
        row
    };
    fits.iter().map(row).collect()
}

//! Measurements along training, and what the theory makes of them.

use super::fields::{estimates, limits, of_cell, optional, words};
use crate::analysis::fit::Estimate;
use crate::analysis::fits::{Shift, decays};
use crate::analysis::page::Section;
use crate::analysis::smoothness::{Along, Measured, Smooth, Surface, noise_scale};
use crate::analysis::studies::StudyResults;
use crate::analysis::table::Table;
use crate::records::{CellKey, Measurement};

/// Columns of the table of measurements.
const MEASUREMENTS: [&str; 12] = [
    "study",
    "batch_size",
    "sparsity",
    "trial",
    "step",
    "lipschitz",
    "loss",
    "gradient_norm",
    "squared_norms",
    "variance",
    "noise_scale",
    "noise_scale_of_part",
];

/// What a row of the theory's table is of.
const PLACE: [&str; 6] = ["study", "batch_size", "sparsity", "along_training", "trials", "measurements"];

/// Columns of the theory's table, each with its limits. A ratio is sparse over dense. What is taken along the training is a mean or a median.
const THEORY: [&str; 24] = [
    "start_loss",
    "last_loss",
    "decrease",
    "start_variance",
    "along_variance",
    "last_variance",
    "along_lipschitz",
    "squared_rates",
    "decrease_ratio",
    "start_variance_ratio",
    "along_variance_ratio",
    "last_variance_ratio",
    "along_lipschitz_ratio",
    "squared_rates_ratio",
    "searched_squared_rates_ratio",
    "predicted_c1_ratio",
    "fitted_c1_ratio",
    "predicted_c2_ratio",
    "fitted_c2_ratio",
    "shift",
    "start_noise_scale",
    "median_noise_scale",
    "last_noise_scale",
    "critical_batch_size",
];

/// A row a measurement.
pub(super) fn measurements(sections: &[Section]) -> Table {
    Table {
        name: "smoothness",
        heading: words(&MEASUREMENTS),
        rows: sections.iter().flat_map(|section| measurement_rows(section.study)).collect(),
    }
}

/// Two rows a cell: one with means along the training, one with medians.
pub(super) fn theory(sections: &[Section]) -> Table {
    let heading = words(&PLACE).into_iter().chain(THEORY.into_iter().flat_map(estimates));
    Table { name: "theory", heading: heading.collect(), rows: sections.iter().flat_map(|section| theory_rows(section)).collect() }
}

/// The noise scale is the whole training set's, as in the figures; that of the part measured on is the result file's.
fn measurement_rows(study: &StudyResults) -> Vec<Vec<String>> {
    let sampling = study.sampling();
    let row = |(key, trial, found): (CellKey, u32, &Measurement)| {
        let mut row = of_cell(study, key);
        row.extend([trial.to_string(), found.step.to_string()]);
        row.push(optional(found.lipschitz));
        let values =
            [found.loss, found.gradient_norm, found.squared_norms, found.variance(), noise_scale(found, sampling), found.noise_scale()];
        row.extend(values.map(|value| optional(Some(value).filter(|value| value.is_finite()))));
        row
    };
    let trials = study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial)));
    trials.flat_map(|(key, trial)| trial.measurements.iter().map(move |found| (key, trial.index, found))).map(row).collect()
}

/// Two rows a cell: one with means along the training, one with medians.
fn theory_rows(section: &Section) -> Vec<Vec<String>> {
    let decays = decays(section.study);
    let row = |smooth: &Smooth, number: usize, along: Along| {
        let of = |surface: Option<&Surface<Estimate>>, value: fn(&Surface<Estimate>) -> Estimate| surface.map(value);
        let here = |value| of(smooth.along.get(number), value);
        let over = smooth.over_dense.as_ref().and_then(|both| both.get(number));
        let ratio = |value| of(over, value);
        let fitted = |value: fn(Measured) -> Option<Estimate>| smooth.measured.and_then(value);
        let [start_noise, median_noise, last_noise] = smooth.noise_scale.map(Some);
        let estimates = [
            here(|surface| surface.start_loss),
            here(|surface| surface.last_loss),
            here(|surface| surface.decrease),
            here(|surface| surface.start_variance),
            here(|surface| surface.variance),
            here(|surface| surface.last_variance),
            here(|surface| surface.lipschitz),
            here(|surface| surface.squared_rates),
            ratio(|surface| surface.decrease),
            ratio(|surface| surface.start_variance),
            ratio(|surface| surface.variance),
            ratio(|surface| surface.last_variance),
            ratio(|surface| surface.lipschitz),
            ratio(|surface| surface.squared_rates),
            fitted(|measured| measured.squared_rates_ratio),
            over.map(|over| smooth.predicted_c1(over)),
            fitted(|measured| measured.c1_ratio),
            ratio(|surface| surface.decrease).filter(|_| decays),
            fitted(|measured| measured.c2_ratio),
            fitted(|measured| measured.shift.map(Shift::estimate)),
            start_noise,
            median_noise,
            last_noise,
            fitted(|measured| measured.critical),
        ];
        let mut row = of_cell(section.study, smooth.key);
        row.extend([along.name().to_owned(), smooth.trials.to_string(), smooth.measurements.to_string()]);
        row.extend(estimates.into_iter().flat_map(limits));
        row
    };
    let both = |smooth| Along::ALL.into_iter().enumerate().map(move |(number, along)| row(smooth, number, along));
    section.smoothness.iter().flat_map(both).collect()
}

//! Measurements along training, and what the theory makes of them.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::{Along, Estimate, Measured, Shift, Smooth, Surface, decays, noise_scale};
use crate::analysis::studies::StudyResults;
use crate::records::{CellKey, Measurement};
use crate::results::MeasurementRow;

/// A row a measurement. The noise scale is the whole training set's, as in the figures; that of the part measured on is the result file's.
pub(super) fn measurements(sections: &[Section]) -> Table {
    type Of<'a> = (&'a StudyResults, CellKey, u32, &'a Measurement);
    let finite = |value: f64| optional(Some(value).filter(|value| value.is_finite()));
    Rows::new(
        "smoothness",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let trials = study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial)));
            trials.flat_map(|(key, trial)| trial.measurements.iter().map(move |found| (study, key, trial.index, found))).collect::<Vec<_>>()
        }),
    )
    .column("study", |(study, ..)| study.slug.clone())
    .declared(
        |column| !column.is_place && column.name != "noise_scale",
        |&(_, key, trial, found): &Of| Some(MeasurementRow::new(found, trial, key, 0)),
    )
    .column("noise_scale", |(study, .., found)| finite(noise_scale(found, study.sampling())))
    .column("noise_scale_of_part", |(.., found)| finite(found.noise_scale()))
    .table()
}

/// The theory of a cell: means along the training, or medians.
struct Theory<'a> {
    study: &'a StudyResults,
    smooth: &'a Smooth,
    along: Along,
    here: Option<&'a Surface<Estimate>>,
    over_dense: Option<&'a Surface<Estimate>>,
}

impl<'a> Theory<'a> {
    fn all(section: &'a Section) -> Vec<Theory<'a>> {
        let study = section.study;
        let both = |smooth: &'a Smooth| {
            Along::ALL.into_iter().enumerate().map(move |(number, along)| Theory {
                study,
                smooth,
                along,
                here: smooth.along.get(number),
                over_dense: smooth.over_dense.as_ref().and_then(|both| both.get(number)),
            })
        };
        section.smoothness.iter().flat_map(both).collect()
    }
}

/// Two rows a cell: one with means along the training, one with medians. A ratio is sparse over dense.
pub(super) fn theory(sections: &[Section]) -> Table {
    type Value = fn(&Surface<Estimate>) -> Estimate;
    let here = |value: Value| move |row: &Theory| row.here.map(value);
    let ratio = |value: Value| move |row: &Theory| row.over_dense.map(value);
    let measured = |value: fn(Measured) -> Option<Estimate>| move |row: &Theory| row.smooth.measured.and_then(value);
    let noise = |number: usize| move |row: &Theory| row.smooth.noise_scale.get(number).copied();
    let decrease_ratio = |row: &Theory| row.over_dense.map(|surface| surface.decrease).filter(|_| decays(row.study));
    Rows::new("theory", sections.iter().flat_map(Theory::all))
        .of_cell(|row| (row.study, row.smooth.key))
        .column("along_training", |row| row.along.name().to_owned())
        .column("trials", |row| row.smooth.trials.to_string())
        .column("measurements", |row| row.smooth.measurements.to_string())
        .estimate("start_loss", here(|surface| surface.start_loss))
        .estimate("last_loss", here(|surface| surface.last_loss))
        .estimate("decrease", here(|surface| surface.decrease))
        .estimate("start_variance", here(|surface| surface.start_variance))
        .estimate("along_variance", here(|surface| surface.variance))
        .estimate("last_variance", here(|surface| surface.last_variance))
        .estimate("along_lipschitz", here(|surface| surface.lipschitz))
        .estimate("squared_rates", here(|surface| surface.squared_rates))
        .estimate("decrease_ratio", ratio(|surface| surface.decrease))
        .estimate("start_variance_ratio", ratio(|surface| surface.start_variance))
        .estimate("along_variance_ratio", ratio(|surface| surface.variance))
        .estimate("last_variance_ratio", ratio(|surface| surface.last_variance))
        .estimate("along_lipschitz_ratio", ratio(|surface| surface.lipschitz))
        .estimate("squared_rates_ratio", ratio(|surface| surface.squared_rates))
        .estimate("searched_squared_rates_ratio", measured(|measured| measured.squared_rates_ratio))
        .estimate("predicted_c1_ratio", |row| row.over_dense.map(|over| row.smooth.predicted_c1(over)))
        .estimate("fitted_c1_ratio", measured(|measured| measured.c1_ratio))
        .estimate("predicted_c2_ratio", decrease_ratio)
        .estimate("fitted_c2_ratio", measured(|measured| measured.c2_ratio))
        .estimate("along_gradient_ratio", ratio(|surface| surface.gradient))
        .estimate("predicted_c1_by_gradient_ratio", ratio(|surface| surface.c1_by_gradient))
        .estimate("predicted_c2_by_gradient_ratio", ratio(|surface| surface.c2_by_gradient))
        .estimate("predicted_critical_ratio", ratio(|surface| surface.critical_by_gradient))
        .estimate("shift", measured(|measured| measured.shift.map(Shift::estimate)))
        .estimate("start_noise_scale", noise(0))
        .estimate("median_noise_scale", noise(1))
        .estimate("last_noise_scale", noise(2))
        .estimate("critical_batch_size", measured(|measured| measured.critical))
        .table()
}

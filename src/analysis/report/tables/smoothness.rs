//! Measurements along training, and what the theory makes of them.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::{Estimate, Fitted, Measured, Smooth, Surface, decays, noise_scale};
use crate::analysis::studies::StudyResults;
use crate::records::{CellKey, Measurement};
use crate::results::MeasurementRow;

/// A row a measurement. The noise scale is the whole training set's, as in the figures; that of the part measured on is the result file's.
pub(super) fn measurements(sections: &[Section]) -> Table {
    type Of<'a> = (&'a StudyResults, (CellKey, u32, &'a Measurement));
    let finite = |value: f64| optional(Some(value).filter(|value| value.is_finite()));
    Rows::of("smoothness", sections, |section| {
        let trials = section.study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial)));
        trials.flat_map(|(key, trial)| trial.measurements.iter().map(move |found| (key, trial.index, found)))
    })
    .declared(
        |column| !column.is_place && column.name != "noise_scale",
        |&(_, (key, trial, found)): &Of| Some(MeasurementRow::new(found, trial, key, 0)),
    )
    .column("noise_scale", |(study, (.., found))| finite(noise_scale(found, study.sampling())))
    .column("noise_scale_of_part", |(_, (.., found))| finite(found.noise_scale()))
    .table()
}

/// Two rows a cell: one with means along the training, one with medians. A ratio is sparse over dense.
pub(super) fn theory(sections: &[Section]) -> Table {
    type Of<'a> = (&'a StudyResults, Measured<'a>);
    type Value = fn(&Surface<Estimate>) -> Estimate;
    let here = |value: Value| move |(_, row): &Of| Some(value(&row.2));
    let ratio = |value: Value| move |(_, row): &Of| row.3.as_ref().map(value);
    let fitted = |value: fn(&Fitted) -> Option<Estimate>| move |(_, row): &Of| row.0.fitted.as_ref().and_then(value);
    let noise = |number: usize| move |(_, row): &Of| row.0.noise_scale.get(number).copied();
    let decrease_ratio = |(study, row): &Of| row.3.map(|surface| surface.decrease).filter(|_| decays(study));
    Rows::of("theory", sections, |section| section.smoothness.iter().flat_map(Smooth::both))
        .of_cell(|(_, (smooth, ..))| smooth.key)
        .column("along_training", |(_, (_, along, ..))| along.name().to_owned())
        .column("trials", |(_, (smooth, ..))| smooth.trials.to_string())
        .column("measurements", |(_, (smooth, ..))| smooth.measurements.to_string())
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
        .estimate("searched_squared_rates_ratio", fitted(|fitted| fitted.squared_rates_ratio))
        .estimate("predicted_c1_ratio", |(_, (smooth, .., over))| over.map(|over| smooth.predicted_c1(&over)))
        .estimate("fitted_c1_ratio", fitted(|fitted| fitted.c1_ratio))
        .estimate("predicted_c2_ratio", decrease_ratio)
        .estimate("fitted_c2_ratio", fitted(|fitted| fitted.c2_ratio))
        .estimate("along_squared_gradient_ratio", ratio(|surface| surface.gradient))
        .estimate("predicted_c1_by_gradient_ratio", ratio(|surface| surface.c1_by_gradient))
        .estimate("predicted_c2_by_gradient_ratio", ratio(|surface| surface.c2_by_gradient))
        .estimate("predicted_critical_ratio", ratio(|surface| surface.critical_by_gradient))
        .estimate("shift", fitted(|fitted| fitted.shift.map(|shift| shift.ratio)))
        .estimate("start_noise_scale", noise(0))
        .estimate("median_noise_scale", noise(1))
        .estimate("last_noise_scale", noise(2))
        .estimate("critical_batch_size", fitted(Fitted::critical))
        .table()
}

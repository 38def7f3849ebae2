//! Time that a study probably takes, before it starts or goes on.

use std::path::Path;

use super::cost::CostBound;
use super::measured;
use super::status::{begun, found};
use crate::forecast::Forecast;
use crate::records::cells;
use crate::settings::Configuration;

/// A sentence on the time that the study probably takes, or what is left of it where some of its cells are in the files at `output`; confirmations
/// included. None where no cell is measured and nothing is known to assume, and where all are.
pub fn expected(bound: &CostBound, configuration: &Configuration, output: &Path) -> Option<String> {
    let mut study = configuration.study.clone();
    let keys = cells(&study.grid);
    // Files of another study tell nothing of this one.
    let found = found(output).ok().filter(|found| found.digest == configuration.digest);
    // The run keeps the cells, trials and confirmations that earlier runs of this study asked for.
    found.iter().for_each(|found| study.join(&found.study));
    let known = found.as_ref().map_or(&[][..], |found| &found.finished);
    let measured = measured::measured(known, &study);
    // A run goes on with the cell that was left, if it is one of these.
    let left = measured::left(known, &keys, &study, found.as_ref().and_then(|found| found.checkpoint.as_ref()).map(begun));
    let mut forecast = Forecast::new(&measured, &left, study.grid.trials as usize, bound.assumed())?;
    // Where cells are measured their seconds say how fast this network is; no bound is known then.
    if forecast.cells == 0 {
        forecast.left = forecast.left.at_most(bound.assumed_most());
    }
    Some(match forecast.cells {
        0 => format!(
            "Probably {forecast}, beside the scores. No cell is measured yet: this guesses that the best trials of small batches reach the goal after half a pass \
             over the training set, at half of the speed above."
        ),
        _ => format!("Left: {forecast}."),
    })
}

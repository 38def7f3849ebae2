//! What a study probably takes, before it starts or goes on.

use std::path::Path;

use super::cost::CostBound;
use super::status::status;
use crate::config::Configuration;
use crate::forecast::{Forecast, Measured};
use crate::records::{CellKey, cells};

/// A sentence on the time that the study probably takes, or what is left of it where some of its cells are in the files at `output`. None where no
/// cell is measured and nothing is known to assume, and where all are.
pub fn expected(bound: &CostBound, configuration: &Configuration, output: &Path) -> Option<String> {
    let grid = &configuration.study.grid;
    // Files of another study, or none, are no source.
    let found = status(output).ok().filter(|found| found.digest == configuration.digest);
    let measured: Vec<Measured> = found.iter().flat_map(|found| found.measured()).collect();
    let is_measured = |key: &CellKey| measured.iter().any(|cell| cell.key == *key && cell.trials >= grid.trials as usize);
    let mut left: Vec<CellKey> = cells(grid).into_iter().filter(|key| !is_measured(key)).collect();
    // A run goes on with the cell that was left, if it is one of these.
    let begun = found.and_then(|found| found.under_way).map(|cell| (cell.key(), cell.seconds.unwrap_or(0.0)));
    let begun = begun.filter(|(key, _)| left.contains(key));
    left.sort_by_key(|key| Some(*key) != begun.map(|(key, _)| key));
    let elapsed = begun.map_or(0.0, |(_, seconds)| seconds);
    let mut forecast = Forecast::new(&measured, &left, grid.trials as usize, elapsed, bound.assumed())?;
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

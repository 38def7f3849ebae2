//! Records of studies as tests compare them.

use std::path::Path;

use dps::records::Cell;
use dps::results;

/// Cells without their times, the only thing that differs between two runs of a study.
pub fn timeless(mut cells: Vec<Cell>) -> Vec<Cell> {
    for cell in &mut cells {
        cell.seconds = 0.0;
        cell.trials.iter_mut().for_each(|trial| trial.seconds = 0.0);
    }
    cells
}

/// The cells of a result file without their times, after checking that none is missing.
pub fn complete(path: &Path) -> Vec<Cell> {
    let results = results::read(path).unwrap();
    assert!(results.complete);
    timeless(results.cells)
}

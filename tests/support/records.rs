//! Records of studies as tests compare them.

use std::path::Path;

use dps::records::Cell;
use dps::results;

/// Cells without their times, the only thing that differs between two runs of a study.
pub fn timeless(mut cells: Vec<Cell>) -> Vec<Cell> {
    for cell in &mut cells {
        cell.seconds = 0.0;
        cell.trials.iter_mut().for_each(|trial| trial.seconds = 0.0);
        cell.confirmations.iter_mut().for_each(|confirmation| confirmation.run.seconds = 0.0);
    }
    cells
}

/// The cells of a result file without their times, after checking that none is missing.
pub fn complete(path: &Path) -> Vec<Cell> {
    let results = results::read(path).unwrap();
    assert!(results.complete);
    timeless(results.cells)
}

/// The cells of a complete study in order of their keys. A study that goes on begins with the cell that was left, so that cells may be finished in
/// another order.
pub fn complete_in_order(path: &Path) -> Vec<Cell> {
    let mut cells = complete(path);
    cells.sort_by(|a, b| a.key.batch_size.cmp(&b.key.batch_size).then(a.key.sparsity.total_cmp(&b.key.sparsity)));
    cells
}

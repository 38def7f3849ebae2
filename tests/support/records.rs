//! Records of studies as tests compare them.

use std::path::Path;

use dps::records::{Cell, Trial};
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

/// The first trial whose records differ by more than rounding, as found and as expected. Twelve steps may turn differences of 1e-6 into some of 1e-3
/// of a loss, and an example or two of 60 at the border to the other side; nothing else may differ but seconds.
pub fn difference(found: &[Cell], expected: &[Cell]) -> Option<String> {
    let keys = |cells: &[Cell]| cells.iter().map(|cell| (cell.key, cell.trials.len())).collect::<Vec<_>>();
    assert_eq!(keys(found), keys(expected));
    let facts = |trial: &Trial| (trial.mask_hash, trial.parameters_kept, trial.status, trial.steps, trial.steps_run, trial.curve.len());
    let mut trials = found.iter().flat_map(|cell| &cell.trials).zip(expected.iter().flat_map(|cell| &cell.trials));
    let differing = trials.find(|(found, expected)| {
        let same = facts(found) == facts(expected)
            && found.curve.iter().zip(&expected.curve).all(|(found, expected)| {
                (found.step, found.examples) == (expected.step, expected.examples)
                    && (found.loss - expected.loss).abs() <= 1e-3 * expected.loss.abs().max(0.1)
                    && found.errors.abs_diff(expected.errors) <= 2
            });
        !same
    });
    differing.map(|(found, expected)| format!("{found:?} and {expected:?}"))
}

/// The finished cells of a result file without their times, after checking that none is missing, and the device.
pub fn complete_on(path: &Path) -> (Vec<Cell>, String) {
    (complete(path), results::read(path).unwrap().environment.device)
}

/// The cells of a complete study in order of their keys. A study that goes on begins with the cell that was left, so that cells may be finished in
/// another order.
pub fn complete_in_order(path: &Path) -> Vec<Cell> {
    let mut cells = complete(path);
    cells.sort_by(|a, b| a.key.batch_size.cmp(&b.key.batch_size).then(a.key.sparsity.total_cmp(&b.key.sparsity)));
    cells
}

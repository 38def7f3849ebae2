//! What results say: the table of steps-to-result and its figure.
//!
//! What lives here reads [`Results`] and nothing else; it neither trains nor opens HDF5 files.

mod plot;
mod table;

pub use plot::steps_to_result_plot;
pub use table::table;

use crate::results::Results;
use crate::study::Cell;

/// A study's cells as a grid.
struct Grid<'a> {
    /// Batch sizes measured so far, ascending.
    batch_sizes: Vec<u32>,
    /// Sparsities measured so far, ascending.
    sparsities: Vec<f64>,
    cells: &'a [Cell],
}

impl<'a> Grid<'a> {
    fn new(results: &'a Results) -> Self {
        let mut batch_sizes: Vec<u32> = results.cells.iter().map(|cell| cell.key.batch_size).collect();
        batch_sizes.sort_unstable();
        batch_sizes.dedup();
        let mut sparsities: Vec<f64> = results.cells.iter().map(|cell| cell.key.sparsity).collect();
        sparsities.sort_unstable_by(f64::total_cmp);
        sparsities.dedup();
        Grid { batch_sizes, sparsities, cells: &results.cells }
    }

    /// The cell, where it has been measured.
    fn cell(&self, batch_size: u32, sparsity: f64) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| cell.key.batch_size == batch_size && cell.key.sparsity == sparsity)
    }
}

/// The workload in a line, without its goal.
fn workload_name(results: &Results) -> String {
    let workload = &results.workload;
    format!("{}, {}, {}, {} learning rate", workload.dataset, workload.network, workload.optimizer, workload.schedule)
}

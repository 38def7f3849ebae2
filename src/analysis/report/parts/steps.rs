//! Steps-to-result of every cell.

use super::super::document::Block;
use super::super::numbers::{ABSENT, NOT_MEASURED};
use super::super::rows::Rows;
use super::super::table::Table;
use crate::analysis::studies::{Grid, StudyResults};
use crate::readable::count;
use crate::records::{Cell, CellKey};
use crate::settings::ascending;

/// K* of every cell as a table.
pub fn steps(study: &StudyResults) -> Vec<Block<'static>> {
    if study.results.cells.is_empty() {
        return vec![Block::Text("No cell is finished yet.".to_owned())];
    }
    let note = format!("Fewest steps over a cell's trials. {ABSENT} no trial reached the goal; {NOT_MEASURED} not measured yet.");
    vec![Block::Table(steps_to_result(&study.grid(), &study.missing())), Block::Note(note)]
}

/// K* of the cells of a grid, and of those that are still to come.
pub fn steps_to_result(grid: &Grid, to_come: &[CellKey]) -> Table {
    let sizes = ascending(grid.batch_sizes.iter().copied().chain(to_come.iter().map(|key| key.batch_size)), u32::cmp);
    let sparsities = ascending(grid.sparsities.iter().copied().chain(to_come.iter().map(|key| key.sparsity)), f64::total_cmp);
    let steps = |cell: &Cell| cell.steps_to_result().map_or(ABSENT.to_owned(), count);
    crossed("steps-to-result", &sizes, &sparsities, |size, sparsity| grid.cell(size, sparsity).map_or(NOT_MEASURED.to_owned(), steps))
}

/// A table with a row a batch size and a column a sparsity.
pub fn crossed(name: &'static str, sizes: &[u32], sparsities: &[f64], field: impl Fn(u32, f64) -> String) -> Table {
    let rows = Rows::new(name, sizes.iter().copied()).column("batch size", |&size| count(size));
    let add = |rows: Rows<u32>, &sparsity: &f64| rows.column(&format!("sparsity {sparsity}"), |&size| field(size, sparsity));
    sparsities.iter().fold(rows, add).table()
}

//! Confirmed steps.

use super::rows::{Rows, optional};
use crate::analysis::confirmations::{ConfirmedCell, confirmed_cells};
use crate::analysis::page::Section;
use crate::analysis::studies::StudyResults;
use crate::analysis::table::Table;

/// A row a confirmed cell.
pub(super) fn confirmed(sections: &[Section]) -> Table {
    let variance = |number: usize| {
        move |(_, cell): &(&StudyResults, ConfirmedCell)| optional(cell.variances.and_then(|variances| variances.get(number).copied()))
    };
    let cells = |study| confirmed_cells(study).into_iter().map(move |cell| (study, cell));
    Rows::new("confirmed", sections.iter().flat_map(|section| cells(section.study)))
        .of_cell(|(study, cell)| (*study, cell.key))
        .column("points", |(_, cell)| cell.points.len().to_string())
        .column("seeds", |(_, cell)| cell.confirmed.trainings.len().to_string())
        .estimate("mean_steps", |(_, cell)| Some(cell.confirmed.mean))
        .estimate("median_steps", |(_, cell)| Some(cell.confirmed.median))
        .estimate("steps_of_nine_in_ten", |(_, cell)| Some(cell.confirmed.nine_of_ten))
        .estimate("failures", |(_, cell)| Some(cell.confirmed.failures))
        .estimate("luck", |(_, cell)| cell.luck)
        .column("variance_of_points", variance(0))
        .column("variance_of_seeds", variance(1))
        .column("variance_left", variance(2))
        .table()
}

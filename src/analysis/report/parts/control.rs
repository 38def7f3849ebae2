//! A control: a study beside another, from which it differs by its pruning alone.

use super::super::document::Block;
use super::super::numbers::compared;
use super::super::rows::Rows;
use super::super::section::{Control, ControlRow};
use crate::analysis::claims::words;
use crate::analysis::statistics::Estimate;
use crate::analysis::studies::StudyResults;
use crate::readable::count;

/// The meaning of the table's rows.
const BESIDE: &str = "Confirmed steps over those of the other study at the same cell, in geometric means, with 95 % intervals; both have the same seeds. The \
                      dense network is the other study's. __all__: by the laws c1/B + c2 fitted to both, in the geometric mean over their common batch \
                      sizes, and of their critical batch sizes; the intervals have the seeds, the choice of points and uneven tuning.";

/// A row a cell, and a row a sparsity by the fitted laws. `shown` writes an estimate.
pub fn control(study: &StudyResults, control: &Control, shown: fn(Estimate) -> String) -> Vec<Block<'static>> {
    let Control { original, rows } = control;
    let text = format!("Beside {}, from which this study differs by {} alone. {BESIDE}", original.name(), study.pruned_otherwise(original));
    let table = Rows::new("control", rows)
        .column("batch size", |row| row.batch_size.map_or("all".to_owned(), count))
        .column("sparsity", |row| row.sparsity.to_string())
        .keys(2)
        .shown("steps over the other study's", shown, |row| row.steps[0])
        .shown("over its dense network's", shown, |row| row.steps[1])
        .shown("critical batch size over the other study's", shown, |row| row.critical[0])
        .shown("over its dense network's", shown, |row| row.critical[1])
        .table();
    let said = |row: &ControlRow| {
        let (steps, critical) = (row.steps[0]?, row.critical[0]?);
        let dense =
            |ratio: Option<Estimate>| ratio.map_or(String::new(), |ratio| format!(", and {} times the dense network's", words(ratio)));
        Some(format!(
            "At sparsity {} this study's network takes {} times the steps of the other study's network, {}{}; its critical batch size is {} times \
             the critical batch size there, {}{}.",
            row.sparsity,
            words(steps),
            compared(steps, "more", "fewer"),
            dense(row.steps[1]),
            words(critical),
            compared(critical, "larger", "smaller"),
            dense(row.critical[1])
        ))
    };
    vec![Block::Text(text), Block::List(rows.iter().filter_map(said).collect()), Block::Table(table)]
}

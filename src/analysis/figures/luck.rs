//! How lucky K* is.

use super::figure::{Figure, Part, around_one, in_brackets};
use crate::analysis::chart::Scale;
use crate::analysis::statistics::confirmed_cells;
use crate::analysis::studies::StudyResults;
use crate::records::CellKey;

/// K* over the mean of the confirmed steps; none where nothing is confirmed.
pub fn luck(study: &StudyResults) -> Option<Figure> {
    let cells = confirmed_cells(study);
    let luck = |key: CellKey| cells.iter().find(|cell| cell.key == key)?.luck;
    let words = |cell, luck| format!("{cell}: K* is {} of the mean of confirmed steps", in_brackets(luck));
    let chart = around_one(study, "how lucky K* is", (Scale::Linear, "K* / mean of confirmed steps", 0.0), luck, words)?;
    let caption = "K*, the least of a cell's trials, over the geometric mean of the steps that its best points take with fresh seeds, with 95 % \
                   intervals. At 1 (dashed) K* is no luck; the lower, the luckier. Where two sparsities lie apart, ratios of K* are ratios of luck \
                   too.";
    Some(Figure::new(("luck", "How much luck"), caption, "confirmed", &[Part::Confirmed], chart))
}

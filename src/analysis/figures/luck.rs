//! How lucky K* is.

use super::figure::{Figure, Part, around_one, in_brackets, numbers};
use crate::analysis::chart::{Axis, Scale};
use crate::analysis::statistics::confirmed_cells;
use crate::analysis::studies::StudyResults;
use crate::records::CellKey;

/// K* over the mean of the confirmed steps; none where nothing is confirmed.
pub fn luck(study: &StudyResults) -> Option<Figure> {
    let cells = confirmed_cells(study);
    let numbers = numbers(study, |batch_size, sparsity| {
        let key = CellKey { batch_size, sparsity };
        cells.iter().find(|cell| cell.key == key).and_then(|cell| cell.luck)
    });
    if numbers.is_empty() {
        return None;
    }
    let known = numbers.iter().flat_map(|(_, points)| points).filter_map(|point| point.1);
    let ends = known.flat_map(|luck| [luck.low, luck.high]);
    let y = Axis::around(Scale::Linear, "K* / mean of confirmed steps", ends.chain([0.0, 1.0]), (0.0, 1.0));
    let words = |cell, luck| format!("{cell}: K* is {} of the mean of confirmed steps", in_brackets(luck));
    Some(Figure {
        name: "luck".into(),
        heading: "How much luck".into(),
        caption: "K*, the least of a cell's trials, over the geometric mean of the steps that its best points take with fresh seeds, with 95 % \
                  intervals. At 1 (dashed) K* is no luck; the lower, the luckier. Where two sparsities lie apart, ratios of K* are ratios of luck too."
            .to_owned(),
        table: "confirmed",
        beside: &[Part::Confirmed],
        chart: around_one(study, format!("{}: how lucky K* is", study.name()), &numbers, y, words),
    })
}

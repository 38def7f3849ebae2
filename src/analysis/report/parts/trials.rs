//! How many trials a cell's K* rests on.

use super::super::document::Block;
use super::super::numbers::ABSENT;
use super::super::rows::Rows;
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::{CLOSE, StudyResults};
use crate::readable::count;
use crate::records::{Cell, Status};

/// Share of the choices of trials that must come close to K* where their number is called enough.
const SHARE: f64 = 0.95;

/// A row a cell that reached the goal.
pub fn trials(study: &StudyResults) -> Vec<Block<'static>> {
    let cells: Vec<(&Cell, u32)> = study.results.cells.iter().filter_map(|cell| Some((cell, cell.steps_to_result()?))).collect();
    if cells.is_empty() {
        return vec![Block::Text("No trial has reached the goal.".to_owned())];
    }
    let needed = |&(cell, steps): &(&Cell, u32)| match study.hides_close(cell) {
        true => None,
        false => FewerTrials::new(cell).needed(CLOSE * f64::from(steps), SHARE),
    };
    let mut text = format!(
        "K* is a minimum over trials, so it falls with their number. __Enough trials__: of so many of the cell's trials, drawn at random, 95 of 100 choices \
         find a K* at most {:.0} % above that of all.",
        100.0 * (CLOSE - 1.0)
    );
    if cells.iter().any(|(cell, _)| study.hides_close(cell)) {
        text += &format!(
            " A race that ends before {CLOSE} K* hides what the other trials would have found: there the number is not known ({ABSENT}); `execution.race = 3` \
             shows it."
        );
    }
    let table = Rows::new("trials", cells)
        .keyed(|(cell, _)| cell.key)
        .column("K*", |&(_, steps)| count(steps))
        .column("found by trial", |(cell, _)| cell.best().map_or(ABSENT.to_owned(), |best| best.index.to_string()))
        .column("trials", |(cell, _)| count(cell.trials.len() as u32))
        .column("complete", |(cell, _)| count(cell.count(Status::Complete) as u32))
        .column("enough trials", |row| needed(row).map_or(ABSENT.to_owned(), |needed| count(needed as u32)));
    vec![Block::Text(text), Block::Table(table.table())]
}

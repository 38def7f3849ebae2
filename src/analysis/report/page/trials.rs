//! How many trials a cell's K* rests on.

use maud::{Markup, html};

use super::table::{ABSENT, table};
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::{CLOSE, StudyResults};
use crate::readable::count;
use crate::records::{Cell, Status};

const HEADING: [&str; 7] = ["batch size", "sparsity", "K*", "found by trial", "trials", "complete", "enough trials"];

/// Share of the choices of trials that must come close to K* where their number is called enough.
const SHARE: f64 = 0.95;

/// A row a cell that reached the goal.
pub fn trials(study: &StudyResults) -> Markup {
    let cells: Vec<&Cell> = study.results.cells.iter().filter(|cell| cell.steps_to_result().is_some()).collect();
    let row = |cell: &&Cell| {
        let steps = cell.steps_to_result().unwrap_or(0);
        let needed = if study.hides_close(cell) { None } else { FewerTrials::new(cell).needed(CLOSE * f64::from(steps), SHARE) };
        vec![
            count(cell.key.batch_size),
            cell.key.sparsity.to_string(),
            count(steps),
            cell.best().map_or(ABSENT.to_owned(), |best| best.index.to_string()),
            count(cell.trials.len() as u32),
            count(cell.count(Status::Complete) as u32),
            needed.map_or(ABSENT.to_owned(), |needed| count(needed as u32)),
        ]
    };
    let percent = format!("{:.0} %", 100.0 * (CLOSE - 1.0));
    html! {
        @if cells.is_empty() {
            p { "No trial has reached the goal." }
        } @else {
            p {
                "K* is a minimum over trials, so it falls with their number. " b { "Enough trials" } ": of so many of the cell's trials, drawn at random, 95 "
                "of 100 choices find a K* at most " (percent) " above that of all."
                @if cells.iter().any(|cell| study.hides_close(cell)) {
                    " A race that ends before " (CLOSE) " K* hides what the other trials would have found: there the number is not known (" (ABSENT)
                    "); " code { "execution.race = 3" } " shows it."
                }
            }
            (table(&HEADING, &cells.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

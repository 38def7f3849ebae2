//! The time to the goal.

use super::super::document::Block;
use super::super::numbers::brief;
use super::super::rows::Rows;
use crate::analysis::statistics::{Timed, sentences};
use crate::readable::count;

/// Text above the table of times.
const TIMES: &str = "The time of the best trial: K* steps, each as long as a step of the cell's trials (geometric mean of their seconds over their steps, with \
                     the 95 % interval of Student's t). A trial's seconds are its share of the cell's, evaluations included, with the other trials beside it; \
                     alone on all ranks it may be quicker, and the search for it took all the cell's trials. The intervals also hold how far cells scatter \
                     about a line of seconds a step against the batch size, since a machine may be busier during one cell than during another; where no line \
                     has three cells, they do not. Core-seconds are seconds times ranks times threads. Cells of a study that went on with other ranks or \
                     threads are not here, since its file does not say which were measured on how many.";

/// A row a cell that reached the goal, and what is quickest and cheapest.
pub fn timing(times: &[Timed]) -> Vec<Block<'static>> {
    let table = Rows::new("time", times)
        .keyed(|timed| timed.key)
        .column("K*", |timed| count(timed.steps))
        .column("ranks", |timed| timed.ranks.to_string())
        .column("threads a rank", |timed| timed.threads.to_string())
        .shown("milliseconds a step", brief, |timed| Some(timed.step_seconds.scaled(1e3)))
        .shown("seconds to the goal", brief, |timed| Some(timed.seconds))
        .shown("core-seconds to the goal", brief, |timed| Some(timed.core_seconds));
    vec![Block::Text(TIMES.to_owned()), Block::Table(table.table()), Block::List(sentences(times))]
}

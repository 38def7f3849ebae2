//! The time to the goal.

use maud::{Markup, html};

use super::table::{brief, table};
use crate::analysis::statistics::{Timed, sentences};
use crate::readable::count;

const HEADING: [&str; 8] =
    ["batch size", "sparsity", "K*", "ranks", "threads a rank", "milliseconds a step", "seconds to the goal", "core-seconds to the goal"];

/// A row a cell that reached the goal, and what is quickest and cheapest.
pub fn timing(times: &[Timed]) -> Markup {
    let row = |timed: &Timed| {
        vec![
            count(timed.key.batch_size),
            timed.key.sparsity.to_string(),
            count(timed.steps),
            timed.ranks.to_string(),
            timed.threads.to_string(),
            brief(timed.step_seconds.scaled(1e3)),
            brief(timed.seconds),
            brief(timed.core_seconds),
        ]
    };
    html! {
        p {
            "The time of the best trial: K* steps, each as long as a step of the cell's trials (geometric mean of their seconds over their steps, with the 95 % "
            "interval of Student's t). A trial's seconds are its share of the cell's, evaluations included, with the other trials beside it; alone on all "
            "ranks it may be quicker, and the search for it took all the cell's trials. The intervals also hold how far cells scatter about a line of "
            "seconds a step against the batch size, since a machine may be busier during one cell than during another; where no line has three cells, they do not. Core-seconds are seconds times ranks times threads. Cells of a study that went on with other ranks or threads are not here, since "
            "its file does not say which were measured on how many."
        }
        (table(&HEADING, &times.iter().map(row).collect::<Vec<_>>()))
        ul {
            @for sentence in sentences(times) { li { (sentence) } }
        }
    }
}

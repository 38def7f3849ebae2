//! What cells took, and what other rules, goals and budgets give.

use super::fields::{estimates, limits, of_cell, optional, words};
use crate::analysis::budget::{Budget, Least, budgets};
use crate::analysis::goals::{Bounds, threshold};
use crate::analysis::others::{has_curves, is_of_dps};
use crate::analysis::page::Section;
use crate::analysis::studies::StudyResults;
use crate::analysis::table::Table;
use crate::analysis::timing::Timed;
use crate::analysis::work::{computed, to_end, to_goal};
use crate::records::Cell;

/// Columns of the table of work: computed, and by two rules.
const WORK: [&str; 12] = [
    "study",
    "batch_size",
    "sparsity",
    "example_gradients",
    "validation_examples",
    "to_goal_example_gradients_low",
    "to_goal_validation_examples_low",
    "to_goal_example_gradients_high",
    "to_goal_validation_examples_high",
    "to_end_example_gradients",
    "to_end_validation_examples",
    "seconds",
];

/// Columns of the table of times, but for those of times.
const TIMES: [&str; 7] = ["study", "batch_size", "sparsity", "ranks", "threads", "device", "steps_to_result"];

/// Columns of the table of bounds of steps-to-result at other goals.
const GOALS: [&str; 7] = ["study", "batch_size", "sparsity", "goal_error", "goal_threshold", "steps_to_result_low", "steps_to_result_high"];

/// Columns of the table of errors within fixed budgets.
const BUDGETS: [&str; 7] = ["study", "batch_size", "sparsity", "budget", "amount", "best_errors_low", "best_errors_high"];

/// A row a cell: what it took.
pub(super) fn work(sections: &[Section]) -> Table {
    Table { name: "work", heading: words(&WORK), rows: sections.iter().flat_map(|section| work_rows(section.study)).collect() }
}

/// A row a cell that reached the goal: the time that took.
pub(super) fn times(sections: &[Section]) -> Table {
    let heading = words(&TIMES).into_iter().chain(["step_seconds", "seconds", "core_seconds"].into_iter().flat_map(estimates));
    Table { name: "time", heading: heading.collect(), rows: sections.iter().flat_map(|section| time_rows(section)).collect() }
}

/// A row a cell and goal: its steps-to-result there.
pub(super) fn other_goals(sections: &[Section], goals: &[f64]) -> Table {
    Table { name: "goals", heading: words(&GOALS), rows: sections.iter().flat_map(|section| goal_rows(section.study, goals)).collect() }
}

/// A row a cell and budget: the least errors within it.
pub(super) fn within_budgets(sections: &[Section]) -> Table {
    Table { name: "budgets", heading: words(&BUDGETS), rows: sections.iter().flat_map(|section| budget_rows(section.study)).collect() }
}

/// What each cell took, and what two rules would have taken with the configured step budget.
fn work_rows(study: &StudyResults) -> Vec<Vec<String>> {
    let workload = &study.results.workload;
    let row = |cell: &Cell| {
        let (cells, budget) = (std::slice::from_ref(cell), workload.max_steps);
        let (done, goal, end) = (computed(cells), to_goal(workload, cells, budget), to_end(workload, cells, budget));
        let mut row = of_cell(study, cell.key);
        row.extend(
            [done, goal.low, goal.high, end.high].into_iter().flat_map(|work| [work.gradients.to_string(), work.validation.to_string()]),
        );
        row.push(optional(is_of_dps(&study.results).then_some(cell.seconds)));
        row
    };
    study.results.cells.iter().filter(|_| has_curves(&study.results)).map(row).collect()
}

/// A row a cell that reached the goal.
fn time_rows(section: &Section) -> Vec<Vec<String>> {
    let row = |timed: &Timed| {
        let mut row = of_cell(section.study, timed.key);
        row.extend([timed.ranks.to_string(), timed.threads.to_string(), timed.device.clone(), timed.steps.to_string()]);
        row.extend([timed.step_seconds, timed.seconds, timed.core_seconds].into_iter().flat_map(|estimate| limits(Some(estimate))));
        row
    };
    section.times.iter().map(row).collect()
}

/// A row a cell and goal. Without a lower limit no trial can have reached the goal within the step budget; without an upper one none is known to
/// have.
fn goal_rows(study: &StudyResults, goals: &[f64]) -> Vec<Vec<String>> {
    let thresholds = goals.iter().filter_map(|&goal| Some((goal, threshold(study, goal)?)));
    let row = |cell: &Cell, goal: f64, threshold: u32| {
        let Bounds { low, high } = Bounds::new(study, cell, threshold);
        let mut row = of_cell(study, cell.key);
        row.extend([goal.to_string(), threshold.to_string(), optional(low), optional(high)]);
        row
    };
    thresholds.flat_map(|(goal, threshold)| study.results.cells.iter().map(move |cell| row(cell, goal, threshold))).collect()
}

/// A row a cell and budget within which it has an evaluation; without an upper limit none of those was of the whole validation set.
fn budget_rows(study: &StudyResults) -> Vec<Vec<String>> {
    let row = |cell: &Cell, budget: Budget| {
        let Least { low, high } = Least::new(study, cell, budget.steps(cell.key.batch_size))?;
        let mut row = of_cell(study, cell.key);
        row.extend([budget.unit().to_owned(), budget.amount().to_string(), low.to_string(), optional(high)]);
        Some(row)
    };
    budgets(study).into_iter().flat_map(|budget| study.results.cells.iter().filter_map(move |cell| row(cell, budget))).collect()
}

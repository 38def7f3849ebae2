//! What cells took, and what other rules, goals and budgets give.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::{Bounds, Budget, Least, Work, budgets, computed, threshold, to_end, to_goal};
use crate::analysis::studies::{StudyResults, has_curves, is_of_dps};
use crate::records::Cell;

/// The cells of all studies, each with its study.
fn cells<'a>(sections: &'a [Section]) -> impl Iterator<Item = (&'a StudyResults, &'a Cell)> {
    sections.iter().flat_map(|section| section.study.results.cells.iter().map(|cell| (section.study, cell)))
}

/// A row a cell: what it took, and what two rules would have taken with the configured step budget.
pub(super) fn work(sections: &[Section]) -> Table {
    let fields = |work: Work| vec![work.gradients.to_string(), work.validation.to_string()];
    let goal = |&(study, cell): &(&StudyResults, &Cell)| {
        let workload = &study.results.workload;
        to_goal(workload, std::slice::from_ref(cell), workload.max_steps)
    };
    let end = |&(study, cell): &(&StudyResults, &Cell)| {
        let workload = &study.results.workload;
        to_end(workload, std::slice::from_ref(cell), workload.max_steps)
    };
    Rows::new("work", cells(sections).filter(|(study, _)| has_curves(&study.results)))
        .of_cell(|&(study, cell)| (study, cell.key))
        .columns(&["example_gradients", "validation_examples"], |&(_, cell)| fields(computed(std::slice::from_ref(cell))))
        .columns(&["to_goal_example_gradients_low", "to_goal_validation_examples_low"], |row| fields(goal(row).low))
        .columns(&["to_goal_example_gradients_high", "to_goal_validation_examples_high"], |row| fields(goal(row).high))
        .columns(&["to_end_example_gradients", "to_end_validation_examples"], |row| fields(end(row).high))
        .column("seconds", |(study, cell)| optional(is_of_dps(&study.results).then_some(cell.seconds)))
        .table()
}

/// A row a cell that reached the goal: the time that took.
pub(super) fn times(sections: &[Section]) -> Table {
    Rows::new("time", sections.iter().flat_map(|section| section.times.iter().map(|timed| (section.study, timed))))
        .of_cell(|&(study, timed)| (study, timed.key))
        .column("ranks", |(_, timed)| timed.ranks.to_string())
        .column("threads", |(_, timed)| timed.threads.to_string())
        .column("device", |(_, timed)| timed.device.clone())
        .column("steps_to_result", |(_, timed)| timed.steps.to_string())
        .estimate("step_seconds", |(_, timed)| Some(timed.step_seconds))
        .estimate("seconds", |(_, timed)| Some(timed.seconds))
        .estimate("core_seconds", |(_, timed)| Some(timed.core_seconds))
        .table()
}

/// A row a cell and goal: its steps-to-result there. Without a lower limit no trial can have reached the goal within the step budget; without an
/// upper one none is known to have.
pub(super) fn other_goals(sections: &[Section], goals: &[f64]) -> Table {
    Rows::new(
        "goals",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let thresholds = goals.iter().filter_map(move |&goal| Some((goal, threshold(study, goal)?)));
            let of_goal = |(goal, threshold)| {
                study.results.cells.iter().map(move |cell| (study, cell.key, goal, threshold, Bounds::new(study, cell, threshold)))
            };
            thresholds.flat_map(of_goal).collect::<Vec<_>>()
        }),
    )
    .of_cell(|&(study, key, ..)| (study, key))
    .column("goal_error", |(_, _, goal, ..)| goal.to_string())
    .column("goal_threshold", |(_, _, _, threshold, _)| threshold.to_string())
    .column("steps_to_result_low", |(.., bounds)| optional(bounds.low))
    .column("steps_to_result_high", |(.., bounds)| optional(bounds.high))
    .table()
}

/// A row a cell and budget within which it has an evaluation: the least errors within it; without an upper limit no evaluation was of the whole
/// validation set.
pub(super) fn within_budgets(sections: &[Section]) -> Table {
    Rows::new(
        "budgets",
        sections.iter().map(|section| section.study).flat_map(|study| {
            let of_budget = |budget: Budget| {
                let cells = study.results.cells.iter();
                cells.filter_map(move |cell| Some((study, cell.key, budget, Least::new(study, cell, budget.steps(cell.key.batch_size))?)))
            };
            budgets(study).into_iter().flat_map(of_budget).collect::<Vec<_>>()
        }),
    )
    .of_cell(|&(study, key, ..)| (study, key))
    .column("budget", |(_, _, budget, _)| budget.unit().to_owned())
    .column("amount", |(_, _, budget, _)| budget.amount().to_string())
    .column("best_errors_low", |(.., least)| least.low.to_string())
    .column("best_errors_high", |(.., least)| optional(least.high))
    .table()
}

//! Tables of the work and time of cells, and of steps and errors by other rules, goals and budgets.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::{Bounds, Budget, Range, Work, budgets, computed, least_errors, threshold, to_end, to_goal};
use crate::analysis::studies::{StudyResults, has_curves, is_of_dps};
use crate::records::Cell;
use crate::results::WorkloadSummary;

/// A row a cell: what it took, and what two rules would have taken with the configured step budget.
pub(super) fn work(sections: &[Section]) -> Table {
    let fields = |work: Work| vec![work.gradients.to_string(), work.validation.to_string()];
    type Of<'a> = (&'a StudyResults, &'a Cell);
    let by = |rule: fn(&WorkloadSummary, &[Cell], u32) -> Range, &(study, cell): &Of| {
        let workload = &study.results.workload;
        rule(workload, std::slice::from_ref(cell), workload.max_steps)
    };
    Rows::of("work", sections, |section| section.study.results.cells.iter().filter(|_| has_curves(&section.study.results)))
        .of_cell(|(_, cell)| cell.key)
        .columns(&["example_gradients", "validation_examples"], |&(_, cell)| fields(computed(std::slice::from_ref(cell))))
        .columns(&["to_goal_example_gradients_low", "to_goal_validation_examples_low"], |of| fields(by(to_goal, of).low))
        .columns(&["to_goal_example_gradients_high", "to_goal_validation_examples_high"], |of| fields(by(to_goal, of).high))
        .columns(&["to_end_example_gradients", "to_end_validation_examples"], |of| fields(by(to_end, of).high))
        .column("seconds", |(study, cell)| optional(is_of_dps(&study.results).then_some(cell.seconds)))
        .table()
}

/// A row a cell that reached the goal: the time that took.
pub(super) fn times(sections: &[Section]) -> Table {
    Rows::of("time", sections, |section| &section.times)
        .of_cell(|(_, timed)| timed.key)
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
    Rows::of("goals", sections, |&Section { study, .. }| {
        let thresholds = goals.iter().filter_map(move |&goal| Some((goal, threshold(study, goal)?)));
        let cells = |goal| study.results.cells.iter().map(move |cell| (goal, cell));
        thresholds.flat_map(cells)
    })
    .of_cell(|(_, (_, cell))| cell.key)
    .column("goal_error", |(_, ((goal, _), _))| goal.to_string())
    .column("goal_threshold", |(_, ((_, threshold), _))| threshold.to_string())
    .column("steps_to_result_low", |&(study, ((_, threshold), cell))| optional(Bounds::new(study, cell, threshold).low))
    .column("steps_to_result_high", |&(study, ((_, threshold), cell))| optional(Bounds::new(study, cell, threshold).high))
    .table()
}

/// A row a cell and budget within which it has an evaluation: the least errors within it; without an upper limit no evaluation was of the whole
/// validation set.
pub(super) fn within_budgets(sections: &[Section]) -> Table {
    Rows::of("budgets", sections, |&Section { study, .. }| {
        let of_budget = move |budget: Budget| {
            let least = move |cell: &Cell| Some((cell.key, budget, least_errors(study, cell, budget.steps(cell.key.batch_size))?));
            study.results.cells.iter().filter_map(least)
        };
        budgets(study).into_iter().flat_map(of_budget)
    })
    .of_cell(|(_, (key, ..))| *key)
    .column("budget", |(_, (_, budget, _))| budget.amount().1.to_owned())
    .column("amount", |(_, (_, budget, _))| budget.amount().0.to_string())
    .column("best_errors_low", |(_, (.., least))| optional(least.low))
    .column("best_errors_high", |(_, (.., least))| optional(least.high))
    .table()
}

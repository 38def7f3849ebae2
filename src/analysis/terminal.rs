//! Tables for the terminal.

use super::Grid;
use super::others::{has_curves, has_trials, is_of_dps};
use super::studies::workload_name;
use super::warnings::dead_layers;
use super::work::{Range, Work, computed, papers_steps, to_end, to_goal};
use crate::config::Metaparameter;
use crate::readable::{aligned, count};
use crate::records::{Cell, Status, median_steps};
use crate::results::{Results, WorkloadSummary};

/// In place of a number: no trial of the cell reached the goal.
const NOT_REACHED: &str = "–";

/// In place of a number: the cell has not been measured yet.
const NOT_MEASURED: &str = "·";

/// Three tables in plain text, and a fourth where cells are confirmed, at most 100 columns wide for up to six sparsities: steps-to-result (rows
/// batch sizes, columns sparsities), a line for each cell with how its trials ended and the metaparameters of the best, and the work.
pub fn table(results: &Results) -> String {
    let workload = &results.workload;
    let mut text = workload_name(workload);
    text += &match workload.validation_examples {
        0 => format!("\nGoal: {}. Others measured it.\n", workload.goal_error),
        _ => goal(workload),
    };
    if results.cells.is_empty() {
        return text + "\nNo cell is finished yet.\n";
    }
    let grid = Grid::new(results);
    text += "\nSteps-to-result: fewest steps over a cell's trials\n";
    text += &aligned(&steps_to_result(&grid), "  ");
    if has_trials(results) {
        text += "\nTrials and the best one's metaparameters\n";
        text += &aligned(&cells(&grid, results), "  ");
    }
    if results.cells.iter().any(|cell| !cell.confirmations.is_empty()) {
        text += "\nConfirmed steps: the best trials' metaparameters, trained again with fresh seeds\n";
        text += &aligned(&confirmations(&grid), "  ");
    }
    let unreached = results.cells.iter().any(|cell| cell.steps_to_result().is_none());
    let unmeasured = grid.batch_sizes.len() * grid.sparsities.len() > results.cells.len();
    if unreached {
        text += &format!("\n{NOT_REACHED}  no trial reached the goal\n");
    }
    if unmeasured {
        text += &format!("{}{NOT_MEASURED}  not measured yet\n", if unreached { "" } else { "\n" });
    }
    for sentence in dead_layers(results) {
        text += &format!("\n{sentence}\n");
    }
    if has_curves(results) {
        text += "\nWork, and what other rules would have taken, with whole evaluations\n";
        text += &aligned(&work(results), "  ");
    }
    if !results.complete {
        text += "\nThe study is not finished: cells are still to come.\n";
    }
    text
}

fn goal(workload: &WorkloadSummary) -> String {
    format!(
        "\nGoal: validation error ≤ {} (at most {} of {} examples{} wrong), tested every {} steps up to {}.\n",
        workload.goal_error,
        count(workload.goal_threshold),
        count(workload.validation_examples),
        if workload.training_examples.is_some() { " of the data's own validation set" } else { "" },
        workload.evaluate_every,
        count(workload.max_steps),
    )
}

/// The work of all cells, and what the rules would have taken with the configured step budget and with the paper's.
fn work(results: &Results) -> Vec<Vec<String>> {
    let workload = &results.workload;
    let done = computed(&results.cells);
    let row = |(name, work): (String, Range)| {
        let column = |of: fn(&Work) -> u64| {
            let (low, high, done) = (of(&work.low), of(&work.high), of(&done).max(1) as f64);
            let times = |work: u64| work as f64 / done;
            match low == high {
                true => format!("{} ({:.1}×)", count(low), times(low)),
                false => format!("{} to {} ({:.1} to {:.1}×)", count(low), count(high), times(low), times(high)),
            }
        };
        vec![name, column(|work| work.gradients), column(|work| work.validation)]
    };
    let mut rows = vec![
        ["", "example-gradients", "validation examples"].map(str::to_owned).to_vec(),
        vec!["computed".to_owned(), count(done.gradients), count(done.validation)],
    ];
    let papers = papers_steps(workload).filter(|&steps| workload.max_steps < steps);
    for budget in std::iter::once(workload.max_steps).chain(papers) {
        let steps = count(budget);
        rows.push(row((format!("each trial to the goal, else to step {steps}"), to_goal(workload, &results.cells, budget))));
        rows.push(row((format!("every trial to step {steps}"), to_end(workload, &results.cells, budget))));
    }
    rows
}

fn steps_to_result(grid: &Grid) -> Vec<Vec<String>> {
    let heading = grid.sparsities.iter().map(|sparsity| format!("sparsity {sparsity}"));
    let rows = grid.batch_sizes.iter().map(|&batch_size| {
        let steps = grid.sparsities.iter().map(|&sparsity| match grid.cell(batch_size, sparsity) {
            Some(cell) => cell.steps_to_result().map_or(NOT_REACHED.to_owned(), count),
            None => NOT_MEASURED.to_owned(),
        });
        [count(batch_size)].into_iter().chain(steps).collect()
    });
    [["batch size".to_owned()].into_iter().chain(heading).collect()].into_iter().chain(rows).collect()
}

/// A row a confirmed point: its trial's steps, and the median and range of those with fresh seeds. Trainings that did not reach the goal within the
/// limit count as beyond it.
fn confirmations(grid: &Grid) -> Vec<Vec<String>> {
    let heading = ["batch size", "sparsity", "trial", "its steps", "median", "least", "most", "trainings", "not reached"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let keys = grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| (batch_size, sparsity)));
    for cell in keys.filter_map(|(batch_size, sparsity)| grid.cell(batch_size, sparsity)) {
        for point in cell.confirmed_points() {
            let steps = || cell.confirmations_of(point).map(|one| one.run.steps);
            let (all, there) = (steps().count(), steps().flatten().count());
            let shown = |steps: Option<u32>| steps.map_or(NOT_REACHED.to_owned(), count);
            let own = cell.trials.iter().find(|trial| trial.index == point).and_then(|trial| trial.steps);
            rows.push(vec![
                count(cell.key.batch_size),
                cell.key.sparsity.to_string(),
                point.to_string(),
                shown(own),
                shown(median_steps(cell.confirmations_of(point))),
                shown(steps().flatten().min()),
                shown(steps().flatten().max().filter(|_| there == all)),
                all.to_string(),
                (all - there).to_string(),
            ]);
        }
    }
    rows
}

/// A row a measured cell. A metaparameter that no trial of the study has gets no column.
fn cells(grid: &Grid, results: &Results) -> Vec<Vec<String>> {
    let trials = || results.cells.iter().flat_map(|cell| &cell.trials).map(|trial| trial.metaparameters);
    let has = |name: Metaparameter| trials().any(|values| values.get(name).is_some());
    let shown: Vec<Metaparameter> = Metaparameter::ALL.iter().copied().filter(|&name| has(name)).collect();
    let mut heading: Vec<String> =
        ["batch size", "sparsity"].into_iter().chain(Status::ALL.map(Status::name)).chain(["best trial"]).map(str::to_owned).collect();
    heading.extend(shown.iter().map(|name| name.title().to_owned()));
    let own: &[&str] = if is_of_dps(results) { &["test error", "seconds"] } else { &[] };
    heading.extend(own.iter().map(|&name| name.to_owned()));

    let columns = heading.len();
    let row = |cell: &Cell| -> Vec<String> {
        let best = cell.best();
        let mut row = vec![count(cell.key.batch_size), cell.key.sparsity.to_string()];
        row.extend(Status::ALL.map(|status| cell.count(status).to_string()));
        row.push(best.map_or(NOT_REACHED.to_owned(), |trial| trial.index.to_string()));
        let value = |name: &Metaparameter| Some(name.show(best?.metaparameters.get(*name)?));
        row.extend(shown.iter().map(|name| value(name).unwrap_or(NOT_REACHED.to_owned())));
        let test_error = results.workload.test_error(cell);
        row.push(test_error.map_or(NOT_REACHED.to_owned(), |error| format!("{error:.4}")));
        row.push(format!("{:.1}", cell.seconds));
        row.truncate(columns);
        row
    };
    let sorted = grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| (batch_size, sparsity)));
    [heading].into_iter().chain(sorted.filter_map(|(batch_size, sparsity)| grid.cell(batch_size, sparsity)).map(row)).collect()
}

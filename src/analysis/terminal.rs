//! Tables for the terminal.

use super::Grid;
use super::studies::workload_name;
use super::warnings::dead_layers;
use crate::config::{DatasetName, Metaparameter};
use crate::readable::{aligned, count};
use crate::records::{Cell, Status, Trial};
use crate::results::Results;

/// In place of a number: no trial of the cell reached the goal.
const NOT_REACHED: &str = "–";

/// In place of a number: the cell has not been measured yet.
const NOT_MEASURED: &str = "·";

/// Three tables in plain text, at most 100 columns wide for up to six sparsities: steps-to-result (rows batch sizes, columns sparsities), a line for
/// each cell with how its trials ended and the metaparameters of the best, and the work.
pub fn table(results: &Results) -> String {
    let workload = &results.workload;
    let mut text = format!(
        "{}\nGoal: validation error ≤ {} (at most {} of {} examples wrong), tested every {} steps up to {}.\n",
        workload_name(workload),
        workload.goal_error,
        count(workload.goal_threshold),
        count(workload.validation_examples),
        workload.evaluate_every,
        count(workload.max_steps),
    );
    if results.cells.is_empty() {
        return text + "\nNo cell is finished yet.\n";
    }
    let grid = Grid::new(results);
    text += "\nSteps-to-result: fewest steps over a cell's trials\n";
    text += &aligned(&steps_to_result(&grid), "  ");
    text += "\nTrials and the best one's metaparameters\n";
    text += &aligned(&cells(&grid, results), "  ");
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
    text += "\nWork, and what other rules would have taken, with whole evaluations\n";
    text += &aligned(&work(results), "  ");
    if !results.complete {
        text += "\nThe study is not finished: cells are still to come.\n";
    }
    text
}

/// The paper's step budget for its workloads (appendix B); none for others.
fn papers_steps(dataset: &str, network: &str) -> Option<u32> {
    let spec = dataset.parse::<DatasetName>().ok()?.spec();
    (spec.is_papers && network == spec.usual.network.name()).then_some(spec.usual.max_steps)
}

/// Example-gradients and evaluated validation examples: those of the records, and what two rules would have taken with the configured step budget and with the
/// paper's: each trial until it reaches the goal, as the authors' public code trains, or every trial all steps, as the authors
/// count their cost. Under both an infeasible trial ends where it did, and every evaluation is of the whole validation set.
fn work(results: &Results) -> Vec<Vec<String>> {
    let workload = &results.workload;
    let seen = |trial: &Trial| trial.curve.iter().map(|point| u64::from(point.examples)).sum::<u64>();
    let done: Work = [
        trials(results).map(|(cell, trial)| u64::from(trial.steps_run) * u64::from(cell.key.batch_size)).sum(),
        trials(results).map(|(_, trial)| seen(trial)).sum(),
    ];
    let rule = |steps: &dyn Fn(&Trial) -> u32| {
        let mut work: Work = [0, 0];
        for (cell, trial) in trials(results) {
            let steps = if trial.status == Status::Infeasible { trial.steps_run } else { steps(trial) };
            work[0] += u64::from(steps) * u64::from(cell.key.batch_size);
            work[1] += u64::from(steps / workload.evaluate_every) * u64::from(workload.validation_examples);
        }
        work
    };
    let row = |name: String, low: Work, high: Work| {
        let column = |index: usize| {
            let times = |work: Work| work[index] as f64 / done[index].max(1) as f64;
            match low[index] == high[index] {
                true => format!("{} ({:.1}×)", count(low[index]), times(low)),
                false => format!("{} to {} ({:.1} to {:.1}×)", count(low[index]), count(high[index]), times(low), times(high)),
            }
        };
        vec![name, column(0), column(1)]
    };
    let mut rows = vec![
        ["", "example-gradients", "validation examples"].map(str::to_owned).to_vec(),
        vec!["computed".to_owned(), count(done[0]), count(done[1])],
    ];
    let papers = papers_steps(&workload.dataset, &workload.network).filter(|&steps| workload.max_steps < steps);
    let budgets = std::iter::once(workload.max_steps).chain(papers);
    for budget in budgets {
        let steps = count(budget);
        let to_goal = |end: &dyn Fn(&Trial) -> u32| rule(&|trial| trial.steps.unwrap_or_else(|| end(trial)).min(budget));
        // A trial that was cut off, or spent a smaller budget, might have reached the goal at its next evaluation, or never.
        let next = |trial: &Trial| trial.steps_run.saturating_add(workload.evaluate_every);
        rows.push(row(format!("each trial to the goal, else to step {steps}"), to_goal(&next), to_goal(&|_| budget)));
        let all = rule(&|_| budget);
        rows.push(row(format!("every trial to step {steps}"), all, all));
    }
    rows
}

/// Example-gradients and evaluated validation examples.
type Work = [u64; 2];

fn trials(results: &Results) -> impl Iterator<Item = (&Cell, &Trial)> {
    results.cells.iter().flat_map(|cell| cell.trials.iter().map(move |trial| (cell, trial)))
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

/// A row a measured cell. A metaparameter that no trial of the study has gets no column.
fn cells(grid: &Grid, results: &Results) -> Vec<Vec<String>> {
    let trials = || results.cells.iter().flat_map(|cell| &cell.trials).map(|trial| trial.metaparameters);
    let has = |name: Metaparameter| trials().any(|values| values.get(name).is_some());
    let shown: Vec<Metaparameter> = Metaparameter::ALL.iter().copied().filter(|&name| has(name)).collect();
    let mut heading: Vec<String> =
        ["batch size", "sparsity"].into_iter().chain(Status::ALL.map(Status::name)).chain(["best trial"]).map(str::to_owned).collect();
    heading.extend(shown.iter().map(|name| name.title().to_owned()));
    heading.extend(["test error", "seconds"].map(str::to_owned));

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
        row
    };
    let sorted = grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| (batch_size, sparsity)));
    [heading].into_iter().chain(sorted.filter_map(|(batch_size, sparsity)| grid.cell(batch_size, sparsity)).map(row)).collect()
}

//! Tables for the terminal.

use super::warnings::dead_layers;
use crate::analysis::statistics::{Range, Work, computed, papers_steps, to_end, to_goal};
use crate::analysis::studies::{Grid, has_curves, has_trials, is_of_dps, workload_name};
use crate::config::Metaparameter;
use crate::readable::{LINE, aligned, count, wrapped};
use crate::records::{Cell, Status, median_steps};
use crate::results::{Results, WorkloadSummary};

/// In place of a number: no trial of the cell reached the goal.
const NOT_REACHED: &str = "–";

/// In place of a number: the cell has not been measured yet.
const NOT_MEASURED: &str = "·";

/// Three tables in plain text, and a fourth where cells are confirmed, at most 80 letters wide: steps-to-result (rows batch sizes, columns
/// sparsities), a line for each cell with how its trials ended and the searched metaparameters of the best, and the work. Metaparameters that all
/// trials share stand above the second one.
pub fn table(results: &Results) -> String {
    let workload = &results.workload;
    let mut text = workload_name(workload);
    text += &match workload.validation_examples {
        0 => format!("\nGoal: {}. Others measured it.\n", workload.goal_error),
        _ => format!("\n{}\n", wrapped(&goal(workload), LINE).join("\n")),
    };
    if results.cells.is_empty() {
        return text + "\nNo cell is finished yet.\n";
    }
    let grid = Grid::new(results);
    text += "\nSteps-to-result: fewest steps over a cell's trials\n";
    text += &narrow(&steps_to_result(&grid), 1);
    if has_trials(results) {
        let (fixed, searched) = metaparameters(results);
        text += "\nTrials (complete/incomplete/infeasible/censored), the best one";
        text += if is_of_dps(results) { ", its test error\n" } else { "\n" };
        for line in wrapped(&fixed.join(", "), LINE - 2) {
            text += &format!("  {line}\n");
        }
        text += &narrow(&cells(&grid, results, &searched), 2);
    }
    if results.cells.iter().any(|cell| !cell.confirmations.is_empty()) {
        text += "\nConfirmed steps: the best trials' metaparameters, trained again with fresh seeds\n";
        text += &narrow(&confirmations(&grid), 3);
    }
    let unreached = results.cells.iter().any(|cell| cell.steps_to_result().is_none());
    let unmeasured = grid.batch_sizes.len() * grid.sparsities.len() > results.cells.len();
    if unreached {
        text += &format!("\n{NOT_REACHED}  no trial reached the goal");
        let near = results.cells.iter().filter_map(|cell| closest(cell, results.workload.validation_examples));
        let near: Vec<String> = near.collect();
        text += if near.is_empty() { "\n" } else { "; the least validation error:\n" };
        near.iter().for_each(|line| text += &format!("   {line}\n"));
    }
    if unmeasured {
        text += &format!("{}{NOT_MEASURED}  not measured yet\n", if unreached { "" } else { "\n" });
    }
    for sentence in dead_layers(results) {
        text += &format!("\n{sentence}\n");
    }
    if has_curves(results) {
        text += "\nWork of the trials, and what other rules would take with whole evaluations\n";
        text += &narrow(&work(results), 1);
    }
    if !results.complete {
        text += "\nThe study is not finished: cells are still to come.\n";
    }
    text
}

fn goal(workload: &WorkloadSummary) -> String {
    format!(
        "Goal: validation error ≤ {} (at most {} of {} examples{} wrong), tested every {} steps up to {}.",
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
        rows.push(row((format!("to the goal, else to step {steps}"), to_goal(workload, &results.cells, budget))));
        rows.push(row((format!("all to step {steps}"), to_end(workload, &results.cells, budget))));
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
    let heading = ["batch size", "sparsity", "trial", "its steps", "median", "least", "most", "reached"];
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
                format!("{there} of {all}"),
            ]);
        }
    }
    rows
}

/// The metaparameters that have one value in all trials, in words, and the others that trials have.
fn metaparameters(results: &Results) -> (Vec<String>, Vec<Metaparameter>) {
    let values = |name: Metaparameter| {
        let trials = results.cells.iter().flat_map(|cell| &cell.trials);
        trials.filter_map(move |trial| trial.metaparameters.get(name))
    };
    let (mut fixed, mut searched) = (Vec::new(), Vec::new());
    for &name in Metaparameter::ALL {
        let Some(first) = values(name).next() else { continue };
        if values(name).all(|value| value == first) && values(name).nth(1).is_some() {
            fixed.push(format!("{} {}", name.title(), name.show(first)));
        } else {
            searched.push(name);
        }
    }
    (fixed, searched)
}

/// A row a measured cell.
fn cells(grid: &Grid, results: &Results, searched: &[Metaparameter]) -> Vec<Vec<String>> {
    let mut heading: Vec<String> = ["batch size", "sparsity", "trials", "best"].map(str::to_owned).to_vec();
    heading.extend(searched.iter().map(|name| name.title().to_owned()));
    let own: &[&str] = if is_of_dps(results) { &["error", "seconds"] } else { &[] };
    heading.extend(own.iter().map(|&name| name.to_owned()));

    let columns = heading.len();
    let row = |cell: &Cell| -> Vec<String> {
        let best = cell.best();
        let mut row = vec![count(cell.key.batch_size), cell.key.sparsity.to_string()];
        row.push(Status::ALL.map(|status| cell.count(status).to_string()).join("/"));
        row.push(best.map_or(NOT_REACHED.to_owned(), |trial| trial.index.to_string()));
        let value = |name: &Metaparameter| Some(name.show(best?.metaparameters.get(*name)?));
        row.extend(searched.iter().map(|name| value(name).unwrap_or(NOT_REACHED.to_owned())));
        let test_error = results.workload.test_error(cell);
        row.push(test_error.map_or(NOT_REACHED.to_owned(), |error| format!("{error:.4}")));
        row.push(format!("{:.1}", cell.seconds));
        row.truncate(columns);
        row
    };
    let sorted = grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| (batch_size, sparsity)));
    [heading].into_iter().chain(sorted.filter_map(|(batch_size, sparsity)| grid.cell(batch_size, sparsity)).map(row)).collect()
}

/// How near its goal a cell came that did not reach it: the least error of its evaluations, or a bound, where the one with the fewest errors stopped
/// before it had seen all of so many examples. None where it reached the goal, or nothing was evaluated.
fn closest(cell: &Cell, examples: u32) -> Option<String> {
    let points = cell.trials.iter().flat_map(|trial| &trial.curve);
    // An evaluation of the whole set is no worse than a bound of the same.
    let nearest = points.filter(|_| cell.best().is_none() && examples > 0).min_by_key(|point| (point.errors, point.examples < examples))?;
    let bound = if nearest.examples < examples { "at least " } else { "" };
    Some(format!("{}: {bound}{:.4}", cell.key, f64::from(nearest.errors) / f64::from(examples)))
}

/// Rows as lines of at most [`LINE`] letters: columns that have no room follow below, each time beside the first `key` ones.
fn narrow(rows: &[Vec<String>], key: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0) + 2;
    let own: usize = (0..key).map(width).sum();
    let (mut text, mut from) = (String::new(), key);
    while from < columns {
        let (mut to, mut used) = (from + 1, own + width(from));
        while to < columns && used + width(to) <= LINE {
            used += width(to);
            to += 1;
        }
        let part = |row: &Vec<String>| row[..key].iter().chain(&row[from..to]).cloned().collect();
        text += &aligned(&rows.iter().map(part).collect::<Vec<_>>(), "  ");
        from = to;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CellKey, CurvePoint, Trial};

    #[test]
    fn wide_tables_go_on_below() {
        let rows: Vec<Vec<String>> = (0..3).map(|row| (0..30).map(|column| format!("{column}-{row}-words")).collect()).collect();
        let text = narrow(&rows, 2);
        assert!(text.lines().all(|line| line.chars().count() <= LINE), "{text}");
        assert!(rows.iter().flatten().all(|word| text.contains(word.as_str())) && text.matches("1-2-words").count() > 4, "{text}");
        assert_eq!(narrow(&[], 1), "");
    }

    #[test]
    fn a_cell_without_a_result_says_how_near_it_came() {
        let point = |errors, examples| CurvePoint { step: 4, loss: 1.0, errors, examples };
        let of = |curve: Vec<CurvePoint>| {
            let trials = vec![Trial { curve, ..Trial::new(0, Default::default()) }];
            let key = CellKey { batch_size: 8, sparsity: 0.5 };
            closest(&Cell { key, trials, test_errors: None, seconds: 0.0, confirmations: Vec::new() }, 100)
        };
        assert_eq!(of(vec![point(40, 100), point(30, 100)]).as_deref(), Some("batch size 8, sparsity 0.5: 0.3000"));
        assert_eq!(of(vec![point(40, 100), point(21, 60)]).as_deref(), Some("batch size 8, sparsity 0.5: at least 0.2100"));
        assert_eq!(of(vec![]), None);
    }
}

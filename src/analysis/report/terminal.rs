//! Tables for the terminal.

use super::document::{Block, terminal};
use super::numbers::{ABSENT, NOT_MEASURED};
use super::parts::steps_to_result;
use super::rows::Rows;
use super::table::Table;
use super::warnings::dead_layers;
use crate::analysis::statistics::{Range, Work, computed, papers_steps, to_end, to_goal};
use crate::analysis::studies::{Grid, has_curves, has_trials, is_of_dps, results_name};
use crate::optimizer::Metaparameter;
use crate::readable::{LINE, count, some, wrapped};
use crate::records::{Cell, Status, median_steps};
use crate::results::{Results, WorkloadSummary};

/// Three tables in plain text, and a fourth where cells are confirmed, at most 80 letters wide: steps-to-result (rows batch sizes, columns
/// sparsities), a line for each cell with how its trials ended and the searched metaparameters of the best, and the work. Metaparameters that all
/// trials share stand above the second one. `apart` tells the study from others of its name.
pub fn table(results: &Results, apart: Option<&str>) -> String {
    let apart = apart.map_or(String::new(), |words| format!(" ({words})"));
    let workload = &results.workload;
    let goal = match workload.validation_examples {
        0 => format!("Goal: {}. Others measured it.", workload.goal_error),
        _ => wrapped(&goal(workload), LINE).join("\n"),
    };
    let mut blocks = vec![Block::Text(format!("{}{apart}\n{goal}", results_name(results)))];
    if results.cells.is_empty() {
        blocks.push(Block::Text("No cell is finished yet.".to_owned()));
        return terminal(&blocks);
    }
    let heading = |words: &str| Block::Heading(3, words.to_owned());
    let grid = Grid::new(results);
    blocks.extend([heading("Steps-to-result: fewest steps over a cell's trials"), Block::Table(steps_to_result(&grid, &[]))]);
    if has_trials(results) {
        let (fixed, searched) = metaparameters(results);
        let error = if is_of_dps(results) { ", its test error" } else { "" };
        blocks.push(heading(&format!("Trials (complete/incomplete/infeasible/censored), the best one{error}")));
        blocks.extend([Block::Note(fixed.join(", ")), Block::Table(cells(&grid, results, &searched))]);
    }
    if results.cells.iter().any(|cell| !cell.confirmations.is_empty()) {
        blocks.push(heading("Confirmed steps: the best trials' metaparameters, trained again with fresh seeds"));
        blocks.push(Block::Table(confirmations(&grid)));
    }
    let mut legend = Vec::new();
    if results.cells.iter().any(|cell| cell.steps_to_result().is_none()) {
        let near: Vec<String> = results.cells.iter().filter_map(|cell| closest(cell, workload.validation_examples)).collect();
        legend.push(format!("{ABSENT}  no trial reached the goal{}", if near.is_empty() { "" } else { "; the least validation error:" }));
        legend.extend(near.iter().map(|line| format!("   {line}")));
    }
    if grid.batch_sizes.len() * grid.sparsities.len() > results.cells.len() {
        legend.push(format!("{NOT_MEASURED}  not measured yet"));
    }
    if !legend.is_empty() {
        blocks.push(Block::Text(legend.join("\n")));
    }
    blocks.extend(dead_layers(results).into_iter().map(Block::Text));
    if has_curves(results) {
        blocks.extend([heading("Work of the trials, and what other rules would take with whole evaluations"), Block::Table(work(results))]);
    }
    if !results.complete {
        blocks.push(Block::Text("The study is not finished: cells, trials or confirmations are still to come.".to_owned()));
    }
    terminal(&blocks)
}

fn goal(workload: &WorkloadSummary) -> String {
    format!(
        "Goal: validation error ≤ {} (at most {} of {} examples{} wrong), tested every {} up to {}.",
        workload.goal_error,
        count(workload.goal_threshold),
        count(workload.validation_examples),
        if workload.training_examples.is_some() { " of the data's own validation set" } else { "" },
        some(workload.evaluate_every as usize, "step"),
        count(workload.max_steps),
    )
}

/// The work of all cells, and what the rules would have taken with the configured step budget and with the paper's.
fn work(results: &Results) -> Table {
    let workload = &results.workload;
    let done = computed(&results.cells);
    let column = |work: &Range, of: fn(&Work) -> u64| {
        let (low, high, done) = (of(&work.low), of(&work.high), of(&done));
        let range = |of: &dyn Fn(u64) -> String| if low == high { of(low) } else { format!("{} to {}", of(low), of(high)) };
        let times = range(&|work| format!("{:.1}", work as f64 / done as f64));
        // Where nothing was computed, nothing can be compared.
        range(&|work| count(work)) + &if done == 0 { String::new() } else { format!(" ({times}×)") }
    };
    let row = |name: String, work: Range| [name, column(&work, |work| work.gradients), column(&work, |work| work.validation)];
    let mut rows = vec![["computed".to_owned(), count(done.gradients), count(done.validation)]];
    let papers = papers_steps(workload).filter(|&steps| workload.max_steps < steps);
    for budget in std::iter::once(workload.max_steps).chain(papers) {
        let steps = count(budget);
        rows.push(row(format!("to the goal or step {steps}"), to_goal(workload, &results.cells, budget)));
        rows.push(row(format!("all to step {steps}"), to_end(workload, &results.cells, budget)));
    }
    Rows::new("work", rows).columns(&["", "example-gradients", "validation examples"], |row| row.to_vec()).table()
}

/// A row a confirmed point: its trial's steps, and the median and range of those with fresh seeds. Trainings that did not reach the goal within the
/// limit count as beyond it.
fn confirmations(grid: &Grid) -> Table {
    let shown = |steps: Option<u32>| steps.map_or(ABSENT.to_owned(), count);
    let steps = |&(cell, point): &(&Cell, u32)| cell.confirmations_of(point).map(|one| one.run.steps).collect::<Vec<_>>();
    let own = |&(cell, point): &(&Cell, u32)| cell.trials.iter().find(|trial| trial.index == point).and_then(|trial| trial.steps);
    let most = |steps: Vec<Option<u32>>| steps.iter().all(Option::is_some).then(|| steps.iter().flatten().max().copied()).flatten();
    Rows::new("confirmations", in_order(grid).flat_map(|cell| cell.confirmed_points().into_iter().map(move |point| (cell, point))))
        .keyed(|(cell, _)| cell.key)
        .column("trial", |(_, point)| point.to_string())
        .keys(3)
        .column("its steps", |row| shown(own(row)))
        .column("median", |&(cell, point)| shown(median_steps(cell.confirmations_of(point))))
        .column("least", |row| shown(steps(row).into_iter().flatten().min()))
        .column("most", |row| shown(most(steps(row))))
        .column("reached", |row| format!("{} of {}", steps(row).iter().flatten().count(), steps(row).len()))
        .table()
}

/// The measured cells, by sparsity, then batch size.
fn in_order<'a>(grid: &'a Grid<'a>) -> impl Iterator<Item = &'a Cell> {
    let keys = grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| (batch_size, sparsity)));
    keys.filter_map(|(batch_size, sparsity)| grid.cell(batch_size, sparsity))
}

/// The metaparameters that have one value in all trials, in words, and the others that trials have.
fn metaparameters(results: &Results) -> (Vec<String>, Vec<Metaparameter>) {
    let values = |name: Metaparameter| results.trials().filter_map(move |trial| trial.metaparameters.get(name));
    let (mut fixed, mut searched) = (Vec::new(), Vec::new());
    for name in Metaparameter::ALL {
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
fn cells(grid: &Grid, results: &Results, searched: &[Metaparameter]) -> Table {
    let mut rows = Rows::new("cells", in_order(grid))
        .keyed(|cell| cell.key)
        .column("trials", |cell| Status::ALL.map(|status| cell.count(status).to_string()).join("/"))
        .best("best", searched);
    if is_of_dps(results) {
        let error = |cell: &&Cell| results.workload.test_error(cell).map_or(ABSENT.to_owned(), |error| format!("{error:.4}"));
        rows = rows.column("error", error).column("seconds", |cell| format!("{:.1}", cell.seconds));
    }
    rows.table()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CellKey, CurvePoint, Trial};

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

//! Confirmed steps, and how lucky K* was.

use maud::{Markup, html};

use super::table::{ABSENT, interval, table};
use crate::analysis::statistics::{ConfirmedCell, ConfirmedFit, Estimate, Fit, Fresh, RESAMPLES, Scatter, Variances, half_width};
use crate::readable::{count, digits};

const HEADING: [&str; 9] =
    ["batch size", "sparsity", "points", "seeds", "geometric mean", "median", "9 of 10 are there", "failed", "K* over the mean"];
const FITS: [&str; 9] = [
    "sparsity",
    "batch sizes",
    "c1",
    "c2",
    "critical batch size",
    "critical batch size / dense",
    "half-width of its logarithm",
    "goodness of the fit",
    "uneven tuning",
];

const SCATTER: [&str; 6] = ["sparsity", "fresh", "cells", "between points", "between seeds, at all points alike", "of a seed at a point"];

/// A row a confirmed cell, and a row a sparsity that is fitted.
pub fn confirmed(cells: &[ConfirmedCell], fits: &[ConfirmedFit], scatter: &[Scatter]) -> Markup {
    let with_errors = cells.iter().any(|cell| cell.mean_error.is_some());
    let heading: Vec<&str> = HEADING.into_iter().chain(with_errors.then_some("mean error")).collect();
    let of_error = |cell: &ConfirmedCell| with_errors.then(|| cell.mean_error.map_or(ABSENT.to_owned(), interval));
    let rows: Vec<Vec<String>> = cells.iter().map(|cell| row(cell).into_iter().chain(of_error(cell)).collect()).collect();
    html! {
        p {
            "The best points of a cell's search, trained again with fresh seeds that took no part in it; all cells have the same ones. The point that one half of "
            "the seeds chooses is measured by the other half, both ways round. In brackets 95 % intervals. A training that did not reach the goal within "
            "its limit failed; failures count as more steps than that. " b { "K* over the mean" } " says how lucky K* is, the least of many trainings."
        }
        @if with_errors {
            p {
                b { "Mean error" } ": the first evaluation at which the mean error over the seeds reaches the goal, by Student's t; no training was stopped at the goal."
            }
        }
        (table(&heading, &rows))
        @if !scatter.is_empty() {
            p {
                "Where the scatter of log steps comes from: deviations, over all cells of a sparsity. " b { "Fresh" } " is what each seed draws anew: initial weights with "
                "their mask, the order of the examples. A file confirmed with " code { "confirm.vary" } " of one of the two, beside this one, tells them apart."
            }
            (table(&SCATTER, &scatter_rows(scatter)))
        }
        @if !fits.is_empty() {
            p {
                "K ≈ c1/B + c2 fitted to the geometric means, each by its error. Intervals are those of " (count(RESAMPLES)) " draws of the seeds, the same ones for all "
                "cells, as cells share them. " b { "Goodness of the fit" }
                ": how often means with these errors would lie as far from the law, if it held; below 0.05 it does not, or the points were tuned unevenly. "
                b { "Uneven tuning" } ": the scatter of means beyond their errors, over all sparsities; the intervals have it."
            }
            (table(&FITS, &fits.iter().map(fit_row).collect::<Vec<_>>()))
        }
    }
}

fn row(cell: &ConfirmedCell) -> Vec<String> {
    let confirmed = &cell.confirmed;
    vec![
        count(cell.key.batch_size),
        cell.key.sparsity.to_string(),
        cell.points.len().to_string(),
        confirmed.trainings.len().to_string(),
        interval(confirmed.mean),
        interval(confirmed.median),
        interval(confirmed.nine_of_ten),
        interval(confirmed.failures),
        cell.luck.map_or(ABSENT.to_owned(), interval),
    ]
}

/// A row a sparsity and what seeds drew anew.
fn scatter_rows(scatter: &[Scatter]) -> Vec<Vec<String>> {
    let mut kinds: Vec<(f64, Fresh)> = scatter.iter().map(|one| (one.key.sparsity, one.fresh)).collect();
    kinds.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    kinds.dedup();
    let row = |(sparsity, fresh): (f64, Fresh)| {
        let variances: Vec<Variances> =
            scatter.iter().filter(|one| (one.key.sparsity, one.fresh) == (sparsity, fresh)).map(|one| one.variances).collect();
        let deviation = |of: fn(&Variances) -> Option<f64>| {
            let known: Vec<f64> = variances.iter().filter_map(of).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            if known.is_empty() { ABSENT.to_owned() } else { format!("{:.1} %", 100.0 * mean.sqrt()) }
        };
        let deviations = [deviation(|one| one.points), deviation(|one| one.seeds), deviation(|one| Some(one.left))];
        [sparsity.to_string(), fresh.name().to_owned(), variances.len().to_string()].into_iter().chain(deviations).collect()
    };
    kinds.into_iter().map(row).collect()
}

fn fit_row(fitted: &ConfirmedFit) -> Vec<String> {
    let of = |number: fn(&Fit) -> Estimate| fitted.fit().map_or(ABSENT.to_owned(), |fit| interval(number(fit)));
    let ratio = fitted.fitted.critical_ratio;
    vec![
        fitted.fitted.sparsity.to_string(),
        fitted.fitted.points.len().to_string(),
        of(|fit| fit.c1),
        of(|fit| fit.c2),
        of(|fit| fit.critical),
        ratio.map_or(ABSENT.to_owned(), interval),
        ratio.map_or(ABSENT.to_owned(), |ratio| digits(half_width(ratio), 2)),
        digits(fitted.goodness, 2),
        format!("{:.1} %", 100.0 * fitted.tuning),
    ]
}

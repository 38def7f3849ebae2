//! Confirmed steps, and how lucky K* was.

use maud::{Markup, html};

use super::super::confirmations::{ConfirmedCell, ConfirmedFit};
use super::super::fit::{Estimate, Fit, RESAMPLES};
use super::super::means::half_width;
use super::table::{ABSENT, interval, table};
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

/// A row a confirmed cell, and a row a sparsity that is fitted.
pub fn confirmed(cells: &[ConfirmedCell], fits: &[ConfirmedFit]) -> Markup {
    html! {
        p {
            "The best points of a cell's search, trained again with fresh seeds that took no part in it; all cells have the same ones. The point that one half of "
            "the seeds chooses is measured by the other half, both ways round. In brackets 95 % intervals. A training that did not reach the goal within "
            "its limit failed; failures count as more steps than that. " b { "K* over the mean" } " says how lucky K* is, the least of many trainings."
        }
        (table(&HEADING, &cells.iter().map(row).collect::<Vec<_>>()))
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

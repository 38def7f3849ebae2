//! Confirmed steps, and how lucky K* was.

use super::super::document::Block;
use super::super::numbers::{ABSENT, interval};
use super::super::rows::Rows;
use super::super::table::Table;
use crate::analysis::statistics::{
    ConfirmedCell, ConfirmedFit, Estimate, Fitted, Fresh, RESAMPLES, Scatter, ShapedFit, Variances, half_width,
};
use crate::readable::{count, digits};
use crate::settings::ascending;

/// Text above the table of confirmed cells.
const CONFIRMED: &str = "The best points of a cell's search, trained again with fresh seeds that took no part in it; all cells have the same ones. The point that \
                         one half of the seeds chooses is measured by the other half, both ways round. In brackets 95 % intervals. A training that did not \
                         reach the goal within its limit failed; failures count as more steps than that. __K* over the mean__ says how lucky K* is, the \
                         least of many trainings.";

/// Text added where trainings went on after the goal.
const MEAN_ERROR: &str = "__Mean error__: the first evaluation at which the mean error over the seeds reaches the goal, by Student's t; no training was stopped \
                          at the goal.";

/// Text above the table of the fits of medians.
const MEDIANS: &str = "The same law fitted to the medians, each by its interval, or by its lower half where many failures leave no upper limit; \
                       a cell of which half failed is left out. Geometric means count failed trainings as the tail of a log-normal \
                       distribution, medians need no distribution. The fit takes the standard errors of the medians as independent, although cells share \
                       seeds: the intervals of ratios may be too wide by that, those of c1 and c2 too narrow.";

/// Text above the table of scatter.
const SCATTER: &str = "Where the scatter of log steps comes from: deviations, over all cells of a sparsity. __Fresh__ is what each seed draws anew: initial weights \
                       with their mask, the order of the examples. A file confirmed with `confirm.vary` of one of the two, beside this one, tells them apart.";

/// A row a confirmed cell, and a row a sparsity that is fitted.
pub fn confirmed(cells: &[ConfirmedCell], fits: &[ConfirmedFit], scatter: &[Scatter]) -> Vec<Block<'static>> {
    let with_errors = cells.iter().any(|cell| cell.mean_error.is_some());
    let rows = Rows::new("confirmed", cells)
        .keyed(|cell| cell.key)
        .column("points", |cell| cell.points.len().to_string())
        .column("seeds", |cell| cell.confirmed.trainings.len().to_string());
    let mut table = confirmed_steps(rows, interval);
    let mut blocks = vec![Block::Text(CONFIRMED.to_owned())];
    if with_errors {
        table = table.shown("mean error", interval, |cell| cell.mean_error);
        blocks.push(Block::Text(MEAN_ERROR.to_owned()));
    }
    blocks.push(Block::Table(table.table()));
    if !scatter.is_empty() {
        blocks.extend([Block::Text(SCATTER.to_owned()), Block::Table(scattered(scatter))]);
    }
    blocks.extend(fitted(fits, interval));
    blocks.extend(shaped(fits, interval));
    blocks
}

/// The columns of confirmed steps. `shown` writes an estimate.
pub fn confirmed_steps(rows: Rows<&ConfirmedCell>, shown: fn(Estimate) -> String) -> Rows<&ConfirmedCell> {
    rows.shown("geometric mean", shown, |cell| Some(cell.confirmed.mean))
        .shown("median", shown, |cell| Some(cell.confirmed.median))
        .shown("9 of 10 are there", shown, |cell| Some(cell.confirmed.nine_of_ten))
        .shown("failed", shown, |cell| Some(cell.confirmed.failures))
        .shown("K* over the mean", shown, |cell| cell.luck)
}

/// A row a sparsity and what seeds drew anew.
fn scattered(scatter: &[Scatter]) -> Table {
    let variances = |kind: (f64, Fresh)| scatter.iter().filter(move |one| (one.key.sparsity, one.fresh) == kind).map(|one| one.variances);
    let sparsities = ascending(scatter.iter().map(|one| one.key.sparsity), f64::total_cmp);
    let kinds = sparsities.into_iter().flat_map(|sparsity| Fresh::ALL.map(|fresh| (sparsity, fresh)));
    let kinds = kinds.filter(|&kind| variances(kind).next().is_some());
    let deviation = |kind: (f64, Fresh), of: fn(&Variances) -> Option<f64>| {
        let known: Vec<f64> = variances(kind).filter_map(|one| of(&one)).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        if known.is_empty() { ABSENT.to_owned() } else { format!("{:.1} %", 100.0 * mean.sqrt()) }
    };
    Rows::new("scatter", kinds)
        .column("sparsity", |(sparsity, _)| sparsity.to_string())
        .column("fresh", |(_, fresh)| fresh.name().to_owned())
        .column("cells", |&kind| variances(kind).count().to_string())
        .column("between points", |&kind| deviation(kind, |one| one.points))
        .column("between seeds, at all points alike", |&kind| deviation(kind, |one| one.seeds))
        .column("of a seed at a point", |&kind| deviation(kind, |one| Some(one.left)))
        .table()
}

/// Two laws whose shape is fitted too, each in words and with a row a sparsity; no block of a law that is not fitted. `shown` writes an estimate.
pub fn shaped(fits: &[ConfirmedFit], shown: fn(Estimate) -> String) -> Vec<Block<'static>> {
    let sharp = "Where the shape of the law is fitted too: K ≈ ((c1/B)^q + c2^q)^(1/q), with one sharpness q for all sparsities; q = 1 is the law above, a \
                 larger q turns more sharply from linear scaling into the floor, and c1/c2 is where the two meet.";
    let bent = "K ≈ c1/B^a + c2, with an exponent a for each sparsity; a = 1 is the law above. The critical batch size is where the two terms are equal.";
    let mut blocks = of_law(fits, "sharp-fits", sharp, "sharpness q", |fit| fit.sharp, shown);
    blocks.extend(of_law(fits, "bent-fits", bent, "exponent a", |fit| fit.bent, shown));
    blocks
}

fn of_law(
    fits: &[ConfirmedFit],
    name: &'static str,
    law: &str,
    shape: &'static str,
    of: fn(&ConfirmedFit) -> Option<ShapedFit>,
    shown: fn(Estimate) -> String,
) -> Vec<Block<'static>> {
    let known: Vec<(f64, ShapedFit)> = fits.iter().filter_map(|one| Some((one.fitted.sparsity, of(one)?))).collect();
    let Some((_, first)) = known.first() else { return Vec::new() };
    let text = format!("{law} Goodness of the fit over all sparsities: {}.", digits(first.goodness, 2));
    let table = Rows::new(name, known)
        .column("sparsity", |(sparsity, _)| sparsity.to_string())
        .shown(shape, shown, |(_, fit)| Some(fit.shape))
        .shown("critical batch size", shown, |(_, fit)| Some(fit.critical))
        .shown("that over the dense one's", shown, |(_, fit)| fit.critical_ratio)
        .shown("half-width of its logarithm", |ratio| digits(half_width(ratio), 2), |(_, fit)| fit.critical_ratio)
        .table();
    vec![Block::Text(text), Block::Table(table)]
}

/// The least and the greatest of ratios, each with the batch size that was left out.
fn left_out(ratios: [(f64, f64); 2]) -> String {
    let [least, greatest] = ratios.map(|(size, ratio)| format!("{} ({})", digits(ratio, 2), count(size as u64)));
    format!("{least} to {greatest}")
}

/// The columns of the law c1/B + c2 fitted at a sparsity, and of its ratio to the dense network's. `shown` writes an estimate, `of` finds the fit of
/// a row.
fn numbers_of_law<T>(rows: Rows<T>, shown: fn(Estimate) -> String, of: fn(&T) -> &Fitted) -> Rows<T> {
    rows.column("sparsity", |row| of(row).sparsity.to_string())
        .column("batch sizes", |row| of(row).points.len().to_string())
        .shown("c1", shown, |row| of(row).fit.as_ref().ok().map(|fit| fit.c1))
        .shown("c2", shown, |row| of(row).fit.as_ref().ok().map(|fit| fit.c2))
        .shown("critical batch size", shown, |row| of(row).critical())
        .shown("that over the dense one's", shown, |row| of(row).critical_ratio)
        .shown("half-width of its logarithm", |ratio| digits(half_width(ratio), 2), |row| of(row).critical_ratio)
}

/// The paper's law fitted to confirmed steps, in words and with a row a sparsity; no block where none is fitted. `shown` writes an estimate.
pub fn fitted(fits: &[ConfirmedFit], shown: fn(Estimate) -> String) -> Vec<Block<'static>> {
    if fits.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "K ≈ c1/B + c2 fitted to the geometric means, each by its standard error. Intervals are those of {} draws of the seeds, the same ones for all cells, as \
         cells share them. __Goodness of the fit__: how often means with these standard errors would lie as far from the law, if it held; below 0.05 it does not, or \
         the points were tuned unevenly. __Uneven tuning__: the scatter of means beyond their standard errors, over all sparsities; the intervals have it. \
         __Without one batch size__: the least and the greatest ratio of critical batch sizes where one batch size, named behind it, is left out of all \
         curves.",
        count(RESAMPLES)
    );
    let table = numbers_of_law(Rows::new("confirmed-fits", fits), shown, |one| &one.fitted)
        .column("without one batch size", |one| one.without_one.map_or_else(|| ABSENT.to_owned(), left_out))
        .column("goodness of the fit", |one| digits(one.goodness, 2))
        .column("uneven tuning", |one| format!("{:.1} %", 100.0 * one.tuning))
        .table();
    let medians: Vec<&Fitted> = fits.iter().filter_map(|one| one.of_medians.as_ref()).collect();
    if medians.is_empty() {
        return vec![Block::Text(text), Block::Table(table)];
    }
    let of_medians = numbers_of_law(Rows::new("median-fits", medians), shown, |one| one).table();
    vec![Block::Text(text), Block::Table(table), Block::Text(MEDIANS.to_owned()), Block::Table(of_medians)]
}

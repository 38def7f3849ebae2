//! The figures, a file for each kind: what they show, as data. How it is drawn is said in `chart`.

mod budgets;
mod curves;
mod fewer;
mod optimizers;
mod panels;
mod parallel;
mod parameters;
mod rates;
mod ratio;
mod scatter;
mod smoothness;
mod so_far;
mod together;
mod trade_off;
mod workloads;

pub use optimizers::optimizers;
pub use rates::{effective_rate, learning_rate};
pub use together::steps_to_result_plot;
pub use workloads::workloads;

use std::borrow::Cow;

use plotters::style::RGBColor;

use super::axes::{Axis, Scale};
use super::chart::{Chart, Dot, Element, Entry, GREY, Stroke};
use super::fit::Estimate;
use super::fits::Fitted;
use super::grid::{Curve, batch};
use super::marker::Series;
use super::others::{has_curves, has_trials};
use super::studies::StudyResults;
use crate::readable::{count, significant};
use crate::records::CellKey;

/// A figure and what to look at in it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its name within its study, fit for a file's name.
    pub name: Cow<'static, str>,
    /// Its heading on the page.
    pub heading: Cow<'static, str>,
    /// What is drawn, and what to look at.
    pub caption: String,
    /// The table that has what is drawn.
    pub table: &'static str,
    /// What is drawn.
    pub chart: Chart,
}

/// Every figure of one study, in the order of the page. A study that was run for its measurements alone has none of K*.
pub fn figures(study: &StudyResults, fits: &[Fitted]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let alone = study.measures_alone();
    if !alone {
        figures.push(together::together(study));
        figures.extend(together::normalised(study));
        figures.extend(panels::panels(study, fits));
        figures.extend(trade_off::trade_off(study, fits));
        figures.extend(ratio::ratio(study));
        figures.extend(rates::rates(study));
        figures.extend(parameters::parameters(study, fits));
    }
    if !alone && has_trials(&study.results) {
        figures.extend(scatter::scatter(study));
        figures.extend(parallel::parallel(study));
        figures.extend(fewer::fewer(study));
        figures.extend(so_far::so_far(study));
    }
    if !alone {
        figures.extend(budgets::fixed_budgets(study));
    }
    if has_curves(&study.results) {
        figures.extend(if alone { smoothness::loss(study) } else { curves::loss(study) });
        figures.extend(curves::error(study));
    }
    figures.extend(smoothness::lipschitz(study));
    figures.extend(smoothness::noise_scale(study));
    figures
}

/// The axis of batch sizes.
fn batch_axis(sizes: &[u32]) -> Axis {
    Axis::around(Scale::Log2, "Batch size (examples)", sizes.iter().map(|&size| batch(size)), (1.0, 16384.0))
}

/// The axis of steps-to-result.
fn steps_axis(study: &StudyResults, curves: &[Curve]) -> Axis {
    let workload = &study.results.workload;
    let budget = (f64::from(workload.evaluate_every.max(1)), f64::from(workload.max_steps.max(2)));
    Axis::around(Scale::Log2, "Steps-to-result", curves.iter().flatten().map(|point| point.1), budget)
}

/// A curve as a line and a marker at each point, with words for each.
fn curve(series: Series, points: &[(f64, f64)], words: impl Fn(f64, f64) -> String) -> [Element; 2] {
    let dots = dots(points, words);
    [Element::Line(Stroke::Solid, series.colour, points.to_vec()), Element::Points(series.marker, series.colour, dots)]
}

/// The points of a curve that exist, with words for each.
fn dots(points: &[(f64, f64)], words: impl Fn(f64, f64) -> String) -> Vec<Dot> {
    let dot = |&at: &(f64, f64)| Dot { at, words: words(at.0, at.1) };
    points.iter().filter(|point| point.1.is_finite()).map(dot).collect()
}

/// A cell's name, by its batch size as a coordinate.
fn name(size: f64, sparsity: f64) -> String {
    CellKey { batch_size: size as u32, sparsity }.to_string()
}

/// A number with its 95 % interval.
fn in_brackets(Estimate { value, low, high }: Estimate) -> String {
    let interval = if low.is_nan() || high.is_nan() { String::new() } else { format!(" [{} … {}]", significant(low), significant(high)) };
    significant(value) + &interval
}

/// What is known of a cell's K*.
fn steps_words(study: &StudyResults, sparsity: f64) -> impl Fn(f64, f64) -> String {
    let every = f64::from(study.results.workload.evaluate_every);
    move |size, steps| {
        let before = if every > 0.0 { format!(", goal not reached at {}", count((steps - every).max(0.0) as u32)) } else { String::new() };
        format!("{}: K* {}{before}", name(size, sparsity), count(steps as u32))
    }
}

/// What is known of K* at each point of a curve: it was found at an evaluation, and lies between that and the one before.
fn between_evaluations(study: &StudyResults, colour: RGBColor, points: &[(f64, f64)]) -> Element {
    let every = f64::from(study.results.workload.evaluate_every);
    Element::Bars(colour, points.iter().filter(|point| point.1.is_finite()).map(|&(size, steps)| (size, steps - every, steps)).collect())
}

/// Keeps the end of a line that leaves a panel inside of it.
const INSIDE: f64 = 1.0 - 1e-9;

/// Perfect linear scaling from a curve's first measured point to the largest batch size: twice the batch, half the steps.
fn linear_scaling(colour: RGBColor, points: &[(f64, f64)], y: &Axis, largest: f64) -> Option<Element> {
    let &(size, steps) = points.iter().find(|point| point.1.is_finite())?;
    // Straight on these axes: two points, the second where it leaves the panel.
    let end = largest.min(size * steps / y.limits().0 * INSIDE);
    (end > size).then(|| Element::Line(Stroke::Dashed, colour, vec![(size, steps), (end, steps * size / end)]))
}

/// A legend entry for a sparsity whose curve is drawn.
fn entry(sparsity: f64, points: &[(f64, f64)]) -> Entry {
    let reached = if points.iter().any(|point| point.1.is_finite()) { "" } else { " (not reached)" };
    series_entry(Series::of_sparsity(sparsity), format!("sparsity {sparsity}{reached}"))
}

/// A legend entry for a sparsity.
fn sparsity_entry(sparsity: f64) -> Entry {
    series_entry(Series::of_sparsity(sparsity), format!("sparsity {sparsity}"))
}

/// A legend entry for a series.
fn series_entry(Series { colour, marker }: Series, name: String) -> Entry {
    Entry { name, colour, stroke: Some(Stroke::Solid), marker: Some(marker) }
}

/// The legend entry of [`linear_scaling`], where any curve has two points.
fn linear_entry(curves: &[Curve]) -> Option<Entry> {
    let long = |curve: &Curve| curve.iter().filter(|point| point.1.is_finite()).count() > 1;
    curves.iter().any(long).then(|| Entry { name: "linear scaling".to_owned(), colour: GREY, stroke: Some(Stroke::Dashed), marker: None })
}

/// What to write in a panel that has nothing to show.
fn note(study: &StudyResults, curves: &[Curve]) -> Option<String> {
    let empty = !curves.iter().flatten().any(|point| point.1.is_finite());
    let note = if study.results.cells.is_empty() { "No cell is finished yet" } else { "No trial has reached the goal" };
    empty.then(|| note.to_owned())
}

/// Every sparsity's curve of K*.
fn curves(study: &StudyResults) -> Vec<Curve> {
    let grid = study.grid();
    grid.sparsities.iter().map(|&sparsity| grid.curve(sparsity)).collect()
}

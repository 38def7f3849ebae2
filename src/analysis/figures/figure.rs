//! A figure, and what several of them are made of.

use std::borrow::Cow;
use std::iter;

use crate::analysis::chart::{Axis, Chart, Colour, Dot, Element, Entry, GREY, Marker, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::{ConfirmedCell, Estimate};
use crate::analysis::studies::{Curve, StudyResults, batch};
use crate::readable::{count, significant};
use crate::records::{Cell, CellKey};

/// A figure and what to look at in it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The figure's name within its study, fit for a file's name.
    pub name: Cow<'static, str>,
    /// Heading of the figure on the page.
    pub heading: Cow<'static, str>,
    /// Caption: it describes the figure, and what to look at.
    pub caption: String,
    /// Name of the table that has the figure's numbers.
    pub table: &'static str,
    /// The parts of the page whose numbers the figure draws, and which name it.
    pub beside: &'static [Part],
    /// The panels with what they show, and the legend.
    pub chart: Chart,
}

impl Figure {
    /// A figure by its name and its heading, its caption, the table with its numbers and the parts of the page that name it.
    pub(super) fn new<N: Into<Cow<'static, str>>>(
        (name, heading): (N, N),
        caption: impl Into<String>,
        table: &'static str,
        beside: &'static [Part],
        chart: Chart,
    ) -> Figure {
        Figure { name: name.into(), heading: heading.into(), caption: caption.into(), table, beside, chart }
    }
}

/// A part of the page that names the figures of what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Steps-to-result.
    Steps,
    /// Trials.
    Trials,
    /// Confirmed steps.
    Confirmed,
    /// Fits.
    Fits,
    /// Critical batch sizes.
    Critical,
    /// The theory's predictions.
    Theory,
}

/// The axis of batch sizes.
pub(super) fn batch_axis(sizes: &[u32]) -> Axis {
    Axis::around(Scale::Log2, "Batch size (examples)", sizes.iter().map(|&size| batch(size)), (1.0, 16384.0))
}

/// The label of an axis of steps-to-result.
pub(super) const STEPS: &str = "Steps-to-result";

/// An axis of steps to the goal for curves of studies. It reaches to the step budget where a cell's trials did not reach the goal in it.
pub(super) fn steps_axis(label: &str, studies: &[&StudyResults], curves: &[Curve]) -> Axis {
    let reached = curves.iter().flatten().map(|point| point.1);
    let missed =
        studies.iter().filter(|study| study.results.cells.iter().any(|cell| cell.steps_to_result().is_none())).map(|study| budget(study));
    let every = studies.first().map_or(1, |study| study.results.workload.evaluate_every.max(1));
    let most = studies.first().map_or(2.0, |study| budget(study).max(2.0));
    Axis::around(Scale::Log2, label, reached.chain(missed), (f64::from(every), most))
}

/// Steps after which a study's trials end; at least 1, as another program's table may not say.
fn budget(study: &StudyResults) -> f64 {
    f64::from(study.results.workload.max_steps.max(1))
}

/// A curve as a line and a marker at each point, with words for each.
pub(super) fn curve(series: Series, points: &[(f64, f64)], words: impl Fn(f64, f64) -> String) -> [Element; 2] {
    let dots = dots(points, &words);
    [Element::Line(Stroke::Solid, series.colour, points.to_vec()), Element::Points(series.marker, series.colour, dots)]
}

/// The points of a curve that exist, with words for each.
pub(super) fn dots(points: &[(f64, f64)], words: &dyn Fn(f64, f64) -> String) -> Vec<Dot> {
    let dot = |&at: &(f64, f64)| Dot { at, words: words(at.0, at.1) };
    points.iter().filter(|point| point.1.is_finite()).map(dot).collect()
}

/// A cell's name, by its batch size as a coordinate.
pub(super) fn name(size: f64, sparsity: f64) -> String {
    CellKey { batch_size: size as u32, sparsity }.to_string()
}

/// A number with its 95 % interval.
pub(super) fn in_brackets(Estimate { value, low, high }: Estimate) -> String {
    let interval = if low.is_nan() || high.is_nan() { String::new() } else { format!(" [{} … {}]", significant(low), significant(high)) };
    significant(value) + &interval
}

/// A number of each cell against the batch size with its interval, a curve a sparsity, around dashes at 1; none where no cell has the number. The
/// vertical axis has a scale and a title, and holds the value `from` too. `words` says what a cell's number is.
pub(super) fn around_one(
    study: &StudyResults,
    title: &str,
    (scale, label, from): (Scale, &str, f64),
    number: impl Fn(CellKey) -> Option<Estimate>,
    words: impl Fn(String, Estimate) -> String,
) -> Option<Chart> {
    let grid = study.grid();
    let (mut bars, mut curves, mut ends, mut legend) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &sparsity in &grid.sparsities {
        let of_size = |&batch_size: &u32| (batch(batch_size), number(CellKey { batch_size, sparsity }));
        let points: Vec<(f64, Option<Estimate>)> = grid.batch_sizes.iter().map(of_size).collect();
        let known: Vec<(f64, Estimate)> = points.iter().filter_map(|&(size, number)| Some((size, number?))).collect();
        if known.is_empty() {
            continue;
        }
        let line = points.iter().map(|(size, number)| (*size, number.map_or(f64::NAN, |number| number.value)));
        let said =
            |size: f64, _| known.iter().find(|known| known.0 == size).map_or(String::new(), |known| words(name(size, sparsity), known.1));
        curves.extend(curve(Series::of_sparsity(sparsity), &line.collect::<Curve>(), said));
        bars.push(Element::Bars(Series::of_sparsity(sparsity).colour, known.iter().map(|(size, of)| (*size, of.low, of.high)).collect()));
        ends.extend(known.iter().flat_map(|(_, number)| [number.value, number.low, number.high]));
        legend.push(sparsity_entry(sparsity));
    }
    if legend.is_empty() {
        return None;
    }
    let (x, y) = (batch_axis(&grid.batch_sizes), Axis::around(scale, label, ends.into_iter().chain([from, 1.0]), (from, 1.0)));
    let layers = iter::once(level(&x, 1.0)).chain(bars).chain(curves).collect();
    Some(Chart::new(format!("{}: {title}", study.name()), 1, vec![Panel::new(x, y, layers)], legend))
}

/// Dashes at a value of the vertical axis.
pub(super) fn level(x: &Axis, at: f64) -> Element {
    let (left, right) = x.limits();
    Element::Line(Stroke::Dashed, GREY, vec![(left, at), (right, at)])
}

/// Words for a cell's K*: the steps, and the evaluation before them, at which the goal was not reached.
pub(super) fn steps_words(study: &StudyResults, sparsity: f64) -> impl Fn(f64, f64) -> String {
    let every = f64::from(study.results.workload.evaluate_every);
    move |size, steps| {
        let before = if every > 0.0 { format!(", goal not reached at {}", count((steps - every).max(0.0) as u32)) } else { String::new() };
        format!("{}: K* {}{before}", name(size, sparsity), count(steps as u32))
    }
}

/// A caption's sentence on confirmed steps.
pub(super) const CONFIRMED: &str =
    " Rings: the geometric mean of the steps that the best points take with fresh seeds, with its 95 % interval.";

/// A marker at the mean of confirmed steps of each of some cells, with a bar for its interval.
pub(super) fn confirmed_steps<'a>(
    cells: impl IntoIterator<Item = &'a ConfirmedCell, IntoIter: Clone>,
    marker: Marker,
    colour: Colour,
) -> [Element; 2] {
    let known = cells.into_iter().map(|cell| (batch(cell.key.batch_size), cell.confirmed.mean, cell.key));
    let bars = known.clone().map(|(size, mean, _)| (size, mean.low, mean.high)).filter(|bar| bar.1.is_finite()).collect();
    let dot = |(size, mean, key): (f64, Estimate, CellKey)| Dot {
        at: (size, mean.value),
        words: format!("{key}: confirmed steps {}", in_brackets(mean)),
    };
    let dots = known.filter(|(_, mean, _)| mean.value.is_finite()).map(dot).collect();
    [Element::Bars(colour, bars), Element::Points(marker, colour, dots)]
}

/// The ends of the intervals of confirmed steps, for the axis.
pub(super) fn confirmed_ends(cells: &[ConfirmedCell]) -> Curve {
    let ends = |cell: &ConfirmedCell| [cell.confirmed.mean.low, cell.confirmed.mean.high].map(|steps| (batch(cell.key.batch_size), steps));
    cells.iter().flat_map(ends).filter(|end| end.1.is_finite()).collect()
}

/// The legend entry of confirmed steps, where there are any.
pub(super) fn confirmed_entry(cells: &[ConfirmedCell]) -> Option<Entry> {
    (!cells.is_empty()).then(|| Entry::point("confirmed steps", GREY, Marker::Ring))
}

/// A bar at each point of a curve of K* divided by `over`, between the evaluation that found K* and the one before: K* lies between them.
pub(super) fn between_evaluations(study: &StudyResults, over: f64, colour: Colour, points: &[(f64, f64)]) -> Element {
    let every = f64::from(study.results.workload.evaluate_every);
    let bar = |&(size, steps): &(f64, f64)| (size, (steps - every) / over, steps / over);
    Element::Bars(colour, points.iter().filter(|point| point.1.is_finite()).map(bar).collect())
}

/// An arrow at the step budget for each batch size at which a sparsity's trials did not reach the goal. The arrows of the `number`th of
/// the `curves` of a panel stand a little to the right of those of the curve before, all within the panel.
pub(super) fn unreached(study: &StudyResults, sparsity: f64, colour: Colour, number: usize, curves: usize) -> Element {
    let missed = |cell: &&Cell| cell.key.sparsity == sparsity && cell.steps_to_result().is_none();
    let words = format!("goal not reached in {} steps", count(study.results.workload.max_steps));
    // The axis goes on for 0.35 powers of two.
    let aside = (0.3 * number as f64 / curves.max(3) as f64).exp2();
    let dot = |cell: &Cell| Dot { at: (batch(cell.key.batch_size) * aside, budget(study)), words: format!("{}: {words}", cell.key) };
    Element::Points(Marker::Arrow(0, -1), colour, study.results.cells.iter().filter(missed).map(dot).collect())
}

/// A factor just below 1, by which a line that leaves a panel is cut short, so that the line's end lies inside the panel.
pub(super) const INSIDE: f64 = 1.0 - 1e-9;

/// Where an arrow stands that points out of a panel, as a part of the axis.
pub(super) const NEAR_END: f64 = 0.975;

/// The place at a part of a logarithmic axis.
pub(super) fn along(low: f64, high: f64, part: f64) -> f64 {
    low * (high / low).powf(part)
}

/// Parts of the curve of a fit.
pub(super) const PARTS: i32 = 80;

/// Evenly apart on a logarithmic axis, from one place to another in so many parts.
pub(super) fn between(from: f64, to: f64, parts: i32) -> impl Iterator<Item = f64> + Clone {
    (0..=parts).map(move |part| from * (to / from).powf(f64::from(part) / f64::from(parts)))
}

/// The interval of a number at each of some batch sizes, cut off at the limits of its axis.
pub(super) fn band(colour: Colour, sizes: impl Iterator<Item = f64>, y: &Axis, of: impl Fn(f64) -> Estimate) -> Element {
    let (bottom, top) = y.limits();
    let interval = |size: f64| {
        let Estimate { low, high, .. } = of(size);
        (size, low.clamp(bottom, top), high.clamp(bottom, top))
    };
    Element::Band(colour, sizes.map(interval).collect())
}

/// The smallest and the largest batch size of the points of a curve that exist.
pub(super) fn known(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut sizes = points.iter().filter(|point| point.1.is_finite()).map(|point| point.0);
    let first = sizes.next()?;
    Some((first, sizes.next_back().unwrap_or(first)))
}

/// A panel for each cell of a study, titled by the cell's sparsity S and batch size B; and how many panels stand in a row.
pub(super) fn panel_a_cell(study: &StudyResults, x: &Axis, y: &Axis, layers: &dyn Fn(&Cell) -> Vec<Element>) -> (Vec<Panel>, usize) {
    let grid = study.grid();
    let (sizes, sparsities) = (&grid.batch_sizes, &grid.sparsities);
    let panel = |size: u32, sparsity: f64| {
        let cell = grid.cell(size, sparsity);
        let panel = Panel::new(x.clone(), y.clone(), cell.map(layers).unwrap_or_default());
        Panel { note: cell.is_none().then(|| "not measured".to_owned()), ..panel }.titled(format!("S {sparsity}, B {}", count(size)))
    };
    let mut keys: Vec<(u32, f64)> = sparsities.iter().flat_map(|&sparsity| sizes.iter().map(move |&size| (size, sparsity))).collect();
    // A row a batch size and a column a sparsity where those fit.
    let fit = (2..=5).contains(&sparsities.len());
    if fit {
        keys.sort_by_key(|key| key.0);
    }
    let columns = if fit { sparsities.len() } else { keys.len().clamp(1, 4) };
    (keys.into_iter().map(|(size, sparsity)| panel(size, sparsity)).collect(), columns)
}

/// Perfect linear scaling from a curve's first measured point to the largest batch size: twice the batch, half the steps.
pub(super) fn linear_scaling(colour: Colour, points: &[(f64, f64)], y: &Axis, largest: f64) -> Option<Element> {
    let &(size, steps) = points.iter().find(|point| point.1.is_finite())?;
    // Straight on these axes: two points, the second where it leaves the panel.
    let end = largest.min(size * steps / y.limits().0 * INSIDE);
    (end > size).then(|| Element::Line(Stroke::Dashed, colour, vec![(size, steps), (end, steps * size / end)]))
}

/// A legend entry for a sparsity whose curve is drawn.
pub(super) fn entry(sparsity: f64, points: &[(f64, f64)]) -> Entry {
    let reached = if points.iter().any(|point| point.1.is_finite()) { "" } else { " (not reached)" };
    series_entry(Series::of_sparsity(sparsity), format!("sparsity {sparsity}{reached}"))
}

/// A legend entry for a sparsity.
pub(super) fn sparsity_entry(sparsity: f64) -> Entry {
    series_entry(Series::of_sparsity(sparsity), format!("sparsity {sparsity}"))
}

/// A legend entry for a series.
pub(super) fn series_entry(Series { colour, marker }: Series, name: String) -> Entry {
    Entry { name, colour, stroke: Some(Stroke::Solid), marker: Some(marker) }
}

/// The legend entry of [`linear_scaling`], where any curve has two points.
pub(super) fn linear_entry(curves: &[Curve]) -> Option<Entry> {
    let long = |curve: &Curve| curve.iter().filter(|point| point.1.is_finite()).count() > 1;
    curves.iter().any(long).then(|| Entry::line("linear scaling", GREY, Stroke::Dashed))
}

/// Note for a panel that has nothing to show.
pub(super) fn note(study: &StudyResults, curves: &[Curve]) -> Option<String> {
    let empty = !curves.iter().flatten().any(|point| point.1.is_finite());
    let note = if study.results.cells.is_empty() { "No cell is finished yet" } else { "No trial has reached the goal" };
    empty.then(|| note.to_owned())
}

/// Every sparsity's curve of K*.
pub(super) fn curves(study: &StudyResults) -> Vec<Curve> {
    let grid = study.grid();
    grid.sparsities.iter().map(|&sparsity| grid.curve(sparsity)).collect()
}

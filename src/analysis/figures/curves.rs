//! Training curves of the best trials (figure 6 of Lee et al., ICLR 2021).

use super::figure::{Figure, dots, level, name, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Element, Entry, GREY, Marker, Panel, Scale, Series, Stroke};
use crate::analysis::studies::{Curve, StudyResults, batch};
use crate::readable::{count, significant};
use crate::records::{Cell, CurvePoint, Trial};
use crate::settings::ascending;

/// Points of a curve at most; of more, means of neighbours are drawn.
const MOST_POINTS: usize = 60;

/// Points of a curve up to which each has a marker.
const MOST_MARKED: usize = 32;

/// Elements that a panel draws of a cell.
#[derive(Default)]
pub(super) struct Shown {
    /// A line.
    pub line: Curve,
    /// The range around the line: (x, lowest, highest).
    pub band: Vec<(f64, f64, f64)>,
    /// Points of which a lower bound is known, drawn hollow.
    pub bounds: Curve,
}

/// The trial a cell's curves are of: the best, or, where none reached the goal, the first that was measured along its training.
pub fn shown(cell: &Cell) -> Option<&Trial> {
    cell.best().or_else(|| cell.trials.iter().find(|trial| !trial.measurements.is_empty()))
}

/// Training loss over steps of each cell's best trial; none where no cell has one.
pub fn loss(study: &StudyResults) -> Option<Figure> {
    let points = |cell: &Cell| {
        let trial = shown(cell)?;
        let points: Curve = trial.curve.iter().map(|point| (f64::from(point.step), f64::from(point.loss))).collect();
        Some(Shown { line: thinned(points), ..Shown::default() })
    };
    let chart = chart(study, "training loss of the best trials", (Scale::Log2, "Training loss (nats)"), &points, None)?;
    let caption = format!(
        "Mean training loss of the batch just trained on, at each evaluation of each cell's best trial; of more than {MOST_POINTS} \
         evaluations, means of neighbours. Small batches are noisy. Each curve ends where the goal was reached.{}",
        instead(study)
    );
    Some(Figure::new(("loss", "Training loss of the best trials"), caption, "curves", &[], chart))
}

/// Validation error over steps of each cell's best trial; none where no cell has two evaluations, as then there is no curve, or where more than a
/// quarter of the evaluations are lower bounds, as in a race.
pub fn error(study: &StudyResults) -> Option<Figure> {
    let all = study.results.workload.validation_examples;
    let points = |cell: &Cell| {
        let point = |point: &CurvePoint| (f64::from(point.step), f64::from(point.errors) / f64::from(all.max(1)));
        let (whole, bounds): (Vec<&CurvePoint>, Vec<&CurvePoint>) = shown(cell)?.curve.iter().partition(|point| point.examples == all);
        let every = bounds.len().div_ceil(MOST_POINTS).max(1);
        let bounds = bounds.into_iter().step_by(every).map(point).collect();
        Some(Shown { line: thinned(whole.into_iter().map(point).collect()), bounds, ..Shown::default() })
    };
    if !study.results.cells.iter().filter_map(points).any(|shown| shown.line.len() + shown.bounds.len() > 1) {
        return None;
    }
    let bounds = bounds(study);
    if 4 * bounds > study.results.cells.iter().filter_map(shown).map(|trial| trial.curve.len()).sum() {
        return None;
    }
    // A goal of 0 errors marks a study that is run for its measurements: it has no goal line.
    let goal = Some(study.results.workload.goal_error).filter(|_| study.results.workload.goal_threshold > 0);
    let alone = study.measures_alone();
    let (heading, title, whose, x) = match alone {
        true => ("Validation error", "validation error", "first measured trial", Scale::Linear),
        false => ("Validation error of the best trials", "validation error of the best trials", "best trial", Scale::Log2),
    };
    let chart = chart(study, title, (x, "Validation error (fraction)"), &points, goal)?;
    let hollow = if bounds == 0 {
        String::new()
    } else {
        format!(
            " Hollow markers are lower bounds: {bounds} evaluations stopped as soon as they could no longer reach the goal, and the error was at least \
             the errors they had seen; of more than {MOST_POINTS} a curve, some are left out (full_evaluation = true under [execution] runs them all to \
             their end, and dps-train replay those of one trial)."
        )
    };
    let dashed = if goal.is_some() { "; the goal is dashed" } else { "" };
    let caption = format!("Error on the whole validation set over steps of each cell's {whose}{dashed}.{hollow}{}", instead(study));
    Some(Figure::new(("error", heading), caption, "curves", &[], chart))
}

/// Evaluations of the trials shown that stopped early: their errors are lower bounds.
fn bounds(study: &StudyResults) -> usize {
    let all = study.results.workload.validation_examples;
    study.results.cells.iter().filter_map(shown).flat_map(|trial| &trial.curve).filter(|point| point.examples < all).count()
}

/// A sentence for cells that have no best trial but a measured one, whose curve is shown.
fn instead(study: &StudyResults) -> &'static str {
    let unreached = |cell: &Cell| cell.best().is_none() && shown(cell).is_some();
    match !study.measures_alone() && study.results.cells.iter().any(unreached) {
        true => " Where no trial reached the goal, the first is shown whose smoothness was measured.",
        false => "",
    }
}

/// A panel a batch size, a curve a sparsity: what is shown of each cell, over steps on the scale `x`. `y` names the vertical axis.
pub(super) fn chart(
    study: &StudyResults,
    title: &str,
    (x, y): (Scale, &str),
    points: &dyn Fn(&Cell) -> Option<Shown>,
    goal: Option<f64>,
) -> Option<Chart> {
    let grid = study.grid();
    let curves: Vec<(u32, f64, Shown)> = grid
        .batch_sizes
        .iter()
        .flat_map(|&size| grid.sparsities.iter().map(move |&sparsity| (size, sparsity)))
        .filter_map(|(size, sparsity)| Some((size, sparsity, points(grid.cell(size, sparsity)?)?)))
        .collect();
    let sizes = ascending(curves.iter().map(|curve| curve.0), u32::cmp);
    if sizes.is_empty() {
        return None;
    }
    let all = || curves.iter().flat_map(|(.., shown)| shown.line.iter().chain(&shown.bounds));
    let x = Axis::around(x, "Steps", all().map(|point| point.0), (16.0, 1024.0));
    let marked = curves.iter().all(|(.., shown)| shown.line.len() <= MOST_MARKED);
    let bounded = curves.iter().any(|(.., shown)| !shown.bounds.is_empty());
    let ranges = || curves.iter().flat_map(|(.., shown)| &shown.band).flat_map(|&(_, low, high)| [low, high]);
    // The loss of a batch of two may be next to nothing; three decades are enough to see.
    let highest = all().map(|point| point.1).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let y = Axis::around(Scale::Log10, y, all().map(|point| point.1.max(highest / 1e3)).chain(ranges()).chain(goal), (0.01, 1.0));
    let panel = |&size: &u32| {
        let mut layers: Vec<Element> = goal.iter().map(|&goal| level(&x, goal)).collect();
        let here = || curves.iter().filter(|curve| curve.0 == size);
        // Bands are drawn first, so that none covers a line.
        let colour = |sparsity: f64| Series::of_sparsity(sparsity).colour;
        let banded = here().filter(|(.., shown)| !shown.band.is_empty());
        layers.extend(banded.map(|(_, sparsity, shown)| Element::Band(colour(*sparsity), shown.band.clone())));
        for (_, sparsity, Shown { line, bounds, .. }) in here() {
            let Series { colour, marker } = Series::of_sparsity(*sparsity);
            let words = |kind: &'static str| {
                move |step: f64, value: f64| {
                    format!("{}, step {}: {kind}{}", name(batch(size), *sparsity), count(step.round() as u32), significant(value))
                }
            };
            layers.push(Element::Line(Stroke::Solid, colour, line.clone()));
            layers.push(Element::Hollow(marker, colour, dots(bounds, &words("at least "))));
            // A single point is no line.
            if marked || line.len() == 1 {
                layers.push(Element::Points(marker, colour, dots(line, &words(""))));
            }
        }
        Panel::new(x.clone(), y.clone(), layers).titled(format!("batch size {}", count(size)))
    };
    let entry = |&sparsity: &f64| {
        let entry = sparsity_entry(sparsity);
        Entry { marker: entry.marker.filter(|_| marked || bounded), ..entry }
    };
    let mut legend: Vec<Entry> = grid.sparsities.iter().map(entry).collect();
    legend.extend(goal.map(|goal| Entry::line(format!("goal {goal}"), GREY, Stroke::Dashed)));
    if bounded {
        legend.push(Entry::point("lower bound", GREY, Marker::Ring));
    }
    let chart = Chart::new(format!("{}: {title}", study.name()), sizes.len().clamp(1, 3), sizes.iter().map(panel).collect(), legend);
    // Bounds have a marker each, and these are many.
    Some(if bounded { chart.crowded() } else { chart })
}

/// At most [`MOST_POINTS`] points: the first and last as they are, between them means over neighbours. What is no number is kept out of
/// the means and breaks no line.
fn thinned(mut points: Curve) -> Curve {
    points.retain(|point| point.1.is_finite());
    let group = points.len().div_ceil(MOST_POINTS).max(1);
    if group == 1 {
        return points;
    }
    let last = points.pop();
    let mean = |points: &[(f64, f64)]| {
        let count = points.len() as f64;
        (points.iter().map(|point| point.0).sum::<f64>() / count, points.iter().map(|point| point.1).sum::<f64>() / count)
    };
    let first = points.first().copied();
    first.into_iter().chain(points.get(1..).unwrap_or_default().chunks(group).map(mean)).chain(last).collect()
}

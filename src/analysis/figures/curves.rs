//! Training curves of the best trials (figure 6 of Lee et al., ICLR 2021).

use super::super::axes::{Axis, Scale};
use super::super::grid::Curve;
use super::super::sheet::{Entry, GREY, Layer, Panel, Sheet, Stroke, colour, marker};
use super::super::studies::Study;
use super::{Figure, series_entry};
use crate::study::{Cell, CurvePoint};

/// Points of a curve at most; of more, means of neighbours are drawn.
const MOST_POINTS: usize = 60;

/// Training loss over steps of each cell's best trial; none where no cell has one.
pub fn loss(study: &Study) -> Option<Figure> {
    let points = |cell: &Cell| {
        let best = cell.best()?;
        let points: Curve = best.curve.iter().map(|point| (f64::from(point.step), f64::from(point.loss))).collect();
        Some(thinned(points))
    };
    let sheet = sheet(study, "Training loss", points, None)?;
    let caption = format!(
        "Mean training loss of the batch just trained on, at each evaluation of each cell's best trial; of more than {MOST_POINTS} \
         evaluations, means of neighbours. Small batches are noisy. Each curve ends where the goal was reached.{}",
        if error(study).is_none() && bounds(study) > 0 {
            " Validation error has no figure: all evaluations but the last stopped as soon as they could no longer reach the goal (full_evaluation = true \
             under [execution] runs them to their end)."
        } else {
            ""
        }
    );
    Some(Figure { name: "loss", heading: "Training loss of the best trials", caption, sheet })
}

/// Validation error over steps of each cell's best trial; none where no cell has two whole evaluations, as then there is no curve.
pub fn error(study: &Study) -> Option<Figure> {
    let all = study.results.workload.validation_examples;
    let whole = |point: &&CurvePoint| point.examples == all;
    let points = |cell: &Cell| {
        let full = cell.best()?.curve.iter().filter(whole);
        Some(thinned(full.map(|point| (f64::from(point.step), f64::from(point.errors) / f64::from(all.max(1)))).collect()))
    };
    let bounds = bounds(study);
    if !study.results.cells.iter().filter_map(points).any(|points| points.len() > 1) {
        return None;
    }
    let sheet = sheet(study, "Validation error", points, Some(study.results.workload.goal_error))?;
    let left_out = if bounds == 0 {
        String::new()
    } else {
        format!(
            " {bounds} evaluations that stopped as soon as they could no longer reach the goal are left out: their errors are only lower \
             bounds just above it."
        )
    };
    let caption = format!("Error on the whole validation set over steps of each cell's best trial; the goal is dashed.{left_out}");
    Some(Figure { name: "error", heading: "Validation error of the best trials", caption, sheet })
}

/// Evaluations of the best trials that stopped early: their errors are lower bounds.
fn bounds(study: &Study) -> usize {
    let all = study.results.workload.validation_examples;
    study.results.cells.iter().filter_map(Cell::best).flat_map(|best| &best.curve).filter(|point| point.examples < all).count()
}

/// A panel a batch size, a curve a sparsity.
fn sheet(study: &Study, title: &str, points: impl Fn(&Cell) -> Option<Curve>, goal: Option<f64>) -> Option<Sheet> {
    let grid = study.grid();
    let curves: Vec<(u32, usize, Curve)> = grid
        .batch_sizes
        .iter()
        .flat_map(|&size| grid.sparsities.iter().enumerate().map(move |(number, &sparsity)| (size, number, sparsity)))
        .filter_map(|(size, number, sparsity)| Some((size, number, points(grid.cell(size, sparsity)?)?)))
        .collect();
    let mut sizes: Vec<u32> = curves.iter().map(|curve| curve.0).collect();
    sizes.dedup();
    if sizes.is_empty() {
        return None;
    }
    let shown = || curves.iter().flat_map(|curve| &curve.2);
    let x = Axis::around(Scale::Log2, "Steps", shown().map(|point| point.0), (16.0, 1024.0));
    // The loss of a batch of two may be next to nothing; three decades are enough to see.
    let highest = shown().map(|point| point.1).fold(0.0, f64::max);
    let y = Axis::around(Scale::Log10, title, shown().map(|point| point.1.max(highest / 1e3)).chain(goal), (0.01, 1.0));
    let panel = |&size: &u32| {
        let (left, right) = x.limits();
        let mut layers: Vec<Layer> =
            goal.iter().map(|&goal| Layer::Line(Stroke::Dashed, GREY, vec![(left, goal), (right, goal)])).collect();
        for (_, number, points) in curves.iter().filter(|curve| curve.0 == size) {
            layers.push(Layer::Line(Stroke::Solid, colour(*number), points.clone()));
            // A single point is no line.
            if points.len() == 1 {
                layers.push(Layer::Points(marker(*number), colour(*number), points.clone()));
            }
        }
        Panel { title: format!("batch size {size}"), x: x.clone(), y: y.clone(), layers, note: None }
    };
    let mut legend: Vec<Entry> =
        grid.sparsities.iter().enumerate().map(|(number, sparsity)| series_entry(number, format!("sparsity {sparsity}"))).collect();
    legend.extend(goal.map(|goal| Entry { name: format!("goal {goal}"), colour: GREY, stroke: Some(Stroke::Dashed), marker: None }));
    Some(Sheet {
        title: format!("{}: {} of the best trials", study.name(), title.to_lowercase()),
        columns: sizes.len().clamp(1, 3),
        crowded: false,
        panels: sizes.iter().map(panel).collect(),
        legend,
    })
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

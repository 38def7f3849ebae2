//! All sparsities in one panel, as measured and normalised (figure 1, columns 3 and 4, of Lee et al., ICLR 2021).

use std::path::Path;

use super::super::axes::{Axis, Scale};
use super::super::chart::{Chart, Panel};
use super::super::grid::batch;
use super::super::marker::colour;
use super::super::studies::{StudyResults, gather};
use super::{Figure, batch_axis, curve, curves, entry, linear_entry, linear_scaling, note, smoothness, steps_axis};
use crate::results::{self, Results};
use crate::{Error, Result};

/// Draws K* against batch size as an SVG file: both axes in powers of two, a line and a marker shape a sparsity, and, dashed, perfect
/// linear scaling from each sparsity's first measured point. A line is broken at a cell that is unmeasured or reached no goal. Of a study run for its measurements
/// alone, which has no K*, the Lipschitz constant along training.
///
/// # Errors
/// [`Error::Results`] where the file cannot be written; an older one is then untouched.
pub fn steps_to_result_plot(results: &Results, path: &Path) -> Result<()> {
    for study in gather(vec![(String::new(), results.clone())]) {
        let surface = if study.measures_alone() { smoothness::lipschitz(&study) } else { None };
        let svg = surface.unwrap_or_else(|| together(&study)).chart.svg();
        let svg =
            svg.map_err(|error| Error::Results { path: path.to_owned(), problem: format!("the figure cannot be drawn ({error})") })?;
        results::publish(path, svg.as_bytes())?;
    }
    Ok(())
}

/// K* against batch size.
pub fn together(study: &StudyResults) -> Figure {
    let curves = curves(study);
    let y = steps_axis(study, &curves);
    Figure {
        name: "steps-to-result",
        heading: "Steps-to-result against batch size",
        caption: "K*, the fewest steps any trial of a cell took to the goal. Along the dashes twice the batch halves the steps; where a \
                  curve leaves them, returns diminish, and where it is flat a larger batch saves no step. A sparser network's curve lies \
                  higher; the question is whether its shape differs. A line is broken where a cell is unmeasured or reached no goal."
            .to_owned(),
        chart: chart(study, &curves, y, format!("{}: steps to validation error ≤ {}", study.name(), study.results.workload.goal_error)),
    }
}

/// K* over that of each sparsity's first measured batch size; none where no sparsity has two points.
pub fn normalised(study: &StudyResults) -> Option<Figure> {
    let mut curves = curves(study);
    linear_entry(&curves)?;
    for curve in &mut curves {
        let first = curve.iter().map(|point| point.1).find(|steps| steps.is_finite()).unwrap_or(f64::NAN);
        curve.iter_mut().for_each(|point| point.1 /= first);
    }
    let shares = curves.iter().flatten().map(|point| point.1);
    let y = Axis::around(Scale::Log2, "Steps-to-result / that of the first batch size", shares, (0.5, 1.0));
    Some(Figure {
        name: "normalised",
        heading: "The same, normalised",
        caption: "Each curve over its first point: curves that fall together scale alike, whatever the sparsity costs in steps. Look for \
                  where each leaves the dashes."
            .to_owned(),
        chart: chart(study, &curves, y, format!("{}: normalised steps-to-result", study.name())),
    })
}

fn chart(study: &StudyResults, curves: &[Vec<(f64, f64)>], y: Axis, title: String) -> Chart {
    let grid = study.grid();
    let x = batch_axis(&grid.batch_sizes);
    let largest = grid.batch_sizes.last().copied().map_or(1.0, batch);
    let dashes = curves.iter().enumerate().filter_map(|(number, points)| linear_scaling(colour(number), points, &x, &y, largest));
    let lines = curves.iter().enumerate().flat_map(|(number, points)| curve(number, points.clone()));
    let layers = dashes.chain(lines).collect();
    let legend = grid.sparsities.iter().zip(curves).enumerate().map(|(number, (&sparsity, points))| entry(number, sparsity, points));
    Chart {
        title,
        columns: 1,
        crowded: false,
        legend: legend.chain(linear_entry(curves)).collect(),
        panels: vec![Panel { title: String::new(), layers, note: note(study, curves), x, y }],
    }
}

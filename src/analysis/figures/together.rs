//! All sparsities in one panel, as measured and normalised (figure 1, columns 3 and 4, of Lee et al., ICLR 2021).

use std::path::Path;

use super::figure::{
    CONFIRMED, Figure, PARTS, Part, STEPS, band, batch_axis, between, between_evaluations, confirmed_ends, confirmed_entry,
    confirmed_steps, curve, curves, entry, linear_entry, linear_scaling, name, note, steps_axis, steps_words, unreached,
};
use super::smoothness;
use crate::Result;
use crate::analysis::chart::{Axis, Chart, Element, Marker, Panel, Scale, Series};
use crate::analysis::statistics::{Fitted, confirmed_cells};
use crate::analysis::studies::{Curve, StudyResults, batch, gather};
use crate::readable::{count, significant};
use crate::results::Results;

/// Draws K* against batch size as an SVG file: both axes in powers of two, a line and a marker shape a sparsity, and, dashed, perfect
/// linear scaling from each sparsity's first measured point. A line is broken at a cell that is unmeasured or reached no goal. Of a study run for its
/// measurements alone, which has no K*, the Lipschitz constant along training.
///
/// # Errors
/// [`crate::Error::Results`] where the file cannot be written; an older one is then untouched.
pub fn steps_to_result_plot(results: &Results, path: &Path) -> Result<()> {
    for study in gather(vec![(String::new(), results.clone())]) {
        let surface = if study.measures_alone() { smoothness::lipschitz(&study) } else { None };
        surface.unwrap_or_else(|| together(&study)).chart.publish(path)?;
    }
    Ok(())
}

/// K* against batch size.
pub fn together(study: &StudyResults) -> Figure {
    let curves = curves(study);
    let cells = confirmed_cells(study);
    let y = steps_axis(STEPS, &[study], &[curves.concat(), confirmed_ends(&cells)]);
    let title = format!("{}: steps to {}", study.name(), study.goal_in_short());
    let grid = study.grid();
    let mut chart = chart(study, &curves, y.clone(), 0.0, title, &|sparsity, size, steps| steps_words(study, sparsity)(size, steps));
    let coloured = grid.sparsities.iter().map(|&sparsity| Series::of_sparsity(sparsity).colour).zip(&curves);
    let bars = coloured.map(|(colour, points)| between_evaluations(study, 1.0, colour, points));
    let missed = grid
        .sparsities
        .iter()
        .enumerate()
        .map(|(number, &sparsity)| unreached(study, sparsity, Series::of_sparsity(sparsity).colour, number, grid.sparsities.len()));
    let again = cells.iter().flat_map(|cell| confirmed_steps([cell], Marker::Ring, Series::of_sparsity(cell.key.sparsity).colour));
    let more: Vec<Element> = bars.chain(missed).chain(again).collect();
    chart.legend.extend(confirmed_entry(&cells));
    chart.panels.iter_mut().for_each(|panel| panel.layers.extend(more.clone()));
    let caption = "K*, the fewest steps any trial of a cell took to the goal. Along the dashes twice the batch halves the steps; where a curve \
                   leaves them, returns diminish, and where it is flat a larger batch saves no step. Look for whether a sparser network's curve lies \
                   higher, and whether its shape differs. A line is broken where a cell is unmeasured or reached no goal; an arrow at the step \
                   budget marks the latter. A bar below a point reaches to the evaluation before, which had not found the goal reached.";
    let caption = caption.to_owned() + if cells.is_empty() { "" } else { CONFIRMED };
    let names = ("steps-to-result", "Steps-to-result against batch size");
    Figure::new(names, caption, "cells", &[Part::Steps, Part::Confirmed], chart)
}

/// K* over that of the smallest batch size at which every sparsity that reached the goal anywhere did so; none where there is no such batch size, or
/// no sparsity has two points. Curves that were divided by points at different batch sizes could not be compared.
pub fn normalised(study: &StudyResults, fits: &[Fitted]) -> Option<Figure> {
    let mut curves = curves(study);
    linear_entry(&curves)?;
    let reached = |curve: &&Curve| curve.iter().any(|point| point.1.is_finite());
    let places = 0..curves.first()?.len();
    let common = places.into_iter().find(|&place| curves.iter().filter(reached).all(|curve| curve[place].1.is_finite()))?;
    let mut bars = Vec::new();
    for (curve, &sparsity) in curves.iter_mut().zip(&study.grid().sparsities) {
        let steps = curve[common].1;
        bars.push(between_evaluations(study, steps, Series::of_sparsity(sparsity).colour, curve));
        curve.iter_mut().for_each(|point| point.1 /= steps);
    }
    let size = study.grid().batch_sizes[common];
    let shares = curves.iter().flatten().map(|point| point.1);
    let y = Axis::around(Scale::Log2, &format!("Steps-to-result / that at batch size {}", count(size)), shares, (0.5, 1.0));
    let words = |sparsity: f64, at: f64, share: f64| {
        format!("{}: {} of that at batch size {}", name(at, sparsity), significant(share), count(size))
    };
    let (first, largest) = (batch(size), study.grid().batch_sizes.last().copied().map_or(1.0, batch));
    let interval = |fitted: &Fitted| {
        let (fit, colour) = (fitted.fit.as_ref().ok()?, Series::of_sparsity(fitted.sparsity).colour);
        Some(band(colour, between(first, largest, PARTS), &y, |at| fit.of_law(|law| law.steps(at) / law.steps(first))))
    };
    let bands: Vec<Element> = fits.iter().filter_map(interval).collect();
    let mut chart = chart(study, &curves, y, batch(size), format!("{}: normalised steps-to-result", study.name()), &words);
    for panel in &mut chart.panels {
        panel.layers.splice(0..0, bands.clone());
        panel.layers.extend(bars.clone());
    }
    let caption = format!(
        "Each curve over its K* at batch size {}, the smallest at which every sparsity that reached the goal at all did: curves that fall together scale alike, \
         whatever the sparsity costs in steps. Look for where each leaves the dashes: by this the paper reads the critical batch size, and one lucky K* at the \
         first batch size moves all of its curve. Shaded: the 95 % interval of each fit over its own K there. A bar below a point reaches to the evaluation before.",
        count(size)
    );
    Some(Figure::new(("normalised", "The same, normalised"), caption, "cells", &[Part::Steps], chart))
}

/// The curves in one panel, with dashes for perfect linear scaling from each curve's first point at a batch size of at least `from`.
/// `words` says what is known of a point: of its sparsity, batch size and value.
fn chart(study: &StudyResults, curves: &[Curve], y: Axis, from: f64, title: String, words: &dyn Fn(f64, f64, f64) -> String) -> Chart {
    let grid = study.grid();
    let x = batch_axis(&grid.batch_sizes);
    let largest = grid.batch_sizes.last().copied().map_or(1.0, batch);
    let all = || grid.sparsities.iter().copied().zip(curves);
    let dashes = all().filter_map(|(sparsity, points)| {
        let points: Curve = points.iter().copied().filter(|point| point.0 >= from).collect();
        linear_scaling(Series::of_sparsity(sparsity).colour, &points, &y, largest)
    });
    let lines =
        all().flat_map(|(sparsity, points)| curve(Series::of_sparsity(sparsity), points, move |size, value| words(sparsity, size, value)));
    let layers = dashes.chain(lines).collect();
    let legend = all().map(|(sparsity, points)| entry(sparsity, points));
    let panel = Panel { note: note(study, curves), ..Panel::new(x, y, layers) };
    Chart::new(title, 1, vec![panel], legend.chain(linear_entry(curves)).collect())
}

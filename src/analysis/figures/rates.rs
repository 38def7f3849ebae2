//! The best trials' learning rates against batch size (figure 8 of Shallue et al., JMLR 2019).

use super::figure::{Figure, INSIDE, Part, batch_axis, curve, entry};
use crate::analysis::chart::{Axis, Chart, Element, Entry, GREY, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::{effective_rate, learning_rate};
use crate::analysis::studies::{Curve, StudyResults, batch};
use crate::readable::significant;
use crate::records::{Cell, Trial};

/// A rate of a trial; none where it has none.
type RateOf = fn(&Trial) -> Option<f64>;

/// The exponents of the guides: rates that rise as the batch size, and as its square root.
const GUIDES: [(f64, Stroke, &str); 2] = [(1.0, Stroke::Dashed, "∝ B"), (0.5, Stroke::Thin, "∝ √B")];

/// The learning rate of each cell's best trial, and the effective one where the optimizer has a momentum; none where cells of fewer than two batch
/// sizes reached the goal.
pub fn rates(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let curve_of = |sparsity: f64, rate: RateOf| -> Curve {
        let of = |size: u32| grid.cell(size, sparsity).and_then(Cell::best).and_then(rate).unwrap_or(f64::NAN);
        grid.batch_sizes.iter().map(|&size| (batch(size), of(size))).collect()
    };
    let x = batch_axis(&grid.batch_sizes);
    let panel = |(name, rate): (&str, RateOf)| {
        let curves: Vec<Curve> = grid.sparsities.iter().map(|&sparsity| curve_of(sparsity, rate)).collect();
        let points = || curves.iter().flatten().filter(|point| point.1.is_finite());
        let y = Axis::around(Scale::Log10, "Rate of the best trial", points().map(|point| point.1), (1e-3, 1.0));
        let first = points().next()?;
        points().find(|point| point.0 != first.0)?;
        let guide = |&(exponent, stroke, _): &(f64, Stroke, &str)| {
            // Straight on these axes: two points, the second where it leaves the panel.
            let size = INSIDE * x.limits().1.min(first.0 * (y.limits().1 / first.1).powf(1.0 / exponent));
            Element::Line(stroke, GREY, vec![*first, (size, first.1 * (size / first.0).powf(exponent))])
        };
        let mut layers: Vec<Element> = GUIDES.iter().map(guide).collect();
        layers.extend(grid.sparsities.iter().zip(&curves).flat_map(|(&sparsity, points)| {
            curve(Series::of_sparsity(sparsity), points, |size, rate| {
                format!("{}: {name} {}", super::figure::name(size, sparsity), significant(rate))
            })
        }));
        Some(Panel::new(x.clone(), y, layers).titled(name.to_owned()))
    };
    let shown: [(&str, RateOf); 2] = [("learning rate η", learning_rate), ("effective rate η/(1 − m)", effective_rate)];
    let panels: Vec<Panel> = shown.into_iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let series = grid.sparsities.iter().map(|&sparsity| entry(sparsity, &curve_of(sparsity, learning_rate)));
    let guides = GUIDES.map(|(_, stroke, name)| Entry::line(name, GREY, stroke));
    let caption = "The learning rate η of each cell's best trial; beside it, where there is a momentum m, the effective rate η/(1 − m). From the \
                   first point two guides: rates that rise as the batch size and as its square root. One trial decides each point, so neighbours \
                   scatter: the metaparameter figures show how wide the good region is.";
    let chart = Chart::new(format!("{}: rates of the best trials", study.name()), panels.len(), panels, series.chain(guides).collect());
    Some(Figure::new(("rates", "The best learning rates"), caption, "cells", &[Part::Trials], chart))
}

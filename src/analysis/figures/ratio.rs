//! Sparse over dense, on a logarithmic axis (figure 12 of Lee et al., ICLR 2021).

use super::figure::{Figure, Part, batch_axis, curve, name, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Element, GREY, Panel, Scale, Series, Stroke};
use crate::analysis::studies::{StudyResults, batch};
use crate::readable::significant;
use crate::records::Cell;

/// K* of each sparsity over the dense network's; none where there is nothing to compare.
pub fn ratio(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let every = f64::from(study.results.workload.evaluate_every);
    // The least and the largest ratio of steps that lie between the evaluations.
    let bars = |sparsity: f64| {
        let steps = |size: u32, sparsity: f64| grid.cell(size, sparsity).and_then(Cell::steps_to_result).map(f64::from);
        let bar = |&size: &u32| {
            let (sparse, dense) = (steps(size, sparsity)?, steps(size, 0.0)?);
            Some((batch(size), (sparse - every) / dense, sparse / (dense - every).max(1.0)))
        };
        grid.batch_sizes.iter().filter_map(bar).collect::<Vec<_>>()
    };
    let curve_of = |sparsity: f64| {
        let ratios = grid.ratios(sparsity, 0.0);
        let at = |&size: &u32| (batch(size), ratios.iter().find(|point| point.0 == size).map_or(f64::NAN, |point| point.1));
        (!ratios.is_empty()).then(|| grid.batch_sizes.iter().map(at).collect::<Vec<_>>())
    };
    let sparse = grid.sparsities.iter().filter(|sparsity| **sparsity > 0.0);
    let curves: Vec<_> = sparse.filter_map(|&sparsity| Some((sparsity, curve_of(sparsity)?))).collect();
    if curves.is_empty() {
        return None;
    }
    let x = batch_axis(&grid.batch_sizes);
    let ends = curves.iter().flat_map(|(sparsity, _)| bars(*sparsity)).flat_map(|(_, low, high)| [low, high]);
    let values = curves.iter().flat_map(|(_, points)| points).map(|point| point.1).chain([1.0]).chain(ends);
    let y = Axis::around(Scale::Log10, "K* sparse / K* dense", values, (0.5, 2.0));
    let (left, right) = x.limits();
    let mut layers = vec![Element::Line(Stroke::Dashed, GREY, vec![(left, 1.0), (right, 1.0)])];
    layers.extend(curves.iter().map(|(sparsity, _)| Element::Bars(Series::of_sparsity(*sparsity).colour, bars(*sparsity))));
    layers.extend(curves.iter().flat_map(|(sparsity, points)| {
        let bars = bars(*sparsity);
        curve(Series::of_sparsity(*sparsity), points, move |size, ratio| {
            let bar = bars.iter().find(|bar| bar.0 == size);
            let between = bar.map_or(String::new(), |(_, low, high)| format!(" [{} … {}]", significant(*low), significant(*high)));
            format!("{}: {} of the dense K*{between}", name(size, *sparsity), significant(ratio))
        })
    }));
    let legend = curves.iter().map(|(sparsity, _)| sparsity_entry(*sparsity)).collect();
    Some(Figure {
        name: "ratio".into(),
        heading: "What sparsity costs in steps".into(),
        caption: "K* of each sparsity over the dense network's at the same batch size; 1 (dashed) is no difference. A level curve is a \
                  vertical shift of the whole scaling curve, which the paper explains by the Lipschitz constant. A bar holds the ratios of all steps \
                  between the evaluations that found the goal reached and those before."
            .to_owned(),
        table: "cells",
        beside: &[Part::Steps],
        chart: Chart::new(format!("{}: sparse over dense", study.name()), 1, vec![Panel::new(x, y, layers)], legend),
    })
}

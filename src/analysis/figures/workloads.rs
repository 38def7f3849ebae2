//! Several workloads side by side: K*, and sparse over dense (figures 1 and 12 of Lee et al., ICLR 2021, as a whole).

use super::figure::{
    Figure, between, between_evaluations, curves, dots, known, linear_scaling, sparsity_entry, steps_axis, steps_words, unreached,
};
use super::ratio::ratio;
use crate::analysis::chart::{Axis, Chart, Element, Entry, GREY, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::Fitted;
use crate::analysis::studies::{Curve, StudyResults, batch, joined};
use crate::settings::ascending;

/// K* against batch size with its fit, a row a workload and a column a sparsity; none for fewer than two workloads.
pub fn workloads(studies: &[(&StudyResults, &[Fitted])]) -> Option<Figure> {
    if studies.len() < 2 {
        return None;
    }
    let sparsities = sparsities(studies);
    let sizes = ascending(studies.iter().flat_map(|(study, _)| study.grid().batch_sizes), u32::cmp);
    let x = Axis::around(Scale::Log2, "Batch size", sizes.iter().map(|&size| batch(size)), (1.0, 16384.0));
    let largest = sizes.last().copied().map_or(1.0, batch);
    let row = |&(study, fits): &(&StudyResults, &[Fitted])| {
        let y = steps_axis(&title(study), &[study], &curves(study));
        let grid = study.grid();
        let panel = |&sparsity: &f64| {
            let points: Curve = if grid.sparsities.contains(&sparsity) { grid.curve(sparsity) } else { Vec::new() };
            let Series { colour, marker } = Series::of_sparsity(sparsity);
            let fit = fits.iter().find(|fitted| fitted.sparsity == sparsity).and_then(|fitted| fitted.fit.as_ref().ok());
            let mut layers: Vec<Element> = linear_scaling(GREY, &points, &y, largest).into_iter().collect();
            layers.extend(fit.map(|fit| {
                let (from, to) = known(&points).unwrap_or((1.0, 1.0));
                Element::Line(Stroke::Solid, colour, between(from, to, 40).map(|size| (size, fit.steps(size).value)).collect())
            }));
            layers.push(between_evaluations(study, 1.0, colour, &points));
            layers.push(unreached(study, sparsity, colour, 0, 1));
            layers.push(Element::Points(marker, colour, dots(&points, &steps_words(study, sparsity))));
            let note = points.is_empty().then(|| "not measured".to_owned());
            Panel { title: format!("S {sparsity}"), x: x.clone(), y: y.clone(), layers, note }
        };
        sparsities.iter().map(panel).collect::<Vec<_>>()
    };
    let legend = sparsities.iter().map(|&sparsity| sparsity_entry(sparsity)).chain([Entry::line("linear scaling", GREY, Stroke::Dashed)]);
    let caption = "Steps-to-result against batch size, a row a workload (its data set, optimizer and goal beside it) and a column a sparsity S, with \
                   the fit K ≈ c1/B + c2 over the batch sizes that were measured and, dashed, linear scaling from the first point. The vertical axes \
                   of rows differ.";
    let (title, panels) = ("Steps-to-result of all workloads".to_owned(), studies.iter().flat_map(row).collect());
    let chart = Chart::new(title, sparsities.len().max(1), panels, legend.collect());
    Some(Figure::new(("workloads", "All workloads"), caption, "cells", &[], chart))
}

/// The ratios of sparse to dense K*, a panel a workload; none for fewer than two workloads that have any.
pub fn ratios(studies: &[(&StudyResults, &[Fitted])]) -> Option<Figure> {
    let all: Vec<(&StudyResults, Figure)> = studies.iter().filter_map(|(study, _)| Some((*study, ratio(study)?))).collect();
    if all.len() < 2 {
        return None;
    }
    let is_shown = |entry: &Entry| all.iter().flat_map(|(_, figure)| &figure.chart.legend).any(|shown| shown.name == entry.name);
    let legend = sparsities(studies).into_iter().map(sparsity_entry).filter(is_shown).collect();
    let mut panels = Vec::new();
    for (study, figure) in all {
        panels.extend(figure.chart.panels.into_iter().map(|panel| Panel { title: title(study), ..panel }));
    }
    let caption = "K* of each sparsity over the dense network's at the same batch size, a panel a workload; 1 (dashed) is no difference. A bar holds \
                   the ratios of all steps between the evaluations that found the goal reached and those before. The vertical axes differ.";
    let chart = Chart::new("Sparse over dense, all workloads".to_owned(), panels.len().min(2), panels, legend);
    Some(Figure::new(("workload-ratios", "What sparsity costs in steps, all workloads"), caption, "cells", &[], chart))
}

/// The sparsities of all studies, ascending.
fn sparsities(studies: &[(&StudyResults, &[Fitted])]) -> Vec<f64> {
    ascending(studies.iter().flat_map(|(study, _)| study.grid().sparsities), f64::total_cmp)
}

/// A workload in a title.
fn title(study: &StudyResults) -> String {
    let workload = &study.results.workload;
    joined(&[&workload.dataset, &workload.optimizer, &format!("goal {}", workload.goal_error)])
}

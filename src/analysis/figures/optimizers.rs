//! Optimizers compared (figure 2 of Lee et al., ICLR 2021).

use super::figure::{
    Figure, STEPS, batch_axis, between_evaluations, curve, linear_entry, linear_scaling, series_entry, steps_axis, steps_words, unreached,
};
use crate::analysis::chart::{Chart, Panel, Series};
use crate::analysis::studies::{Curve, StudyResults, batch};
use crate::optimizer::OptimizerName;
use crate::settings::ascending;

/// K* of several studies of one data set, network and goal, a panel a sparsity; none for fewer than two.
pub fn optimizers(studies: &[&StudyResults]) -> Option<Figure> {
    let (first, rest) = studies.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let grids: Vec<_> = studies.iter().map(|study| study.grid()).collect();
    let sparsities = ascending(grids.iter().flat_map(|grid| grid.sparsities.iter().copied()), f64::total_cmp);
    let sizes = ascending(grids.iter().flat_map(|grid| grid.batch_sizes.iter().copied()), u32::cmp);
    let all: Vec<Vec<Curve>> = sparsities.iter().map(|&sparsity| grids.iter().map(|grid| grid.curve(sparsity)).collect()).collect();
    let flat: Vec<Curve> = all.iter().flatten().cloned().collect();
    let (x, y) = (batch_axis(&sizes), steps_axis(STEPS, studies, &flat));
    let largest = sizes.last().copied().map_or(1.0, batch);
    let looks = looks(studies);
    let panel = |(&sparsity, curves): (&f64, &Vec<Curve>)| {
        let numbered = || looks.iter().copied().zip(curves);
        let dashes = numbered().filter_map(|(series, points)| linear_scaling(series.colour, points, &y, largest));
        let lines = numbered().zip(studies).flat_map(|((series, points), study)| {
            let words = steps_words(study, sparsity);
            let optimizer = label(study, studies);
            curve(series, points, move |size, steps| format!("{optimizer}, {}", words(size, steps)))
        });
        let bars = numbered().zip(studies).enumerate().flat_map(|(number, ((series, points), study))| {
            [between_evaluations(study, 1.0, series.colour, points), unreached(study, sparsity, series.colour, number, studies.len())]
        });
        let empty = !curves.iter().flatten().any(|point| point.1.is_finite());
        Panel {
            title: format!("sparsity {sparsity}"),
            x: x.clone(),
            y: y.clone(),
            layers: dashes.chain(lines).chain(bars).collect(),
            note: empty.then(|| "No trial has reached the goal".to_owned()),
        }
    };
    let panels: Vec<Panel> = sparsities.iter().zip(&all).map(panel).collect();
    let workload = &first.results.workload;
    let title = format!("{}, {}: steps to validation error ≤ {}", workload.dataset, workload.network, workload.goal_error);
    let names = studies.iter().zip(&looks).map(|(study, &look)| series_entry(look, label(study, studies)));
    let legend = names.chain(linear_entry(&flat)).collect();
    Some(Figure {
        name: "optimizers".into(),
        heading: "Optimizers compared".into(),
        caption: "K* of each optimizer at the same sparsity. Look for which optimizer scales linearly to larger batches, and for whether \
                  the order of the optimizers changes with sparsity."
            .to_owned(),
        table: "cells",
        beside: &[],
        chart: Chart::new(title, panels.len().clamp(1, 2), panels, legend),
    })
}

/// The look of each study: its optimizer's, the same in every figure; of further studies of an optimizer one that no other has.
fn looks(studies: &[&StudyResults]) -> Vec<Series> {
    let place = |study: &StudyResults| {
        let name = &study.results.workload.optimizer;
        OptimizerName::ALL.iter().position(|known| known.name() == name).unwrap_or(OptimizerName::ALL.len())
    };
    let mut taken: Vec<usize> = studies.iter().map(|study| place(study)).collect();
    for number in 1..studies.len() {
        if taken[..number].contains(&taken[number]) {
            taken[number] = (0..).find(|free| !taken.contains(free)).unwrap_or(number);
        }
    }
    taken.into_iter().map(Series::numbered).collect()
}

/// The optimizer, with the schedule, or what else differs, where the optimizer alone does not tell the studies apart.
fn label(study: &StudyResults, studies: &[&StudyResults]) -> String {
    let names = |study: &StudyResults| (study.results.workload.optimizer.clone(), study.results.workload.schedule.clone());
    let (optimizer, schedule) = names(study);
    let same = |test: &dyn Fn(&(String, String)) -> bool| studies.iter().filter(|other| test(&names(other))).count() > 1;
    if same(&|other| *other == (optimizer.clone(), schedule.clone())) {
        format!("{optimizer} ({})", study.apart().map_or_else(|| study.sources.join(", "), str::to_owned))
    } else if same(&|other| other.0 == optimizer) {
        format!("{optimizer}, {schedule}")
    } else {
        optimizer
    }
}

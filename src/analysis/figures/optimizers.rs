//! Studies of one data set, network and goal compared: their optimizers (figure 2 of Lee et al., ICLR 2021), or what else they differ in.

use super::figure::{
    CONFIRMED, Figure, STEPS, batch_axis, between_evaluations, confirmed_ends, confirmed_entry, confirmed_steps, curve, linear_entry,
    linear_scaling, series_entry, steps_axis, steps_words, unreached,
};
use crate::analysis::chart::{Chart, Marker, Panel, Series};
use crate::analysis::statistics::{ConfirmedCell, confirmed_cells};
use crate::analysis::studies::{Curve, StudyResults, batch, joined};
use crate::optimizer::OptimizerName;
use crate::settings::ascending;

/// K* of several studies of one data set, network and goal, a panel a sparsity that two of them have, where any is; none for fewer than two studies.
pub fn optimizers(studies: &[&StudyResults]) -> Option<Figure> {
    let (first, rest) = studies.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let grids: Vec<_> = studies.iter().map(|study| study.grid()).collect();
    let mut sparsities = ascending(grids.iter().flat_map(|grid| grid.sparsities.iter().copied()), f64::total_cmp);
    let is_common = |sparsity: &f64| grids.iter().filter(|grid| grid.sparsities.contains(sparsity)).count() > 1;
    if sparsities.iter().any(is_common) {
        sparsities.retain(is_common);
    }
    let sizes = ascending(grids.iter().flat_map(|grid| grid.batch_sizes.iter().copied()), u32::cmp);
    let all: Vec<Vec<Curve>> = sparsities.iter().map(|&sparsity| grids.iter().map(|grid| grid.curve(sparsity)).collect()).collect();
    let flat: Vec<Curve> = all.iter().flatten().cloned().collect();
    let confirmed: Vec<Vec<ConfirmedCell>> = studies.iter().map(|study| confirmed_cells(study)).collect();
    let reached = [flat.concat(), confirmed_ends(&confirmed.concat())];
    let (x, y) = (batch_axis(&sizes), steps_axis(STEPS, studies, &reached));
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
        let rings = looks.iter().zip(&confirmed).flat_map(|(series, cells)| {
            let of_sparsity = cells.iter().filter(|cell| cell.key.sparsity == sparsity);
            of_sparsity.flat_map(|cell| confirmed_steps([cell], Marker::Ring, series.colour)).collect::<Vec<_>>()
        });
        let empty = !curves.iter().flatten().any(|point| point.1.is_finite());
        Panel {
            title: format!("sparsity {sparsity}"),
            x: x.clone(),
            y: y.clone(),
            layers: dashes.chain(lines).chain(bars).chain(rings).collect(),
            note: empty.then(|| "No trial has reached the goal".to_owned()),
        }
    };
    let panels: Vec<Panel> = sparsities.iter().zip(&all).map(panel).collect();
    let workload = &first.results.workload;
    let title = format!("{}, {}: steps to validation error ≤ {}", workload.dataset, workload.network, workload.goal_error);
    let names = studies.iter().zip(&looks).map(|(study, &look)| series_entry(look, label(study, studies)));
    let legend = names.chain(linear_entry(&flat)).chain(confirmed_entry(&confirmed.concat())).collect();
    let of_optimizers = studies.iter().any(|study| study.results.workload.optimizer != first.results.workload.optimizer);
    let caption = match of_optimizers {
        true => {
            "K* of each optimizer at the same sparsity. Look for which optimizer scales linearly to larger batches, and for whether the order of the \
             optimizers changes with sparsity."
        }
        false => {
            "K* of each study at the same sparsity; the legend says what the studies differ in. Look for whether one lies above another."
        }
    };
    let heading = if of_optimizers { "Optimizers compared" } else { "Studies compared" };
    let caption = caption.to_owned() + if confirmed.concat().is_empty() { "" } else { CONFIRMED };
    let chart = Chart::new(title, panels.len().clamp(1, 2), panels, legend);
    Some(Figure::new(("optimizers", heading), caption, "cells", &[], chart))
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

/// The optimizer, with the schedule or the pruning where the optimizer alone does not tell the studies apart, or with what else differs.
fn label(study: &StudyResults, studies: &[&StudyResults]) -> String {
    let parts = |study: &StudyResults| {
        let workload = &study.results.workload;
        [workload.optimizer.clone(), workload.schedule.clone(), study.pruning_name()]
    };
    let choices: [&[usize]; 4] = [&[0], &[0, 1], &[0, 2], &[0, 1, 2]];
    let name = |study: &StudyResults, choice: &[usize]| {
        let parts = parts(study);
        joined(&choice.iter().map(|&part| parts[part].as_str()).collect::<Vec<_>>())
    };
    let names =
        choices.map(|choice| (name(study, choice), studies.iter().filter(|other| name(other, choice) == name(study, choice)).count()));
    let alone = names.iter().find(|(_, studies)| *studies == 1).map(|(name, _)| name.clone());
    alone.unwrap_or_else(|| format!("{} ({})", parts(study)[0], study.apart.clone().unwrap_or_else(|| study.sources.join(", "))))
}

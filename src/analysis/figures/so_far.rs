//! The fewest steps found so far against the number of trials that were run, in their order.

use super::figure::{Figure, Part, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Dot, Element, Panel, Scale, Series, Stroke};
use crate::analysis::studies::{Curve, StudyResults};
use crate::config::ascending;
use crate::readable::count;
use crate::records::Cell;

/// The fewest steps of a cell's first n trials over K*, against n, a panel a cell; none where no cell of two trials reached the goal.
pub fn so_far(study: &StudyResults) -> Option<Figure> {
    let cells: Vec<(&Cell, u32)> =
        study.results.cells.iter().filter(|cell| cell.trials.len() > 1).filter_map(|cell| Some((cell, cell.steps_to_result()?))).collect();
    let most = cells.iter().map(|(cell, _)| cell.trials.len()).max()?;
    let found: Vec<Vec<(usize, u32)>> = cells.iter().map(|(cell, _)| improvements(cell)).collect();
    let ratio = |steps: u32, best: u32| f64::from(steps) / f64::from(best.max(1));
    let x = Axis::around(Scale::Log2, "Trials", [1.0, most as f64], (1.0, 2.0));
    let highest = found.iter().zip(&cells).filter_map(|(found, (_, best))| Some(ratio(found.first()?.1, *best)));
    let y = Axis::around(Scale::Log2, "K* so far / K*", highest.chain([1.0, 2.0]), (1.0, 2.0));
    let panel = |((cell, best), found): (&(&Cell, u32), &Vec<(usize, u32)>)| {
        let Series { colour, marker } = Series::of_sparsity(cell.key.sparsity);
        let dot = |&(number, steps): &(usize, u32)| Dot {
            at: (number as f64, ratio(steps, *best)),
            words: format!("{}: {} steps in the first {number} of {} trials", cell.key, count(steps), cell.trials.len()),
        };
        // A level until the next improvement, and to the last trial.
        let mut line: Curve = Vec::new();
        for &(number, steps) in found {
            line.extend(line.last().map(|&(_, level)| (number as f64, level)));
            line.push((number as f64, ratio(steps, *best)));
        }
        line.push((cell.trials.len() as f64, 1.0));
        let layers = vec![Element::Line(Stroke::Solid, colour, line), Element::Points(marker, colour, found.iter().map(dot).collect())];
        let title = format!("S {}, B {}", cell.key.sparsity, count(cell.key.batch_size));
        Panel::new(x.clone(), y.clone(), layers).titled(title)
    };
    let panels: Vec<Panel> = cells.iter().zip(&found).map(panel).collect();
    let sparsities = ascending(cells.iter().map(|(cell, _)| cell.key.sparsity), f64::total_cmp);
    Some(Figure {
        name: "so-far".into(),
        heading: "The search, trial by trial".into(),
        caption: "A panel a cell (S sparsity, B batch size): the fewest steps of its first n trials over those of all of them, against n; a marker a trial \
                  that found fewer steps than all before it. A line begins with the first trial that is known to reach the goal. A cell whose last marker \
                  stands far right found its K* late, and might have found fewer steps with more trials."
            .to_owned(),
        table: "trials",
        beside: &[Part::Trials],
        chart: Chart::new(format!("{}: fewest steps so far", study.name()), panels.len().clamp(1, 4), panels, sparsities.into_iter().map(sparsity_entry).collect()).crowded(),
    })
}

/// The trials that reached the goal in fewer steps than all before them: how many trials there were with it, and its steps.
fn improvements(cell: &Cell) -> Vec<(usize, u32)> {
    let mut found: Vec<(usize, u32)> = Vec::new();
    for (place, trial) in cell.trials.iter().enumerate() {
        if let Some(steps) = trial.steps.filter(|&steps| found.last().is_none_or(|best| steps < best.1)) {
            found.push((place + 1, steps));
        }
    }
    found
}

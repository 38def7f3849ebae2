//! What fewer trials would have found (K* is a minimum over trials).

use super::figure::{Figure, Part, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Element, Entry, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::StudyResults;
use crate::config::ascending;
use crate::readable::count;
use crate::records::Cell;

/// K* of n of a cell's trials over that of all, against n, a panel a cell. A race that ended at K* hides what the
/// other trials would have found. None where that holds of all cells that reached the goal, or none has two trials.
pub fn fewer(study: &StudyResults) -> Option<Figure> {
    let is_shown = |cell: &&Cell| cell.steps_to_result().is_some() && cell.trials.len() > 1 && !study.hides_others(cell);
    let cells: Vec<&Cell> = study.results.cells.iter().filter(is_shown).collect();
    let most = cells.iter().map(|cell| cell.trials.len()).max()?;
    let x = Axis::around(Scale::Log2, "Trials", [1.0, most as f64], (1.0, 2.0));
    let known = cells.iter().filter_map(|cell| Some(ratio(cell, cell.trials.iter().filter_map(|trial| trial.steps).max()?)));
    let y = Axis::around(Scale::Log2, "K* of n trials / K*", known.chain([1.0, 2.0]), (1.0, 2.0));
    let top = y.limits().1;
    let panel = |cell: &&Cell| {
        let trials = FewerTrials::new(cell);
        let at = |number: usize, share| trials.quantile(number, share).map(|steps| ratio(cell, steps));
        let numbers = || 1..=cell.trials.len();
        let band = numbers().map(|number| (number as f64, at(number, 0.025).unwrap_or(top), at(number, 0.975).unwrap_or(top)));
        let median = numbers().map(|number| (number as f64, at(number, 0.5).unwrap_or(f64::NAN)));
        let colour = Series::of_sparsity(cell.key.sparsity).colour;
        let layers = vec![Element::Band(colour, band.collect()), Element::Line(Stroke::Solid, colour, median.collect())];
        let title = format!("S {}, B {}", cell.key.sparsity, count(cell.key.batch_size));
        Panel::new(x.clone(), y.clone(), layers).titled(title)
    };
    let panels: Vec<Panel> = cells.iter().map(panel).collect();
    let sparsities = ascending(cells.iter().map(|cell| cell.key.sparsity), f64::total_cmp);
    let legend = sparsities.into_iter().map(|sparsity| Entry { marker: None, ..sparsity_entry(sparsity) }).collect();
    Some(Figure {
        name: "fewer-trials".into(),
        heading: "What fewer trials would have found".into(),
        caption: "A panel a cell (S sparsity, B batch size): K* of n of its trials, drawn at random, over K* of all of them; the line is the median \
                  over all choices, the shade holds 95 % of them. A curve that still falls at its right end says that more trials may find fewer \
                  steps. Where the shade reaches the top and the line is missing, the choices hold no trial that is known to reach the goal: it was \
                  censored, or never did."
            .to_owned(),
        table: "fewer-trials",
        beside: &[Part::Trials],
        chart: Chart::new(format!("{}: K* of fewer trials", study.name()), panels.len().clamp(1, 4), panels, legend).crowded(),
    })
}

/// Steps over the cell's steps-to-result.
fn ratio(cell: &Cell, steps: u32) -> f64 {
    f64::from(steps) / f64::from(cell.steps_to_result().unwrap_or(1).max(1))
}

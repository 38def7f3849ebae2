//! Ratios of all cells in one picture: a panel a sparsity, a row a batch size, numbers of trials across.

use std::ops::Range;

use super::figure::batch_axis;
use crate::analysis::chart::{Axis, Chart, Colour, Element, Entry, Marker, Panel, Scale, Tile};
use crate::analysis::studies::{StudyResults, batch};
use crate::records::Cell;
use crate::settings::ascending;

/// Classes of ratios: the largest ratio of each class, its colour and its name.
const CLASSES: [(f64, Colour, &str); 5] = [
    (1.0, Colour(8, 48, 107), "K*"),
    (1.1, Colour(40, 120, 181), "up to 1.1 K*"),
    (1.5, Colour(120, 180, 220), "up to 1.5 K*"),
    (2.0, Colour(250, 200, 130), "up to 2 K*"),
    (f64::INFINITY, Colour(200, 90, 30), "more"),
];

/// The colour where nothing is known.
const UNKNOWN: Colour = Colour(225, 225, 225);

/// Numbers of trials, the steps that so many find, none where they are not known, and words that are shown where a mouse is over them.
pub type Level = (Range<usize>, Option<u32>, String);

/// The chart with this title of the cells of several trials that reached the goal and `is_shown` lets pass; none where there are no such cells.
pub fn heat(study: &StudyResults, title: &str, is_shown: &dyn Fn(&Cell) -> bool, levels: &dyn Fn(&Cell) -> Vec<Level>) -> Option<Chart> {
    let has_steps = |cell: &&Cell| cell.steps_to_result().is_some() && cell.trials.len() > 1 && is_shown(cell);
    let cells: Vec<&Cell> = study.results.cells.iter().filter(has_steps).collect();
    let most = cells.iter().map(|cell| cell.trials.len()).max()?;
    let sizes = study.grid().batch_sizes;
    let y = batch_axis(&sizes);
    let x = Axis::around(Scale::Log2, "Trials", [1.0, most as f64], (1.0, 2.0));
    let half = 2f64.powf(0.42);
    let tile = |cell: &Cell, (trials, steps, words): Level| {
        let (from, to, size) = (trials.start as f64, trials.end as f64, batch(cell.key.batch_size));
        let ratio = steps.zip(cell.steps_to_result()).map(|(steps, least)| f64::from(steps) / f64::from(least.max(1)));
        let colour = ratio.map_or(UNKNOWN, |ratio| CLASSES.iter().find(|class| ratio <= class.0).map_or(UNKNOWN, |class| class.1));
        Tile { at: (from, size), from: (from, size / half), to: (to, size * half), colour, words }
    };
    let panel = |sparsity: f64| {
        let here = cells.iter().filter(|cell| cell.key.sparsity == sparsity);
        let tiles = here.flat_map(|cell| levels(cell).into_iter().map(|level| tile(cell, level)).collect::<Vec<_>>());
        Panel::new(x.clone(), y.clone(), vec![Element::Tiles(tiles.collect())]).titled(format!("sparsity {sparsity}"))
    };
    let panels: Vec<Panel> = ascending(cells.iter().map(|cell| cell.key.sparsity), f64::total_cmp).into_iter().map(panel).collect();
    let entry = |(_, colour, name): (f64, Colour, &str)| Entry::point(name, colour, Marker::Square);
    let legend = CLASSES.into_iter().map(entry).chain([Entry::point("not known", UNKNOWN, Marker::Square)]).collect();
    Some(Chart::new(format!("{}: {title}", study.name()), panels.len().clamp(1, 2), panels, legend))
}

//! Validation error along whole trainings, a panel a cell: the picture of a pilot.

use super::figure::{level, series_entry};
use crate::analysis::chart::{Axis, Chart, Dot, Element, Entry, GREY, Marker, Panel, Path, Scale, Series, Stroke};
use crate::analysis::studies::Curve;
use crate::records::CellKey;
use crate::settings::ascending;

/// The curves of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Each training's error, a fraction, over its steps, and its metaparameters in words.
    pub curves: Vec<(Curve, String)>,
    /// The place of the best curve among them, and the step and error at which it reached the goal.
    pub best: Option<(usize, (f64, f64))>,
}

/// Error against steps of each cell. The best curve is coloured and named, with a star where it reaches the goal, which is dashed.
pub fn whole_curves(title: String, cells: &[Whole], goal: Option<f64>) -> Chart {
    let panel = |cell: &Whole| {
        let points = || cell.curves.iter().flat_map(|(curve, _)| curve);
        let x = Axis::around(Scale::Linear, "Steps", points().map(|point| point.0).chain([0.0]), (0.0, 1.0));
        let all = cells.iter().flat_map(|cell| &cell.curves).flat_map(|(curve, _)| curve).map(|point| point.1);
        let y = Axis::around(Scale::Log10, "Validation error (fraction)", all.filter(|error| *error > 0.0).chain(goal), (0.01, 1.0));
        let colour = Series::of_sparsity(cell.key.sparsity).colour;
        let best = cell.best.map(|(place, _)| place);
        let path = |(curve, words): &(Curve, String)| Path { points: curve.clone(), words: words.clone() };
        let others = cell.curves.iter().enumerate().filter(|(place, _)| Some(*place) != best);
        let mut layers = vec![Element::Paths(Stroke::Thin, GREY, others.map(|(_, curve)| path(curve)).collect())];
        layers.extend(goal.map(|goal| level(&x, goal)));
        let mut name = cell.key.to_string();
        if let Some((place, at)) = cell.best
            && let Some((curve, words)) = cell.curves.get(place)
        {
            name = format!("{name}: {words}");
            layers.push(Element::Line(Stroke::Solid, colour, curve.clone()));
            layers.push(Element::Points(Marker::Star, colour, vec![Dot { at, words: name.clone() }]));
        }
        Panel { title: name, x, y, layers, note: points().next().is_none().then(|| "No evaluation".to_owned()) }
    };
    let mut legend = vec![Entry::line("a point", GREY, Stroke::Thin)];
    if cells.iter().any(|cell| cell.best.is_some()) {
        let best = |sparsity: f64| {
            series_entry(Series { marker: Marker::Star, ..Series::of_sparsity(sparsity) }, format!("best, sparsity {sparsity}"))
        };
        legend.extend(ascending(cells.iter().map(|cell| cell.key.sparsity), f64::total_cmp).into_iter().map(best));
    }
    legend.extend(goal.map(|goal| Entry::line(format!("goal {goal}"), GREY, Stroke::Dashed)));
    let columns = if cells.len() > 1 { 2 } else { 1 };
    Chart::new(title, columns, cells.iter().map(panel).collect(), legend)
}

//! How lucky K* is.

use super::figure::{Figure, Part, batch_axis, curve, in_brackets, name, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Element, GREY, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::{ConfirmedCell, Estimate, confirmed_cells};
use crate::analysis::studies::{StudyResults, batch};

/// Luck by batch size.
type Points = Vec<(f64, Option<Estimate>)>;

/// K* over the mean of the confirmed steps; none where nothing is confirmed.
pub fn luck(study: &StudyResults) -> Option<Figure> {
    let cells = confirmed_cells(study);
    let grid = study.grid();
    let at = |sparsity: f64, size: u32| {
        let of = |cell: &&ConfirmedCell| cell.key.sparsity == sparsity && cell.key.batch_size == size;
        cells.iter().find(of).and_then(|cell| cell.luck)
    };
    let of_sparsity = |&sparsity: &f64| {
        let known = grid.batch_sizes.iter().map(|&size| (batch(size), at(sparsity, size)));
        (sparsity, known.collect::<Points>())
    };
    let mut curves: Vec<(f64, Points)> = grid.sparsities.iter().map(of_sparsity).collect();
    curves.retain(|(_, luck)| luck.iter().any(|point| point.1.is_some()));
    if curves.is_empty() {
        return None;
    }
    let x = batch_axis(&grid.batch_sizes);
    let all = curves.iter().flat_map(|(_, luck)| luck).filter_map(|point| point.1);
    let y = Axis::around(
        Scale::Linear,
        "K* / mean of confirmed steps",
        all.flat_map(|luck| [luck.low, luck.high]).chain([0.0, 1.0]),
        (0.0, 1.0),
    );
    let (left, right) = x.limits();
    let mut layers = vec![Element::Line(Stroke::Dashed, GREY, vec![(left, 1.0), (right, 1.0)])];
    for (sparsity, luck) in &curves {
        let series = Series::of_sparsity(*sparsity);
        let bars = luck.iter().filter_map(|(size, luck)| luck.map(|luck| (*size, luck.low, luck.high)));
        layers.push(Element::Bars(series.colour, bars.collect()));
        let points: Vec<(f64, f64)> = luck.iter().map(|(size, luck)| (*size, luck.map_or(f64::NAN, |luck| luck.value))).collect();
        layers.extend(curve(series, &points, |size, _| {
            let known = luck.iter().find(|point| point.0 == size).and_then(|point| point.1);
            let known = known.map_or(String::new(), in_brackets);
            format!("{}: K* is {known} of the mean of confirmed steps", name(size, *sparsity))
        }));
    }
    let legend = curves.iter().map(|(sparsity, _)| sparsity_entry(*sparsity)).collect();
    Some(Figure {
        name: "luck".into(),
        heading: "How much luck".into(),
        caption: "K*, the least of a cell's trials, over the geometric mean of the steps that its best points take with fresh seeds, with 95 % \
                  intervals. At 1 (dashed) K* is no luck; the lower, the luckier. Where two sparsities lie apart, ratios of K* are ratios of luck too."
            .to_owned(),
        table: "confirmed",
        beside: &[Part::Confirmed],
        chart: Chart::new(format!("{}: how lucky K* is", study.name()), 1, vec![Panel::new(x, y, layers)], legend),
    })
}

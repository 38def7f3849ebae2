//! Sparse over dense (figure 12 of Lee et al., ICLR 2021).

use super::super::axes::{Axis, Scale};
use super::super::chart::{Chart, GREY, Layer, Panel, Stroke};
use super::super::grid::batch;
use super::super::studies::StudyResults;
use super::{Figure, batch_axis, curve, series_entry};

/// K* of each sparsity over the dense network's; none where there is nothing to compare.
pub fn ratio(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let curve_of = |sparsity: f64| {
        let ratios = grid.ratios(sparsity, 0.0);
        let at = |&size: &u32| (batch(size), ratios.iter().find(|point| point.0 == size).map_or(f64::NAN, |point| point.1));
        (!ratios.is_empty()).then(|| grid.batch_sizes.iter().map(at).collect::<Vec<_>>())
    };
    // Numbered as in the other figures, so that a sparsity keeps its colour.
    let sparse = grid.sparsities.iter().enumerate().filter(|(_, sparsity)| **sparsity > 0.0);
    let curves: Vec<_> = sparse.filter_map(|(number, &sparsity)| Some((number, sparsity, curve_of(sparsity)?))).collect();
    if curves.is_empty() {
        return None;
    }
    let x = batch_axis(&grid.batch_sizes);
    let values = curves.iter().flat_map(|(.., points)| points).map(|point| point.1).chain([0.0, 1.0]);
    let y = Axis::around(Scale::Linear, "K* sparse / K* dense", values, (0.0, 2.0));
    let (left, right) = x.limits();
    let mut layers = vec![Layer::Line(Stroke::Dashed, GREY, vec![(left, 1.0), (right, 1.0)])];
    layers.extend(curves.iter().flat_map(|(number, _, points)| curve(*number, points.clone())));
    let legend = curves.iter().map(|(number, sparsity, _)| series_entry(*number, format!("sparsity {sparsity}"))).collect();
    Some(Figure {
        name: "ratio".into(),
        heading: "What sparsity costs in steps".into(),
        caption: "K* of each sparsity over the dense network's at the same batch size; 1 (dashed) is no difference. A level curve is a \
                  vertical shift of the whole scaling curve, which the paper explains by the Lipschitz constant."
            .to_owned(),
        chart: Chart {
            title: format!("{}: sparse over dense", study.name()),
            columns: 1,
            crowded: false,
            panels: vec![Panel { title: String::new(), x, y, layers, note: None }],
            legend,
        },
    })
}

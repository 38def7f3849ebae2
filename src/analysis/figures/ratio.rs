//! Sparse over dense, on a logarithmic axis (figure 12 of Lee et al., ICLR 2021).

use super::figure::{Figure, Part, around_one, numbers};
use crate::analysis::chart::{Axis, Scale};
use crate::analysis::statistics::Estimate;
use crate::analysis::studies::StudyResults;
use crate::readable::significant;
use crate::records::Cell;

/// K* of each sparsity over the dense network's; none where there is nothing to compare.
pub fn ratio(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let every = f64::from(study.results.workload.evaluate_every);
    let numbers = numbers(study, |size, sparsity| {
        let steps = |sparsity: f64| grid.cell(size, sparsity).and_then(Cell::steps_to_result).map(f64::from);
        let (sparse, dense) = (steps(sparsity).filter(|_| sparsity > 0.0)?, steps(0.0)?);
        // The limits are the ratios of steps that lie between the evaluations.
        Some(Estimate { value: sparse / dense, low: (sparse - every) / dense, high: sparse / (dense - every).max(1.0) })
    });
    if numbers.is_empty() {
        return None;
    }
    let known = numbers.iter().flat_map(|(_, points)| points).filter_map(|point| point.1);
    let ends = known.flat_map(|ratio| [ratio.value, ratio.low, ratio.high]);
    let y = Axis::around(Scale::Log10, "K* sparse / K* dense", ends.chain([1.0]), (0.5, 2.0));
    let words = |cell, Estimate { value, low, high }| {
        let [value, low, high] = [value, low, high].map(significant);
        format!("{cell}: {value} of the dense K* [{low} … {high}]")
    };
    Some(Figure {
        name: "ratio".into(),
        heading: "What sparsity costs in steps".into(),
        caption: "K* of each sparsity over the dense network's at the same batch size; 1 (dashed) is no difference. A level curve is a \
                  vertical shift of the whole scaling curve, which the paper explains by the Lipschitz constant. A bar holds the ratios of all steps \
                  between the evaluations that found the goal reached and those before."
            .to_owned(),
        table: "cells",
        beside: &[Part::Steps],
        chart: around_one(study, format!("{}: sparse over dense", study.name()), &numbers, y, words),
    })
}

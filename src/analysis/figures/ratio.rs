//! Sparse over dense, on a logarithmic axis (figure 12 of Lee et al., ICLR 2021).

use super::figure::{Figure, Part, around_one};
use crate::analysis::chart::Scale;
use crate::analysis::statistics::Estimate;
use crate::analysis::studies::StudyResults;
use crate::readable::significant;
use crate::records::{Cell, CellKey};

/// K* of each sparsity over the dense network's; none where there is nothing to compare.
pub fn ratio(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let every = f64::from(study.results.workload.evaluate_every);
    let ratio = |CellKey { batch_size, sparsity }| {
        let steps = |sparsity: f64| grid.cell(batch_size, sparsity).and_then(Cell::steps_to_result).map(f64::from);
        let (sparse, dense) = (steps(sparsity).filter(|_| sparsity > 0.0)?, steps(0.0)?);
        // The limits are the ratios of steps that lie between the evaluations.
        Some(Estimate { value: sparse / dense, low: (sparse - every) / dense, high: sparse / (dense - every).max(1.0) })
    };
    let words = |cell, Estimate { value, low, high }| {
        let [value, low, high] = [value, low, high].map(significant);
        format!("{cell}: {value} of the dense K* [{low} … {high}]")
    };
    let chart = around_one(study, "sparse over dense", (Scale::Log10, "K* sparse / K* dense", 1.0), ratio, words)?;
    let caption = "K* of each sparsity over the dense network's at the same batch size; 1 (dashed) is no difference. A level curve is a \
                   vertical shift of the whole scaling curve, which the paper explains by the Lipschitz constant. A bar holds the ratios of all \
                   steps between the evaluations that found the goal reached and those before.";
    Some(Figure::new(("ratio", "What sparsity costs in steps"), caption, "cells", &[Part::Steps], chart))
}

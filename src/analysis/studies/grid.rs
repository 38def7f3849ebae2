//! A study's cells as a grid.

use crate::records::Cell;
use crate::results::Results;
use crate::settings::ascending;

/// Points of a line, in natural units of two axes. The line breaks at a NaN.
pub type Curve = Vec<(f64, f64)>;

/// Evaluations until the fewest steps of a study, at least, from which their interval is told.
const FEWEST_EVALUATIONS: u32 = 8;

/// A study's cells as a grid.
pub struct Grid<'a> {
    /// Batch sizes measured so far, ascending.
    pub batch_sizes: Vec<u32>,
    /// Sparsities measured so far, ascending.
    pub sparsities: Vec<f64>,
    /// Steps between evaluations. Where they are not known: those that the steps to the goal tell, or 1.
    pub every: u32,
    cells: &'a [Cell],
}

impl<'a> Grid<'a> {
    /// The grid of the cells measured so far.
    pub fn new(results: &'a Results) -> Self {
        let batch_sizes = ascending(results.cells.iter().map(|cell| cell.key.batch_size), u32::cmp);
        let sparsities = ascending(results.cells.iter().map(|cell| cell.key.sparsity), f64::total_cmp);
        let every = match results.workload.evaluate_every {
            0 => common_interval(results.trials().filter_map(|trial| trial.steps)),
            every => every,
        };
        Grid { batch_sizes, sparsities, every, cells: &results.cells }
    }

    /// The cell, where it has been measured.
    pub fn cell(&self, batch_size: u32, sparsity: f64) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| cell.key.batch_size == batch_size && cell.key.sparsity == sparsity)
    }

    /// (batch size, K*) of the cells of a sparsity that have one, by batch size.
    pub fn measured(&self, sparsity: f64) -> Vec<(u32, u32)> {
        let steps = |&size: &u32| self.cell(size, sparsity)?.steps_to_result().map(|steps| (size, steps));
        self.batch_sizes.iter().filter_map(steps).collect()
    }

    /// K* at each of the grid's batch sizes, not a number where a cell has none: as (batch size, K*), so that lines break there.
    pub fn curve(&self, sparsity: f64) -> Curve {
        let steps = |size| self.cell(size, sparsity).and_then(Cell::steps_to_result).map_or(f64::NAN, |steps| f64::from(steps.max(1)));
        self.batch_sizes.iter().map(|&size| (batch(size), steps(size))).collect()
    }
}

/// The steps between evaluations that found these steps: the greatest number of which all are multiples, where they are so many times that, or
/// several and all alike. Steps in proportion to each other have larger divisors by chance: then 1.
fn common_interval(steps: impl Iterator<Item = u32> + Clone) -> u32 {
    let every = steps.clone().fold(0, divisor).max(1);
    let are_several = steps.clone().nth(1).is_some();
    let tells = |least: u32, most: u32| least / every >= FEWEST_EVALUATIONS || are_several && least == most;
    steps.clone().min().zip(steps.max()).filter(|&(least, most)| tells(least, most)).map_or(1, |_| every)
}

/// The greatest common divisor.
fn divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// A batch size as a coordinate; 0, which no figure on logarithmic axes can show, as 1.
pub fn batch(size: u32) -> f64 {
    f64::from(size.max(1))
}

//! The curves of a pilot.

use crate::records::{CellKey, Trial};
use crate::results::Results;

/// A corner of the study's grid: an extreme batch size at an extreme sparsity.
#[derive(Debug, Clone, PartialEq)]
pub struct Corner {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Steps of each curve.
    pub steps: u32,
    /// The trials, by number, each with its evaluations on the whole validation set alone. They end early where the loss became NaN or infinite.
    pub curves: Vec<Trial>,
}

/// The corners in the results of a pilot's studies.
pub fn corners(results: &[Results]) -> Vec<Corner> {
    let of = |results: &Results| {
        let (examples, steps) = (results.workload.validation_examples, results.workload.max_steps);
        let whole = |mut trial: Trial| {
            trial.curve.retain(|point| point.examples == examples);
            trial
        };
        let cells = results.cells.clone().into_iter();
        cells.map(|cell| Corner { key: cell.key, steps, curves: cell.trials.into_iter().map(whole).collect() }).collect::<Vec<_>>()
    };
    results.iter().flat_map(of).collect()
}

/// The first evaluation of a curve with at most so many errors.
fn reaches(curve: &Trial, errors: u32) -> Option<u32> {
    curve.curve.iter().find(|point| point.errors <= errors).map(|point| point.step)
}

/// The fewest errors of all evaluations of a curve within so many steps.
pub fn least_within(curve: &Trial, steps: f64) -> Option<u32> {
    curve.curve.iter().filter(|point| f64::from(point.step) <= steps).map(|point| point.errors).min()
}

impl Corner {
    /// The curve that first has at most so many errors, the one with the lower number of two, and when.
    pub fn best(&self, errors: u32) -> Option<(&Trial, u32)> {
        self.curves.iter().filter_map(|curve| Some((curve, reaches(curve, errors)?))).min_by_key(|(curve, steps)| (*steps, curve.index))
    }

    /// How many curves ever have at most so many errors.
    pub fn reaching(&self, errors: u32) -> usize {
        self.curves.iter().filter(|curve| reaches(curve, errors).is_some()).count()
    }

    /// The most errors that the `number` best curves come down to, from 1; none where fewer have any evaluation.
    pub fn reached_by(&self, number: usize) -> Option<u32> {
        let mut least: Vec<u32> = self.curves.iter().filter_map(|curve| least_within(curve, f64::INFINITY)).collect();
        least.sort_unstable();
        least.get(number.checked_sub(1)?).copied()
    }
}

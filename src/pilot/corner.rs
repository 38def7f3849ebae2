//! The curves of a pilot.

use crate::optimizer::Metaparameters;
use crate::records::{CellKey, CurvePoint, Trial};
use crate::results::Results;

/// A corner of the study's grid: an extreme batch size at an extreme sparsity.
#[derive(Debug, Clone, PartialEq)]
pub struct Corner {
    /// Which one.
    pub key: CellKey,
    /// Steps of each curve.
    pub steps: u32,
    /// The curves, by the number of their trial.
    pub curves: Vec<Curve>,
}

/// Validation errors along one training.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The number of its trial, and of its Sobol point.
    pub trial: u32,
    /// Metaparameters of the training.
    pub metaparameters: Metaparameters,
    /// Steps taken, and the errors on the whole validation set. It ends early where the loss became NaN or infinite.
    pub points: Vec<(u32, u32)>,
}

/// The corners in the results of a pilot's studies.
pub fn corners(results: &[Results]) -> Vec<Corner> {
    let of = |results: &Results| {
        let examples = results.workload.validation_examples;
        let curve = |trial: &Trial| {
            let whole = |point: &&CurvePoint| point.examples == examples;
            Curve {
                trial: trial.index,
                metaparameters: trial.metaparameters,
                points: trial.curve.iter().filter(whole).map(|point| (point.step, point.errors)).collect(),
            }
        };
        let steps = results.workload.max_steps;
        results
            .cells
            .iter()
            .map(|cell| Corner { key: cell.key, steps, curves: cell.trials.iter().map(curve).collect() })
            .collect::<Vec<_>>()
    };
    results.iter().flat_map(of).collect()
}

impl Curve {
    /// The first evaluation with at most so many errors.
    pub fn reaches(&self, errors: u32) -> Option<u32> {
        self.points.iter().find(|point| point.1 <= errors).map(|point| point.0)
    }

    /// The fewest errors of all evaluations within so many steps.
    pub fn least_within(&self, steps: f64) -> Option<u32> {
        self.points.iter().filter(|point| f64::from(point.0) <= steps).map(|point| point.1).min()
    }
}

impl Corner {
    /// The curve that first has at most so many errors, the one with the lower number of two, and when.
    pub fn best(&self, errors: u32) -> Option<(&Curve, u32)> {
        self.curves.iter().filter_map(|curve| Some((curve, curve.reaches(errors)?))).min_by_key(|(curve, steps)| (*steps, curve.trial))
    }

    /// How many curves ever have at most so many errors.
    pub fn reaching(&self, errors: u32) -> usize {
        self.curves.iter().filter(|curve| curve.reaches(errors).is_some()).count()
    }

    /// The most errors that the `number` best curves come down to, from 1; none where fewer have any evaluation.
    pub fn reached_by(&self, number: usize) -> Option<u32> {
        let mut least: Vec<u32> = self.curves.iter().filter_map(|curve| curve.least_within(f64::INFINITY)).collect();
        least.sort_unstable();
        least.get(number.checked_sub(1)?).copied()
    }
}

//! Records of confirmations: the points that did best in a cell's search, trained again with fresh seeds.

use serde::{Deserialize, Serialize};

use super::Trial;
use crate::data::DataOrder;
use crate::settings::{Confirm, Varied};

/// Seeds of a training's random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seeds {
    /// Seed of the initial weights and of the mask.
    pub weights: u64,
    /// Seed of the order of the training examples.
    pub order: u64,
}

impl Seeds {
    /// The seed of confirmation 0. No trial has it or a later one.
    pub const FIRST_FRESH: u64 = 1 << 31;

    /// The seeds of a trial of the search.
    pub fn of_trial(index: u32, order: DataOrder) -> Seeds {
        let index = u64::from(index);
        Seeds { weights: index, order: if order == DataOrder::Shared { 0 } else { index } }
    }

    /// The seeds of confirmation `number` of the point of trial `index`.
    pub fn fresh(number: u32, index: u32, confirm: &Confirm, order: DataOrder) -> Seeds {
        let (own, fresh) = (Seeds::of_trial(index, order), Seeds::FIRST_FRESH + u64::from(number));
        let drawn = |what: Varied, own: u64| if confirm.varies(what) { fresh } else { own };
        Seeds { weights: drawn(Varied::Weights, own.weights), order: drawn(Varied::Order, own.order) }
    }
}

/// A training by which a point is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Training {
    /// The point: the index of the search's trial that has its metaparameters.
    pub point: u32,
    /// Number of the training at its point, from 0. Trainings of one number have the same fresh seeds at every point of every cell.
    pub number: u32,
    /// Seeds that the training draws from.
    pub seeds: Seeds,
    /// Steps between two of its evaluations.
    pub evaluate_every: u32,
}

/// The median of the steps to the goal; of an even number of trainings the upper one of the two in the middle. A training that did not reach the goal
/// is beyond all others. `None` where the median is such a training, or there are no confirmations.
pub fn median_steps<'c>(confirmations: impl IntoIterator<Item = &'c Confirmation>) -> Option<u32> {
    let mut steps: Vec<u32> = confirmations.into_iter().map(|one| one.run.steps.unwrap_or(u32::MAX)).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().filter(|&steps| steps < u32::MAX)
}

/// A training by which a point was confirmed, and how it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Which training it is.
    pub training: Training,
    /// Record of the training, with the index and the metaparameters of the search's trial. The training is complete, infeasible, or incomplete: then
    /// it has not reached the goal within the limit, which is at its steps.
    pub run: Trial,
}

impl Confirmation {
    /// The confirmation whose trial has as its index the training's number among `trainings`; none where there is no such training.
    pub fn numbered(trainings: &[Training], run: Trial) -> Option<Confirmation> {
        let training = *trainings.get(run.index as usize)?;
        Some(Confirmation { training, run: Trial { index: training.point, ..run } })
    }

    /// The steps to the goal of a training that ends at `limit`: infinite where it has not reached the goal by then.
    pub fn steps_within(&self, limit: u32) -> f64 {
        self.run.steps.filter(|&steps| steps <= limit).map_or(f64::INFINITY, f64::from)
    }

    /// The steps between which the training reached the goal: after the last evaluation that missed the goal (0: there is none), and at the
    /// first that met it at the latest.
    pub fn reached(&self) -> Option<(u32, u32)> {
        let steps = self.run.steps?;
        Some((steps.saturating_sub(self.training.evaluate_every), steps))
    }

    /// Whether two records of a confirmation are equal but for their times.
    pub fn agrees(&self, other: &Confirmation) -> bool {
        self.training == other.training && self.run.agrees(&other.run)
    }
}

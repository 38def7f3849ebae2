//! What is recorded of a confirmation: one more training at a metaparameter point that did best in a cell's search, with seeds of its own.

use serde::{Deserialize, Serialize};

use super::Trial;

/// What a training draws its random numbers by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// Seed of the initial weights and of the mask.
    pub weights: u64,
    /// Seed of the order of the training examples.
    pub order: u64,
}

/// One training of a confirmed point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Its number among the trainings of its point, from 0. Trainings of one number have the same fresh seeds at every point of every cell.
    pub seed: u32,
    /// Its seeds.
    pub seeds: Seeds,
    /// Steps between two of its evaluations.
    pub evaluate_every: u32,
    /// Its training. The index is that of the search's trial whose metaparameters it has. It is complete, infeasible, or incomplete: then it has not
    /// reached the goal within the limit, which is at its steps.
    pub run: Trial,
}

impl Confirmation {
    /// The confirmed point: the index of the search's trial that has its metaparameters.
    pub fn point(&self) -> u32 {
        self.run.index
    }

    /// Where it reached the goal: after the last evaluation that missed it (0: there is none) and at or before the first that did not.
    pub fn reached(&self) -> Option<(u32, u32)> {
        let missed = self.run.curve.iter().map(|point| point.step).take_while(|&step| Some(step) != self.run.steps).last();
        self.run.steps.map(|steps| (missed.unwrap_or(0), steps))
    }

    /// Whether two records of a confirmation are equal but for their times.
    pub fn agrees(&self, other: &Confirmation) -> bool {
        (self.seed, self.seeds, self.evaluate_every) == (other.seed, other.seeds, other.evaluate_every) && self.run.agrees(&other.run)
    }
}

//! Record of a cell: its trials and confirmations.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Confirmation, Status, Trial};
use crate::settings::{Grid, Race, Workload};

/// A study cell: one batch size at one sparsity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CellKey {
    /// Global batch size, in examples.
    pub batch_size: u32,
    /// Fraction of parameters removed.
    pub sparsity: f64,
}

impl CellKey {
    /// The order of cells that are put together: by batch size, then sparsity.
    pub fn order(&self, other: &CellKey) -> Ordering {
        self.batch_size.cmp(&other.batch_size).then(self.sparsity.total_cmp(&other.sparsity))
    }

    /// The order of cells that are shown: by sparsity, then batch size.
    pub fn by_sparsity(&self, other: &CellKey) -> Ordering {
        self.sparsity.total_cmp(&other.sparsity).then(self.batch_size.cmp(&other.batch_size))
    }
}

/// Writes a cell as messages name it.
impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch size {}, sparsity {}", self.batch_size, self.sparsity)
    }
}

/// The cells of a grid, in the order in which they are measured.
pub fn cells(grid: &Grid) -> Vec<CellKey> {
    let row = |&batch_size: &u32| grid.sparsities.iter().map(move |&sparsity| CellKey { batch_size, sparsity });
    grid.batch_sizes.iter().flat_map(row).collect()
}

/// The trial that decides a cell: fewest steps to the goal, then lowest index.
pub fn best<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Option<&'t Trial> {
    trials.into_iter().filter(|trial| trial.steps.is_some()).min_by_key(|trial| (trial.steps, trial.index))
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// The trials of the cell, by index.
    pub trials: Vec<Trial>,
    /// Wrongly classified test examples of the best trial's weights at its goal step, where the cell has a best trial.
    pub test_errors: Option<u32>,
    /// Wall-clock seconds of its trials.
    pub seconds: f64,
    /// Trainings of its best points with fresh seeds, by point, then seed; empty where the study has none.
    pub confirmations: Vec<Confirmation>,
}

impl Cell {
    /// Whether two records of a cell are equal but for its times.
    pub fn agrees(&self, other: &Cell) -> bool {
        self.key == other.key
            && self.test_errors == other.test_errors
            && self.trials.len() == other.trials.len()
            && self.trials.iter().zip(&other.trials).all(|(trial, other)| trial.agrees(other))
            && self.confirmations.len() == other.confirmations.len()
            && self.confirmations.iter().zip(&other.confirmations).all(|(one, other)| one.agrees(other))
    }

    /// Leaves out what trials did after the end of a race in which the fewest steps to the goal are `best`.
    pub fn end_race(&mut self, workload: &Workload, race: Race, best: Option<u32>) {
        let end = workload.last_step(race, best);
        if end >= workload.budget() {
            return;
        }
        for trial in &mut self.trials {
            // All of a trial's fields, so that the compiler asks what becomes of a new one.
            let Trial {
                index: _,
                metaparameters: _,
                parameters_kept: _,
                mask_hash: _,
                dead_layers: _,
                status,
                steps,
                steps_run,
                curve,
                measurements,
                seconds,
            } = trial;
            // A trial that broke in the step after the end had not broken by then.
            let broke_later = *status == Status::Infeasible && *steps_run >= end;
            if *steps_run > end || broke_later {
                *seconds *= f64::from(end) / f64::from((*steps_run).max(end));
                (*status, *steps, *steps_run) = (Status::Censored, None, end);
                curve.retain(|point| point.step <= end);
                measurements.retain(|measurement| measurement.step < end);
            }
        }
    }

    /// The trial that decides the cell: fewest steps, then lowest index.
    pub fn best(&self) -> Option<&Trial> {
        best(&self.trials)
    }

    /// The place among the cell's trials of the one that decides it.
    pub fn best_place(&self) -> Option<usize> {
        let best = self.best()?.index;
        self.trials.iter().position(|trial| trial.index == best)
    }

    /// K*, the lowest number of steps over the trials that reached the goal.
    pub fn steps_to_result(&self) -> Option<u32> {
        self.best().and_then(|trial| trial.steps)
    }

    /// The points that are confirmed, from the best one on.
    pub fn confirmed_points(&self) -> Vec<u32> {
        let mut points: Vec<u32> = self.confirmations.iter().map(|one| one.training.point).collect();
        points.dedup();
        points
    }

    /// The confirmations of a point.
    pub fn confirmations_of(&self, point: u32) -> impl Iterator<Item = &Confirmation> {
        self.confirmations.iter().filter(move |one| one.training.point == point)
    }

    /// Wall-clock seconds of its confirmations.
    pub fn confirmation_seconds(&self) -> f64 {
        // Rust's sum of no numbers is −0.
        0.0 + self.confirmations.iter().map(|one| one.run.seconds).sum::<f64>()
    }

    /// Trials that ended with `status`.
    pub fn count(&self, status: Status) -> usize {
        self.trials.iter().filter(|trial| trial.status == status).count()
    }
}

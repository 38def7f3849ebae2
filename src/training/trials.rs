//! The records of a cell's trials while it is measured. All ranks hold the same ones.

use std::collections::BTreeMap;

use super::facts::Outcome;
use crate::records::{CurvePoint, Measurement, Status, Trial, best};

/// The trials of a wave that train, and those of the cell that have ended, by number. The others wait for a later wave.
pub struct Trials {
    /// The trials that train: incomplete ones, and complete ones where trials go on after the goal.
    pub training: BTreeMap<usize, Trial>,
    /// The trials that have ended, in earlier waves too.
    pub ended: BTreeMap<usize, Trial>,
}

impl Trials {
    /// The numbers of those that train, in ascending order.
    pub fn numbers(&self) -> Vec<usize> {
        self.training.keys().copied().collect()
    }

    /// Fewest steps in which a trial that has ended reached the goal.
    pub fn steps_to_result(&self) -> Option<u32> {
        self.ended.values().filter_map(|trial| trial.steps).min()
    }

    /// Whether a trial that reaches the goal in `steps` steps decides the cell rather than one that has ended. A run that goes on may come to the
    /// trials in another order than that of their numbers.
    pub fn is_better(&self, steps: u32, trial: usize) -> bool {
        best(self.ended.values()).is_none_or(|best| (Some(steps), trial) < (best.steps, best.index as usize))
    }

    /// Records what an evaluation after `step` steps has found of the trials that train, in their order. A trial with at most `threshold` errors is
    /// complete; one that has been so before stays so, also where it breaks.
    pub fn record_outcomes(&mut self, step: u32, outcomes: &[Outcome], threshold: u32) {
        for (record, &outcome) in self.training.values_mut().zip(outcomes) {
            match outcome {
                Outcome::Broken { .. } if record.steps.is_some() => {}
                Outcome::Broken { step } => {
                    record.status = Status::Infeasible;
                    record.steps_run = step;
                }
                Outcome::Evaluated { loss, errors, examples } => {
                    record.steps_run = step;
                    record.curve.push(CurvePoint { step, loss, errors, examples });
                    record.reach(step, errors, threshold);
                }
            }
        }
    }

    /// Records measurements of the trials numbered `measured`, none of a trial that has broken.
    pub fn record_measurements(&mut self, measured: &[usize], measurements: Vec<Option<Measurement>>) {
        for (trial, measurement) in measured.iter().zip(measurements) {
            if let Some(record) = self.training.get_mut(trial) {
                record.measurements.extend(measurement);
            }
        }
    }

    /// Divides seconds among the trials that train.
    pub fn share_out(&mut self, seconds: f64) {
        let share = seconds / self.training.len().max(1) as f64;
        self.training.values_mut().for_each(|record| record.seconds += share);
    }

    /// The numbers of those whose last evaluation found them complete.
    pub fn complete(&self) -> Vec<usize> {
        self.training.iter().filter(|(_, record)| record.status == Status::Complete).map(|(&trial, _)| trial).collect()
    }

    /// Takes out of training those whose last evaluation found them broken, or complete unless these go on.
    pub fn take_ended(&mut self, goes_on: bool) -> BTreeMap<usize, Trial> {
        let all = std::mem::take(&mut self.training);
        let trains = |record: &Trial| record.status == Status::Incomplete || goes_on && record.status == Status::Complete;
        let (training, ended) = all.into_iter().partition(|(_, record)| trains(record));
        self.training = training;
        ended
    }

    /// Ends those that still train, after `step` steps, and gives the records of all that have ended.
    pub fn end(mut self, status: Status, step: u32) -> Vec<Trial> {
        let end = |record: Trial| match record.status {
            // A trial that went on after its goal counts as run to the end, though its lane may have broken on the way.
            Status::Complete => Trial { steps_run: step, ..record },
            _ => Trial { status, ..record },
        };
        self.ended.extend(self.training.into_iter().map(|(trial, record)| (trial, end(record))));
        self.ended.into_values().collect()
    }
}

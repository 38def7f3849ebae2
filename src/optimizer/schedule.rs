//! The learning rate at each step.

use crate::config::{Metaparameter, ScheduleName};
use crate::search::Metaparameters;

/// A learning-rate schedule with its metaparameters filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// The same rate at every step.
    Constant {
        /// Learning rate of the first step, η.
        rate: f64,
    },
    /// From η to η_end in a straight line over a number of steps, then η_end.
    LinearDecay {
        /// Learning rate of the first step, η.
        rate: f64,
        /// Learning rate after the last of these steps, η_end.
        end: f64,
        /// Steps over which the rate decays, D.
        steps: f64,
    },
}

impl Schedule {
    /// The schedule a trial uses; metaparameters that a constant rate does not need are ignored.
    pub fn new(name: ScheduleName, trial: &Metaparameters) -> Schedule {
        // Every trial has a learning rate.
        let rate = trial.get(Metaparameter::LearningRate).unwrap_or(f64::NAN);
        match (name, trial.get(Metaparameter::DecaySteps), trial.get(Metaparameter::EndLearningRateFactor)) {
            (ScheduleName::LinearDecay, Some(steps), Some(factor)) => Schedule::LinearDecay { rate, end: factor * rate, steps },
            _ => Schedule::Constant { rate },
        }
    }

    /// The learning rate of step k, from 0.
    pub fn at(&self, step: u32) -> f64 {
        match *self {
            Schedule::Constant { rate } => rate,
            Schedule::LinearDecay { rate, end, steps } => (rate - end) * (1.0 - f64::from(step).min(steps) / steps) + end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_decay_ends_at_its_end_and_stays_there() {
        let schedule = Schedule::LinearDecay { rate: 0.5, end: 0.05, steps: 100.0 };
        assert_eq!(schedule.at(0), 0.5);
        assert!((schedule.at(50) - 0.275).abs() < 1e-12);
        assert_eq!(schedule.at(100), 0.05);
        assert_eq!(schedule.at(10_000), 0.05);
    }
}

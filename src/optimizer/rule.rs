//! What one optimizer step does.

use super::Schedule;
use crate::config::{Metaparameter, OptimizerName, Workload};
use crate::search::Metaparameters;

/// An optimizer with a trial's metaparameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Which optimizer updates the parameters.
    pub optimizer: OptimizerName,
    /// Momentum m; 0 for an optimizer without it.
    pub momentum: f32,
    /// The learning rate at each step.
    pub schedule: Schedule,
}

impl Rule {
    /// The rule a trial of this workload trains by.
    pub fn new(workload: &Workload, trial: &Metaparameters) -> Rule {
        let momentum = trial.get(Metaparameter::Momentum).unwrap_or(0.0) as f32;
        Rule { momentum, ..Rule::plain(workload.optimizer, Schedule::new(workload.schedule, trial)) }
    }

    /// A rule without momentum.
    pub fn plain(optimizer: OptimizerName, schedule: Schedule) -> Rule {
        Rule { optimizer, momentum: 0.0, schedule }
    }

    /// Learning rate of step k (from 0), as the 32-bit arithmetic uses it.
    pub fn rate(&self, step: u32) -> f32 {
        self.schedule.at(step) as f32
    }

    /// SGD: w ← w − η g.
    #[inline(always)]
    pub fn sgd(rate: f32, w: &mut f32, g: f32) {
        *w -= rate * g;
    }

    /// Momentum: v ← m v + g; w ← w − η v.
    #[inline(always)]
    pub fn momentum(rate: f32, momentum: f32, w: &mut f32, v: &mut f32, g: f32) {
        *v = momentum * *v + g;
        *w -= rate * *v;
    }

    /// Nesterov: v ← m v + g; w ← w − η (g + m v).
    #[inline(always)]
    pub fn nesterov(rate: f32, momentum: f32, w: &mut f32, v: &mut f32, g: f32) {
        *v = momentum * *v + g;
        *w -= rate * (g + momentum * *v);
    }
}

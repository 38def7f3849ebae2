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
    /// Weight decay λ; 0 where there is none.
    pub weight_decay: f64,
    /// The decay τ of averaged weights; none where the weights themselves are evaluated.
    pub average_decay: Option<f64>,
    /// The learning rate at each step.
    pub schedule: Schedule,
}

impl Rule {
    /// The rule a trial of this workload trains by.
    pub fn new(workload: &Workload, trial: &Metaparameters) -> Rule {
        let of = |name: Metaparameter| trial.get(name);
        let rule = Rule::plain(workload.optimizer, Schedule::new(workload.schedule, trial));
        Rule {
            momentum: of(Metaparameter::Momentum).unwrap_or(0.0) as f32,
            weight_decay: of(Metaparameter::WeightDecay).unwrap_or(0.0),
            average_decay: of(Metaparameter::AverageDecay),
            ..rule
        }
    }

    /// A rule without momentum, weight decay or averaged weights.
    pub fn plain(optimizer: OptimizerName, schedule: Schedule) -> Rule {
        Rule { optimizer, momentum: 0.0, weight_decay: 0.0, average_decay: None, schedule }
    }

    /// Learning rate of step k (from 0), as the 32-bit arithmetic uses it.
    pub fn rate(&self, step: u32) -> f32 {
        self.schedule.at(step) as f32
    }

    /// The λ of g ← g + λ w; none where the gradient is used as it is.
    pub fn decay_of_gradient(&self) -> Option<f32> {
        (self.weight_decay != 0.0).then_some(self.weight_decay as f32)
    }

    /// The share 1 − τ of averaged weights that a step's weights make up; none where nothing is averaged.
    pub fn share_of_average(&self) -> Option<f32> {
        self.average_decay.map(|decay| (1.0 - decay) as f32)
    }

    /// Averaged weights: a ← a + (1 − τ)(w − a).
    #[inline(always)]
    pub fn average(share: f32, a: &mut f32, w: f32) {
        *a += share * (w - *a);
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

//! Update rule of the parameters in one optimizer step.

use super::Schedule;
use super::by_metaparameter::Metaparameters;
use super::metaparameter::Metaparameter;
use super::names::{OptimizerName, ScheduleName};

/// An optimizer with a trial's metaparameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Which optimizer updates the parameters.
    pub optimizer: OptimizerName,
    /// Momentum m; 0 for an optimizer without it.
    pub momentum: f32,
    /// Adam's β1 and β2.
    pub betas: [f64; 2],
    /// Adam's ε.
    pub epsilon: f64,
    /// Weight decay λ; 0 where there is none.
    pub weight_decay: f64,
    /// The decay τ of averaged weights; none where the weights themselves are evaluated.
    pub average_decay: Option<f64>,
    /// The learning rate at each step.
    pub schedule: Schedule,
}

impl Rule {
    /// The rule by which a trial with these names and metaparameters trains.
    pub fn new(optimizer: OptimizerName, schedule: ScheduleName, trial: &Metaparameters) -> Rule {
        let of = |name: Metaparameter| trial.get(name);
        let rule = Rule::plain(optimizer, Schedule::new(schedule, trial));
        Rule {
            momentum: of(Metaparameter::Momentum).unwrap_or(0.0) as f32,
            betas: [of(Metaparameter::Beta1).unwrap_or(rule.betas[0]), of(Metaparameter::Beta2).unwrap_or(rule.betas[1])],
            epsilon: of(Metaparameter::Epsilon).unwrap_or(rule.epsilon),
            weight_decay: of(Metaparameter::WeightDecay).unwrap_or(0.0),
            average_decay: of(Metaparameter::AverageDecay),
            ..rule
        }
    }

    /// A rule without momentum, weight decay or averaged weights, and with Adam's usual numbers.
    pub fn plain(optimizer: OptimizerName, schedule: Schedule) -> Rule {
        Rule { optimizer, momentum: 0.0, betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0, average_decay: None, schedule }
    }

    /// Learning rate of step k (from 0), as the 32-bit arithmetic uses it.
    pub fn rate(&self, step: u32) -> f32 {
        self.schedule.at(step) as f32
    }

    /// The λ of g ← g + λ w; none where the gradient is used as it is.
    pub fn decay_of_gradient(&self) -> Option<f32> {
        (!self.optimizer.decays_apart() && self.weight_decay != 0.0).then_some(self.weight_decay as f32)
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

    /// Numbers that the updates of all parameters share at step k (from 0), for Adam and AdamW.
    ///
    /// The corrections of bias, 1 − β^(k + 1), are computed once a step in double precision, by an implementation of the power that is the same on
    /// every machine; what they make is rounded once.
    pub fn adam(&self, step: u32) -> Adam {
        let (t, rate) = (f64::from(step) + 1.0, self.schedule.at(step));
        let [correction1, correction2] = self.betas.map(|beta| 1.0 - libm::pow(beta, t));
        let decay = if self.optimizer.decays_apart() { self.weight_decay } else { 0.0 };
        Adam {
            shrink: (rate * decay) as f32,
            taken: self.betas.map(|beta| (1.0 - beta) as f32),
            rate: (rate / correction1) as f32,
            scale: (1.0 / correction2.sqrt()) as f32,
            // An ε that rounds to 0 would make the update divide 0 by 0.
            epsilon: (self.epsilon as f32).max(f32::MIN_POSITIVE),
        }
    }
}

/// Adam's or AdamW's update at one step: Kingma & Ba (ICLR 2015), algorithm 1, and Loshchilov & Hutter (ICLR 2019), algorithm 2, whose η_t α is the
/// learning rate here, which PyTorch multiplies with the weight decay too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// η λ for AdamW; 0 for Adam.
    pub shrink: f32,
    /// 1 − β1 and 1 − β2: the shares of the averages that the step's gradient makes up.
    pub taken: [f32; 2],
    /// η / (1 − β1^t).
    pub rate: f32,
    /// 1 / √(1 − β2^t).
    pub scale: f32,
    /// ε, above 0.
    pub epsilon: f32,
}

impl Adam {
    /// w ← w − η λ w; a ← a + (1 − β1)(g − a); s ← s + (1 − β2)(g² − s); w ← w − η/(1 − β1^t) a / (√s / √(1 − β2^t) + ε).
    #[inline(always)]
    pub fn update(&self, w: &mut f32, a: &mut f32, s: &mut f32, g: f32) {
        *w -= self.shrink * *w;
        *a += self.taken[0] * (g - *a);
        *s += self.taken[1] * (g * g - *s);
        *w -= self.rate * *a / (s.sqrt() * self.scale + self.epsilon);
    }
}

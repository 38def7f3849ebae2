//! The learning rate at each step.

use std::f64::consts::PI;

use super::by_metaparameter::Metaparameters;
use super::metaparameter::Metaparameter;
use super::names::ScheduleName;

/// A learning-rate schedule with its metaparameters filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Learning rate η, to which the rate rises and from which it falls.
    pub rate: f64,
    /// Steps W of the warm-up; 0 for none.
    pub warmup_steps: u32,
    /// Decay of the rate after the warm-up.
    pub decay: Decay,
}

/// How a learning rate falls, from η at the first step after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decay {
    /// Not at all.
    Constant,
    /// To η_end in a straight line over a number of steps; then it stays.
    Linear {
        /// Learning rate after the last of these steps, η_end.
        end: f64,
        /// Steps over which the rate falls, D.
        steps: f64,
    },
    /// To η_end along half a wave of a cosine over a number of steps; then it stays. Source: Loshchilov & Hutter, ICLR 2017, equation 5, without
    /// restarts.
    Cosine {
        /// Learning rate after the last of these steps, η_end.
        end: f64,
        /// Steps over which the rate falls, D.
        steps: f64,
    },
    /// By a factor every so many steps.
    Step {
        /// Factor γ, by which the rate is multiplied.
        factor: f64,
        /// Steps between two falls, S; at least 1.
        every: u32,
    },
}

impl Schedule {
    /// The schedule a trial uses; metaparameters that it does not need are ignored.
    pub fn new(name: ScheduleName, trial: &Metaparameters) -> Schedule {
        let of = |name: Metaparameter| trial.get(name);
        // Every trial has a learning rate.
        let rate = of(Metaparameter::LearningRate).unwrap_or(f64::NAN);
        let end = of(Metaparameter::EndLearningRateFactor).map(|factor| factor * rate);
        let fall = of(Metaparameter::DecaySteps).zip(end);
        let steps = of(Metaparameter::DecayEvery).zip(of(Metaparameter::DecayFactor));
        let decay = match name {
            ScheduleName::Constant => None,
            ScheduleName::LinearDecay => fall.map(|(steps, end)| Decay::Linear { end, steps }),
            ScheduleName::Cosine => fall.map(|(steps, end)| Decay::Cosine { end, steps }),
            ScheduleName::StepDecay => steps.map(|(every, factor)| Decay::Step { factor, every: every as u32 }),
        };
        let warmup_steps = of(Metaparameter::WarmupSteps).unwrap_or(0.0) as u32;
        Schedule { rate, warmup_steps, decay: decay.unwrap_or(Decay::Constant) }
    }

    /// The schedule that has one rate at every step.
    pub fn constant(rate: f64) -> Schedule {
        Schedule { rate, warmup_steps: 0, decay: Decay::Constant }
    }

    /// The learning rate of step k, from 0. In a warm-up it is η (k + 1) / W (Goyal et al., 2017, section 2.2); the schedule begins at step W.
    ///
    /// Powers and cosines are those of a fixed implementation, not the system's, so that every machine computes the same bits.
    pub fn at(&self, step: u32) -> f64 {
        let Schedule { rate, warmup_steps, decay } = *self;
        if step < warmup_steps {
            return rate * ((f64::from(step) + 1.0) / f64::from(warmup_steps));
        }
        let step = step - warmup_steps;
        let share = |steps: f64| f64::from(step).min(steps) / steps;
        match decay {
            Decay::Constant => rate,
            Decay::Linear { end, steps } => (rate - end) * (1.0 - share(steps)) + end,
            Decay::Cosine { end, steps } => (rate - end) * (0.5 + 0.5 * libm::cos(PI * share(steps))) + end,
            Decay::Step { factor, every } => rate * libm::pow(factor, f64::from(step / every.max(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_end_at_their_end_and_stay_there() {
        for decay in [Decay::Linear { end: 0.05, steps: 100.0 }, Decay::Cosine { end: 0.05, steps: 100.0 }] {
            let schedule = Schedule { decay, ..Schedule::constant(0.5) };
            assert_eq!(schedule.at(0), 0.5);
            assert!((schedule.at(50) - 0.275).abs() < 1e-12);
            assert!((schedule.at(100) - 0.05).abs() < 1e-15);
            assert_eq!(schedule.at(10_000), schedule.at(100));
        }
    }

    #[test]
    fn a_warm_up_comes_before_the_schedule() {
        for decay in [Decay::Constant, Decay::Cosine { end: 0.0, steps: 7.0 }, Decay::Step { factor: 0.5, every: 2 }] {
            let cold = Schedule { decay, ..Schedule::constant(0.8) };
            let warmed = Schedule { warmup_steps: 4, ..cold };
            assert_eq!([0, 1, 2, 3].map(|step| warmed.at(step)), [0.2, 0.4, 0.8 * 0.75, 0.8]);
            assert!((0..20).all(|step| warmed.at(step + 4) == cold.at(step)));
        }
        let falling = Schedule { decay: Decay::Step { factor: 0.5, every: 2 }, ..Schedule::constant(0.8) };
        assert_eq!([0, 1, 2, 3, 4].map(|step| falling.at(step)), [0.8, 0.8, 0.4, 0.4, 0.2]);
        assert!(falling.at(u32::MAX) == 0.0);
    }
}

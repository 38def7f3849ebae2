//! The metaparameters: what each is called, what its values may be, and what has it. Everything else, from the configuration's keys to the figures,
//! follows this list.

use std::ops::Bound::{Excluded, Included, Unbounded};

use super::names::{OptimizerName, ScheduleName};
use super::range::{Example, Range, Scale, Searched, Setting, range_as_toml};
use crate::config::key::{Key, Only, key};
use crate::config::kind::{Number, Sometimes};
use crate::config::names::{Named, names};
use crate::readable::{count, significant};

names! {
    /// Numbers that a trial trains with besides its seed. Each one that is searched is a dimension of the Sobol sequence, in this order: a new one
    /// comes last, or the trials of every study change.
    Metaparameter {
        /// Learning rate η. The default is the paper's range.
        LearningRate = "learning_rate",
        /// Momentum m.
        Momentum = "momentum",
        /// Steps D over which the learning rate falls.
        DecaySteps = "decay_steps",
        /// Share η_end / η of the learning rate that is left after these steps.
        EndLearningRateFactor = "end_learning_rate_factor",
        /// Steps W of a warm-up: at step k < W the learning rate is η (k + 1) / W, and the schedule begins at step W.
        WarmupSteps = "warmup_steps",
        /// Steps S from one fall of the learning rate to the next.
        DecayEvery = "decay_every",
        /// Factor γ by which the learning rate falls.
        DecayFactor = "decay_factor",
        /// Weight decay λ: a step's gradient is g + λ w, but for `adamw`, where w ← w − η λ w before the update. Biases decay as weights do; removed
        /// weights stay 0.
        WeightDecay = "weight_decay",
        /// Decay τ of averaged weights, which are evaluated in place of the weights: after each step a ← τ a + (1 − τ) w, a being the initial weights
        /// before the first one.
        AverageDecay = "average_decay",
        /// Adam's β1, the share of the gradients' average that a step keeps.
        Beta1 = "beta1",
        /// Adam's β2, the share of the squared gradients' average that a step keeps.
        Beta2 = "beta2",
        /// Adam's ε, which is added to the root of the squared gradients' average.
        Epsilon = "epsilon",
    }
}

/// Declaration of a metaparameter, but for its name and its meaning.
struct Declaration {
    /// The metaparameter's letter in formulae; empty where it has none.
    symbol: &'static str,
    /// Name of the metaparameter in tables and on axes.
    title: &'static str,
    /// Values that the metaparameter may have.
    values: Number,
    /// A usual range: the paper's where it has one. Its scale is also that of axes.
    example: Example,
    /// Optimizers or schedules that have the metaparameter; none where every study may.
    only: Option<Only>,
    /// Optimizers or schedules that need the metaparameter.
    needed: Option<Only>,
    /// Setting of the metaparameter where it is not given to what has it.
    default: Option<Setting>,
}

const WITH_VELOCITY: Only = Only { of: "optimizer", names: &[OptimizerName::Momentum.name(), OptimizerName::Nesterov.name()] };
const ADAMS: Only = Only { of: "optimizer", names: &[OptimizerName::Adam.name(), OptimizerName::AdamW.name()] };
const ADAMW: Only = Only { of: "optimizer", names: &[OptimizerName::AdamW.name()] };
const WITH_DECAY: Only = Only { of: "schedule", names: &[ScheduleName::LinearDecay.name(), ScheduleName::Cosine.name()] };
const STEP_DECAY: Only = Only { of: "schedule", names: &[ScheduleName::StepDecay.name()] };

/// The declaration of a metaparameter that every study may have.
fn declared(symbol: &'static str, title: &'static str, values: Number, example: Example) -> Declaration {
    Declaration { symbol, title, values, example, only: None, needed: None, default: None }
}

impl Declaration {
    /// Studies of `only` have it, and need it.
    fn of(self, only: Only) -> Declaration {
        Declaration { only: Some(only), needed: Some(only), ..self }
    }

    /// Studies of `only` have it, usually with this value.
    fn usually(self, only: Only, value: f64) -> Declaration {
        Declaration { only: Some(only), default: Some(Setting::Fixed(value)), ..self }
    }

    /// The scales of a range that fit the values.
    fn scales(&self) -> &'static [Scale] {
        if self.example.2 == Scale::Integer { &[Scale::Integer] } else { &[Scale::Linear, Scale::Log, Scale::ReverseLog] }
    }
}

/// A number of steps.
fn steps() -> Number {
    Number::whole((Included(1.0), Included(f64::from(u32::MAX))))
}

fn positive() -> Number {
    Number::real((Excluded(0.0), Unbounded))
}

/// A share that is less than the whole.
fn share() -> Number {
    Number::real((Included(0.0), Excluded(1.0)))
}

impl Metaparameter {
    fn declaration(self) -> Declaration {
        let (at_most_one, or_zero) = (Number::real((Excluded(0.0), Included(1.0))), Number::real((Included(0.0), Unbounded)));
        match self {
            Metaparameter::LearningRate => {
                let usual = Setting::Range(Range { min: 1e-4, max: 1.0, scale: Scale::Log });
                Declaration { default: Some(usual), ..declared("η", "learning rate", positive(), ("1e-4", "1.0", Scale::Log)) }
            }
            Metaparameter::Momentum => declared("m", "momentum", share(), ("0.9", "0.9999", Scale::ReverseLog)).of(WITH_VELOCITY),
            Metaparameter::DecaySteps => declared("D", "decay steps", steps(), ("30000", "60000", Scale::Integer)).of(WITH_DECAY),
            Metaparameter::EndLearningRateFactor => {
                let values = Number::real((Included(0.0), Included(1.0)));
                declared("", "end factor", values, ("1e-4", "0.1", Scale::Log)).of(WITH_DECAY)
            }
            Metaparameter::WarmupSteps => declared("W", "warm-up steps", steps(), ("100", "1000", Scale::Integer)),
            Metaparameter::DecayEvery => declared("S", "decay every", steps(), ("5000", "20000", Scale::Integer)).of(STEP_DECAY),
            Metaparameter::DecayFactor => declared("γ", "decay factor", at_most_one, ("0.1", "0.5", Scale::Log)).of(STEP_DECAY),
            Metaparameter::WeightDecay => {
                Declaration { needed: Some(ADAMW), ..declared("λ", "weight decay", or_zero, ("1e-5", "0.1", Scale::Log)) }
            }
            Metaparameter::AverageDecay => declared("τ", "average decay", share(), ("0.9", "0.9999", Scale::ReverseLog)),
            Metaparameter::Beta1 => declared("β1", "beta1", share(), ("0.8", "0.99", Scale::ReverseLog)).usually(ADAMS, 0.9),
            Metaparameter::Beta2 => declared("β2", "beta2", share(), ("0.9", "0.9999", Scale::ReverseLog)).usually(ADAMS, 0.999),
            Metaparameter::Epsilon => declared("ε", "epsilon", positive(), ("1e-10", "1e-2", Scale::Log)).usually(ADAMS, 1e-8),
        }
    }

    /// The metaparameter's letter in formulae; empty where it has none.
    pub fn symbol(self) -> &'static str {
        self.declaration().symbol
    }

    /// Name of the metaparameter in tables and on axes.
    pub fn title(self) -> &'static str {
        self.declaration().title
    }

    /// The metaparameter's symbol, or its title where it has no symbol.
    pub fn label(self) -> &'static str {
        if self.symbol().is_empty() { self.title() } else { self.symbol() }
    }

    /// Meaning of the metaparameter, in sentences.
    pub fn meaning(self) -> &'static str {
        Self::MEANINGS[self as usize].trim()
    }

    /// Whether the metaparameter's values are whole numbers.
    pub fn is_whole(self) -> bool {
        self.declaration().example.2 == Scale::Integer
    }

    /// The nearest value to a number that it may have; none where only a value beside an excluded limit is nearer than all others.
    pub fn nearest(self, number: f64) -> Option<f64> {
        self.declaration().values.nearest(number)
    }

    /// Unit of the metaparameter, as netCDF names units.
    pub fn unit(self) -> &'static str {
        if self.is_whole() { "steps" } else { "1" }
    }

    /// A value as texts show it, with four significant digits.
    pub fn show(self, value: f64) -> String {
        if self.is_whole() { count(value as u64) } else { significant(value) }
    }

    /// A usual range: the paper's where it has one.
    pub fn example(self) -> Range {
        let (min, max, scale) = self.declaration().example;
        Range { min: min.parse().unwrap_or(0.0), max: max.parse().unwrap_or(1.0), scale }
    }

    /// Key of the metaparameter in a configuration.
    pub(crate) fn key(self) -> Key<Sometimes<Searched>> {
        let declaration = self.declaration();
        let scales = declaration.scales();
        let Declaration { values, example, only, needed, default, .. } = declaration;
        let kind = Sometimes { kind: Searched { values, scales, example }, otherwise: default };
        let definition = key(kind, range_as_toml(example)).had_by(only, needed);
        // The default of what every study has is given here; the default of what some have, once it is known which one the study is.
        let unsaid = default.filter(|_| only.is_none());
        Key::new("search", self.name(), Self::MEANINGS[self as usize], Some(unsaid), definition)
    }

    /// Setting of the metaparameter where it is not given: none for a study that does not have it.
    pub(crate) fn default(self, optimizer: OptimizerName, schedule: ScheduleName) -> Option<Setting> {
        let Declaration { only, default, .. } = self.declaration();
        default.filter(|_| only.is_none_or(|only| only.includes(optimizer.name()) || only.includes(schedule.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_setting_of_its_metaparameter() {
        for name in Metaparameter::ALL {
            let Range { min, max, scale } = name.example();
            let declaration = name.declaration();
            let is_allowed = |value: f64| {
                use crate::config::{kind::Kind, tree::Value};
                declaration.values.accept(&Value::Number(value)).is_some()
            };
            assert!(is_allowed(min) && is_allowed(max) && min < max && declaration.scales().contains(&scale), "{name}");
            assert!(!name.meaning().is_empty() && !name.title().is_empty());
        }
    }
}

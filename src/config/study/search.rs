//! The section `[search]`, and the ranges of metaparameters.

use std::ops::Bound::{Excluded, Included, Unbounded};

use serde::Serialize;

use super::workload::{OptimizerName, ScheduleName};
use crate::config::key::{Definition, Key, Only, SectionHelp, key, name};
use crate::config::kind::{Kind, Number, Sometimes};
use crate::config::names::names;
use crate::config::reader::{Section, Wanted};
use crate::config::section::section;
use crate::config::tree::{Node, Value};

const WITH_VELOCITY: Only = Only { of: "optimizer", names: &[OptimizerName::Momentum.name(), OptimizerName::Nesterov.name()] };
const WITH_DECAY: Only = Only { of: "schedule", names: &[ScheduleName::LinearDecay.name()] };

section! {
    /// Each trial draws its metaparameters from these ranges. A number in place of a range fixes one.
    ///
    /// Each ranged metaparameter is a dimension of the Sobol sequence, in the order of the fields here.
    #[derive(Debug, Clone, PartialEq)]
    "search" Search: Default {
        /// Direction numbers of the Sobol sequence.
        sobol: SobolNumbers = SobolNumbers::BratleyFox => name(),
        /// Learning rate η. The default is the paper's range.
        learning_rate: Metaparameter = Metaparameter::Range(Range { min: 1e-4, max: 1.0, scale: Scale::Log }) => {
            Searched { values: Number::real((Excluded(0.0), Unbounded)), scales: REAL, example: ("1e-4", "1.0", Scale::Log) }.always()
        },
        /// Momentum m.
        momentum: Option<Metaparameter> = None => {
            let values = Number::real((Included(0.0), Excluded(1.0)));
            Searched { values, scales: REAL, example: ("0.9", "0.9999", Scale::ReverseLog) }.only(WITH_VELOCITY)
        },
        /// Steps D over which the learning rate falls.
        decay_steps: Option<Metaparameter> = None => {
            let values = Number::whole((Included(1.0), Included(f64::from(u32::MAX))));
            Searched { values, scales: &[Scale::Integer], example: ("30000", "60000", Scale::Integer) }.only(WITH_DECAY)
        },
        /// Share η_end / η of the learning rate that is left after these steps.
        end_learning_rate_factor: Option<Metaparameter> = None => {
            let values = Number::real((Excluded(0.0), Included(1.0)));
            Searched { values, scales: REAL, example: ("1e-4", "0.1", Scale::Log) }.only(WITH_DECAY)
        },
    }
}

/// The scales of a metaparameter that is not a whole number.
const REAL: &[Scale] = &[Scale::Linear, Scale::Log, Scale::ReverseLog];

/// A range as TOML.
fn range(min: &str, max: &str, scale: Scale) -> String {
    format!("{{ min = {min}, max = {max}, scale = \"{scale}\" }}")
}

names! {
    /// Maps from u in (0, 1) to a metaparameter's value (Shallue et al., 2019, section 4.2; names as in their data).
    Scale {
        /// floor(u·(max − min) + min), a whole number of steps.
        Integer = "integer",
        /// u·(max − min) + min.
        Linear = "linear",
        /// 10^(u·(log10 max − log10 min) + log10 min).
        Log = "log",
        /// 1 − 10^(u·(log10(1−min) − log10(1−max)) + log10(1−max)), so that u = 0 is max and u = 1 is min.
        ReverseLog = "reverse-log",
    }
}
names! {
    /// Direction numbers of the Sobol sequence.
    SobolNumbers {
        /// Bratley and Fox (1988), as in the authors' public code.
        BratleyFox = "bratley-fox",
        /// Joe and Kuo (2008), D6.
        JoeKuo = "joe-kuo",
    }
}

/// A value for every trial, or a range that the search draws from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metaparameter {
    /// The same value for every trial.
    Fixed(f64),
    /// Drawn by the search.
    Range(Range),
}

/// Limits and scale of a searched metaparameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Lower limit.
    pub min: f64,
    /// Upper limit.
    pub max: f64,
    /// How a uniform number becomes a value.
    pub scale: Scale,
}

/// All that is said of the section, its keys, and the keys of a range.
pub(super) fn help_with_ranges() -> SectionHelp {
    let mut section = help(false);
    let any = || Number::real((Unbounded, Unbounded));
    section.keys.push(Key::new("search", "*.min", "Lower limit of a range.", None, key(any(), "1e-4")).help());
    section.keys.push(Key::new("search", "*.max", "Upper limit of a range.", None, key(any(), "1.0")).help());
    let scale = "How a number u of the Sobol sequence, from 0 to 1, becomes a value of the range.";
    section.keys.push(Key::new("search", "*.scale", scale, None, name::<Scale>()).help());
    section
}

/// Reads the section; `optimizer` and `schedule` are `None` where the workload leaves them in doubt.
pub(super) fn read(mut section: Section, optimizer: Option<OptimizerName>, schedule: Option<ScheduleName>) -> Option<Search> {
    let draft = Draft::read(&mut section);
    if let Some(optimizer) = optimizer {
        keys::momentum().agree(&mut section, &draft.momentum, optimizer.name());
    }
    if let Some(schedule) = schedule {
        keys::decay_steps().agree(&mut section, &draft.decay_steps, schedule.name());
        keys::end_learning_rate_factor().agree(&mut section, &draft.end_learning_rate_factor, schedule.name());
    }
    draft.complete()
}

/// A metaparameter: a value or a range of values.
pub(super) struct Searched {
    /// What the value and the limits of a range may be.
    values: Number,
    /// The scales of a range that fit the values.
    scales: &'static [Scale],
    /// The paper's range, to show how one is written.
    example: (&'static str, &'static str, Scale),
}

impl Searched {
    fn example(&self) -> String {
        let (min, max, scale) = self.example;
        range(min, max, scale)
    }

    /// A key that every study has.
    fn always(self) -> Definition<Searched> {
        let example = self.example();
        key(self, example)
    }

    /// A key that must be given for some optimizers or schedules.
    fn only(self, only: Only) -> Definition<Sometimes<Searched>> {
        let example = self.example();
        key(Sometimes::given(self), example).only(only)
    }

    /// Reads a range.
    fn range(&self, mut section: Section) -> Option<Range> {
        let (low, high, usual) = self.example;
        let limit = |example| Wanted { expected: self.values.expected(), example };
        let min = section.required("min", &limit(low), |value| self.values.accept(value));
        let max = section.required("max", &limit(high), |value| self.values.accept(value));
        let scale = section.name("scale", Scale::NAMES, None);
        if let Some(scale) = scale
            && !self.scales.contains(&scale)
        {
            let scales = self.scales.iter().map(|scale| scale.name()).collect::<Vec<_>>().join(", ");
            let sentence = format!("expected one of {scales} for this metaparameter, found \"{scale}\"; write for example \"{usual}\"");
            section.problem_among("scale", &[], &sentence);
            return None;
        }
        let (min, max, scale) = (min?, max?, scale?);
        if min >= max {
            let advice = if min == max { "write the value alone to fix it" } else { "exchange the two" };
            section.problem_among("min", &["max"], &format!("expected less than max = {max}, found {min}; {advice}"));
        } else if scale == Scale::Log && min <= 0.0 {
            let sentence = "expected a number above 0 on the scale \"log\", found 0; raise it, or change the scale";
            section.problem_among("min", &["scale"], sentence);
        } else if scale == Scale::ReverseLog && max >= 1.0 {
            let sentence = format!("expected a number below 1 on the scale \"reverse-log\", found {max}; lower it, or change the scale");
            section.problem_among("max", &["scale"], &sentence);
        } else {
            return Some(Range { min, max, scale });
        }
        None
    }
}

impl Kind for Searched {
    type Value = Metaparameter;

    fn expected(&self) -> String {
        format!("{} or a range", self.values.expected())
    }

    fn accept(&self, value: &Value) -> Option<Metaparameter> {
        self.values.accept(value).map(Metaparameter::Fixed)
    }

    fn toml(&self, value: &Metaparameter) -> Option<String> {
        match value {
            Metaparameter::Fixed(value) => self.values.toml(value),
            Metaparameter::Range(Range { min, max, scale }) => Some(range(&min.to_string(), &max.to_string(), *scale)),
        }
    }

    fn read(
        &self,
        name: &'static str,
        example: &str,
        default: Option<Metaparameter>,
        section: &mut Section<'_, '_>,
    ) -> Option<Metaparameter> {
        let wanted = Wanted { expected: self.expected(), example };
        match section.node(name) {
            Some(Node { value: Value::Table(table), origin }) => self.range(section.inside(name, table, origin)).map(Metaparameter::Range),
            Some(node) => section.accept(name, node, &wanted, |value| self.accept(value)),
            None if default.is_none() => section.missing(name, &wanted),
            None => default,
        }
    }
}

//! Settings of a metaparameter in a configuration: a value, or a range with a scale.

use serde::Serialize;

use crate::config::kind::{Kind, Number};
use crate::config::names::names;
use crate::config::reader::{Section, Wanted};
use crate::config::tree::{Node, Value};

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

/// A value for every trial, or a range that the search draws from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// One value for every trial.
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

/// Limits of a metaparameter's value, or of its range of values.
pub struct Searched {
    /// Numbers that the value and the limits of a range may be.
    pub values: Number,
    /// The scales of a range that fit the values.
    pub scales: &'static [Scale],
    /// A usual range, to show how one is written.
    pub example: Example,
}

/// A range as it is written: lower limit, upper limit and scale.
pub type Example = (&'static str, &'static str, Scale);

/// A range as TOML.
pub fn range_as_toml((min, max, scale): (&str, &str, Scale)) -> String {
    format!("{{ min = {min}, max = {max}, scale = \"{scale}\" }}")
}

impl Searched {
    /// Reads a range.
    fn range(&self, mut section: Section) -> Option<Range> {
        let (low, high, usual) = self.example;
        let limit = |example| Wanted { expected: self.values.expected(), example };
        let min = section.field("min", None, &limit(low), |value| self.values.accept(value));
        let max = section.field("max", None, &limit(high), |value| self.values.accept(value));
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
    type Value = Setting;

    fn expected(&self) -> String {
        format!("{} or a range", self.values.expected())
    }

    fn accept(&self, value: &Value) -> Option<Setting> {
        self.values.accept(value).map(Setting::Fixed)
    }

    fn toml(&self, value: &Setting) -> Option<String> {
        match value {
            Setting::Fixed(value) => self.values.toml(value),
            Setting::Range(Range { min, max, scale }) => Some(range_as_toml((&min.to_string(), &max.to_string(), *scale))),
        }
    }

    fn read(&self, name: &'static str, example: &str, default: Option<Setting>, section: &mut Section<'_, '_>) -> Option<Setting> {
        let wanted = Wanted { expected: self.expected(), example };
        match section.node(name) {
            Some(Node { value: Value::Table(table), origin }) => self.range(section.inside(name, table, origin)).map(Setting::Range),
            Some(node) => section.accept(name, node, &wanted, |value| self.accept(value)),
            None if default.is_none() => section.missing(name, &wanted),
            None => default,
        }
    }
}

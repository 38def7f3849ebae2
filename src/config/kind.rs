//! The kinds of value that a key may have: what a sentence calls them, which values they allow, and how they are read.

use std::marker::PhantomData;
use std::ops::Bound;

use serde::Serialize;

use super::names::Named;
use super::reader::{Section, Wanted};
use super::tree::{Node, Value};

/// A name that a key may have as its value, and what it means.
pub type NamedValue = (&'static str, &'static str);

/// A kind of value.
pub trait Kind {
    /// A value that was read.
    type Value: Serialize;

    /// Completes "expected …".
    fn expected(&self) -> String;

    /// The value that a file's value means, where it is allowed. A kind that reads otherwise has a `read` of its own.
    fn accept(&self, _value: &Value) -> Option<Self::Value> {
        None
    }

    /// A default as TOML; none where it stands for an absent key.
    fn toml(&self, value: &Self::Value) -> Option<String> {
        toml::Value::try_from(value).ok().map(|value| value.to_string())
    }

    /// All the names that are allowed, where only some are.
    fn names(&self) -> Vec<NamedValue> {
        Vec::new()
    }

    /// Reads the key `name` of `section`, which must be there where it has no default. `None`: a problem was added.
    fn read(&self, name: &'static str, example: &str, default: Option<Self::Value>, section: &mut Section<'_, '_>) -> Option<Self::Value> {
        section.field(name, default, &Wanted { expected: self.expected(), example }, |value| self.accept(value))
    }
}

/// A value that is one of a few names.
pub struct OneOf<T>(PhantomData<T>);

impl<T: Named> OneOf<T> {
    pub fn any() -> Self {
        OneOf(PhantomData)
    }
}

impl<T: Named> Kind for OneOf<T> {
    type Value = T;

    fn expected(&self) -> String {
        format!("one of {}", T::NAMES.join(", "))
    }

    fn accept(&self, value: &Value) -> Option<T> {
        if let Value::Text(text) = value { text.parse().ok() } else { None }
    }

    fn names(&self) -> Vec<NamedValue> {
        T::NAMES.iter().copied().zip(T::MEANINGS.iter().map(|meaning| meaning.trim())).collect()
    }

    fn read(&self, name: &'static str, _: &str, default: Option<T>, section: &mut Section<'_, '_>) -> Option<T> {
        section.name(name, T::NAMES, default)
    }
}

/// True or false.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn accept(&self, value: &Value) -> Option<bool> {
        if let Value::Flag(flag) = value { Some(*flag) } else { None }
    }
}

/// A whole number within limits.
pub struct Whole {
    min: u32,
    max: u32,
    /// Meaning of 0, where 0 has a meaning of its own.
    zero: Option<&'static str>,
    /// Words for the things that are counted, where a sentence says them.
    unit: Option<&'static str>,
}

impl Whole {
    /// Whole numbers from `min` to `max`.
    pub fn between(min: u32, max: u32) -> Self {
        Whole { min, max, zero: None, unit: None }
    }

    /// Whole numbers from 1 on.
    pub fn count() -> Self {
        Whole::between(1, u32::MAX)
    }

    /// A whole number from 0 on; `zero` says what 0 stands for.
    pub fn or_zero_for(zero: &'static str) -> Self {
        Whole { min: 0, max: u32::MAX, zero: Some(zero), unit: None }
    }

    pub fn of(self, unit: &'static str) -> Self {
        Whole { unit: Some(unit), ..self }
    }

    pub fn at_most(self, max: u32) -> Self {
        Whole { max, ..self }
    }
}

impl Kind for Whole {
    type Value = u32;

    fn expected(&self) -> String {
        let Whole { min, max, zero, unit } = self;
        let unit = unit.map_or_else(String::new, |unit| format!(" of {unit}"));
        match zero {
            None => format!("a whole number{unit} from {min} to {max}"),
            Some(zero) if *max == u32::MAX => format!("a whole number{unit}, 0 for {zero}"),
            Some(zero) => format!("a whole number{unit} of at most {max}, 0 for {zero}"),
        }
    }

    fn accept(&self, value: &Value) -> Option<u32> {
        integer(value).and_then(|integer| u32::try_from(integer).ok()).filter(|whole| (self.min..=self.max).contains(whole))
    }
}

/// A seed of random numbers. TOML promises 64-bit signed integers and no more.
pub struct Seed;

impl Kind for Seed {
    type Value = u64;

    fn expected(&self) -> String {
        format!("a whole number from 0 to {}", i64::MAX)
    }

    fn accept(&self, value: &Value) -> Option<u64> {
        integer(value).and_then(|seed| i64::try_from(seed).ok()).and_then(|seed| u64::try_from(seed).ok())
    }
}

/// A finite number between limits.
pub struct Number {
    sort: Sort,
    low: Bound<f64>,
    high: Bound<f64>,
}

/// Word for a number in a sentence.
#[derive(PartialEq)]
enum Sort {
    Fraction,
    Real,
    Whole,
}

impl Number {
    fn of(sort: Sort, (low, high): (Bound<f64>, Bound<f64>)) -> Self {
        Number { sort, low, high }
    }

    pub fn fraction(limits: (Bound<f64>, Bound<f64>)) -> Self {
        Number::of(Sort::Fraction, limits)
    }

    pub fn real(limits: (Bound<f64>, Bound<f64>)) -> Self {
        Number::of(Sort::Real, limits)
    }

    /// A whole number, written as 3 or as 3.0.
    pub fn whole(limits: (Bound<f64>, Bound<f64>)) -> Self {
        Number::of(Sort::Whole, limits)
    }

    /// A number, or the limit that it lies beyond; none where that limit is excluded.
    pub fn nearest(&self, number: f64) -> Option<f64> {
        match (self.low, self.high) {
            (Bound::Included(low), _) if number < low => Some(low),
            (_, Bound::Included(high)) if number > high => Some(high),
            limits => std::ops::RangeBounds::contains(&limits, &number).then_some(number),
        }
    }
}

impl Kind for Number {
    type Value = f64;

    fn expected(&self) -> String {
        let sort = match self.sort {
            Sort::Fraction => "a fraction",
            Sort::Real if self.high == Bound::Unbounded => "a finite number",
            Sort::Real => "a number",
            Sort::Whole => "a whole number",
        };
        let (low, is_from) = match self.low {
            Bound::Included(low) => (format!(" from {low}"), true),
            Bound::Excluded(low) => (format!(" above {low}"), false),
            Bound::Unbounded => (String::new(), false),
        };
        let high = match (self.high, is_from) {
            (Bound::Included(high), true) => format!(" to {high}"),
            (Bound::Excluded(high), true) => format!(" to below {high}"),
            (Bound::Included(high), false) => format!(" and at most {high}"),
            (Bound::Excluded(high), false) => format!(" and below {high}"),
            (Bound::Unbounded, _) => String::new(),
        };
        format!("{sort}{low}{high}")
    }

    /// −0 is 0, or equal sparsities could have two names.
    fn accept(&self, value: &Value) -> Option<f64> {
        let number = match value {
            Value::Integer(integer) => *integer as f64,
            Value::Number(number) => *number,
            _ => return None,
        };
        let within = number.is_finite() && std::ops::RangeBounds::contains(&(self.low, self.high), &number);
        (within && (self.sort != Sort::Whole || number.fract() == 0.0)).then_some(number + 0.0)
    }

    /// 4, not 4.0, as people write it.
    fn toml(&self, value: &f64) -> Option<String> {
        Some(value.to_string())
    }
}

/// A list of values without duplicates that is not empty.
pub struct List<K> {
    each: K,
    /// Name of the values, in the plural.
    of: &'static str,
    /// How many there may be.
    most: usize,
}

impl<K: Kind> List<K> {
    pub fn of(of: &'static str, most: usize, each: K) -> Self {
        List { each, of, most }
    }
}

impl<K: Kind<Value: PartialEq>> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn expected(&self) -> String {
        format!("a list of {}, each {}", self.of, self.each.expected())
    }

    fn read(&self, name: &'static str, example: &str, default: Option<Self::Value>, section: &mut Section<'_, '_>) -> Option<Self::Value> {
        let wanted = Wanted { expected: self.expected(), example };
        let list = match section.node(name) {
            None => return default.or_else(|| section.missing(name, &wanted)),
            Some(Node { value: Value::List(list), origin }) if list.len() > self.most => {
                let (most, found) = (self.most, list.len());
                section.problem(
                    origin,
                    name,
                    &format!("expected at most {most} values, found {found}; give fewer, and others their own file"),
                );
                return None;
            }
            Some(Node { value: Value::List(list), .. }) if !list.is_empty() => list,
            Some(node) => return section.accept(name, node, &wanted, |_| None),
        };
        let mut values: Vec<K::Value> = Vec::with_capacity(list.len());
        for item in list {
            match section.accept(name, item, &wanted, |value| self.each.accept(value)) {
                Some(value) if values.contains(&value) => {
                    let sentence = format!("expected each value once, found {} again; remove the duplicate", item.value);
                    section.problem(&item.origin, name, &sentence);
                }
                Some(value) => values.push(value),
                None => {}
            }
        }
        (values.len() == list.len()).then_some(values)
    }
}

/// A key that belongs to some optimizers, schedules or criteria, and is absent for the others.
pub struct Sometimes<K: Kind> {
    pub kind: K,
    /// The value where the key belongs and is not given; none where the key is absent then, or must be given.
    pub otherwise: Option<K::Value>,
}

impl<K: Kind> Kind for Sometimes<K> {
    type Value = Option<K::Value>;

    fn expected(&self) -> String {
        self.kind.expected()
    }

    fn toml(&self, value: &Self::Value) -> Option<String> {
        self.kind.toml(value.as_ref().or(self.otherwise.as_ref())?)
    }

    fn names(&self) -> Vec<NamedValue> {
        self.kind.names()
    }

    fn read(&self, name: &'static str, example: &str, default: Option<Self::Value>, section: &mut Section<'_, '_>) -> Option<Self::Value> {
        if section.has(name) {
            return self.kind.read(name, example, None, section).map(Some);
        }
        section.node(name);
        default
    }
}

fn integer(value: &Value) -> Option<i128> {
    if let Value::Integer(integer) = value { Some(*integer) } else { None }
}

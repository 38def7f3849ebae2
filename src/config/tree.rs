//! A configuration as it was written: values with the place each came from, before anything is known of their meaning.

use std::collections::BTreeMap;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys and their values. A repeated key is a TOML syntax error, so none is lost here.
pub type Table = BTreeMap<String, Node>;

/// Where a value was written; orders problems as a reader of the file meets them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The file as a whole: for what is absent from it.
    File,
    /// A line, from 1.
    Line(usize),
    /// An option of the command line, as it was typed.
    CommandLine(String),
}

/// The prefix of a problem's sentence.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File => Ok(()),
            Origin::Line(line) => write!(f, "line {line}: "),
            Origin::CommandLine(option) => write!(f, "{option}: "),
        }
    }
}

/// A value and its place: that of its key, or its own in a list.
#[derive(Debug, Clone)]
pub struct Node {
    pub value: Value,
    pub origin: Origin,
}

/// TOML's kinds of value.
#[derive(Debug, Clone)]
pub enum Value {
    Table(Table),
    List(Vec<Node>),
    Text(String),
    /// Wide enough to tell a number that is out of range from one that is not a number.
    Integer(i128),
    Number(f64),
    Flag(bool),
    Date,
}

/// Describes a value that was found, for the middle of a sentence.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Table(_) => f.write_str("a table"),
            Value::List(list) if list.is_empty() => f.write_str("an empty list"),
            Value::List(_) => f.write_str("a list"),
            Value::Text(text) if text.chars().count() > 60 => write!(f, "{:?}…", text.chars().take(60).collect::<String>()),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Integer(integer) => write!(f, "{integer}"),
            Value::Number(number) => write!(f, "{number:?}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Date => f.write_str("a date"),
        }
    }
}

/// Bytes of the longest document of which every syntax error is named: each takes memory, and a longer one is hardly a configuration.
const MOST_MENDED: usize = 1 << 16;

/// Reads a TOML document; on syntax errors, all of them with their places, or of a long document the first one.
pub fn read(text: &str) -> Result<Table, Vec<(Origin, String)>> {
    let (document, errors) = if text.len() <= MOST_MENDED {
        DeTable::parse_recoverable(text)
    } else {
        match DeTable::parse(text) {
            Ok(document) => (document, Vec::new()),
            Err(error) => (Spanned::new(0..0, DeTable::default()), vec![error]),
        }
    };
    let ends: Vec<usize> = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    // The line, from 1, of a byte.
    let line = |offset: usize| Origin::Line(1 + ends.partition_point(|&end| end < offset));
    if errors.is_empty() {
        return Ok(table(document.get_ref(), &line));
    }
    let sentence = |error: toml::de::Error| {
        let origin = error.span().map_or(Origin::File, |span| line(span.start));
        (origin, format!("expected TOML, found a syntax error: {}; correct the line", error.message().replace('\n', ", ")))
    };
    let mut problems: Vec<_> = errors.into_iter().map(sentence).collect();
    problems.sort();
    Err(problems)
}

/// Reads one TOML value given on the command line; a bare word or path, such as `nesterov` or `digits/all.npz`, is text. `None`: it is neither.
pub fn read_value(text: &str, origin: &Origin) -> Option<Value> {
    match DeValue::parse(text) {
        Ok(parsed) => Some(value(parsed.get_ref(), &|_| origin.clone())),
        Err(_) => {
            let word = text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
            word.then(|| Value::Text(text.to_owned()))
        }
    }
}

fn table(parsed: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    let node = |value: Value, offset: usize| Node { value, origin: origin(offset) };
    parsed.iter().map(|(key, item)| (key.get_ref().to_string(), node(value(item.get_ref(), origin), key.span().start))).collect()
}

fn value(parsed: &DeValue<'_>, origin: &dyn Fn(usize) -> Origin) -> Value {
    match parsed {
        DeValue::String(text) => Value::Text(text.to_string()),
        // Beyond 128 bits an integer is out of every range here; as a number it is still named as one.
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Value::Number(digits.as_str().parse().unwrap_or(f64::INFINITY)), Value::Integer),
        DeValue::Float(digits) => Value::Number(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| Node { value: value(item.get_ref(), origin), origin: origin(item.span().start) }).collect())
        }
        DeValue::Table(inner) => Value::Table(table(inner, origin)),
    }
}

//! Overrides: changes that the command line makes in a configuration before it is validated.

use super::tree::{Node, Origin, Table, Value, read_value};
use crate::error::short;

/// One key set from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The option as it was typed, for messages: `--batch-size 2,4`.
    pub option: String,
    /// The dotted key: `grid.batch_sizes`.
    pub key: String,
    /// The value as TOML, or a bare word meaning text; empty removes the key.
    pub value: String,
}

/// The deepest keys are `search.learning_rate.min` and its like.
const DEEPEST: usize = 3;

impl Override {
    /// The change of a key to a value by an option.
    pub fn new(option: impl Into<String>, key: &str, value: impl Into<String>) -> Override {
        Override { option: option.into(), key: key.to_owned(), value: value.into() }
    }

    /// Reads the `key=value` of `--set`; a sentence, when there is no `=` or no key before it.
    pub(crate) fn parse(setting: &str) -> Result<Override, String> {
        match setting.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok(Override::new(format!("--set {setting}"), key.trim(), value.trim())),
            _ => Err(format!("expected key=value, found \"{}\"; write for example workload.goal_error=0.05", short(setting, 60))),
        }
    }

    /// Puts the value into `table`, in place of what the file says there. A key that is removed is in the table, or is one that `is_key` knows.
    pub(crate) fn apply(&self, table: &mut Table, is_key: impl Fn(&str) -> bool) -> Result<(), (Origin, String)> {
        let origin = Origin::CommandLine(short(&self.option, 100));
        let keys: Vec<&str> = self.key.split('.').map(str::trim).collect();
        let (Some((last, sections)), true) = (keys.split_last(), keys.len() <= DEEPEST) else {
            let problem =
                format!("expected a dotted key of at most {DEEPEST} words, found {}; write for example workload.goal_error", keys.len());
            return Err((origin, problem));
        };
        if self.value.is_empty() {
            let removed = sections.iter().try_fold(table, |table, section| match &mut table.get_mut(*section)?.value {
                Value::Table(inner) => Some(inner),
                _ => None,
            });
            return match removed.and_then(|inner| inner.remove(*last)) {
                None if !is_key(&self.key) => {
                    let problem = "expected a key of a configuration to remove, found none of this name; dps-train keys lists them";
                    Err((origin, problem.to_owned()))
                }
                _ => Ok(()),
            };
        }
        let mut table = table;
        for section in sections {
            let node =
                table.entry((*section).to_owned()).or_insert_with(|| Node { value: Value::Table(Table::new()), origin: origin.clone() });
            // A fixed metaparameter, say, becomes a range by setting its limits.
            if !matches!(node.value, Value::Table(_)) {
                *node = Node { value: Value::Table(Table::new()), origin: origin.clone() };
            }
            let Value::Table(inner) = &mut node.value else { return Ok(()) };
            table = inner;
        }
        let Some(value) = read_value(&self.value, &origin) else {
            let problem = format!(
                "expected a TOML value, found {:?}; write a number, true, false, a word, \"a text\", [1, 2] or {{ min = 0.1, … }}",
                short(&self.value, 60)
            );
            return Err((origin, problem));
        };
        table.insert((*last).to_owned(), Node { value, origin });
        Ok(())
    }
}

//! Differences between two configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

/// Keys with which a study may go on changed: left out of the comparison, as of the configuration's digest. The device and the reduction change
/// records by rounding; so do lanes and data_parallel with products = "cublas", and data_parallel with reduction = "nccl"; the others do not.
pub const IGNORED_KEYS: [&str; 8] = [
    "execution.device",
    "execution.threads",
    "execution.data_parallel",
    "execution.reduction",
    "execution.share_gpu",
    "execution.lanes",
    "execution.checkpoint_seconds",
    "execution.deadline_seconds",
];

/// The keys that say which cells a study has: parts of one study differ in them.
pub const CELL_KEYS: [&str; 2] = ["grid.batch_sizes", "grid.sparsities"];

/// The keys of which a study may go on with more: those of the grid, and how much is confirmed.
pub const GROWING_KEYS: [&str; 9] = [
    "grid.batch_sizes",
    "grid.sparsities",
    "grid.trials",
    "confirm.points",
    "confirm.neighbours",
    "confirm.seeds",
    "confirm.precision",
    "confirm.drop_slower",
    "confirm.limit",
];

/// The value of a key that a configuration does not have.
pub const ABSENT: &str = "nothing";

/// A key with two values, as TOML; [`ABSENT`] where a configuration does not have the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The dotted key.
    pub key: String,
    /// The first configuration's value.
    pub left: String,
    /// The second's.
    pub right: String,
}

impl Difference {
    /// Whether the key says how points are confirmed.
    pub fn is_of_confirmations(&self) -> bool {
        self.key.starts_with("confirm.")
    }

    /// `key: LEFT has X, RIGHT has Y`.
    pub fn between(&self, left: impl fmt::Display, right: impl fmt::Display) -> String {
        format!("{}: {left} has {}, {right} has {}", self.key, self.left, self.right)
    }
}

/// Differences between two studies or TOML tables, but for the keys in `ignored`; a section's name there stands for all of its keys. None where one
/// of them is no table.
pub fn differences(left: &impl Serialize, right: &impl Serialize, ignored: &[&str]) -> Vec<Difference> {
    let (Ok(left), Ok(right)) = (toml::Table::try_from(left), toml::Table::try_from(right)) else { return Vec::new() };
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten("", &left, &mut old);
    flatten("", &right, &mut new);
    let ignored =
        |key: &str| ignored.iter().any(|&name| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
    let value = |values: &BTreeMap<String, String>, key: &str| values.get(key).cloned().unwrap_or_else(|| ABSENT.into());
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .filter(|key| !ignored(key) && old.get(*key) != new.get(*key))
        .map(|key| Difference { key: key.clone(), left: value(&old, key), right: value(&new, key) })
        .collect()
}

/// Differences between the texts of two configurations that are of one study, but for the processors they are for and what a study may go on with
/// more of. Confirmations that one of them does not ask for differ in nothing.
pub fn contradictions(left: &impl Serialize, right: &impl Serialize) -> Vec<Difference> {
    let confirms = |study: Result<toml::Table, toml::ser::Error>| study.is_ok_and(|study: toml::Table| study.contains_key("confirm"));
    let both = confirms(toml::Table::try_from(left)) && confirms(toml::Table::try_from(right));
    let section: &[&str] = if both { &[] } else { &["confirm"] };
    differences(left, right, &[&IGNORED_KEYS[..], &GROWING_KEYS[..], section].concat())
}

fn flatten(prefix: &str, table: &toml::Table, values: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => flatten(&key, table, values),
            value => {
                values.insert(key, value.to_string());
            }
        }
    }
}

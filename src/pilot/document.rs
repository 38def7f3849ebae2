//! A configuration's text with other values, comments and all else as they are.

use toml_edit::{DocumentMut, InlineTable, Item, TableLike, Value};

use crate::config::Override;

/// A value to be written, and the comment behind it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// The value's dotted key, and the value as TOML or as a bare word; empty removes the key.
    pub change: Override,
    /// Why; may be empty.
    pub why: String,
}

/// The text with these values; a value that is no TOML is written as a string. None where the text is no TOML.
pub(super) fn changed(text: &str, values: &[Written]) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    for Written { change, why } in values {
        let keys: Vec<&str> = change.key.split('.').map(str::trim).collect();
        let (last, sections) = keys.split_last()?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        let mut is_commented = true;
        for (depth, section) in sections.iter().enumerate() {
            let item = table.entry(section).or_insert_with(|| if depth == 0 { toml_edit::table() } else { Item::Value(empty()) });
            // A fixed metaparameter becomes a range by setting its limits.
            if item.as_table_like().is_none() {
                *item = Item::Value(empty());
            }
            // No comment may stand in an inline table.
            is_commented &= item.is_table();
            table = item.as_table_like_mut()?;
        }
        if change.value.is_empty() {
            table.remove(last);
            continue;
        }
        let mut value = change.value.parse::<Value>().unwrap_or_else(|_| Value::from(change.value.as_str()));
        if is_commented && !why.is_empty() {
            value.decor_mut().set_suffix(format!(" # {why}"));
        } else if let Some(before) = table.get(last).and_then(Item::as_value) {
            *value.decor_mut() = before.decor().clone();
        }
        match table.get_mut(last) {
            // The key keeps its place and the comments above it.
            Some(item) => *item = Item::Value(value),
            None => drop(table.insert(last, Item::Value(value))),
        }
    }
    Some(document.to_string())
}

fn empty() -> Value {
    Value::InlineTable(InlineTable::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(key: &str, value: &str, why: &str) -> Written {
        Written { change: Override::new("", key, value), why: why.to_owned() }
    }

    #[test]
    fn values_change_and_the_rest_stays() {
        let text =
            "# A study.\n[workload]\n# The goal.\ngoal_error = 0.3 # guessed\nmax_steps = 40 # few\n\n[search]\nlearning_rate = 0.1\n";
        let values = [
            written("workload.goal_error", "0.2", "because"),
            written("workload.max_steps", "80", ""),
            written("workload.optimizer", "sgd", ""),
            written("search.learning_rate.min", "1e-3", ""),
            written("data.source", "own", "new"),
            written("confirm", "", ""),
        ];
        let expected = "# A study.\n[workload]\n# The goal.\ngoal_error = 0.2 # because\nmax_steps = 80 # few\noptimizer = \"sgd\"\n\n[search]\n\
                        learning_rate = { min = 1e-3 }\n\n[data]\nsource = \"own\" # new\n";
        assert_eq!(changed(text, &values).unwrap(), expected);
        assert_eq!(changed("workload = { max_steps = 3 }\n", &values[1..2]).unwrap(), "workload = { max_steps = 80 }\n");
        assert_eq!(changed("[workload", &values), None);
    }
}

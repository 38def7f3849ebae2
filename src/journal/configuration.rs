//! In what two configurations differ.

use std::collections::BTreeMap;

/// Keys that change no result, so that a study may go on with others: left out of the comparison, as of the configuration's digest.
pub const IGNORED_KEYS: [&str; 5] =
    ["execution.device", "execution.threads", "execution.data_parallel", "execution.checkpoint_seconds", "execution.deadline_seconds"];

/// `key: journal has X, configuration has Y` for each key that differs; none where a text is no TOML.
pub(super) fn differences(journal: &str, configuration: &str) -> Vec<String> {
    let (Ok(journal), Ok(configuration)) = (journal.parse(), configuration.parse()) else { return Vec::new() };
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten("", &journal, &mut old);
    flatten("", &configuration, &mut new);
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let value = |values: &BTreeMap<String, String>, key: &str| values.get(key).cloned().unwrap_or_else(|| "nothing".into());
    keys.into_iter()
        .filter(|key| !IGNORED_KEYS.contains(&key.as_str()) && old.get(*key) != new.get(*key))
        .map(|key| format!("{key}: journal has {}, configuration has {}", value(&old, key), value(&new, key)))
        .collect()
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

//! The keys of a configuration as a page's tables: what stands in docs/configuration.md.

use super::study::sections;
use crate::config::key::KeyHelp;

/// A heading, a sentence and a table for each section, in Markdown.
pub fn markdown_of_keys() -> String {
    let tables = sections().into_iter().map(|section| {
        let rows: String = section.keys.iter().map(row).collect();
        format!("### `[{}]`\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}", section.name, section.meaning)
    });
    tables.collect::<Vec<String>>().join("\n")
}

fn row(key: &KeyHelp) -> String {
    let value = match &key.names[..] {
        [] => key.expected.clone(),
        names => names.iter().map(|(name, meaning)| format!("`{name}`: {meaning}")).collect::<Vec<String>>().join("<br>"),
    };
    let default = key.default.as_ref().map_or_else(String::new, |default| format!("`{default}`"));
    let only = key.only.map_or_else(String::new, |only| format!(" Only for {}.", only.words(|name| format!("`{name}`"))));
    let needed = key.needed_among_others();
    let needed = needed.map_or_else(String::new, |needed| format!(", but for {}", needed.words(|name| format!("`{name}`"))));
    let optional = if key.is_optional && key.only.is_none() { format!(" May be left out{needed}.") } else { String::new() };
    let see = key.see.map_or_else(String::new, |heading| format!(" [More]({heading})."));
    format!("| `{}` | {} | {} | {}{only}{optional}{see} |\n", key.path(), cell(&value), cell(&default), cell(&key.meaning))
}

/// A text in a table, where a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

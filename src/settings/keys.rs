//! The keys of a configuration in words: for a terminal (`dps-train keys`), and as the tables of docs/configuration.md.

use super::study::sections;
use crate::config::key::{KeyHelp, SectionHelp};
use crate::config::reader::nearest;
use crate::error::short;
use crate::readable::wrapped;
use crate::{Error, Result};

/// Letters of a line.
const WIDTH: usize = 100;

/// Whether `path` is a section, a key with its section, or a limit of a metaparameter's range.
pub(super) fn names_a_key(path: &str) -> bool {
    sections().iter().any(|section| section.name == path || section.keys.iter().any(|key| is_at(key, path)))
}

/// Whether `path` is that of a key, or of a limit of a key: a metaparameter that has a range has paths for its limits.
fn is_at(key: &KeyHelp, path: &str) -> bool {
    let own = key.path();
    let is_limit = |rest: &str| own.starts_with("search.") && [".min", ".max", ".scale"].contains(&rest);
    path.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || is_limit(rest))
}

/// Every key with a few words or, of the section or key called `name`, all that is said.
///
/// # Errors
/// [`Error::Configuration`] where nothing has this name, with the nearest one.
pub fn keys(name: Option<&str>) -> Result<String> {
    let sections = sections();
    let Some(name) = name else { return Ok(overview(&sections)) };
    if let Some(section) = sections.iter().find(|section| section.name == name.trim_matches(['[', ']'])) {
        let keys: String = section.keys.iter().map(|key| format!("\n{}", whole(key))).collect();
        return Ok(format!("{}{keys}", heading(section)));
    }
    let all = || sections.iter().flat_map(|section| &section.keys);
    let found: Vec<String> = all().filter(|key| is_at(key, name) || key.name == name).map(whole).collect();
    if !found.is_empty() {
        return Ok(found.join("\n"));
    }
    let paths: Vec<String> = all().map(KeyHelp::path).collect();
    let known = sections.iter().map(|section| section.name).chain(paths.iter().map(String::as_str)).chain(all().map(|key| key.name));
    let advice = nearest(name, known).map_or_else(String::new, |name| format!("did you mean \"{name}\"? "));
    let problem =
        format!("expected a section or a key of a configuration, found \"{}\"; {advice}\"dps-train keys\" lists them", short(name, 80));
    Err(Error::Configuration { path: "keys".to_owned(), problems: vec![problem] })
}

fn overview(sections: &[SectionHelp]) -> String {
    let width = sections.iter().flat_map(|section| &section.keys).map(|key| key.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for section in sections {
        text += &heading(section);
        for key in &section.keys {
            text += &entry("  ", key.name, width, key.summary());
        }
        text.push('\n');
    }
    text + "\"dps-train keys NAME\" says all of a key or a section: its values, its default and what they mean.\n"
}

fn heading(section: &SectionHelp) -> String {
    format!("[{}]\n{}", section.name, block("", &section.meaning))
}

/// All that is said of a key.
fn whole(key: &KeyHelp) -> String {
    let default = match (&key.default, &key.only) {
        (Some(default), _) => format!("default {default}"),
        (None, None) if key.is_optional => format!("may be left out, for example {}", key.example),
        (None, _) => format!("no default, for example {}", key.example),
    };
    let mut text = format!("{}\n", key.path());
    text += &block("    ", &key.meaning);
    text += &block("    ", &format!("Value: {}; {default}.", key.expected));
    let width = key.names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, meaning) in &key.names {
        text += &entry("        ", name, width, meaning);
    }
    if let Some(only) = key.only {
        text += &block("    ", &format!("Only for {}.", only.words(str::to_owned)));
    }
    if let Some(needed) = key.needed_among_others() {
        text += &block("    ", &format!("Must be given for {}.", needed.words(str::to_owned)));
    }
    if let Some(see) = key.see {
        text += &block("    ", &format!("See docs/{see}."));
    }
    text
}

/// A name of at most `width` letters, and a text beside it.
fn entry(indent: &str, name: &str, width: usize, text: &str) -> String {
    let hanging = format!("{indent}{:width$}  ", "");
    block(&hanging, text).replacen(&hanging, &format!("{indent}{name:width$}  "), 1)
}

/// A text without the marks of code, in lines that begin with `indent`.
fn block(indent: &str, text: &str) -> String {
    wrapped(&text.replace('`', ""), WIDTH - indent.len()).into_iter().map(|line| format!("{indent}{line}\n")).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed_and_told() {
        let all = keys(None).unwrap();
        assert!(all.lines().all(|line| line.chars().count() <= WIDTH), "{all}");
        for section in sections() {
            let told = keys(Some(section.name)).unwrap();
            assert_eq!(keys(Some(&format!("[{}]", section.name))).unwrap(), told);
            assert!(all.contains(&format!("[{}]\n", section.name)));
            for key in section.keys {
                assert!(all.contains(&format!("\n  {} ", key.name)) && told.contains(&format!("\n{}\n", key.path())), "{}", key.path());
                let alone = keys(Some(&key.path())).unwrap();
                assert!(told.contains(&alone) && keys(Some(key.name)).unwrap().contains(&alone), "{}", key.path());
                assert!(key.names.iter().all(|(name, meaning)| alone.contains(name) && meaning.len() > 5), "{alone}");
                assert!(alone.lines().all(|line| line.chars().count() <= WIDTH && !line.contains('`')), "{alone}");
            }
        }
    }

    #[test]
    fn a_key_is_told_with_its_values_default_and_what_it_belongs_to() {
        let expected = "\
pruning.temperature
    Temperature of GraSP: it divides logits by this before it scores. The default is that of GraSP's
    authors' public code.
    Value: a number from 0.001 to 1000000; default 200.
    Only for the criterion grasp.
";
        assert_eq!(keys(Some("temperature")).unwrap(), expected);
        let momentum = keys(Some("search.momentum.min")).unwrap();
        assert!(momentum.contains("Only for the optimizers momentum and nesterov.") && momentum.contains("no default"), "{momentum}");
        // Two sections have a key of this name.
        assert_eq!(keys(Some("examples")).unwrap().matches("Value: ").count(), 2);
    }

    #[test]
    fn the_nearest_name_is_told() {
        for (name, near) in [("goal_eror", "goal_error"), ("workload.max_stesp", "workload.max_steps"), ("worklod", "workload")] {
            let problem = keys(Some(name)).unwrap_err().to_string();
            assert!(problem.contains(&format!("found \"{name}\"; did you mean \"{near}\"?")), "{problem}");
        }
        assert!(
            keys(Some("colour of the sky")).unwrap_err().to_string().contains("found \"colour of the sky\"; \"dps-train keys\" lists them")
        );
        assert!(keys(Some(&"x".repeat(100_000))).unwrap_err().to_string().len() < 300);
    }
}

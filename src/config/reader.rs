//! Reading typed fields out of a tree, collecting every problem on the way.
//!
//! A key is known because some rule asked for it: there is no second list of keys that could disagree.

use std::str::FromStr;

use super::tree::{Node, Origin, Table, Value};
use crate::error::short;

/// Everything found wrong so far, and the keys that were asked for.
#[derive(Default)]
pub struct Problems {
    found: Vec<(Origin, String)>,
    known: Vec<(String, &'static str)>,
    missing: Vec<(Origin, String, String)>,
    unknown: Vec<(Origin, String, String)>,
}

impl Problems {
    /// Adds a sentence.
    pub fn add(&mut self, origin: &Origin, sentence: String) {
        self.found.push((origin.clone(), sentence));
    }

    /// All sentences in the order of their places, each with its place in front; empty when nothing is wrong.
    pub fn sentences(mut self) -> Vec<String> {
        for (number, (origin, section, key)) in std::mem::take(&mut self.unknown).into_iter().enumerate() {
            // The file may be no configuration at all: advice for the first unknown keys is enough.
            let (advice, meant) = if number < ADVISED { self.advise(&section, &key) } else { ("remove it".to_owned(), None) };
            // A misspelled key is one problem, not also a missing one.
            self.missing.retain(|(_, path, _)| Some(path) != meant.as_ref());
            self.found.push((origin, format!("unknown key \"{}\"; {advice}", short(&join(&section, &key), 80))));
        }
        self.found.extend(self.missing.into_iter().map(|(origin, path, wanted)| (origin, format!("{path}: {wanted}"))));
        self.found.sort();
        self.found.into_iter().map(|(origin, sentence)| format!("{origin}{sentence}")).collect()
    }

    /// Advice about an unknown key, and the key that was meant, where one is near enough.
    fn advise(&self, section: &str, key: &str) -> (String, Option<String>) {
        let here = || self.known.iter().filter(|(path, _)| path == section).map(|(_, name)| *name);
        if let Some(name) = nearest(key, here()) {
            let meant = join(section, name);
            return (format!("did you mean \"{meant}\"?"), Some(meant));
        }
        if let Some((path, name)) = self.known.iter().find(|(_, name)| *name == key) {
            let meant = join(path, name);
            return (format!("did you mean \"{meant}\"?"), Some(meant));
        }
        let names = here().collect::<Vec<_>>().join(", ");
        (if names.is_empty() { "remove it".to_owned() } else { format!("remove it, or use one of {names}") }, None)
    }
}

/// The candidate that is `word` with few slips, if any is.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A slip in three letters, or two in a word of five and more.
    let near = |name: &str| strsim::damerau_levenshtein(word, name) <= (name.chars().count() / 3).clamp(1, 4);
    // The distance takes time in proportion to both lengths: no name is this long.
    let candidates = candidates.filter(|_| word.len() <= 100).filter(|name| near(name));
    candidates.min_by_key(|name| strsim::damerau_levenshtein(word, name))
}

fn join(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

/// Unknown keys for which the nearest known one is looked for.
const ADVISED: usize = 100;

/// Other names that people use, and the name to suggest for each.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("gpu", "cuda"),
    ("nvidia", "cuda"),
    ("cnn", "simple-cnn"),
    ("resnet", "resnet-8"),
    ("cifar", "cifar-10"),
    ("fashion", "fashion-mnist"),
];

/// Values that a key may have, and an example of one, for the sentence on another value.
pub struct Wanted<'w> {
    /// Completes "expected …".
    pub expected: String,
    /// Completes "…; write for example …".
    pub example: &'w str,
}

impl Wanted<'_> {
    pub fn sentence(&self, path: &str, found: &dyn std::fmt::Display) -> String {
        format!("{path}: expected {}, found {found}; write for example {}", self.expected, self.example)
    }
}

/// A table being read. Dropping it reports the keys that nothing asked for.
pub struct Section<'t, 'p> {
    /// The section's dotted key; empty for the file as a whole.
    pub path: String,
    /// Place of the section in the file.
    pub origin: Origin,
    pub problems: &'p mut Problems,
    table: Option<&'t Table>,
    asked: Vec<&'static str>,
}

impl<'t, 'p> Section<'t, 'p> {
    /// The whole file.
    pub fn root(table: &'t Table, problems: &'p mut Problems) -> Self {
        Section { path: String::new(), origin: Origin::File, problems, table: Some(table), asked: Vec::new() }
    }

    /// A table inside another one, given as that one's value.
    pub fn inside<'q>(&'q mut self, key: &str, table: &'t Table, origin: &Origin) -> Section<'t, 'q> {
        Section { path: join(&self.path, key), origin: origin.clone(), problems: self.problems, table: Some(table), asked: Vec::new() }
    }

    /// A section of the file. Absent, it reads as an empty one, or is a problem where it is `required`, which names its keys.
    pub fn section<'q>(&'q mut self, key: &'static str, required: Option<String>) -> Section<'t, 'q> {
        let node = self.node(key);
        let (table, origin) = match node {
            Some(Node { value: Value::Table(table), origin }) => (Some(table), origin.clone()),
            Some(Node { value, origin }) => {
                self.problems.add(origin, format!("{key}: expected a section, found {value}; write [{key}] on a line of its own"));
                (None, origin.clone())
            }
            None => {
                if let Some(keys) = required {
                    let wanted = format!("expected a section, found none; add [{key}] with {keys}");
                    self.problems.missing.push((Origin::File, key.to_owned(), wanted));
                }
                (None, Origin::File)
            }
        };
        Section { path: join(&self.path, key), origin, problems: self.problems, table, asked: Vec::new() }
    }

    /// Whether the file has no such section.
    pub fn is_absent(&self) -> bool {
        self.table.is_none()
    }

    /// Adds a sentence about one of this section's keys.
    pub fn problem(&mut self, origin: &Origin, key: &str, sentence: &str) {
        let path = join(&self.path, key);
        self.problems.add(origin, format!("{path}: {sentence}"));
    }

    /// Adds a sentence about a key that is there and the keys it disagrees with: an option among them is the place, or else the last line is.
    pub fn problem_among(&mut self, key: &str, others: &[&str], sentence: &str) {
        let place = |key: &str| self.table.and_then(|table| table.get(key)).map(|node| &node.origin);
        let origin = others.iter().copied().chain([key]).filter_map(place).max().unwrap_or(&self.origin).clone();
        self.problem(&origin, key, sentence);
    }

    /// Adds the problem that a key is absent; it is dropped again should the key turn up misspelled.
    pub fn absent(&mut self, key: &str, sentence: String) {
        self.problems.missing.push((self.origin.clone(), join(&self.path, key), sentence));
    }

    /// Asks for a key, which makes it known.
    pub fn node(&mut self, key: &'static str) -> Option<&'t Node> {
        self.asked.push(key);
        self.problems.known.push((self.path.clone(), key));
        self.table.and_then(|table| table.get(key))
    }

    /// Whether the section has a key, which does not make it known.
    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Adds the problem that a field is absent, and returns nothing.
    pub fn missing<T>(&mut self, key: &str, wanted: &Wanted) -> Option<T> {
        // Where the whole section is absent that is the problem, not each of its keys.
        if self.table.is_some() {
            self.absent(key, format!("expected {}, found nothing; add for example {key} = {}", wanted.expected, wanted.example));
        }
        None
    }

    /// A field that must be there where it has no default. `None`: a problem was added.
    pub fn field<T>(&mut self, key: &'static str, default: Option<T>, wanted: &Wanted, accept: impl Fn(&Value) -> Option<T>) -> Option<T> {
        match self.node(key) {
            Some(node) => self.accept(key, node, wanted, accept),
            None if default.is_none() => self.missing(key, wanted),
            None => default,
        }
    }

    /// The value of a field that is there. `None`: a problem was added.
    pub fn accept<T>(&mut self, key: &str, node: &Node, wanted: &Wanted, accept: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let accepted = accept(&node.value);
        if accepted.is_none() {
            self.problems.add(&node.origin, wanted.sentence(&join(&self.path, key), &node.value));
        }
        accepted
    }

    /// A field that is one of a few names, required where there is no default. `None`: a problem was added.
    pub fn name<T: FromStr>(&mut self, key: &'static str, names: &'static [&'static str], default: Option<T>) -> Option<T> {
        let example = format!("\"{}\"", names.first().unwrap_or(&""));
        let wanted = Wanted { expected: format!("one of {}", names.join(", ")), example: &example };
        let Some(node) = self.node(key) else {
            let Some(default) = default else { return self.missing(key, &wanted) };
            // A key that looks misspelled was meant to be set: the default would hide the mistake.
            let misspelled = self.table.is_some_and(|table| table.keys().any(|other| nearest(other, std::iter::once(key)).is_some()));
            return (!misspelled).then_some(default);
        };
        let text = if let Value::Text(text) = &node.value { text.as_str() } else { "" };
        if let Ok(value) = text.parse() {
            return Some(value);
        }
        let lower = text.to_lowercase();
        let meant = OTHER_NAMES.iter().find(|(other, name)| *other == lower && names.contains(name)).map(|(_, name)| *name);
        let Some(name) = meant.or_else(|| nearest(&lower, names.iter().copied())) else {
            return self.accept(key, node, &wanted, |_| None);
        };
        self.problem(&node.origin, key, &format!("expected {}, found {}; did you mean \"{name}\"?", wanted.expected, node.value));
        None
    }
}

impl Drop for Section<'_, '_> {
    fn drop(&mut self) {
        let Some(table) = self.table else { return };
        let unasked = table.iter().filter(|(key, _)| !self.asked.contains(&key.as_str()));
        self.problems.unknown.extend(unasked.map(|(key, node)| (node.origin.clone(), self.path.clone(), key.clone())));
    }
}

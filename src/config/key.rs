//! A key of the configuration: all that the reader, the template, the help and the page say of it.

use super::kind::{Flag, Kind, NamedValue, OneOf};
use super::names::Named;
use super::reader::Section;

/// Declaration of a key, but for its name, meaning and default.
pub struct Definition<K> {
    kind: K,
    example: String,
    only: Option<Only>,
    needed: Option<Only>,
    see: Option<&'static str>,
}

/// A key with any kind of value; `example` is one as TOML.
pub fn key<K: Kind>(kind: K, example: impl Into<String>) -> Definition<K> {
    Definition { kind, example: example.into(), only: None, needed: None, see: None }
}

/// A key with a name as its value.
pub fn name<T: Named>() -> Definition<OneOf<T>> {
    key(OneOf::any(), T::NAMES.first().map_or_else(String::new, |name| format!("\"{name}\"")))
}

/// A key that is true or false.
pub fn flag() -> Definition<Flag> {
    key(Flag, "true")
}

impl<K> Definition<K> {
    /// The key belongs to some optimizers, schedules or criteria, and must be absent for the others.
    pub fn only(self, only: Only) -> Self {
        Definition { only: Some(only), ..self }
    }

    /// The key belongs to `only` some optimizers, schedules or criteria, where those are named, and must be given to those by which it is `needed`.
    pub fn had_by(self, only: Option<Only>, needed: Option<Only>) -> Self {
        Definition { only, needed, ..self }
    }

    /// The heading of a page of docs/ that says more.
    pub fn see(self, heading: &'static str) -> Self {
        Definition { see: Some(heading), ..self }
    }
}

/// Optimizers, schedules or criteria that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only {
    /// The key that decides it: `optimizer`.
    pub of: &'static str,
    /// The values of that key to which it belongs.
    pub names: &'static [&'static str],
}

impl Only {
    /// Whether the key belongs to `name`.
    pub fn includes(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// `the optimizers momentum and nesterov`, each name as `show` writes it.
    pub fn words(&self, show: impl Fn(&str) -> String) -> String {
        let (one, several) = match self.of {
            "criterion" => ("criterion", "criteria"),
            "schedule" => ("schedule", "schedules"),
            _ => ("optimizer", "optimizers"),
        };
        let names: Vec<String> = self.names.iter().map(|name| show(name)).collect();
        let listed = match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => names.concat(),
        };
        format!("the {} {listed}", if names.len() == 1 { one } else { several })
    }
}

/// A key.
pub struct Key<K: Kind> {
    section: &'static str,
    name: &'static str,
    /// The key's doc comment.
    comment: &'static str,
    default: Option<K::Value>,
    definition: Definition<K>,
}

impl<K: Kind> Key<K> {
    pub fn new(
        section: &'static str,
        name: &'static str,
        comment: &'static str,
        default: Option<K::Value>,
        definition: Definition<K>,
    ) -> Self {
        Key { section, name, comment, default, definition }
    }

    /// Reads the key. `None`: a problem was added.
    pub fn read(self, section: &mut Section<'_, '_>) -> Option<K::Value> {
        self.definition.kind.read(self.name, &self.definition.example, self.default, section)
    }

    /// Checks that a key is given to what needs it, and to nothing that does not have it; `given` is what was read, and `of` says the study's
    /// optimizer or schedule, where it is known.
    pub fn agree<T>(self, section: &mut Section<'_, '_>, given: &Option<Option<T>>, of: impl Fn(&str) -> Option<&'static str>) {
        let Definition { only, needed, example, .. } = self.definition;
        let whose = |of_some: Option<Only>| of_some.and_then(|some| Some((some.of, of(some.of)?, some)));
        if let (Some(None), Some((of, name, needed))) = (given, whose(needed))
            && needed.includes(name)
        {
            let sentence =
                format!("expected a value or a range for {of} \"{name}\", found nothing; add for example {} = {example}", self.name);
            section.absent(self.name, sentence);
        }
        if let (Some(Some(_)) | None, Some((of, name, only))) = (given, whose(only))
            && !only.includes(name)
        {
            let sentence = format!("expected nothing for {of} \"{name}\", found a value; remove it, or change the {of}");
            section.problem_among(self.name, &[], &sentence);
        }
    }

    /// Help on the key.
    pub fn help(self) -> KeyHelp {
        let Definition { kind, example, only, needed, see } = self.definition;
        KeyHelp {
            section: self.section,
            name: self.name,
            meaning: paragraph(self.comment),
            expected: kind.expected(),
            names: kind.names(),
            is_optional: self.default.as_ref().is_some_and(|default| kind.toml(default).is_none()),
            default: self.default.and_then(|default| kind.toml(&default)),
            example,
            only,
            needed,
            see,
        }
    }
}

/// Help on a key, for pages, messages and new configurations.
#[derive(Debug, Clone)]
pub struct KeyHelp {
    /// The section's name.
    pub section: &'static str,
    /// The key's name in it.
    pub name: &'static str,
    /// Meaning of the key, in sentences; code is between backquotes.
    pub meaning: String,
    /// Which values it may have: completes "expected …".
    pub expected: String,
    /// The names that it may have as its value, and what each means; empty where it has other values.
    pub names: Vec<NamedValue>,
    /// The value, as TOML, that the key has where it is not given.
    pub default: Option<String>,
    /// A value as TOML.
    pub example: String,
    /// Choice that the key belongs to; none where the key may always be given.
    pub only: Option<Only>,
    /// The choices that need the key; none where no choice needs the key.
    pub needed: Option<Only>,
    /// Whether the key has no default, and may be left out but for what needs it.
    pub is_optional: bool,
    /// The heading of a page of docs/ that says more.
    pub see: Option<&'static str>,
}

impl KeyHelp {
    /// Choices that need the key, where it belongs to others too.
    pub fn needed_among_others(&self) -> Option<Only> {
        self.needed.filter(|needed| self.only != Some(*needed))
    }

    /// Whether a section is refused without it.
    pub fn is_required(&self) -> bool {
        self.default.is_none() && self.only.is_none() && !self.is_optional
    }

    /// `workload.dataset`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The first sentence of its meaning, without its full stop.
    pub fn summary(&self) -> &str {
        let meaning = self.meaning.as_str();
        meaning.split_once(". ").map_or(meaning, |(first, _)| first).trim_end_matches('.')
    }
}

/// Help on a section.
#[derive(Debug, Clone)]
pub struct SectionHelp {
    /// Name of the section.
    pub name: &'static str,
    /// Purpose of the section's keys, in sentences.
    pub meaning: String,
    /// Whether the section may be left out although some of its keys have no default: nothing is done then that it is for.
    pub is_optional: bool,
    /// The keys of the section.
    pub keys: Vec<KeyHelp>,
}

/// The first paragraph of a doc comment, on one line.
pub fn paragraph(comment: &str) -> String {
    let first = comment.split("\n\n").next().unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

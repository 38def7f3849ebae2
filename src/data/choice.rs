//! The data set of a workload: one that has a name, or a table that says where images of one's own are.

use std::fmt;

use serde::Serialize;

use crate::config::kind::{Kind, NamedValue, OneOf};
use crate::config::names::names;
use crate::config::reader::{Section, Wanted};
use crate::config::tree::{Node, Value};
use crate::error::short;

names! {
    /// The data sets that have a name.
    DatasetName {
        /// MNIST: 60,000 training and 10,000 test images of 28×28×1.
        Mnist = "mnist",
        /// Fashion-MNIST: 60,000 training and 10,000 test images of 28×28×1.
        FashionMnist = "fashion-mnist",
        /// CIFAR-10: 50,000 training and 10,000 test images of 32×32×3.
        Cifar10 = "cifar-10",
    }
}

/// The data set of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DatasetChoice {
    /// A data set that has a name.
    Named(DatasetName),
    /// Images of one's own.
    Own(OwnDataset),
}

/// Images of one's own. What they are, their files say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnDataset {
    /// The folder or file of the images: an absolute path, or one that begins at the data folder.
    pub path: String,
    /// Name of the images in results.
    pub name: String,
}

impl From<DatasetName> for DatasetChoice {
    fn from(name: DatasetName) -> Self {
        DatasetChoice::Named(name)
    }
}

/// Writes the data set's name.
impl fmt::Display for DatasetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetChoice::Named(name) => name.fmt(f),
            DatasetChoice::Own(own) => f.write_str(&own.name),
        }
    }
}

/// Letters of a path and of a name, at most.
const MOST_PATH: usize = 1_000;
const MOST_NAME: usize = 40;
/// Letters of either that a sentence shows.
const MOST_SHOWN: usize = 80;

/// A name, or a table with a path and a name.
pub(crate) struct DatasetKind;

impl Kind for DatasetKind {
    type Value = DatasetChoice;

    fn expected(&self) -> String {
        format!("one of {}, or a table with the path of your own data", DatasetName::NAMES.join(", "))
    }

    fn names(&self) -> Vec<NamedValue> {
        OneOf::<DatasetName>::any().names()
    }

    fn read(&self, name: &'static str, example: &str, _: Option<DatasetChoice>, section: &mut Section<'_, '_>) -> Option<DatasetChoice> {
        match section.node(name) {
            Some(Node { value: Value::Table(table), origin }) => own(&mut section.inside(name, table, origin)).map(DatasetChoice::Own),
            Some(Node { value: Value::Text(text), origin }) if is_path(text) => {
                // The folder that is looked in where no other is named.
                let path = toml::Value::from(short(text.strip_prefix("data/").unwrap_or(text), MOST_SHOWN));
                let sentence = format!(
                    "expected {}, found \"{}\"; write {name} = {{ path = {path} }} where that is in the data folder (--data DIR, else $DPS_DATA, \
                     else data)",
                    self.expected(),
                    short(text, MOST_SHOWN)
                );
                section.problem(origin, name, &sentence);
                None
            }
            Some(node) if !matches!(node.value, Value::Text(_)) => {
                section.accept(name, node, &Wanted { expected: self.expected(), example }, |_| None)
            }
            _ => section.name(name, DatasetName::NAMES, None).map(DatasetChoice::Named),
        }
    }
}

impl OwnDataset {
    /// The data set at a path, with the name that results use where a configuration says none, or one like it where the path's is no name.
    pub fn at(path: String) -> OwnDataset {
        let stem = stem(&path);
        let name = stem.clone().filter(|stem| is_name(stem)).unwrap_or_else(|| name_like(stem.as_deref()));
        OwnDataset { path, name }
    }

    /// Whether a configuration has to say the name, since the path has another one or none.
    pub fn is_named_apart(&self) -> bool {
        stem(&self.path).as_ref() != Some(&self.name)
    }
}

/// The name of a file without its ending.
fn stem(path: &str) -> Option<String> {
    std::path::Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

/// The table of images of one's own.
fn own(table: &mut Section<'_, '_>) -> Option<OwnDataset> {
    let wanted = Wanted { expected: "a folder or file below the data folder, or an absolute path".into(), example: "\"digits.npz\"" };
    let path = table.field("path", None, &wanted, |value| match value {
        Value::Text(text) if !text.is_empty() && text.len() <= MOST_PATH && !text.contains(char::is_control) => Some(text.clone()),
        _ => None,
    });
    let wanted = Wanted {
        expected: format!("at most {MOST_NAME} letters of a-z, A-Z, 0-9, -, _ and ., and no name of another data set"),
        example: "\"digits\"",
    };
    let given = table.field("name", Some(None), &wanted, |value| match value {
        Value::Text(text) if is_name(text) => Some(Some(text.clone())),
        _ => None,
    })?;
    let path = path?;
    let stem = stem(&path);
    let Some(name) = given.or(stem.clone().filter(|stem| is_name(stem))) else {
        let why = match stem.as_deref() {
            None => "the path has none".to_owned(),
            Some(stem) if DatasetName::NAMES.contains(&stem) => format!("the path's, \"{stem}\", is another data set's"),
            Some(stem) if stem.len() > MOST_NAME => {
                format!("the path's, \"{}\", has more than {MOST_NAME} letters", short(stem, MOST_SHOWN))
            }
            Some(stem) => format!("the path's, \"{}\", has letters that are none of a-z, A-Z, 0-9, -, _ and .", short(stem, MOST_SHOWN)),
        };
        table.absent("name", format!("expected a name for results to use, since {why}; add name = \"{}\"", name_like(stem.as_deref())));
        return None;
    };
    Some(OwnDataset { path, name })
}

/// Whether a text that should be a data set's name is a path.
fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.contains('.')
}

/// A name that results can use, as near to `stem` as can be.
fn name_like(stem: Option<&str>) -> String {
    let letters = stem.unwrap_or_default().split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let name: String = letters.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-").chars().take(MOST_NAME - 3).collect();
    match name.trim_end_matches('-') {
        "" => "digits".to_owned(),
        name if is_name(name) => name.to_owned(),
        name => format!("my-{name}"),
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=MOST_NAME).contains(&text.len()) && text.chars().all(is_letter) && !DatasetName::NAMES.contains(&text)
}

//! The network of a workload: one that has a name, or a list of layers.

use std::fmt;

use serde::Serialize;

use super::names::NetworkName;
use super::specification::LayerSpec;
use crate::config::kind::{Kind, NamedValue, OneOf};
use crate::config::reader::{Section, Wanted};
use crate::config::tree::{Node, Value};

/// Most layers of a list.
const MOST_LAYERS: usize = 1_000;

/// The network of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NetworkChoice {
    /// A network that has a name.
    Named(NetworkName),
    /// The layers of a network.
    Listed(Vec<LayerSpec>),
}

impl NetworkChoice {
    /// The layers, for so many classes.
    pub fn layers(&self, classes: u32) -> Vec<LayerSpec> {
        match self {
            NetworkChoice::Named(name) => name.layers(classes),
            NetworkChoice::Listed(layers) => layers.clone(),
        }
    }
}

/// Writes the network's name, or that it is listed.
impl fmt::Display for NetworkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkChoice::Named(name) => name.fmt(f),
            NetworkChoice::Listed(_) => f.write_str("listed network"),
        }
    }
}

/// A name, or a list of layers.
pub(crate) struct NetworkKind;

impl Kind for NetworkKind {
    type Value = NetworkChoice;

    fn expected(&self) -> String {
        format!("one of {}, or a list of layers", NetworkName::NAMES.join(", "))
    }

    fn names(&self) -> Vec<NamedValue> {
        OneOf::<NetworkName>::any().names()
    }

    fn read(&self, name: &'static str, example: &str, _: Option<NetworkChoice>, section: &mut Section<'_, '_>) -> Option<NetworkChoice> {
        let (list, origin) = match section.node(name) {
            Some(Node { value: Value::List(list), origin }) => (list, origin),
            None | Some(Node { value: Value::Text(_), .. }) => {
                return section.name(name, NetworkName::NAMES, None).map(NetworkChoice::Named);
            }
            Some(node) => return section.accept(name, node, &Wanted { expected: self.expected(), example }, |_| None),
        };
        if list.is_empty() || list.len() > MOST_LAYERS {
            let sentence = format!("expected from 1 to {MOST_LAYERS} layers, found {}; write for example {example}", list.len());
            section.problem(origin, name, &sentence);
            return None;
        }
        let mut layers = Vec::new();
        for (index, Node { value, origin }) in list.iter().enumerate() {
            let place = format!("{name}[{}]", index + 1);
            layers.push(if let Value::Table(table) = value {
                LayerSpec::read(&mut section.inside(&place, table, origin))
            } else {
                let wanted = Wanted { expected: "a layer".into(), example: "{ layer = \"relu\" }" };
                section.problems.add(origin, wanted.sentence(&format!("workload.{place}"), value));
                None
            });
        }
        layers.into_iter().collect::<Option<Vec<_>>>().map(NetworkChoice::Listed)
    }
}

//! The machine of configurations: how a key is declared, read, checked and told; what kinds of value there are; what the command line changes.
//!
//! This room knows TOML, names, ranges and sentences about problems. It may not know of a network, an optimizer, a data set or a criterion:
//! their names and keys are declared in the rooms that have them, and `settings` puts a study together.

pub(crate) mod key;
pub(crate) mod kind;
pub(crate) mod names;
mod overrides;
pub(crate) mod reader;
pub(crate) mod section;
pub(crate) mod tree;

pub use overrides::Override;

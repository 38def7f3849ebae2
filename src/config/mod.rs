//! A study as data: the keys of its configuration, the TOML file, its validation and the overrides of the command line.
//!
//! What lives here knows names, ranges and files of settings. It may not know of data sets' contents, networks' layers,
//! ranks or devices: those take the validated [`Study`] and nothing else.

mod difference;
mod goal;
mod key;
mod keys;
mod kind;
mod load;
mod names;
mod overrides;
mod reader;
mod section;
mod shipped;
mod study;
mod table;
mod template;
mod tree;

pub use difference::{CELL_KEYS, Difference, GROWING_KEYS, IGNORED_KEYS, contradictions, differences};
pub use keys::keys;
pub use load::{Configuration, canonical, load, parse, recorded};
pub use overrides::Override;
pub use shipped::{SHIPPED, Shipped};
pub use study::*;
pub use table::markdown_of_keys;
pub use template::{Choices, template};

#[cfg(test)]
mod tests;

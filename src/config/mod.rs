//! A study as data: the TOML file, its validation and the overrides of the command line.
//!
//! What lives here knows names, ranges and files of settings. It may not know of data sets' contents, networks' layers,
//! ranks or devices: those take the validated [`Study`] and nothing else.

mod study;

pub use study::*;

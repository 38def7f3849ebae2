//! A study's settings: the sections of a configuration put together, from the TOML file and the command line to the validated [`Study`], and back.
//!
//! A section that one room alone needs is declared in that room, by what `config` has for it. What lives here may not know of data sets' contents,
//! networks' shapes, ranks or devices: those take the validated [`Study`] and nothing else.

mod confirm;
mod difference;
mod execution;
mod goal;
mod grid;
mod keys;
mod load;
mod race;
mod shipped;
mod smoothness;
mod study;
mod template;
mod usual;
mod workload;

pub use confirm::{Confirm, Varied};
pub use difference::{ABSENT, CELL_KEYS, Difference, IGNORED_KEYS, contradictions, differences};
pub use execution::{Convolutions, DeviceName, Execution, Products, Reduction};
pub use grid::{Grid, MOST_TRIALS, ascending, each_once};
pub use keys::{keys, markdown_of_keys};
pub use load::{Configuration, canonical, load, names_results, parse, recorded, study_name};
pub use race::Race;
pub use shipped::{SHIPPED, Shipped};
pub use smoothness::{Smoothness, first_of};
pub use study::Study;
pub use template::{Choices, template};
pub use usual::Usual;
pub use workload::{GoalComparison, Workload};

#[cfg(test)]
mod tests;

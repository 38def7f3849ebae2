//! The study as a whole: its records, and the order in which its cells are measured.
//!
//! Below this module nothing knows of files or of what a trial means.

mod plan;
mod record;
mod run;
mod units;

pub use plan::{Cost, Plan, PlannedCell, Site};
pub use record::*;
pub use run::{Place, cells, choose_device, run};

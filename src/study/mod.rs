//! The study as a whole: its records, and the order in which its cells are measured.
//!
//! Below this module nothing knows of files or of what a trial means.

mod keeper;
mod memory;
mod plan;
mod record;
mod run;
mod status;

pub use memory::{Memory, Processors, data_bytes};
pub use plan::{Cost, Plan, PlannedCell, Site};
pub use record::*;
pub use run::{Outcome, Place, cells, check, run};
pub use status::{FinishedCell, Report, State, UnderWay, status};

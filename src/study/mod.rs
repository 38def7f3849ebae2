//! The study as a whole: its plan, its files, and the run over all of its cells.

mod files;
mod memory;
mod plan;
mod run;
mod status;

pub use memory::{Memory, Processors, data_bytes};
pub use plan::{Cost, Plan, PlannedCell, Site};
pub use run::{Outcome, Place, check, run};
pub use status::{FinishedCell, Report, State, UnderWay, status};

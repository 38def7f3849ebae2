//! The study as a whole: its cost, its files, its status, the run over all of its cells, and a trial of it again.

mod cost;
mod expected;
mod files;
mod layers;
mod memory;
mod replay;
mod run;
mod status;

pub use cost::{CellBound, CostBound, NetworkCost, Site};
pub use expected::expected;
pub use layers::layer_table;
pub use memory::{Memory, Processors};
pub use replay::{Replay, find, replay};
pub use run::{Outcome, Place, check, run};
pub use status::{FinishedCell, State, StudyStatus, UnderWay, status};

//! The study as a whole: its cost, its files, its status, the run over all of its cells, and a trial of it again.

mod begin;
mod check;
mod confirm;
mod cost;
mod driver;
mod expected;
mod files;
mod layers;
mod measured;
mod memory;
mod place;
mod possible;
mod replay;
mod run;
mod status;

pub use check::check;
pub use cost::{CellBound, CostBound, Site};
pub use expected::expected;
pub use files::Beginning;
pub use layers::layer_table;
pub use memory::{Memory, Processors};
pub use place::{FileWork, Place, Started, Surroundings};
pub use replay::{Replay, find, replay};
pub use run::{RunEnd, run};
pub use status::{Confirming, FinishedCell, State, StudyStatus, UnderWay, status};

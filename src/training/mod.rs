//! A cell's trials in lockstep: lanes advance together, are evaluated together, and end together once the cell is decided.
//!
//! What lives here knows lanes, ranks and the goal; it may not know of files, grids or progress bars. A study asks for one cell at a time
//! and gets its trials back, the same on every rank.

mod cell;
mod evaluation;
mod groups;
mod masks;
mod probe;
mod state;

pub use cell::{CellWork, Conductor, Decision, Moment, measure};
pub use evaluation::{Evaluation, decide};
pub use groups::Groups;
pub use masks::Masks;
pub use probe::Probe;
pub use state::{CellState, LaneRecord};

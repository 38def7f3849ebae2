//! A cell's trials in lockstep: lanes advance together, are evaluated together, and end together once the cell is decided.
//!
//! The module knows lanes, ranks and the goal; it may not know of files, grids or progress bars. A study asks for one cell at a time and gets its
//! trials back, the same on every rank.
//!
//! A cell trains its trials in waves, as many at a time as the devices have room for. In a wave each trial has a lane, which one group of ranks
//! trains. The groups tell each other what became of their lanes, so that all ranks hold the same records and decide alike.

mod cell;
mod conductor;
mod evaluation;
mod facts;
mod groups;
mod lanes;
mod masks;
mod probe;
mod rounds;
mod smoothness;
mod state;
mod trials;
mod votes;
mod wave;
mod work;

pub use cell::measure;
pub use conductor::{Conductor, Decision, Moment};
pub use evaluation::{Evaluation, decide};
pub use groups::Groups;
pub use masks::{Masks, Scored};
pub use probe::Probe;
pub use rounds::Workers;
pub use state::{CellState, LaneRecord};
pub use work::{CellWork, Run};

//! The command lines of the two programs: what was typed (private, clap's), and what it means (public).
//!
//! Nothing here opens a file or ends the process: under MPI every rank reads the command line, and one of them speaks. Only whether a word names a
//! file is asked.

mod manual;
mod report;
mod train;

pub use report::{FigureStyle, ReportArguments};
pub use train::{PilotArguments, ReplayArguments, StatusForm, StudyArguments, Train};

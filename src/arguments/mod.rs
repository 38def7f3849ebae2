//! The command lines of the two programs, each declared once.
//!
//! Nothing here opens a file or ends the process: under MPI every rank reads the command line, and one of them speaks. Only whether a word names a
//! file is asked.

mod brief;
mod manual;
mod report;
mod train;

use brief::matches;
pub use report::ReportArguments;
pub use train::{
    ConfirmArguments, DataCommand, DataFolder, ExecutionArguments, PilotArguments, ReplayArguments, ShownArguments, Source, StudyArguments,
    Train, completions, manual_pages, supervised,
};

/// Columns of help.
const WIDTH: usize = 80;

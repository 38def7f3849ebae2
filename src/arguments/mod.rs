//! The command lines of the two programs: what was typed (private, clap's), and what it means (public).
//!
//! Nothing here opens a file or ends the process: under MPI every rank reads the command line, and one of them speaks.

mod manual;
mod report;
mod train;

pub use report::ReportArguments;
pub use train::{StatusForm, StudyArguments, Train};

/// The same for both programs (README, "Exit codes").
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an unexpected failure
  2  the configuration or the command line is wrong
  3  a data file is missing, damaged or not the original
  4  a result file or a report cannot be read or written
  5  the ranks disagree, or one is lost or stuck
  6  the device asked for cannot be used, or memory is used up
  7  the study's journal, checkpoint or lock cannot be used
  8  the report has warnings, with dps-report --strict
  9  done, but standard output could not be written
  75 a signal stopped the study; the same command continues it
  130 a second Ctrl-C ended the program at once";

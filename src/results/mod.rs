//! The result file: one HDF5 file a study, written after every finished cell and read by `dps-report` and by anything that speaks HDF5.
//!
//! What lives here is the schema (versioned; docs/results.md), its writer, its reader and the atomic publication of a file.
//! It knows the study's records and nothing of how they came about; beside data sets (`data`) no other module opens HDF5 files.

mod attributes;
mod codes;
mod earlier;
mod grid;
mod merge;
mod metaparameters;
mod publish;
mod read;
mod rows;
mod schema;
mod write;

pub use merge::merge;
pub use publish::publish;
pub use read::read;
pub use schema::{LONGEST_CONFIGURATION, SCHEMA_VERSION};
pub use write::{write, write_through};

use crate::records::{Cell, Start};

/// Letters of a command line that are kept.
pub const LONGEST_COMMAND: usize = 4_000;

/// HDF5's words for an error, which may have line breaks, in one line.
fn one_line(error: &hdf5::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Everything a result file says about one study.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The effective configuration, as TOML: what to run to get these results again.
    pub configuration: String,
    /// Where, when and by what the study was run; nothing here changes a result.
    pub environment: Environment,
    /// What was trained, and to which goal.
    pub workload: WorkloadSummary,
    /// The finished cells, in the order in which they were measured.
    pub cells: Vec<Cell>,
    /// Whether every cell of the grid is among them.
    pub complete: bool,
}

/// Where, when and by what a study was run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Version of this program.
    pub program_version: String,
    /// Commit it was built from, or empty.
    pub commit: String,
    /// Whether it was built from the files of that commit: "clean", "modified" or "unknown"; empty where the file does not say, as of the three texts
    /// below.
    pub source_tree: String,
    /// The compiler that built it.
    pub compiler: String,
    /// The command line of rank 0, without its launcher; of a long one the beginning and the end.
    pub command_line: String,
    /// Model of the processors of rank 0's host.
    pub processor: String,
    /// The MPI library's own description, or "none".
    pub mpi_library: String,
    /// Ranks of the run that wrote the file.
    pub ranks: u32,
    /// Threads a rank.
    pub threads: u32,
    /// Name of rank 0's host.
    pub host: String,
    /// What trained, e.g. "CPU, AVX-512, 1 thread a rank".
    pub device: String,
    /// SHA-256 of the data files, hexadecimal.
    pub data_digest: String,
    /// Start of the study, ISO 8601 in UTC.
    pub started: String,
    /// When the last cell so far was finished, ISO 8601 in UTC.
    pub finished: String,
    /// Every start of the study, in order of time; none of a file by a program that did not record them.
    pub starts: Vec<Start>,
}

/// The workload as results describe it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkloadSummary {
    /// Name of the data set.
    pub dataset: String,
    /// Name of the network.
    pub network: String,
    /// Name of the optimizer.
    pub optimizer: String,
    /// Name of the learning-rate schedule.
    pub schedule: String,
    /// Validation error, a fraction, at or below which a trial is complete.
    pub goal_error: f64,
    /// The goal error as a count: a trial is complete with at most this many validation examples wrong.
    pub goal_threshold: u32,
    /// Examples in the validation set.
    pub validation_examples: u32,
    /// Examples in the test set.
    pub test_examples: u32,
    /// Step budget of a trial.
    pub max_steps: u32,
    /// Steps between two evaluations.
    pub evaluate_every: u32,
    /// Parameters of the network before pruning.
    pub parameters: u32,
}

impl WorkloadSummary {
    /// The test error of a cell's best trial, a fraction; none where it was not measured, or where there is no test set.
    pub fn test_error(&self, cell: &Cell) -> Option<f64> {
        let errors = cell.test_errors.filter(|_| self.test_examples > 0)?;
        Some(f64::from(errors) / f64::from(self.test_examples))
    }
}

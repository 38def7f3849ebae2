//! The result file: one HDF5 file a study, written as cells are finished and read by `dps-report` and by anything that speaks HDF5.
//!
//! The module has the schema (versioned), its writer, its reader and the atomic publication of a file. Each table is declared once, in `schema.rs`,
//! and each group of attributes once, in `environment.rs` and `workload.rs`: the tables of docs/results.md are made from these. The module knows the
//! study's records and nothing of how they came about; beside data sets (`data`) no other module reads HDF5 files.

mod attributes;
mod codes;
mod environment;
mod grid;
mod merge;
mod metaparameters;
mod publish;
mod read;
mod rows;
mod schema;
mod table;
mod workload;
mod write;

pub use attributes::LONGEST_CONFIGURATION;
pub use environment::{Environment, LONGEST_COMMAND, distinct};
pub use merge::merge;
pub use publish::publish;
pub use read::{READING, read};
pub use schema::{CellRow, ConfirmationRow, CurveRow, MeasurementRow, SCHEMA_VERSION, StartRow, TrialRow, described};
pub use table::{Column, Table};
pub use workload::WorkloadSummary;
pub use write::{write, write_through};

use serde::{Deserialize, Serialize};

use crate::records::{Cell, Trial};

/// Everything a result file says about one study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The effective configuration, as TOML: what to run to get these results again.
    pub configuration: String,
    /// Where, when and by what the study was run; nothing here changes a result.
    pub environment: Environment,
    /// Workload that was trained: data, network, optimizer and goal.
    pub workload: WorkloadSummary,
    /// Measured cells: in the order of measuring, or by batch size and sparsity of merged files and where cells get more trials.
    pub cells: Vec<Cell>,
    /// Whether every cell of the grid is among `cells`, with all its trials and confirmations.
    pub complete: bool,
}

impl Results {
    /// The trials of all cells.
    pub fn trials(&self) -> impl Iterator<Item = &Trial> + Clone {
        self.cells.iter().flat_map(|cell| &cell.trials)
    }
}

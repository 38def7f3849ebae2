//! Studies that other programs measured, to be drawn and fitted beside our own: tables of steps-to-result, and the layout of Shallue et al.
//!
//! The report leaves out whatever such a study does not say. Such a study has no [`Environment`], which tells it from a study of dps.

mod layout;
mod shallue;
mod table;

pub use layout::read_layout;
pub use shallue::shallue;
pub use table::read_table;

use std::collections::HashSet;

use crate::records::{Cell, CellKey, Status, Trial};
use crate::results::{Environment, Results, WorkloadSummary};

/// Bytes of a file at most.
const MOST_BYTES: u64 = 1 << 26;

/// Studies of others in a file or folder, sparsities of a study, and batch sizes of a study, at most: each has figures and tables of its own.
const MOST_STUDIES: usize = 100;
const MOST_SPARSITIES: usize = 200;
const MOST_BATCH_SIZES: usize = 1_000;

/// Why studies are too many, or one has too much, for a report.
fn excess(found: &[Results]) -> Option<String> {
    let too_many = |count: usize, most: usize, what: &str| {
        (count > most).then(|| format!("expected at most {most} {what}, found more than that; give a part of them at a time"))
    };
    let values =
        |study: &Results, value: fn(&CellKey) -> u64| study.cells.iter().map(|cell| value(&cell.key)).collect::<HashSet<u64>>().len();
    let of_study = |study: &Results| {
        too_many(values(study, |key| key.sparsity.to_bits()), MOST_SPARSITIES, "sparsities of a study")
            .or_else(|| too_many(values(study, |key| key.batch_size.into()), MOST_BATCH_SIZES, "batch sizes of a study"))
    };
    too_many(found.len(), MOST_STUDIES, "studies (names with their goals)").or_else(|| found.iter().find_map(of_study))
}

/// Results without an environment and a configuration.
fn results(workload: WorkloadSummary, cells: Vec<Cell>) -> Results {
    Results { configuration: String::new(), environment: Environment::default(), workload, cells, complete: true }
}

/// A cell of trials.
fn cell(key: CellKey, trials: Vec<Trial>) -> Cell {
    Cell { key, trials, test_errors: None, seconds: 0.0, confirmations: Vec::new() }
}

/// A trial of which no more is known than how it ended: after how many steps to the goal, or without it.
fn trial(index: u32, status: Status, steps: Option<u32>, steps_run: u32) -> Trial {
    Trial { status, steps, steps_run, ..Trial::new(index, Default::default()) }
}

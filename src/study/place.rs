//! Where a study runs.

use std::sync::Arc;

use super::surroundings::Surroundings;
use crate::comm::{Communicator, MemoryLimit, Single};
use crate::storage::{Disk, Storage};

/// Where a study runs.
pub struct Place<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// What MPI calls itself, or "none".
    pub mpi_library: String,
    /// The command line of this process.
    pub command_line: String,
    /// Threads of this rank.
    pub threads: usize,
    /// Memory that this rank may take.
    pub memory: MemoryLimit,
    /// Where rank 0 keeps the study's files.
    pub storage: Arc<dyn Storage>,
    /// Signals, clock and threads of the run.
    pub surroundings: Surroundings,
}

impl Place<'static> {
    /// This process alone, without MPI, with so many threads, and its files on the disk.
    pub fn alone(threads: usize) -> Place<'static> {
        Place {
            world: &Single,
            mpi_library: "none".to_owned(),
            command_line: String::new(),
            threads,
            memory: MemoryLimit::of(&Single, threads),
            storage: Arc::new(Disk),
            surroundings: Surroundings::PROCESS,
        }
    }
}

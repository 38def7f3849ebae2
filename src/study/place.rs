//! Where a study runs, and what a run hears and reads of the process that it is in: signals, the time, and threads.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::backend::Interrupt;
use crate::comm::{Communicator, MemoryLimit, Single};
use crate::storage::{Disk, Storage};
use crate::{Result, signals};

/// Where a study runs.
pub struct Place<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// Name of the MPI library as it gives it, or "none".
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

/// Work that writes a file, and says how long that took.
pub type FileWork = Box<dyn FnOnce() -> Result<Duration> + Send>;

/// Work that was started beside the study.
pub trait Started: Send {
    /// Whether the work is done.
    fn is_finished(&self) -> bool;

    /// Waits until it is done; an error of the outer kind is its panic.
    fn join(self: Box<Self>) -> std::thread::Result<Result<Duration>>;
}

/// Signals, clock and threads of the process that a run is in. Tests put a simulated one in its place, in which each rank has its own.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// Whether to stop; true once, it stays so.
    pub stop: Interrupt,
    /// Whether a checkpoint was asked for since the last call.
    pub urgent: fn() -> bool,
    /// The time.
    pub now: fn() -> Instant,
    /// Starts work beside the study.
    pub start: fn(FileWork) -> io::Result<Box<dyn Started>>,
}

impl Surroundings {
    /// This process and its clock.
    pub const PROCESS: Surroundings = Surroundings { stop: signals::stop, urgent: signals::urgent, now: Instant::now, start };
}

fn start(work: FileWork) -> io::Result<Box<dyn Started>> {
    Ok(Box::new(Builder::new().name("checkpoint".into()).spawn(work)?))
}

impl Started for JoinHandle<Result<Duration>> {
    fn is_finished(&self) -> bool {
        JoinHandle::is_finished(self)
    }

    fn join(self: Box<Self>) -> std::thread::Result<Result<Duration>> {
        JoinHandle::join(*self)
    }
}

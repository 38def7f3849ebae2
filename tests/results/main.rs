//! Result files: what is written, exported, merged and reported. One test at a time.

mod export;
mod file;
mod full_disk;
#[cfg(feature = "mpi")]
mod merge;
mod others;
mod report;
mod scale;
#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by each test to its end: a process that one test starts inherits the files that another has open, and HDF5's locks on them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

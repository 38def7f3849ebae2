//! The programs around a study: the terminal, the launcher, the plan, the doctor and the batch scripts.

#[cfg(unix)]
mod batch_scripts;
mod doctor;
#[cfg(feature = "mpi")]
mod launcher;
#[cfg(target_os = "linux")]
mod memory;
#[path = "../support/mod.rs"]
mod support;
#[cfg(all(feature = "mpi", target_os = "linux"))]
mod terminal;

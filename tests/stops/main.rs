//! Studies that are stopped, killed or damaged, and go on; what supervises them and tells of them.

#[cfg(unix)]
mod damage;
#[cfg(all(target_os = "linux", feature = "mpi"))]
mod interrupts;
#[cfg(all(unix, feature = "mpi"))]
mod resume;
#[cfg(all(unix, feature = "mpi"))]
mod status;
#[cfg(all(unix, feature = "mpi"))]
mod supervise;
#[path = "../support/mod.rs"]
mod support;

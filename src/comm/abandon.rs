//! The end of a process that cannot end in order.

use crate::{Error, exit, streams};

/// Says an error and ends the process at once, with the error's code. Destructors do not run: those of a device's memory would wait for a device that
/// does not answer, and MPI's would wait for the other ranks. A journal is on the disk whenever this may be called.
pub fn abandon(error: &Error) -> ! {
    streams::err(&format!("dps-train: {error}"));
    exit::leave(error.exit_code())
}

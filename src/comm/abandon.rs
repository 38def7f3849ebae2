//! Errors that cannot be returned, or not in time, because something does not answer.

use std::sync::OnceLock;

use crate::Error;

static ACTION: OnceLock<fn(&Error)> = OnceLock::new();

/// Says what to do where a wait for other ranks or for a GPU is over its deadline, or NCCL has failed on this rank: the programs say the error and
/// end their process. The first call counts. Without an action, a wait for ranks goes on, since MPI gives no way out of a collective; a wait for a
/// GPU ends with the error, and what lets go of the GPU's memory may wait again; a failure of NCCL is returned, and other ranks may wait for this
/// one.
pub fn on_abandon(action: fn(&Error)) {
    let _ = ACTION.set(action);
}

/// Hands an error to the action of [`on_abandon`], if there is one. No destructor has run yet:
/// those of a device's memory would wait for a device that does not answer, and MPI's would wait for the other ranks. A journal is on the disk
/// whenever this may be called.
#[cfg(any(feature = "mpi", feature = "cuda"))]
pub(crate) fn abandon(error: &Error) {
    if let Some(action) = ACTION.get() {
        action(error);
    }
}

//! Signals that ask a study to stop: SIGTERM, SIGUSR1 (a batch system's warning) and SIGINT.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Listens from now on. A second SIGINT ends the process at once, for a person who does not want to wait.
///
/// # Errors
/// The operating system refused.
pub fn listen() -> std::io::Result<()> {
    let flag = STOP.get_or_init(Default::default);
    // Registered before the flag is set by the same signal, so that the first SIGINT finds it unset.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, flag.clone())?;
    for signal in [SIGTERM, SIGUSR1, SIGINT] {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(())
}

/// Whether one has come.
pub fn stop() -> bool {
    STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

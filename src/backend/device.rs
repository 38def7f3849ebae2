//! Which device a study gets.

use super::cpu::Level;
use crate::config::DeviceName;
use crate::{Error, Result};

/// The CPU, and one line about the choice where it was left to us.
///
/// # Errors
/// [`Error::Device`] for `cuda`: this version trains on the CPU alone, and never falls back silently.
pub fn choose(name: DeviceName) -> Result<(Level, Option<String>)> {
    let level = Level::best();
    match name {
        DeviceName::Cuda => Err(Error::Device {
            device: "cuda".into(),
            problem: format!(
                "expected a GPU back end, found none in this version of dps ({} on this machine); use --device cpu",
                if driver() { "an NVIDIA driver is" } else { "no NVIDIA driver is" }
            ),
        }),
        DeviceName::Cpu => Ok((level, None)),
        DeviceName::Auto => Ok((level, Some(format!("device auto: CPU with {}", level.name())))),
    }
}

#[cfg(feature = "cuda")]
fn driver() -> bool {
    // cudarc panics when it needs a library that is not there; this asks first. It opens the library and calls nothing.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

#[cfg(not(feature = "cuda"))]
fn driver() -> bool {
    false
}

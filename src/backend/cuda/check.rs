//! Errors of the driver, in words.

use cudarc::driver::DriverError;

use crate::{Error, Result};

/// An error of the device "cuda".
pub(super) fn refuse(problem: impl Into<String>) -> Error {
    Error::Device { device: "cuda".into(), problem: problem.into() }
}

/// Turns a driver's code into a sentence.
pub(super) trait Doing<T> {
    /// `doing` completes "expected the GPU to …".
    fn doing(self, doing: &str) -> Result<T>;
}

impl<T> Doing<T> for std::result::Result<T, DriverError> {
    fn doing(self, doing: &str) -> Result<T> {
        self.map_err(|cause| {
            let text = |text: std::result::Result<&std::ffi::CStr, DriverError>| match text {
                Ok(text) => text.to_string_lossy().into_owned(),
                Err(_) => "an unknown error".into(),
            };
            refuse(format!(
                "expected the GPU to {doing}, but the driver says {} ({}); look at nvidia-smi and the system's log, then run the same command \
                 again to continue",
                text(cause.error_name()),
                text(cause.error_string())
            ))
        })
    }
}

//! Problems of the journal's files, in words.

use std::io;
use std::path::Path;

use crate::Error;
use crate::storage::advice;

/// Advice about studies that do not fit each other.
pub(super) const OTHER_STUDY: &str = "choose another result file (dps-train pilot: rename the configuration; dps-train confirm: another --output), or start over with \
                                      --fresh, which moves the old files aside";

/// An error about a file.
pub(super) fn error(path: &Path, problem: impl Into<String>) -> Error {
    Error::Journal { path: path.to_owned(), problem: problem.into() }
}

/// One sentence from the operating system's error: what was not done, why, and what to do.
pub(super) fn explain(path: &Path, what: &str, cause: &io::Error) -> Error {
    let advice = advice(cause);
    error(path, format!("{what} ({cause}); what was recorded before is safe: {advice} and run the same command again"))
}

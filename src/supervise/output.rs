//! Lines for a person, on standard error.

use crate::streams;

/// Writes a line in the name of `dps-train supervise`.
pub(super) fn say(words: &str) {
    streams::err(&format!("dps-train supervise: {words}"));
}

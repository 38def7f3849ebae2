//! Why a source does not have files, and their names.

use super::super::sources::Published;

/// Nothing, or why a source does not have what was asked of it.
pub(super) type Reason = std::result::Result<(), String>;

/// The files' names, with commas between.
pub(super) fn names(files: &[&Published]) -> String {
    files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
}

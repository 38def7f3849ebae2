//! Why a source does not have files, and their names.

use super::super::table::DataFile;

/// Nothing, or why a source does not have what was asked of it.
pub(super) type Reason = std::result::Result<(), String>;

/// The files' names, with commas between.
pub(super) fn names(files: &[&DataFile]) -> String {
    files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ")
}

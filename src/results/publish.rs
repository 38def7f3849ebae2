//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::storage::{Disk, Fill, Storage, advice};
use crate::{Error, Result};

/// Puts `contents` at `path`, creating its folder where needed: whoever opens `path` meets the old contents or the new, never a part.
///
/// # Errors
/// [`Error::Results`]; no temporary is left, and what was there is untouched, or replaced whole where only that could not be made durable.
pub fn publish(path: &Path, contents: &[u8]) -> Result<()> {
    explained(path, target(path).and_then(|target| Disk.publish(&target, contents)))
}

/// The same on the storage given, with the contents that `fill` writes to a file of the name it is told.
pub(super) fn replace(storage: &dyn Storage, path: &Path, fill: Fill) -> Result<()> {
    explained(path, target(path).and_then(|target| storage.publish_filled(&target, fill)))
}

fn explained(path: &Path, outcome: io::Result<()>) -> Result<()> {
    outcome.map_err(|error| Error::Results {
        path: path.to_owned(),
        problem: format!(
            "the file could not be written ({error}); no file there is damaged: {} and run the same command again",
            advice(&error)
        ),
    })
}

/// The file that a path names.
fn target(path: &Path) -> io::Result<PathBuf> {
    // Through a link, so that a link to another disk stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is no regular file"));
    }
    if target.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidFilename, "it names no file"));
    }
    Ok(target)
}

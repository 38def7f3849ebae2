//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::storage::{Disk, Storage, advice};
use crate::{Error, Result};

/// Puts `contents` at `path`, creating its folder where needed: whoever opens `path` meets the old contents or the new, never a part. A link at
/// `path` is replaced; what it leads to is not touched.
///
/// # Errors
/// [`Error::Results`]; no temporary is left, and what was there is untouched, or replaced whole where only that could not be made durable.
pub fn publish(path: &Path, contents: &[u8]) -> Result<()> {
    explained(path, replace(&Disk, path, contents))
}

/// Puts `contents` at `path` as [`publish()`] does, through `storage`.
pub(super) fn replace(storage: &dyn Storage, path: &Path, contents: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is no regular file"));
    }
    // HDF5 could not open a file again whose path is not UTF-8, and a page could not name the file.
    if path.to_str().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidFilename, "its path is no text in UTF-8"));
    }
    if path.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidFilename, "it names no file"));
    }
    storage.publish(path, contents)
}

/// The error of writing `path`, in words.
pub(super) fn explained(path: &Path, outcome: io::Result<()>) -> Result<()> {
    outcome.map_err(|error| match error.kind() {
        ErrorKind::OutOfMemory => Error::Memory {
            problem: format!(
                "expected memory to write {}, found none; no file there is damaged: start fewer ranks on this host, or raise the limit (ulimit -v, \
                 the job's memory), and run the same command again",
                path.display()
            ),
        },
        _ => Error::Results {
            path: path.to_owned(),
            problem: format!(
                "the file could not be written ({error}); no file there is damaged: {} and run the same command again",
                advice(&error)
            ),
        },
    })
}

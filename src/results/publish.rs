//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::storage::{Disk, Fill, Storage, advice};
use crate::{Error, Result};

/// Puts `contents` at `path`, creating its folder where needed: whoever opens `path` meets the old contents or the new, never a part. A link at
/// `path` is replaced; what it leads to is not touched.
///
/// # Errors
/// [`Error::Results`]; no temporary is left, and what was there is untouched, or replaced whole where only that could not be made durable.
pub fn publish(path: &Path, contents: &[u8]) -> Result<()> {
    explained(path, checked(path.to_owned()).and_then(|target| Disk.publish(&target, contents)))
}

/// Puts the contents that `fill` writes at `path`, through `storage`. A link at `path`, which somebody may have made to keep the file on another
/// disk, stays.
pub(super) fn replace(storage: &dyn Storage, path: &Path, fill: Fill) -> Result<()> {
    explained(path, target(path).and_then(|target| storage.publish_filled(&target, fill)))
}

fn explained(path: &Path, outcome: io::Result<()>) -> Result<()> {
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

/// Links that are followed from a path, one to the next.
const MOST_LINKS: usize = 40;

/// The file that a path names, through links to it.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            // From the link's folder on; a whole path replaces that.
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return checked(target),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is a link that leads to itself"))
}

/// A path where a file may be put.
fn checked(target: PathBuf) -> io::Result<PathBuf> {
    if fs::symlink_metadata(&target).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is no regular file"));
    }
    if target.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidFilename, "it names no file"));
    }
    Ok(target)
}

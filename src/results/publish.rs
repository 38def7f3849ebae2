//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::WITHOUT_LOCKS;
use crate::{Error, Result};

/// Puts `contents` at `path`, creating its folder where needed: whoever opens `path` meets the old contents or the new, never a part.
///
/// # Errors
/// [`Error::Results`]; the file that was there is then untouched, and no temporary is left.
pub fn publish(path: &Path, contents: &[u8]) -> Result<()> {
    replace(path, |temporary| fs::write(temporary, contents))
}

/// The same with the contents that `fill` gives to an empty file, under the name that it is told.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    try_replace(path, fill).map_err(|error| Error::Results { path: path.to_owned(), problem: explain(&error) })
}

fn try_replace(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    // Through a link, so that a link to another disk stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    let name = target.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    // Created here first: a folder that forbids it is then told in the operating system's words, not HDF5's.
    let moved = File::create(&temporary)
        .and_then(|_| fill(&temporary))
        .and_then(|()| OpenOptions::new().write(true).open(&temporary)?.sync_all())
        .and_then(|()| fs::rename(&temporary, &target));
    if moved.is_err() {
        let _ = fs::remove_file(&temporary);
        return moved;
    }
    // The file is whole and in place; some file systems cannot sync a folder, and then there is nothing left to undo.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn explain(error: &io::Error) -> String {
    let advice = match error.kind() {
        // ENOLCK and EAGAIN: what HDF5 meets where files cannot be locked.
        _ if matches!(error.raw_os_error(), Some(37 | 11)) => WITHOUT_LOCKS,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => "free some space",
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => "choose a folder you may write to",
        _ => "choose another path",
    };
    format!("the file could not be written ({error}); nothing there was changed: {advice} and run the same command again")
}

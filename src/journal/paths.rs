//! The names of a study's files, and starting over.

use std::fs;
use std::path::{Path, PathBuf};

use super::problem::{error, explain};
use crate::Result;
use crate::settings::names_results;
use crate::storage::{Storage, folder};

/// The journal beside a result file: `x.h5` → `x.journal`; names that do not end in `.h5` are kept whole.
pub fn journal_path(result: &Path) -> PathBuf {
    beside(result, "journal")
}

/// The checkpoint beside a result file: `x.h5` → `x.checkpoint`.
pub fn checkpoint_path(result: &Path) -> PathBuf {
    beside(result, "checkpoint")
}

/// The lock beside a result file: `x.h5` → `x.lock`.
pub fn lock_path(result: &Path) -> PathBuf {
    beside(result, "lock")
}

/// The figure beside a result file: `x.h5` → `x.svg`.
pub fn figure_path(result: &Path) -> PathBuf {
    beside(result, "svg")
}

/// The list of hosts beside a result file, for a study that is supervised: `x.h5` → `x.hosts`.
pub fn hosts_path(result: &Path) -> PathBuf {
    beside(result, "hosts")
}

/// All files that a study writes beside its result file.
fn paths_beside(result: &Path) -> [PathBuf; 5] {
    [journal_path(result), checkpoint_path(result), lock_path(result), figure_path(result), hosts_path(result)]
}

/// The refusal of a name for a result file, where it is one that a study gives a file beside its result file: `x.journal`, `x.lock`.
pub fn refused_name(result: &Path) -> Option<&'static str> {
    let ending = result.extension()?;
    let is_another = paths_beside(Path::new("x")).iter().any(|path| path.extension() == Some(ending));
    is_another.then_some(
        "expected a name for a result file, such as study.h5, found one of the files that studies keep beside these; choose another --output",
    )
}

/// The result file that has the same files beside it, where there is one: `x` of `x.h5`, and `x.h5` of `x`.
pub fn namesake(result: &Path) -> Option<PathBuf> {
    let other = if names_results(result) { result.with_extension("") } else { appended(result, "h5") };
    other.is_file().then_some(other)
}

/// Whether a study at `result` would write over `file`, by that name or another.
pub fn overwrites(result: &Path, file: &Path) -> bool {
    let written = [result.to_owned()].into_iter().chain(paths_beside(result));
    let found = fs::canonicalize(file).ok();
    written.into_iter().any(|path| path == file || found.is_some() && fs::canonicalize(path).ok() == found)
}

/// Two results must not share a file, so only the usual ending is replaced: other dots, as in `goal-0.12`, begin no ending.
fn beside(result: &Path, ending: &str) -> PathBuf {
    if names_results(result) { result.with_extension(ending) } else { appended(result, ending) }
}

fn appended(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Starts over: renames the journal, checkpoint and result file of the study at `result`, those there are, to `….old-N` with the first N
/// that is free for all three, and returns the old and new names. The caller holds the study's [`Lock`](super::Lock).
///
/// # Errors
/// [`Error::Journal`](crate::Error::Journal): a file could not be renamed. The journal is renamed last, so that until then the old study
/// can go on.
pub fn set_aside(result: &Path, storage: &dyn Storage) -> Result<Vec<(PathBuf, PathBuf)>> {
    move_aside(result, vec![checkpoint_path(result), result.to_owned(), journal_path(result)], storage)
}

/// Renames the result file alone, in the way of [`set_aside`].
///
/// # Errors
/// [`Error::Journal`](crate::Error::Journal): the file could not be renamed.
pub fn set_result_aside(result: &Path, storage: &dyn Storage) -> Result<Vec<(PathBuf, PathBuf)>> {
    move_aside(result, vec![result.to_owned()], storage)
}

/// Renames those of `paths`, files of the study at `result`, that are there.
fn move_aside(result: &Path, paths: Vec<PathBuf>, storage: &dyn Storage) -> Result<Vec<(PathBuf, PathBuf)>> {
    let exists = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    let names = |n: u32| paths.iter().map(|path| appended(path, &format!("old-{n}"))).collect::<Vec<_>>();
    let free = (1..).map(names).find(|names| !names.iter().any(exists)).unwrap_or_else(|| names(0));
    let moves: Vec<(PathBuf, PathBuf)> = paths.into_iter().zip(free).filter(|(path, _)| exists(path)).collect();
    for (from, _) in &moves {
        if !fs::symlink_metadata(from).is_ok_and(|found| found.is_file()) {
            return Err(error(
                from,
                "expected a file of an earlier study to move aside, found a folder, a link or a device; choose another --output",
            ));
        }
    }
    for (from, to) in &moves {
        storage.rename(from, to).map_err(|cause| explain(from, "the file could not be moved aside", &cause))?;
    }
    if !moves.is_empty() {
        storage
            .sync_folder(folder(result))
            .map_err(|cause| explain(result, "moving the old files aside could not be made durable", &cause))?;
    }
    Ok(moves)
}

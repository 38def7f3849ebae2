//! Where a data set's files are.

use std::path::{Path, PathBuf};

use super::choice::DatasetName;
use crate::readable::shell_path;
use crate::{Error, Result};

/// The data folder when none is named: the environment variable `DPS_DATA`, else `data` in the current folder.
pub fn default_folder() -> PathBuf {
    std::env::var_os("DPS_DATA").filter(|value| !value.is_empty()).map_or_else(|| "data".into(), PathBuf::from)
}

/// The option, after a space, by which a command finds the data folder `folder`; nothing for the default folder.
pub fn folder_option(folder: &Path) -> String {
    if folder == default_folder() { String::new() } else { format!(" --data {}", shell_path(folder)) }
}

/// The command that fetches `name` into the data folder `folder`.
pub fn fetching(name: DatasetName, folder: &Path) -> String {
    format!("dps-train data fetch {name}{}", folder_option(folder))
}

/// The files of `name` in the order of its [`DatasetSpec::files`](crate::data::DatasetSpec::files), all from one folder.
///
/// Looks in `folder/NAME`, in the data set's other folders in the data folder `folder`, then in the folder of the operating system's package. The
/// first of these that has all files is taken. Files may be gzipped, and named as some programs unpack them (train-images.idx3-ubyte).
///
/// # Errors
/// [`Error::Data`] naming every place looked in and the command that fetches the files.
pub fn locate(name: DatasetName, folder: &Path) -> Result<Vec<PathBuf>> {
    let files: Vec<&str> = name.spec().files.iter().map(|file| file.name).collect();
    let mut places = folders(name, folder);
    places.extend(name.spec().system_folder.map(PathBuf::from));
    let mut problem = None;
    for place in &places {
        let found: Vec<_> = files.iter().map(|file| existing(place, file)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let missing: Vec<_> = files.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(file, _)| *file).collect();
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        problem.get_or_insert_with(|| {
            let problem =
                format!("expected the {} files of {name}, {} missing; run: {}", files.len(), and_is(&missing), fetching(name, folder));
            Error::Data { path: place.clone(), problem }
        });
    }
    if let Some(problem) = problem {
        return Err(problem);
    }
    let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    let problem = format!("the files of {name} are not there; looked in {}; run: {}", looked.join(", "), fetching(name, folder));
    Err(Error::Data { path: folder.into(), problem })
}

/// The folders of a data folder that may hold the files of `name`, the one that fetching fills first.
pub(super) fn folders(name: DatasetName, folder: &Path) -> Vec<PathBuf> {
    std::iter::once(name.name()).chain(name.spec().folders.iter().copied()).map(|place| folder.join(place)).collect()
}

/// The names that a file may have: as published, or as some programs unpack it (train-images.idx3-ubyte), each gzipped or not.
pub(super) fn spellings(file: &str) -> Vec<String> {
    let dotted = file.replace("-idx", ".idx");
    let mut names = vec![file.to_string(), format!("{file}.gz")];
    if dotted != file {
        names.extend([format!("{dotted}.gz"), dotted]);
    }
    names
}

/// The first spelling of `file` that is there in `folder`.
pub(super) fn existing(folder: &Path, file: &str) -> Option<PathBuf> {
    spellings(file).into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

fn and_is(names: &[&str]) -> String {
    match names {
        [one] => format!("{one} is"),
        many => format!("{} are", many.join(", ")),
    }
}

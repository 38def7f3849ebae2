//! Where a data set's files are.

use std::path::{Path, PathBuf};

use super::sources;
use crate::config::DatasetName;
use crate::{Error, Result};

/// The data folder when none is named: the environment variable `DPS_DATA`, else `data` in the current folder.
pub fn default_folder() -> PathBuf {
    std::env::var_os("DPS_DATA").filter(|value| !value.is_empty()).map_or_else(|| "data".into(), PathBuf::from)
}

/// The files of `name`, all from one folder: for MNIST and Fashion-MNIST training images, training labels, test images, test
/// labels; for CIFAR-10 five training batches and the test batch.
///
/// Looks in the data folder `folder`, at `folder/NAME` (for CIFAR-10 also at `cifar-10-batches-bin` there and in `folder`), then,
/// where those have none of the files, in the folder of the operating system's package. Files may be gzipped, and named as some
/// programs unpack them (train-images.idx3-ubyte).
///
/// # Errors
/// [`Error::Data`] naming every place looked in and the command that fetches the files.
pub fn locate(name: DatasetName, folder: &Path) -> Result<Vec<PathBuf>> {
    let files = sources::file_names(name);
    let mut places = folders(name, folder);
    places.extend(sources::system_folder(name));
    for place in &places {
        let found: Vec<_> = files.iter().map(|file| existing(place, file)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let missing: Vec<_> = files.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(file, _)| *file).collect();
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let problem =
            format!("expected the {} files of {name}, {} missing; run: dps-train data fetch {name}", files.len(), and_is(&missing));
        return Err(Error::Data { path: place.clone(), problem });
    }
    let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    let problem = format!("the files of {name} are not there; looked in {}; run: dps-train data fetch {name}", looked.join(", "));
    Err(Error::Data { path: folder.into(), problem })
}

/// The folders of a data folder that may hold the files of `name`, the one that fetching fills first.
pub(super) fn folders(name: DatasetName, folder: &Path) -> Vec<PathBuf> {
    let own = folder.join(name.name());
    match name {
        DatasetName::Mnist | DatasetName::FashionMnist => vec![own],
        DatasetName::Cifar10 => vec![own.clone(), own.join("cifar-10-batches-bin"), folder.join("cifar-10-batches-bin")],
    }
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

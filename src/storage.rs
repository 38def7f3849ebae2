//! The file operations by which a study is kept (journal, checkpoint, results), one function each, so that tests can let any one of them
//! fail. Reports, figures and exports are written by them too: none writes through a link that somebody put at a file's name.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Where files are kept. Every function is one operation that can fail by itself; `publish` is made of them.
pub trait Storage: Send + Sync {
    /// The whole contents of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// An empty file to append to, in a folder that is made where needed; what the file held is gone.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// A file that exists, to append to.
    fn open(&self, path: &Path) -> io::Result<File>;
    /// Adds bytes at the end; after an error any number of them may be there.
    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()>;
    /// Cuts a file to `length` bytes.
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;
    /// Returns once the file is on the disk itself.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Returns once the names in a folder are on the disk itself.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Gives a file another name in one step; a file that had that name is gone.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Puts `contents` at `path`: whoever opens it, even after a loss of power, meets the old contents or the new, never a part. A link at `path` is
    /// replaced; what it leads to is not touched.
    fn publish(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        // One name, not one a process: a killed job's left-over is overwritten by the next, and the lock allows only one at a time.
        let temporary = temporary(path);
        let moved = self
            .create(&temporary)
            .and_then(|file| self.append(&file, contents).and_then(|()| self.sync(&file)))
            .and_then(|()| self.rename(&temporary, path));
        if moved.is_err() {
            let _ = self.remove(&temporary);
            return moved;
        }
        self.sync_folder(folder(path))
    }
}

/// Bytes that a file which is read whole may have: far more than a study's.
pub const MOST_BYTES: u64 = 1 << 36;

/// Opens a file of this program with `options`, and nothing but a regular file: a pipe would be waited at for ever, a device may have no end, and a
/// link may lead to somebody else's file.
///
/// # Errors
/// The operating system's, or one that says what was found in a regular file's place.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let found = |path: &Path| fs::symlink_metadata(path).map(|found| found.file_type());
    let refused = |what: &str| io::Error::new(ErrorKind::InvalidInput, format!("expected a regular file, found {what}"));
    // Neither waits for a pipe's other end nor follows a link.
    let opened = options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY).open(path);
    let kind = match &opened {
        Ok(file) => file.metadata()?.file_type(),
        Err(cause) => match found(path) {
            Ok(kind) if !kind.is_file() => kind,
            _ => return Err(io::Error::new(cause.kind(), cause.to_string())),
        },
    };
    if kind.is_file() { opened } else { Err(refused(described(kind))) }
}

/// Kind of a file system's entry that is no regular file, in words.
pub(crate) fn described(kind: fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_symlink() => "a link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// The whole contents of a regular file of at most `most` bytes.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let length = file.metadata()?.len();
    if length > most {
        let problem = format!("expected at most {most} bytes, found {length}");
        return Err(io::Error::new(ErrorKind::InvalidInput, problem));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    folder(path).join(name)
}

/// Makes a folder and those above it, where they are not there.
///
/// # Errors
/// The system's; where something else has the name of one of them, its path.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder).map_err(|cause| {
        // The system says of a file that it exists.
        let other = folder.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?))).filter(|(_, found)| !found.is_dir());
        other.map_or(cause, |(path, _)| {
            io::Error::new(ErrorKind::NotADirectory, format!("{} is needed as a folder and is a file", path.display()))
        })
    })
}

/// The folder a path is in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The SHA-256 of a file as it is, hexadecimal.
///
/// # Errors
/// Errors of reading the file.
pub fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut BufReader::new(File::open(path)?), &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Advice for a person on an error of a file operation.
pub(crate) fn advice(cause: &io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => "free some space",
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => "choose a folder you may write to",
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => "move it away, or choose another path",
        ErrorKind::InvalidInput => "see what that file is, move it away",
        ErrorKind::OutOfMemory => "run it where there is more memory",
        _ => "see to the disk",
    }
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Storage for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_regular(path, MOST_BYTES)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        make_folder(folder(path))?;
        let new = || OpenOptions::new().write(true).create_new(true).open(path);
        match new() {
            // The name may be of a file that a killed job left, or of a link that somebody put there: it is removed, not what it leads to.
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| new()),
            other => other,
        }
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        open_regular(path, OpenOptions::new().append(true))
    }

    fn append(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // A file system that cannot sync a folder has no better promise to give.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

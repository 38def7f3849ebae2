//! The lock: one job at a time works on a study.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::problem::{error, explain};
use crate::Result;
use crate::readable::moment;
use crate::storage::{folder, make_folder, open_regular};

/// How long a job waits for a lock that another process holds: [`Lock::holder`] holds a free lock for an instant, to see whether the lock is free.
const PATIENCE: Duration = Duration::from_millis(200);

/// Who holds a lock, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Name of its host, or "unknown".
    pub host: String,
    /// Number of the process on that host, or "unknown".
    pub process: String,
    /// Since when, ISO 8601 in UTC, or "unknown".
    pub since: String,
}

/// A study's lock, held until it is dropped or its process ends, however that happens.
///
/// The lock is an advisory lock of the whole file (flock) which the operating system releases with the process, so a file that a killed job
/// left is no obstacle. Linux passes such locks on to NFS servers, so jobs on two hosts exclude each other too, unless the file system
/// is mounted with locks that are local to a host (`nolock` or `local_lock=flock` for NFS, `localflock` for Lustre): then only jobs on
/// one host do. A file system that refuses locks altogether gets a second file, `….held`, which exists while the lock is held; a job
/// killed there leaves it, and the refusal says which file to delete.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// Open as long as the lock is held.
    file: File,
}

impl Lock {
    /// Takes the lock at `path`, making its folder where needed, and writes host, process and time into it.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): another job holds it, which is named; or the file could not be made.
    pub fn take(path: &Path) -> Result<Lock> {
        let failed = |cause: io::Error| explain(path, "the lock could not be taken", &cause);
        make_folder(folder(path)).map_err(failed)?;
        let start = Instant::now();
        // Each further attempt is another job that ended in between, or one that looked who holds the lock.
        for _ in 0..100 {
            let file = open_regular(path, OpenOptions::new().read(true).write(true).create(true).truncate(false)).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    thread::sleep(PATIENCE / 20);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    let advice = "wait until it has ended, stop it, or choose another result file";
                    return Err(error(path, format!("another job works on this study: {}; {advice}", holder(&file))));
                }
                Err(TryLockError::Error(cause)) if without_locks(&cause) => return Lock::without_locks(path),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
            // The process that held the lock may have removed the file since it was opened here; then the lock is on a file without a name.
            if fs::metadata(path).is_ok_and(|named| is_same(&named, &file)) {
                if !is_lock(&file) {
                    let advice = "move it away, or choose another result file";
                    return Err(error(
                        path,
                        format!("expected no such file, or the lock of a job, found a file of another kind: {advice}"),
                    ));
                }
                sign(&file);
                return Ok(Lock { path: path.to_owned(), file });
            }
        }
        Err(error(path, "the lock's file is removed as often as it is made: see which program does that, and run the same command again"))
    }

    /// Checks that the lock's file still has its name. A job that finds none, as when the study's folder was removed, takes a lock of its own and
    /// would be written over.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): the file is gone, or is another one.
    pub fn check(&self) -> Result<()> {
        let advice = "where its folder was removed, what this run wrote is lost; run the same command again where no other job does";
        check_name(&self.path, &self.file, "the lock that this job holds", advice)
    }

    /// Who holds the lock at `path`, without waiting for it or keeping it from anyone.
    ///
    /// On a file system that refuses locks, a file `….held` that exists is a lock that is held.
    pub fn holder(path: &Path) -> Option<Holder> {
        let open = |path: &Path| open_regular(path, OpenOptions::new().read(true));
        if let Ok(file) = open(&held(path)) {
            return Some(Holder::read(&file));
        }
        // The file is removed with the lock, so one that is there and not locked is a killed job's.
        let file = open(path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(Holder::read(&file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// Takes the lock where files cannot be locked: the file's existence is the lock.
    fn without_locks(path: &Path) -> Result<Lock> {
        let path = held(path);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                sign(&file);
                Ok(Lock { path, file })
            }
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                let opened = open_regular(&path, OpenOptions::new().read(true));
                let holder = opened.map_or_else(|_| "unknown".into(), |file| holder(&file));
                let advice = "wait until it has ended, or delete this file if it was killed, since this file system cannot lock files";
                Err(error(&path, format!("another job works on this study: {holder}; {advice}")))
            }
            Err(cause) => Err(explain(&path, "the lock could not be taken", &cause)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while the lock is held, so that it cannot be another job's file. A file that stays is no obstacle to the next job.
        if self.check().is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Checks that an open file of a study still has its name. `what` says which file it is, `gone` what to do where it was removed.
///
/// # Errors
/// [`Error::Journal`](crate::Error::Journal): the name is gone or leads to another file.
pub(super) fn check_name(path: &Path, file: &File, what: &str, gone: &str) -> Result<()> {
    let is_lost = match fs::metadata(path) {
        Ok(named) => !is_same(&named, file),
        // Any other error does not show that the file is gone, so no other error ends the study.
        Err(cause) => cause.kind() == ErrorKind::NotFound,
    };
    if !is_lost {
        return Ok(());
    }
    let (found, advice) = match moved_to(file) {
        Some(place) => (
            format!("moved to {}", place.display()),
            "move the study's files back and run the same command again, or go on with them where they are now (--output)",
        ),
        None => ("removed or replaced".to_owned(), gone),
    };
    Err(error(path, format!("expected {what}, found that its file was {found}: {advice}")))
}

/// The name that an open file has now, as far as the system tells; none of a file that was removed, which NFS calls `.nfs…` while it is open.
fn moved_to(file: &File) -> Option<PathBuf> {
    let place = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let is_removed = || place.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".nfs"));
    (fs::metadata(&place).is_ok_and(|named| is_same(&named, file)) && !is_removed()).then_some(place)
}

/// Whether a name leads to an open file.
fn is_same(named: &fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|held| (named.dev(), named.ino()) == (held.dev(), held.ino()))
}

/// Whether a file system has no locks: ENOLCK, or a call that the file system does not know.
fn without_locks(cause: &io::Error) -> bool {
    cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK)
}

/// Whether a file may be a lock that a killed job left: the lock says who held it, or, where the disk was full, a part of that or nothing. A lock has
/// zeros alone where the power failed before its text was on the disk.
fn is_lock(mut file: &File) -> bool {
    let mut begun = Vec::new();
    let read = file.take(SIGNED.len() as u64).read_to_end(&mut begun).and_then(|_| file.rewind());
    read.is_ok() && (SIGNED.as_bytes().starts_with(&begun) || begun.iter().all(|&byte| byte == 0))
}

/// First letters of the text of a lock.
const SIGNED: &str = "host ";

/// Writes who holds the lock: host, process and seconds since 1970. Only for people to read, so on a full disk the lock is as good without.
fn sign(mut file: &File) {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let text = format!("{SIGNED}{}\nprocess {}\nsince {since}\n", host.trim(), std::process::id());
    let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
}

/// The file that stands for a lock where files cannot be locked.
fn held(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".held");
    name.into()
}

/// Who holds the lock, as its file says: "process 4242 on node07, for 12 minutes".
fn holder(file: &File) -> String {
    let Holder { host, process, since } = Holder::read(file);
    if host == UNKNOWN || process == UNKNOWN {
        return "it does not say which".into();
    }
    let minutes = humantime::parse_rfc3339(&since)
        .ok()
        .and_then(|since| since.elapsed().ok())
        .map_or_else(|| "an unknown time".into(), |held| format!("{} minutes", held.as_secs() / 60));
    format!("process {process} on {host}, for {minutes}")
}

/// Stands for what a lock's file does not say, as while it is being written.
const UNKNOWN: &str = "unknown";

impl Holder {
    fn read(file: &File) -> Holder {
        let mut text = String::new();
        let _ = file.take(4096).read_to_string(&mut text);
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            // A file that somebody else wrote may have anything in it; a terminal must not see it.
            value.filter(|value| !value.is_empty() && value.len() <= 255 && !value.contains(char::is_control))
        };
        let since = field("since ").and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.parse().ok()?)));
        let since = since.map_or_else(|| UNKNOWN.into(), moment);
        Holder { host: field("host ").unwrap_or(UNKNOWN).into(), process: field("process ").unwrap_or(UNKNOWN).into(), since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_whose_file_is_gone_or_replaced_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/x.lock");
        let lock = Lock::take(&path).unwrap();
        lock.check().unwrap();
        fs::remove_dir_all(folder.path().join("results")).unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("its file was removed or replaced"));
        // Another job takes one of its own.
        let other = Lock::take(&path).unwrap();
        assert!(lock.check().is_err());
        drop(lock);
        other.check().unwrap();
    }

    #[test]
    fn a_lock_whose_folder_was_moved_says_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [before, after] = ["results", "kept"].map(|name| folder.path().join(name));
        let lock = Lock::take(&before.join("x.lock")).unwrap();
        fs::rename(&before, &after).unwrap();
        let problem = lock.check().unwrap_err().to_string();
        let place = after.canonicalize().unwrap().join("x.lock");
        assert!(
            problem.contains(&format!("found that its file was moved to {}: move the study's files back", place.display())),
            "{problem}"
        );
        // A second lock at the old place does not hide where the first one is.
        let other = Lock::take(&before.join("x.lock")).unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("was moved to"));
        drop((lock, other));
        assert!(after.join("x.lock").exists(), "the moved file is left for the job that goes on there");
    }

    #[test]
    fn a_file_that_is_no_lock_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        for left in ["", "ho", "host somewhere\nprocess 1\nsince 0\n", "\0\0\0\0\0\0\0"] {
            fs::write(&path, left).unwrap();
            Lock::take(&path).unwrap();
            assert!(!path.exists());
        }
        fs::write(&path, "mine").unwrap();
        assert!(Lock::take(&path).unwrap_err().to_string().contains("found a file of another kind"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn where_files_cannot_be_locked_one_that_exists_is_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = Lock::without_locks(&path).unwrap();
        let problem = Lock::without_locks(&path).unwrap_err().to_string();
        let process = format!("process {} on ", std::process::id());
        assert!(problem.contains(&process) && problem.contains("x.lock.held") && problem.contains("delete this file"), "{problem}");
        drop(lock);
        Lock::without_locks(&path).unwrap();
    }
}

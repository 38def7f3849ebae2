//! Mistakes, to see that the simulation finds them: each stands between a study and its disk or its ranks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dps::comm::Communicator;
use dps::journal::lock_path;
use dps::storage::Storage;

use super::scheduler::Context;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Bytes that are written to a file are not synced.
    LostSync,
    /// Names are not synced.
    LostFolderSync,
    /// The lock is let go as soon as the journal is open.
    EarlyUnlock,
    /// Every fifth append writes its bytes twice.
    RecordTwice,
    /// A rank that has heard a signal says so to itself, and does not ask the others.
    VoteTooFew,
    /// Waits have no limit, a longer one than the configuration says, or a shorter one.
    NoDeadline,
    LateDeadline,
    EarlyDeadline,
    /// The history takes a disk at its word that has lost what it had said was synced: so the disk's lies do harm.
    LiesBelieved,
}

/// A storage that makes a mistake.
pub struct Careless {
    pub inner: Arc<dyn Storage>,
    pub mistake: Mistake,
    pub output: PathBuf,
    pub appends: AtomicU64,
}

impl Storage for Careless {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.inner.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        self.inner.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        if self.mistake == Mistake::EarlyUnlock {
            // The next job makes a file of its own, which nobody has locked.
            let _ = fs::remove_file(lock_path(&self.output));
        }
        self.inner.open(path)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.inner.append(file, bytes)?;
        if self.mistake == Mistake::RecordTwice && self.appends.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
            self.inner.append(file, bytes)?;
        }
        Ok(())
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.inner.truncate(file, length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        if self.mistake == Mistake::LostSync { Ok(()) } else { self.inner.sync(file) }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if self.mistake == Mistake::LostFolderSync { Ok(()) } else { self.inner.sync_folder(folder) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
}

/// Ranks that make a mistake.
pub struct Mistaken<C> {
    pub inner: C,
    pub mistake: Mistake,
}

impl<C: Communicator> Communicator for Mistaken<C> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>) {
        self.inner.all_gather(send, counts, receive);
    }

    fn all_to_all(&self, send: &[f32], sent: &[usize], received: &[usize], receive: &mut Vec<f32>) {
        self.inner.all_to_all(send, sent, received, receive);
    }

    fn all_gather_words(&self, send: &[u64]) -> Vec<u64> {
        // A vote is one word, and 1 means to stop.
        let is_hasty = self.mistake == Mistake::VoteTooFew;
        if is_hasty && send == [1] && Context::get().is_some_and(|Context { scheduler, me }| scheduler.is_stopping(me)) {
            vec![1; self.size()]
        } else {
            self.inner.all_gather_words(send)
        }
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.inner.broadcast(bytes)
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.inner.gather(bytes)
    }

    fn split(&self, color: usize) -> Box<dyn Communicator> {
        self.inner.split(color)
    }

    fn limit_waits(&self, seconds: u32) {
        self.inner.limit_waits(match self.mistake {
            Mistake::NoDeadline => 0,
            Mistake::LateDeadline => 3 * seconds,
            Mistake::EarlyDeadline => seconds / 3,
            _ => seconds,
        });
    }

    fn abort(&self, code: i32) {
        self.inner.abort(code)
    }
}

//! Promises to a study: a storage that notes which bytes it was told are on the disk, to compare with what is found later.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dps::storage::Storage;

pub struct Promises {
    inner: Arc<dyn Storage>,
    /// The file that is appended to.
    journal: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of the journal when its last sync succeeded.
    journal: Vec<u8>,
    /// Contents that a name may have: those when its folder was last synced, and whatever it was given since.
    published: BTreeMap<PathBuf, Vec<Option<Vec<u8>>>>,
}

impl Promises {
    pub fn new(inner: Arc<dyn Storage>, journal: PathBuf) -> Promises {
        Promises { inner, journal, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which promise was broken, if one was.
    pub fn broken(&self) -> Option<String> {
        let state = self.lock();
        let journal = fs::read(&self.journal).unwrap_or_default();
        if !journal.starts_with(&state.journal) {
            let same = journal.iter().zip(&state.journal).take_while(|(found, promised)| found == promised).count();
            return Some(format!(
                "the journal had {} bytes when it was last synced, and has {} now, of which the first {same} are the same",
                state.journal.len(),
                journal.len()
            ));
        }
        let kept = |(path, may): &(&PathBuf, &Vec<Option<Vec<u8>>>)| **path == self.journal || may.contains(&fs::read(path).ok());
        let (path, may) = state.published.iter().find(|entry| !kept(entry))?;
        Some(format!("{} is none of the {} that it may be after it was published", path.display(), may.len()))
    }

    /// The disk has lost what it had said was synced. From now on what is there is all that is promised, but for the end of a journal that was never
    /// whole, `journal` bytes being so.
    pub fn forgive(&self, journal: u64) {
        let mut state = self.lock();
        state.journal = fs::read(&self.journal).unwrap_or_default();
        state.journal.truncate(journal as usize);
        state.published.iter_mut().for_each(|(path, may)| *may = vec![fs::read(path).ok()]);
    }

    /// The study begins anew.
    pub fn forget(&self) {
        *self.lock() = State::default();
    }

    /// A name may have what it has now.
    fn may_have(&self, path: &Path) {
        self.lock().published.entry(path.to_owned()).or_insert_with(|| vec![None]).push(fs::read(path).ok());
    }

    /// A name may be gone, if it was given a file before: the file was removed or moved aside.
    fn may_be_gone(&self, path: &Path) {
        if let Some(may) = self.lock().published.get_mut(path) {
            may.push(fs::read(path).ok());
        }
    }
}

impl Storage for Promises {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.inner.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        self.inner.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        self.inner.open(path)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.inner.append(file, bytes)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.inner.truncate(file, length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.inner.sync(file)?;
        if fs::metadata(&self.journal).is_ok_and(|journal| file.metadata().is_ok_and(|synced| synced.ino() == journal.ino())) {
            self.lock().journal = fs::read(&self.journal)?;
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.sync_folder(folder)?;
        self.lock().published.iter_mut().for_each(|(path, may)| *may = vec![fs::read(path).ok()]);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = self.inner.rename(from, to);
        self.may_have(to);
        self.may_be_gone(from);
        renamed
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.inner.remove(path);
        self.may_be_gone(path);
        removed
    }
}

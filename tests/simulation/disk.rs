//! A disk that forgets what was not synced: files are real files in a folder, and beside them is kept what a loss of power would leave.
//!
//! The disk promises what POSIX does: the bytes of a file last from its sync on, and names from the sync of their folder on. What was written
//! since may last, in part or as zeros, as the seed decides. Names change in the order in which they were changed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dps::storage::{self, Storage};

use super::random::Random;
use super::scheduler::Context;

pub struct Disk {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Every file there ever was.
    files: Vec<Bytes>,
    /// Files that there are now, by their number in the file system.
    live: BTreeMap<u64, usize>,
    /// Names that a loss of power leaves.
    names: BTreeMap<PathBuf, usize>,
    /// Changes of names that a loss of power may undo.
    changes: Vec<Change>,
    /// Whether the disk said that names were synced, and did not sync them.
    lied: bool,
}

#[derive(Default, Clone)]
struct Bytes {
    synced: Vec<u8>,
    writes: Vec<Write>,
    /// Whether the disk said that they were synced, and did not sync them.
    lied: bool,
}

#[derive(Clone)]
enum Write {
    Append(Vec<u8>),
    Truncate(usize),
}

enum Change {
    Name(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Bytes {
    fn apply(bytes: &mut Vec<u8>, write: &Write) {
        match write {
            Write::Append(more) => bytes.extend(more),
            Write::Truncate(length) => bytes.resize(*length, 0),
        }
    }

    fn sync(&mut self) {
        self.writes.drain(..).for_each(|write| Bytes::apply(&mut self.synced, &write));
        self.lied = false;
    }

    /// Bytes that a loss of power leaves: some of the writes, and of appended bytes some, or zeros in their place.
    fn survivors(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for write in &self.writes[..random.below(self.writes.len() + 1)] {
            match write {
                Write::Append(more) => {
                    let part = random.below(more.len() + 1);
                    let whole = random.pick(&[more.len(), part, 0]);
                    let length = random.pick(&[more.len(), whole]);
                    let start = bytes.len();
                    bytes.extend(&more[..whole]);
                    bytes.resize(start + length, 0);
                }
                write => Bytes::apply(&mut bytes, write),
            }
        }
        bytes
    }
}

fn change(names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Name(path, file) => drop(names.insert(path.clone(), *file)),
        Change::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Change::Remove(path) => drop(names.remove(path)),
    }
}

impl Disk {
    pub fn new(folder: PathBuf) -> Disk {
        Disk { folder, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves what a loss of power would; no job may run. The lock's file, which is not kept through this, stays or goes. True: something may be lost
    /// of which the disk had said that it was synced.
    pub fn lose_power(&self, random: &mut Random) -> bool {
        let mut state = self.lock();
        let State { files, names, changes, lied, .. } = &mut *state;
        changes[..random.below(changes.len() + 1)].iter().for_each(|one| change(names, one));
        changes.clear();
        let lied = std::mem::take(lied) || names.values().any(|&file| files[file].lied);
        for entry in fs::read_dir(&self.folder).unwrap().flatten() {
            let is_kept_here = !entry.file_name().to_string_lossy().ends_with(".lock");
            if is_kept_here || random.once_in(2) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        let mut live = BTreeMap::new();
        for (path, &file) in &*names {
            let left = files[file].survivors(random);
            fs::write(path, &left).unwrap();
            files[file] = Bytes { synced: left, ..Bytes::default() };
            live.insert(fs::metadata(path).unwrap().ino(), file);
        }
        state.live = live;
        lied
    }

    /// Does an operation, unless it is to fail; it may be done all the same. A thread that is no task's fails never.
    fn unless_it_fails(&self, what: &'static str, done: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match Disk::fault(what) {
            None => done(),
            Some((error, Some(context))) => {
                if context.scheduler.below(2) == 0 {
                    let _ = done();
                }
                Err(error)
            }
            Some((error, None)) => Err(error),
        }
    }

    /// The error that the next operation has, and who can choose how; nobody where the process is dead already.
    fn fault(what: &'static str) -> Option<(io::Error, Option<Context>)> {
        let context = Context::get()?;
        let writes = ["create", "append", "sync", "rename"].contains(&what);
        Some(match context.scheduler.operation(context.me, what, writes)? {
            ErrorKind::StorageFull => (io::Error::from_raw_os_error(28), Some(context)),
            ErrorKind::BrokenPipe => (ErrorKind::BrokenPipe.into(), None),
            _ => (io::Error::from_raw_os_error(5), Some(context)),
        })
    }

    /// Whether the next sync is to be said to be done, and not done.
    fn lies() -> bool {
        Context::get().is_some_and(|Context { scheduler, me }| scheduler.lies(me))
    }

    fn written(&self, file: &File, write: Write) {
        let mut state = self.lock();
        let number = state.number(file);
        state.files[number].writes.push(write);
    }
}

impl State {
    fn number(&self, file: &File) -> usize {
        let inode = file.metadata().unwrap().ino();
        self.live[&inode]
    }
}

impl Storage for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match Disk::fault("read") {
            None => storage::Disk.read(path),
            Some((error, _)) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        if let Some((error, _)) = Disk::fault("create") {
            return Err(error);
        }
        let file = storage::Disk.create(path)?;
        let mut state = self.lock();
        let number = state.files.len();
        state.files.push(Bytes::default());
        state.live.insert(file.metadata()?.ino(), number);
        state.changes.push(Change::Name(path.to_owned(), number));
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        match Disk::fault("open") {
            None => storage::Disk.open(path),
            Some((error, _)) => Err(error),
        }
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let put = |bytes: &[u8]| {
            storage::Disk.append(file, bytes)?;
            self.written(file, Write::Append(bytes.to_vec()));
            Ok(())
        };
        let Some(Context { scheduler, me }) = Context::get() else { return put(bytes) };
        if let Some((error, choice)) = Disk::fault("append") {
            if choice.is_some() {
                put(&bytes[..scheduler.below(bytes.len() + 1)])?;
            }
            return Err(error);
        }
        // The process may be killed in between.
        let (first, rest) = bytes.split_at(scheduler.below(bytes.len() + 1));
        put(first)?;
        scheduler.point(me, "append, the rest");
        put(rest)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.unless_it_fails("truncate", || {
            storage::Disk.truncate(file, length)?;
            self.written(file, Write::Truncate(length as usize));
            Ok(())
        })
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.unless_it_fails("sync", || {
            let mut state = self.lock();
            let number = state.number(file);
            let bytes = &mut state.files[number];
            if !bytes.writes.is_empty() && Disk::lies() {
                bytes.lied = true;
            } else {
                bytes.sync();
            }
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        assert_eq!(folder, self.folder);
        self.unless_it_fails("sync_folder", || {
            let mut state = self.lock();
            let State { names, changes, lied, .. } = &mut *state;
            *lied = !changes.is_empty() && Disk::lies();
            if !*lied {
                changes.drain(..).for_each(|one| change(names, &one));
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.unless_it_fails("rename", || {
            storage::Disk.rename(from, to)?;
            self.lock().changes.push(Change::Rename(from.to_owned(), to.to_owned()));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.unless_it_fails("remove", || {
            storage::Disk.remove(path)?;
            self.lock().changes.push(Change::Remove(path.to_owned()));
            Ok(())
        })
    }
}

//! A storage whose file operations fail where a test wants them to.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dps::storage::Storage;

/// Fault of the call that [`Failing`] lets fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The error returned.
    pub kind: ErrorKind,
    /// Where the call is an append: how many of its bytes, at most, reach the file all the same (a torn write).
    pub written: usize,
    /// How many calls in a row fail; the later ones do nothing. With `u64::MAX` all do, as after a kill.
    pub calls: u64,
}

/// A storage whose call number `at`, counted from 1 over all operations, fails.
#[derive(Debug)]
pub struct Failing<S> {
    inner: S,
    at: u64,
    fault: Fault,
    operations: Mutex<Vec<&'static str>>,
}

impl<S: Storage> Failing<S> {
    /// Passes everything on to `inner` except call number `at`, which goes wrong as `fault` says.
    pub fn new(inner: S, at: u64, fault: Fault) -> Failing<S> {
        Failing { inner, at, fault, operations: Mutex::default() }
    }

    /// The operations so far, by their names in [`Storage`], those that failed too; nothing has failed while they are fewer than `at`.
    pub fn operations(&self) -> Vec<&'static str> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a call; where it is to fail, its number and the error.
    fn call(&self, operation: &'static str) -> Result<(), (u64, io::Error)> {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        operations.push(operation);
        let call = operations.len() as u64;
        let failing = call >= self.at && call - self.at < self.fault.calls;
        if failing { Err((call, self.fault.kind.into())) } else { Ok(()) }
    }

    fn pass(&self, operation: &'static str) -> io::Result<()> {
        self.call(operation).map_err(|(_, error)| error)
    }
}

impl<S: Storage> Storage for Failing<S> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.pass("read")?;
        self.inner.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        self.pass("create")?;
        self.inner.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        self.pass("open")?;
        self.inner.open(path)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        if let Err((call, error)) = self.call("append") {
            if call == self.at {
                self.inner.append(file, bytes.get(..self.fault.written).unwrap_or(bytes))?;
            }
            return Err(error);
        }
        self.inner.append(file, bytes)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.pass("truncate")?;
        self.inner.truncate(file, length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.pass("sync")?;
        self.inner.sync(file)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.pass("sync_folder")?;
        self.inner.sync_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass("rename")?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass("remove")?;
        self.inner.remove(path)
    }
}

//! The journal as a file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::{Contents, Header, Record, beginning, decode, encode, together};
use super::lock::{Lock, check_name};
use super::paths::{journal_path, lock_path};
use super::problem::{OTHER_STUDY, error, explain};
use crate::Result;
use crate::records::Ending;
use crate::settings::{Difference, contradictions};
use crate::storage::{Storage, folder};

/// A study's journal, open for appending. The caller holds the study's [`Lock`].
pub struct Journal {
    path: PathBuf,
    file: File,
    storage: Arc<dyn Storage>,
    /// Bytes of whole records; what the file has beyond them is a failed append's.
    length: u64,
    /// Checksum of the last record.
    last_checksum: u32,
    /// Whether the file may have bytes beyond `length`.
    torn: bool,
}

/// A journal that was opened, and what it says.
pub struct Opened {
    /// The journal, to append to.
    pub journal: Journal,
    /// Records of the file; a torn end is cut off.
    pub contents: Contents,
}

impl Journal {
    /// Opens the journal at `path`, or starts it, with its folder, where there is none (or an empty file).
    ///
    /// A last record that is cut short or damaged is cut off; its bytes are counted in [`Contents::dropped_bytes`].
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): the journal is of another configuration (the differing keys are named), of other data
    /// or of another format; it is damaged before its last record; or the file cannot be read or written. The file is then unchanged.
    pub fn open(path: &Path, header: &Header, storage: Arc<dyn Storage>) -> Result<Opened> {
        let mut bytes = bytes(path, &*storage)?;
        let is_new = bytes.is_empty();
        if is_new {
            (bytes, _) = beginning(header).map_err(|problem| error(path, problem))?;
        }
        let (contents, last_checksum) = decode(&bytes).map_err(|problem| error(path, problem))?;
        same_study(&contents.header, header).map_err(|problem| error(path, problem))?;
        if is_new {
            storage.publish(path, &bytes).map_err(|cause| explain(path, "the journal could not be started", &cause))?;
        } else {
            // A run that was killed between giving the journal its name and syncing the folder left a name that may not be on the disk.
            storage.sync_folder(folder(path)).map_err(|cause| explain(path, "the journal's name could not be made durable", &cause))?;
        }
        let journal = Journal::at(path, &bytes, &contents, last_checksum, storage)?;
        Ok(Opened { journal, contents })
    }

    /// Starts the journal at `path`, where there is none, with records that are known: all of them are found there or none.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal).
    pub fn begin(path: &Path, header: &Header, records: &[Record], storage: &dyn Storage) -> Result<()> {
        let encoded = beginning(header).and_then(|(mut bytes, checksum)| {
            let (records, _) = encode(&together(records)?, checksum)?;
            bytes.extend(records);
            Ok(bytes)
        });
        let bytes = encoded.map_err(|problem| error(path, problem))?;
        storage.publish(path, &bytes).map_err(|cause| explain(path, "the journal could not be started", &cause))
    }

    /// The journal at `path`, whose `bytes` say `contents`.
    fn at(path: &Path, bytes: &[u8], contents: &Contents, last_checksum: u32, storage: Arc<dyn Storage>) -> Result<Journal> {
        let failed = |cause: io::Error| explain(path, "the journal could not be opened for appending", &cause);
        let file = storage.open(path).map_err(failed)?;
        let (length, torn) = (bytes.len() as u64 - contents.dropped_bytes, contents.dropped_bytes > 0);
        let mut journal = Journal { path: path.to_owned(), file, storage, length, last_checksum, torn };
        journal.mend().map_err(failed)?;
        // A run that was killed between writing its last record and syncing it left one that is read but may not be on the disk.
        journal.storage.sync(&journal.file).map_err(failed)?;
        Ok(journal)
    }

    /// Notes how the last start of the study of the result file at `result` ended, by the exit code that whoever started it saw: of a signal's death
    /// 128 and its number. A study that was finished or stopped says so itself. Where there is no journal, nothing is done.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): another job holds the lock; or the journal is damaged, or cannot be read or written.
    pub fn note_end(result: &Path, code: u8, storage: Arc<dyn Storage>) -> Result<()> {
        let ending = Ending::of_code(code);
        let path = journal_path(result);
        if matches!(ending, Ending::Finished | Ending::Stopped) || !path.exists() {
            return Ok(());
        }
        let _lock = Lock::take(&lock_path(result))?;
        let bytes = bytes(&path, &*storage)?;
        let (contents, last_checksum) = decode(&bytes).map_err(|problem| error(&path, problem))?;
        // An ending noted already stays: a second one without a start between is of a command that failed before a start. A noted stop gives way:
        // ranks note one where their launcher was killed, and the launcher's exit code says more.
        if !matches!(contents.ended, None | Some(Ending::Stopped)) {
            return Ok(());
        }
        Journal::at(&path, &bytes, &contents, last_checksum, storage)?.append(&[Record::End(ending)])
    }

    /// Reads the journal at `path`, if there is one. Nothing is changed, so the journal of a running study can be read too: a record that is being
    /// appended then counts as [`Contents::dropped_bytes`].
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): it is no journal, is damaged before its last record, or cannot be read.
    pub fn read(path: &Path, storage: &dyn Storage) -> Result<Option<Contents>> {
        let bytes = bytes(path, storage)?;
        if bytes.is_empty() { Ok(None) } else { decode(&bytes).map(|(contents, _)| Some(contents)).map_err(|problem| error(path, problem)) }
    }

    /// Checks that the file still has its name: records of a file without one are lost with this process.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): the file is gone, or is another one.
    pub fn check(&self) -> Result<()> {
        let advice = "what this run recorded is gone but for what the result file has, from which dps-train RESULT.h5 goes on";
        check_name(&self.path, &self.file, "the journal that this job writes", advice)
    }

    /// Adds records, and returns once they are on the disk itself.
    ///
    /// # Errors
    /// [`Error::Journal`](crate::Error::Journal): all of the records or none may be found when the journal is next opened; all before them will. The
    /// journal can still be appended to, once there is space.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        let encoded = match records {
            [] => return Ok(()),
            [one] => encode(one, self.last_checksum),
            many => together(many).and_then(|record| encode(&record, self.last_checksum)),
        };
        let (bytes, last_checksum) = encoded.map_err(|problem| error(&self.path, problem))?;
        let written = self.mend().and_then(|()| {
            self.torn = true;
            self.storage.append(&self.file, &bytes)?;
            self.storage.sync(&self.file)
        });
        let Err(cause) = written else {
            self.length += bytes.len() as u64;
            self.last_checksum = last_checksum;
            self.torn = false;
            return Ok(());
        };
        let what = match self.mend() {
            Ok(()) => "a record could not be appended and was taken back",
            Err(_) => "a record could not be appended, and its torn end could not be cut off, which the next run will do",
        };
        Err(explain(&self.path, what, &cause))
    }

    /// Cuts off what is beyond the whole records.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.storage.truncate(&self.file, self.length)?;
            self.storage.sync(&self.file)?;
            self.torn = false;
        }
        Ok(())
    }
}

/// The file's bytes, none where there is no file.
fn bytes(path: &Path, storage: &dyn Storage) -> Result<Vec<u8>> {
    match storage.read(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|cause| explain(path, "the journal could not be read", &cause)),
    }
}

/// Differing keys that a sentence names; of more it has the number.
const MOST_NAMED: usize = 6;

/// Keys in which the configuration that a journal or a result file keeps, which is called `what`, contradicts this run's, as half a sentence.
pub fn other_configuration(what: &str, kept: &Header, now: &Header) -> Option<String> {
    let found: (Option<toml::Table>, Option<toml::Table>) = (kept.configuration.parse().ok(), now.configuration.parse().ok());
    let differences = if let (Some(old), Some(new)) = found { contradictions(&old, &new) } else { Vec::new() };
    if kept.digest == now.digest && differences.is_empty() {
        return None;
    }
    let words = |difference: &Difference| difference.between(what, "configuration");
    let mut named: Vec<String> = differences.iter().take(MOST_NAMED).map(words).collect();
    if differences.is_empty() {
        named.push(format!("digest: {what} has {}, configuration has {}", kept.digest, now.digest));
    }
    if differences.len() > MOST_NAMED {
        named.push(format!("and {} other keys", differences.len() - MOST_NAMED));
    }
    Some(format!("the {what} is of another configuration ({})", named.join("; ")))
}

/// Nothing, or in one sentence why the journal is not this study's.
fn same_study(journal: &Header, now: &Header) -> std::result::Result<(), String> {
    if let Some(difference) = other_configuration("journal", journal, now) {
        return Err(format!("{difference}: restore the configuration, {OTHER_STUDY}"));
    }
    if journal.data_digest != now.data_digest && journal.data_digest != now.earlier_data_digest {
        return Err(format!(
            "the journal is of other data (journal has {}, the data files have {}): restore the data files, {OTHER_STUDY}",
            journal.data_digest, now.data_digest
        ));
    }
    Ok(())
}

//! Rank 0's files: the lock, the journal, the checkpoint and the results of a study.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run::Past;
use super::{Cell, CellKey, Trial};
use crate::config::Loaded;
use crate::data::Dataset;
use crate::journal::{self, Checkpoint, Header, Journal, Lock, Opened, Record};
use crate::results::{self, Results};
use crate::storage::Storage;
use crate::training::CellState;
use crate::version::{COMMIT, VERSION};
use crate::{Error, Result};

/// Everything a study keeps on disk while it runs.
pub(super) struct Keeper {
    journal: Journal,
    checkpoint: PathBuf,
    output: PathBuf,
    storage: Arc<dyn Storage>,
    digest: String,
    data_digest: String,
    /// Held until the study ends.
    _lock: Lock,
}

impl Keeper {
    /// Opens the files beside `output`, or starts them; `fresh` moves those of an earlier study aside. What a person should know besides goes
    /// to `tell`.
    pub(super) fn open(
        loaded: &Loaded,
        dataset: &Dataset,
        output: &Path,
        storage: Arc<dyn Storage>,
        fresh: bool,
        now: &str,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Keeper, Past)> {
        let lock = Lock::take(&journal::lock_path(output))?;
        if fresh {
            for (from, to) in journal::set_aside(output, &*storage)? {
                tell(&format!("moved {} to {}", from.display(), to.display()));
            }
        }
        let path = journal::journal_path(output);
        if output.exists() && !path.exists() {
            return Err(Error::Journal {
                path: output.into(),
                problem: format!(
                    "expected no such file, or the journal {} beside it, found the file alone; choose another --output, or --fresh to move it aside",
                    path.display()
                ),
            });
        }
        let header = Header {
            configuration: loaded.text.clone(),
            digest: loaded.digest.clone(),
            data_digest: dataset.digest.clone(),
            program_version: VERSION.into(),
            commit: COMMIT.into(),
            started: now.into(),
        };
        let begun = path.exists();
        let Opened { mut journal, contents } = Journal::open(&path, &header, storage.clone())?;
        if begun {
            journal.append(&[Record::Restart { started: now.into() }])?;
        }
        if contents.dropped_bytes > 0 {
            tell(&format!("{}: cut off {} bytes of a record that was never whole", path.display(), contents.dropped_bytes));
        }
        let checkpoint = journal::checkpoint_path(output);
        let left = match journal::load(&checkpoint, &loaded.digest, &dataset.digest, &*storage)? {
            journal::Loaded::Absent => None,
            journal::Loaded::Checkpoint(found) => Some((CellKey { batch_size: found.batch_size, sparsity: found.sparsity }, found.state)),
            journal::Loaded::Damaged(sentence) => {
                tell(&sentence);
                None
            }
        };
        let past = Past {
            finished: contents.finished,
            partial: contents.partial,
            scores: contents.scores,
            left,
            started: contents.header.started,
        };
        let (digest, data_digest) = (loaded.digest.clone(), dataset.digest.clone());
        Ok((Keeper { journal, checkpoint, output: output.into(), storage, digest, data_digest, _lock: lock }, past))
    }

    /// A seed's connections are scored.
    pub(super) fn scored(&mut self, seed: u64, values: &[f32]) -> Result<()> {
        self.journal.append(&[Record::Scores { seed, values: values.to_vec() }])
    }

    /// A trial has ended before its cell.
    pub(super) fn ended(&mut self, key: CellKey, trial: &Trial) -> Result<()> {
        self.journal.append(&[record(key, trial)])
    }

    /// A cell is measured; its checkpoint is of no more use.
    pub(super) fn finished(&mut self, cell: &Cell) -> Result<()> {
        let CellKey { batch_size, sparsity } = cell.key;
        let mut records: Vec<Record> = cell.trials.iter().map(|trial| record(cell.key, trial)).collect();
        records.push(Record::Cell { batch_size, sparsity, test_errors: cell.test_errors, seconds: cell.seconds });
        self.journal.append(&records)?;
        // A checkpoint that cannot be removed is of a finished cell, which is never asked for.
        let _ = self.storage.remove(&self.checkpoint);
        Ok(())
    }

    /// A cell can go on from here.
    pub(super) fn checkpoint(&mut self, key: CellKey, state: CellState) -> Result<()> {
        let CellKey { batch_size, sparsity } = key;
        let checkpoint = Checkpoint { digest: self.digest.clone(), data_digest: self.data_digest.clone(), batch_size, sparsity, state };
        journal::save(&self.checkpoint, &checkpoint, &*self.storage)
    }

    /// What there is so far, for others to read.
    pub(super) fn publish(&self, results: &Results) -> Result<()> {
        results::write_through(&*self.storage, &self.output, results)
    }
}

fn record(key: CellKey, trial: &Trial) -> Record {
    Record::Trial { batch_size: key.batch_size, sparsity: key.sparsity, trial: trial.clone() }
}

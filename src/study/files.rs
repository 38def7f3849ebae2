//! Rank 0's files: the lock, the journal, the checkpoint and the results of a study.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::beginning::Beginning;
use super::check::check_length;
use super::place::Place;
use super::possible::Possible;
use super::surroundings::{Started, Surroundings};
use crate::config::{self, Configuration, Study};
use crate::data::Dataset;
use crate::error::short;
use crate::journal::{self, Checkpoint, Header, Journal, Lock, Opened, Partial, Record};
use crate::network::Network;
use crate::progress::Event;
use crate::records::{Cell, CellKey, Confirmation, Ending, MaskRecord, Start, Training, Trial, cells};
use crate::results::{self, Results};
use crate::storage::Storage;
use crate::training::{CellState, Scored};
use crate::version::{COMMIT, VERSION};
use crate::{Error, Result, signals};

/// Everything a study keeps on disk while it runs.
pub(super) struct Files {
    journal: Journal,
    checkpoint: PathBuf,
    output: PathBuf,
    storage: Arc<dyn Storage>,
    surroundings: Surroundings,
    digest: String,
    data_digest: String,
    /// Writes a checkpoint while the study goes on; how long that took.
    writer: Option<Box<dyn Started>>,
    /// How long the last checkpoint took to write.
    writing: Duration,
    /// Held until the study ends.
    lock: Lock,
}

/// What rank 0 found on disk, for all ranks.
#[derive(Serialize, Deserialize)]
pub(super) struct Restored {
    /// Digest of the data, as the study was begun with it.
    pub data_digest: String,
    /// Cells that are measured.
    pub finished: Vec<Cell>,
    /// Other cells that have trials.
    pub partial: Vec<Partial>,
    /// Scores of connections, by seed.
    pub scores: BTreeMap<u64, Vec<f32>>,
    /// Masks of criteria whose masks depend on the sparsity.
    pub masks: Vec<MaskRecord>,
    /// The checkpoint.
    pub left: Option<Checkpoint>,
    /// Version and commit of the program that started the study.
    pub begun_by: (String, String),
    /// Start of the study, and every start of it, this one among them.
    pub started: String,
    pub starts: Vec<Start>,
    /// The study's configuration as TOML: this run's, with the cells, trials and confirmations of earlier runs.
    pub configuration: String,
}

impl Files {
    /// Opens the files beside `output`, or starts them. What a person should know besides goes to `tell`.
    pub(super) fn open(
        configuration: &Configuration,
        dataset: &Dataset,
        network: &Network,
        output: &Path,
        place: &Place,
        beginning: Beginning,
        tell: &mut dyn FnMut(Event),
    ) -> Result<(Files, Restored)> {
        let (storage, surroundings) = (place.storage.clone(), place.surroundings);
        if let Some(other) = journal::namesake(output) {
            return Err(Error::Journal {
                path: output.into(),
                problem: format!(
                    "expected a result file with a journal of its own, found {} beside it, which has the same one; choose another --output",
                    other.display()
                ),
            });
        }
        if output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let example = output.join("study.h5");
            let problem =
                format!("expected a result file, found a folder; give --output the name of a file, such as {}", example.display());
            return Err(Error::Journal { path: output.into(), problem });
        }
        let lock = Lock::take(&journal::lock_path(output))?;
        if beginning == Beginning::Fresh {
            for (from, to) in journal::set_aside(output, &*storage)? {
                tell(Event::Note { line: &format!("moved {} to {}", from.display(), to.display()) });
            }
        }
        let path = journal::journal_path(output);
        let from = if let Beginning::Results(from) = beginning { Some(from) } else { None };
        if output.exists() && !path.exists() && from.is_none_or(|from| !journal::overwrites(output, from)) {
            return Err(Error::Journal {
                path: output.into(),
                problem: format!(
                    "expected no such file, or the journal {} beside it, found the file alone; choose another --output, or --fresh to move it aside; \
                     \"dps-train confirm\" goes on from a result file alone",
                    path.display()
                ),
            });
        }
        let header = Header {
            configuration: configuration.text.clone(),
            digest: configuration.digest.clone(),
            data_digest: dataset.digest.clone(),
            earlier_data_digest: dataset.particulars.earlier_digest.clone(),
            program_version: VERSION.into(),
            commit: COMMIT.into(),
            started: now(),
        };
        if let Some(from) = from.filter(|_| !path.exists()) {
            let apart = (!journal::overwrites(output, from)).then_some(&configuration.study);
            adopt(from, &header, apart, &path, &*storage)?;
        }
        let begun = path.exists();
        let Opened { mut journal, mut contents } = Journal::open(&path, &header, storage.clone())?;
        let Grown { trials: most, trials_before, text } = grown(configuration, &contents.header.configuration);
        if most > configuration.study.grid.trials {
            let line = format!(
                "the study has {most} trials a cell since an earlier run, so {} are no fewer; choose another --output for a study of its own",
                configuration.study.grid.trials
            );
            tell(Event::Note { line: &line });
        }
        let whole = match &text {
            Some(text) => {
                check_length(configuration, text)?;
                config::parse("the configuration with the batch sizes, sparsities, trials and confirmations of earlier runs", text, &[])?
                    .study
            }
            None => configuration.study.clone(),
        };
        let possible = Possible::new(&whole, network, dataset.validation.len(), dataset.test.len());
        possible.journal(&contents).map_err(|problem| {
            let advice = "restore the file from a copy, choose another result file, or start over with --fresh";
            Error::Journal { path: path.clone(), problem: format!("{problem}: {advice}") }
        })?;
        if begun {
            let changed = text.clone().filter(|text| *text != contents.header.configuration);
            // Trials that have ended may be cut short by new ones.
            let gets_more = |partial: &&Partial| most > trials_before && !partial.trials.is_empty();
            let mut records: Vec<Record> = contents.partial.iter().filter(gets_more).map(|partial| extension(partial.key)).collect();
            records.push(Record::Restart { started: now(), configuration: changed });
            journal.append(&records)?;
            let (number, before) = (contents.restarts() + 1, contents.ended.unwrap_or_default());
            contents.starts.push(Start { number, before, ..Start::default() });
        }
        if contents.dropped_bytes > 0 {
            let line = &format!("{}: cut off {} bytes of a record that was never whole", path.display(), contents.dropped_bytes);
            tell(Event::Note { line });
        }
        let checkpoint = journal::checkpoint_path(output);
        let left = match journal::load(&checkpoint, &configuration.digest, &contents.header.data_digest, &*storage)? {
            journal::Loaded::Absent => None,
            journal::Loaded::Checkpoint(found) => match possible.checkpoint(&found) {
                Ok(()) => Some(found),
                Err(problem) => {
                    let line = format!("the checkpoint cannot be of this study ({problem}): its cell's unfinished trials start again");
                    tell(Event::Lost { line: &format!("{}: {line}", checkpoint.display()) });
                    None
                }
            },
            journal::Loaded::Damaged(sentence) => {
                tell(Event::Lost { line: &sentence });
                None
            }
        };
        if let Some(left) = left.as_ref().filter(|left| !cells(&configuration.study.grid).contains(&left.key())) {
            let line = "which the next checkpoint writes over: to keep it, measure that cell too";
            tell(Event::Lost { line: &format!("{} was left at step {}, {line}", left.key(), left.state.step) });
        }
        let data_digest = contents.header.data_digest;
        let restored = Restored {
            data_digest: data_digest.clone(),
            finished: contents.finished,
            partial: contents.partial,
            scores: contents.scores,
            masks: contents.masks,
            left,
            begun_by: (contents.header.program_version, contents.header.commit),
            started: contents.header.started,
            starts: contents.starts,
            configuration: text.unwrap_or_else(|| configuration.text.clone()),
        };
        let files = Files {
            journal,
            checkpoint,
            output: output.into(),
            storage,
            surroundings,
            digest: configuration.digest.clone(),
            data_digest,
            writer: None,
            writing: Duration::ZERO,
            lock,
        };
        Ok((files, restored))
    }

    /// Records what this start is, which is the last of `starts`, and returns them all.
    pub(super) fn start(&mut self, start: Start, mut starts: Vec<Start>) -> Result<Vec<Start>> {
        let (number, before) = starts.pop().map_or((0, Ending::First), |known| (known.number, known.before));
        let start = Start { number, before, ..start };
        self.journal.append(&[Record::Start(start.clone())])?;
        starts.push(start);
        Ok(starts)
    }

    /// Some seeds' connections are scored.
    pub(super) fn scored(&mut self, fresh: &[Scored]) -> Result<()> {
        let record = |scored: &Scored| match scored.clone() {
            Scored::Scores { seed, values } => Record::Scores { seed, values },
            Scored::Mask(mask) => Record::Mask(mask),
        };
        self.journal.append(&fresh.iter().map(record).collect::<Vec<_>>())
    }

    /// A finished cell gets more trials.
    pub(super) fn extended(&mut self, key: CellKey) -> Result<()> {
        self.journal.append(&[extension(key)])
    }

    /// A trial has ended before its cell.
    pub(super) fn ended(&mut self, key: CellKey, trial: &Trial) -> Result<()> {
        self.journal.append(&[record(key, trial)])
    }

    /// A training that confirms a point has ended.
    pub(super) fn confirmation(&mut self, key: CellKey, confirmation: Confirmation) -> Result<()> {
        self.journal.append(&[Record::Confirmation { key, confirmation }])
    }

    /// A cell is confirmed, by these too; its checkpoint is of no more use.
    pub(super) fn confirmed(&mut self, key: CellKey, confirmations: Vec<Confirmation>) -> Result<()> {
        let record = |confirmation: Confirmation| Record::Confirmation { key, confirmation };
        self.journal.append(&confirmations.into_iter().map(record).collect::<Vec<_>>())?;
        self.remove_checkpoint()
    }

    /// The trials of a cell are measured; its checkpoint is of no more use.
    pub(super) fn finished(&mut self, cell: &Cell) -> Result<()> {
        self.journal.append(&of_cell(cell))?;
        self.remove_checkpoint()
    }

    fn remove_checkpoint(&mut self) -> Result<()> {
        self.wait()?;
        // A checkpoint that cannot be removed is of trials that have ended, which is never asked for.
        let _ = self.storage.remove(&self.checkpoint);
        Ok(())
    }

    /// Whether a checkpoint can be written without waiting for the last one, and without writing all the time: `since` is the time since the last
    /// one.
    pub(super) fn is_idle(&self, since: Duration) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.is_finished()) && since >= self.writing
    }

    /// A cell can go on from here. The file is written while the study goes on; where `wait`, it is on the disk once this returns. An error of the
    /// one before is this one's.
    pub(super) fn checkpoint(&mut self, key: CellKey, confirming: Option<Vec<Training>>, state: CellState, wait: bool) -> Result<()> {
        self.wait()?;
        self.lock.check()?;
        let CellKey { batch_size, sparsity } = key;
        let phase = if confirming.is_some() { "the confirmation of " } else { "" };
        let what = format!("step {} of {phase}batch size {batch_size}, sparsity {sparsity}", state.step);
        let (digest, data_digest) = (self.digest.clone(), self.data_digest.clone());
        let checkpoint = Checkpoint { digest, data_digest, batch_size, sparsity, confirming, state };
        let work = Arc::new((self.checkpoint.clone(), self.storage.clone(), checkpoint, what));
        let now = self.surroundings.now;
        let write = move |work: &(PathBuf, Arc<dyn Storage>, Checkpoint, String)| {
            let (path, storage, checkpoint, what) = work;
            let begun = now();
            journal::save(path, checkpoint, &**storage)?;
            signals::saved(what.clone());
            Ok(now().saturating_duration_since(begun))
        };
        if !wait {
            let theirs = work.clone();
            self.writer = (self.surroundings.start)(Box::new(move || write(&theirs))).ok();
        }
        if self.writer.is_none() {
            // The caller waits for it, or no thread could be started.
            self.writing = write(&work)?;
        }
        Ok(())
    }

    /// Returns once the checkpoint under way is on the disk, or why it is not.
    pub(super) fn wait(&mut self) -> Result<()> {
        match self.writer.take().map(Started::join) {
            None => {}
            Some(Ok(written)) => self.writing = written?,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
        Ok(())
    }

    /// The run ends. Where that cannot be written, the next start does not know how this one ended.
    pub(super) fn end(&mut self, ending: Ending) {
        let _ = self.journal.append(&[Record::End(ending)]);
    }

    /// Writes the result file with what is measured so far.
    pub(super) fn publish(&self, results: &Results) -> Result<()> {
        self.lock.check()?;
        results::write_through(&*self.storage, &self.output, results)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Before the lock is let go.
        let _ = self.wait();
    }
}

fn record(key: CellKey, trial: &Trial) -> Record {
    Record::Trial { batch_size: key.batch_size, sparsity: key.sparsity, trial: trial.clone() }
}

fn extension(CellKey { batch_size, sparsity }: CellKey) -> Record {
    Record::Extension { batch_size, sparsity }
}

/// Letters of a host or a program that a start of a result file without starts gets: their bytes fit a table's text.
const LONGEST_NAME: usize = 60;

/// Starts the journal at `path` with what the result file at `from` has, which is to be of the data of this run's header. Where another file is
/// written, of the study `apart`, confirmations of another kind than that asks for are left out: the file they are in keeps them.
fn adopt(
    from: &Path,
    Header { data_digest, earlier_data_digest, .. }: &Header,
    apart: Option<&Study>,
    path: &Path,
    storage: &dyn Storage,
) -> Result<()> {
    let mut results = results::read(from)?;
    let environment = results.environment;
    if ![data_digest, earlier_data_digest].contains(&&environment.data_digest) {
        let found = environment.data_digest;
        let problem = format!("it is of other data (SHA-256 {found}; the data files have {data_digest}): name its data with --data");
        return Err(Error::Results { path: from.to_owned(), problem });
    }
    let mut configuration = config::parse(&from.display().to_string(), &results.configuration, &[])?;
    let is_of_confirmations = |difference: &config::Difference| difference.key.starts_with("confirm.");
    if apart.is_some_and(|study| config::contradictions(&configuration.study, study).iter().any(is_of_confirmations)) {
        configuration.study.confirm = None;
        configuration.text = config::canonical(&configuration.study)?;
        results.cells.iter_mut().for_each(|cell| cell.confirmations.clear());
    }
    let header = Header {
        configuration: configuration.text,
        digest: configuration.digest,
        data_digest: environment.data_digest,
        earlier_data_digest: String::new(),
        program_version: environment.program_version,
        commit: environment.commit,
        started: environment.started.clone(),
    };
    let mut records = Vec::new();
    // A program that did not record starts was itself started once at least.
    let unknown = Start {
        ranks: environment.ranks,
        threads: environment.threads,
        host_names: short(&environment.host, LONGEST_NAME),
        program: short(&format!("{} {}", header.program_version, header.commit), LONGEST_NAME),
        ..journal::bare_start(&header.started, 0, Ending::First)
    };
    let starts = if environment.starts.is_empty() { vec![unknown] } else { environment.starts };
    for (number, start) in starts.into_iter().enumerate() {
        if number > 0 {
            records.push(Record::Restart { started: environment.started.clone(), configuration: None });
        }
        records.push(Record::Start(start));
    }
    for cell in &results.cells {
        records.extend(of_cell(cell));
        let of = |confirmation: &Confirmation| Record::Confirmation { key: cell.key, confirmation: confirmation.clone() };
        records.extend(cell.confirmations.iter().map(of));
    }
    Journal::begin(path, &header, &records, storage)
}

/// The records of a cell's trials and of its end.
fn of_cell(cell: &Cell) -> Vec<Record> {
    let CellKey { batch_size, sparsity } = cell.key;
    let mut records: Vec<Record> = cell.trials.iter().map(|trial| record(cell.key, trial)).collect();
    let trials = cell.trials.len() as u32;
    records.push(Record::Cell { batch_size, sparsity, trials, test_errors: cell.test_errors, seconds: cell.seconds });
    records
}

/// A study that may have got more cells, trials or confirmations.
struct Grown {
    /// Trials a cell, now and in the run before.
    trials: u32,
    trials_before: u32,
    /// The configuration as TOML.
    text: Option<String>,
}

/// The study with the cells, trials and confirmations of both `configuration` and the journal's configuration `before`.
fn grown(configuration: &Configuration, before: &str) -> Grown {
    let mut study = configuration.study.clone();
    let mut trials_before = study.grid.trials;
    if let Ok(before) = config::parse("the journal's configuration", before, &[])
        && (&before.study.grid, &before.study.confirm) != (&study.grid, &study.confirm)
    {
        trials_before = before.study.grid.trials;
        study.join(&before.study);
    }
    Grown { trials: study.grid.trials, trials_before, text: config::canonical(&study).ok() }
}

/// This moment, ISO 8601 in UTC.
pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

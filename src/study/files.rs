//! Rank 0's files: the lock, the journal, the checkpoint and the results of a study.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::check::check_length;
use super::place::{Place, Started, Surroundings};
use super::possible::Possible;
use crate::data::Dataset;
use crate::error::short;
use crate::journal::{self, Checkpoint, Contents, Header, Journal, Lock, Opened, Record};
use crate::network::Network;
use crate::progress::Event;
use crate::readable::moment;
use crate::records::{Cell, CellKey, Confirmation, Ending, Start, Training, Trial, Wanted, cells, keep_wanted};
use crate::results::{self, Results};
use crate::settings::{self, Configuration, Study};
use crate::storage::Storage;
use crate::training::{CellState, Scored};
use crate::version::{COMMIT, VERSION};
use crate::{Error, Result, signals};

/// The measurements that a run begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning<'a> {
    /// The journal of an earlier run, if there was one.
    Journal,
    /// No measurements: the files of an earlier run are moved aside.
    Fresh,
    /// The cells of a result file, where no earlier run left a journal.
    Results(&'a Path),
    /// The cells of a result file, where no earlier run left a journal. They are confirmed, and no other cells are measured.
    Confirmed(&'a Path),
}

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
    /// Cells of the result file that the journal has not as finished ones: they get more trials, or lack trials between others. The result file keeps
    /// each until the cell is measured.
    held: Vec<Cell>,
    /// Held until the study ends.
    lock: Lock,
}

/// Contents of a study's files as rank 0 found them, for all ranks.
#[derive(Serialize, Deserialize)]
pub(super) struct Restored {
    /// Contents of the journal. The configuration is this run's, with the cells, trials and confirmations of earlier runs.
    pub contents: Contents,
    /// The checkpoint.
    pub left: Option<Checkpoint>,
    /// Confirmations of the result file, which has whole rounds of them alone.
    pub whole_rounds: Vec<(CellKey, Vec<Confirmation>)>,
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
        check_name(output)?;
        let lock = Lock::take(&journal::lock_path(output))?;
        if beginning == Beginning::Fresh {
            for (from, to) in journal::set_aside(output, &*storage)? {
                tell(Event::Note(&format!("moved {} to {}", from.display(), to.display())));
            }
        }
        let path = journal::journal_path(output);
        // An empty journal counts as none.
        let is_begun = || std::fs::metadata(&path).is_ok_and(|found| found.len() > 0);
        let from = match beginning {
            Beginning::Results(from) | Beginning::Confirmed(from) => Some(from),
            Beginning::Journal | Beginning::Fresh => None,
        };
        if output.exists() && !is_begun() && from.is_none_or(|from| !journal::overwrites(output, from)) {
            return Err(alone(output, &path, beginning));
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
        let mut unreadable = None;
        let mut held = match from {
            _ if is_begun() => match results::read(output) {
                Ok(results) => results.cells,
                Err(cause) => {
                    unreadable = output.exists().then(|| cause.to_string());
                    Vec::new()
                }
            },
            Some(from) => {
                let apart = (!journal::overwrites(output, from)).then_some(&configuration.study);
                adopt(from, &header, apart, &path, &*storage)?
            }
            None => Vec::new(),
        };
        let begun = is_begun();
        let Opened { mut journal, mut contents } = Journal::open(&path, &header, storage.clone())?;
        let (grown, trials_before) = grown(configuration, &contents.header.configuration)?;
        let Configuration { study: whole, text, .. } = grown.as_ref().unwrap_or(configuration);
        let most = whole.grid.trials;
        tell_of_growth(&configuration.study, whole, tell);
        let possible = Possible::new(whole, network, dataset.validation.len(), dataset.test.len());
        possible.journal(&contents).map_err(|problem| {
            let advice = "restore the file from a copy, choose another result file, or start over with --fresh";
            Error::Journal { path: path.clone(), problem: format!("{problem}: {advice}") }
        })?;
        if begun {
            let changed = (*text != contents.header.configuration).then(|| text.clone());
            journal.append(&of_restart(&contents, most > trials_before, changed))?;
            let (number, before) = (contents.restarts() + 1, contents.ended.unwrap_or_default());
            contents.starts.push(Start { number, before, ..Start::default() });
        }
        let unknown = unknown(&contents, &held).map(|lost| {
            let advice = "which dps-train merge puts together with what is measured now";
            (format!("{} has {lost}, of which the journal beside it knows nothing", output.display()), advice)
        });
        let impossible = held.iter().find_map(|cell| possible.confirmations(&cell.confirmations).err());
        unreadable = unreadable.or(impossible.map(|problem| format!("{}: {problem}", output.display())));
        if let Some((problem, advice)) = unknown.or(unreadable.map(|cause| (cause, "and written anew with what the journal has"))) {
            held.clear();
            for (_, to) in journal::set_result_aside(output, &*storage)? {
                tell(Event::Lost(&format!("{problem}: moved to {}, {advice}", to.display())));
            }
        }
        let whole_rounds = held.iter().map(|cell| (cell.key, cell.confirmations.clone())).collect();
        held.retain(|cell| contents.finished.iter().all(|finished| finished.key != cell.key));
        if contents.dropped_bytes > 0 {
            let line = &format!("{}: cut off {} bytes of a record that was never whole", path.display(), contents.dropped_bytes);
            tell(Event::Note(line));
        }
        let checkpoint = journal::checkpoint_path(output);
        let loaded = journal::load(&checkpoint, &configuration.digest, &contents.header.data_digest, &*storage)?;
        let left = usable(loaded, &checkpoint, &possible, tell);
        if let Some(left) = left.as_ref().filter(|left| !cells(&configuration.study.grid).contains(&left.key)) {
            let line = "which the next checkpoint writes over: to keep it, measure that cell too";
            tell(Event::Lost(&format!("{} was left at step {}, {line}", left.key, left.state.step)));
        }
        let data_digest = contents.header.data_digest.clone();
        contents.header.configuration = text.clone();
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
            held,
            lock,
        };
        Ok((files, Restored { contents, left, whole_rounds }))
    }

    /// Records what this start is, which is the last of `starts`.
    pub(super) fn start(&mut self, start: Start, starts: &mut Vec<Start>) -> Result<()> {
        let (number, before) = starts.pop().map_or((0, Ending::First), |known| (known.number, known.before));
        let start = Start { number, before, ..start };
        starts.push(start.clone());
        self.journal.append(&[Record::Start(start)])
    }

    /// Some seeds' connections are scored.
    pub(super) fn scored(&mut self, fresh: &[Scored]) -> Result<()> {
        let record = |scored: &Scored| match scored.clone() {
            Scored::Scores { seed, values } => Record::Scores { seed, values },
            Scored::Mask(mask) => Record::Mask(mask),
        };
        self.journal.append(&fresh.iter().map(record).collect::<Vec<_>>())
    }

    /// Journals that a finished cell gets more trials, or that a trial or a confirmation has ended before its cell.
    pub(super) fn record(&mut self, record: Record) -> Result<()> {
        self.journal.append(&[record])
    }

    /// A cell is confirmed, by these too; its checkpoint is of no more use.
    pub(super) fn confirmed(&mut self, key: CellKey, confirmations: Vec<Confirmation>) -> Result<()> {
        let record = |confirmation: Confirmation| Record::Confirmation { key, confirmation };
        self.journal.append(&confirmations.into_iter().map(record).collect::<Vec<_>>())?;
        self.remove_checkpoint()
    }

    /// The trials of a cell are measured, of which the journal has `journaled`; its checkpoint is of no more use.
    pub(super) fn finished(&mut self, cell: &Cell, journaled: &[Trial]) -> Result<()> {
        self.journal.append(&of_cell(cell, journaled))?;
        self.remove_checkpoint()
    }

    fn remove_checkpoint(&mut self) -> Result<()> {
        self.wait()?;
        // An error is ignored: a checkpoint that stays on the disk is of trials that have ended, and no run goes on from it.
        let _ = self.storage.remove(&self.checkpoint);
        Ok(())
    }

    /// Whether a checkpoint can be written without waiting for the last one, and without writing all the time: `since` is the time since the last
    /// one.
    pub(super) fn is_idle(&self, since: Duration) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.is_finished()) && since >= self.writing
    }

    /// Writes a checkpoint of a cell: in a thread while the study goes on, or, where `wait`, before this function returns. An error of the checkpoint
    /// before is returned here too.
    pub(super) fn checkpoint(&mut self, key: CellKey, confirming: Option<Vec<Training>>, state: CellState, wait: bool) -> Result<()> {
        self.wait()?;
        self.lock.check()?;
        if wait {
            // The study stops: the next start goes on from the journal. One that goes on without a journal still writes its result file.
            self.journal.check()?;
        }
        let phase = if confirming.is_some() { "the confirmation of " } else { "" };
        let what = format!("step {} of {phase}{key}", state.step);
        let (digest, data_digest) = (self.digest.clone(), self.data_digest.clone());
        let checkpoint = Checkpoint { digest, data_digest, key, confirming, state };
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
        let is_held = |cell: &&Cell| results.cells.iter().all(|measured| measured.key != cell.key);
        let held: Vec<Cell> = self.held.iter().filter(is_held).cloned().collect();
        let with_held = (!held.is_empty()).then(|| {
            let mut cells = [&results.cells[..], &held].concat();
            cells.sort_by(|a, b| a.key.order(&b.key));
            Results { cells, ..results.clone() }
        });
        results::write_through(&*self.storage, &self.output, with_held.as_ref().unwrap_or(results))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The checkpoint under way is written to its end before the lock is let go.
        let _ = self.wait();
    }
}

/// The first trial or confirmation of a result file that the journal beside the file has not, or has otherwise, in words. An earlier journal was put
/// in the place of the one that wrote the file, or another study's file in the place of this one's.
fn unknown(contents: &Contents, cells: &[Cell]) -> Option<String> {
    let of_cell = |cell: &Cell| {
        let known = || contents.cells().filter(|known| known.key == cell.key);
        let trials: HashSet<u32> = known().flat_map(|known| &known.trials).map(|trial| trial.index).collect();
        if let Some(trial) = cell.trials.iter().find(|trial| !trials.contains(&trial.index)) {
            return Some(format!("trial {} of {}", trial.index, cell.key));
        }
        let confirmations: HashMap<Training, &Confirmation> =
            known().flat_map(|known| &known.confirmations).map(|known| (known.training, known)).collect();
        let is_known = |one: &Confirmation| confirmations.get(&one.training).is_some_and(|known| goes_on(&known.run, &one.run));
        let Training { point, number, .. } = cell.confirmations.iter().find(|one| !is_known(one))?.training;
        Some(format!("confirmation {number} of trial {point} of {}", cell.key))
    };
    cells.iter().find_map(of_cell)
}

/// Whether a confirmation's record in the journal is the result file's record, or goes on after it, where the limit was lower when the file was
/// written, or is lower now. A record of a training that was begun anew for a higher limit may be by other arithmetic.
fn goes_on(journal: &Trial, file: &Trial) -> bool {
    let is_same = journal.steps_run == file.steps_run && journal.curve == file.curve;
    journal.metaparameters == file.metaparameters
        && (is_same || journal.steps_run > file.steps_run)
        && (journal.steps == file.steps || file.steps.is_none() && !is_same)
}

/// Refuses a name for the result file that cannot have a study's files beside it.
fn check_name(output: &Path) -> Result<()> {
    let refuse = |problem: String| Err(Error::Journal { path: output.into(), problem });
    if let Some(other) = journal::namesake(output) {
        return refuse(format!(
            "expected a result file with a journal of its own, found {} beside it, which has the same one; choose another --output",
            other.display()
        ));
    }
    if output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let example = output.join("study.h5");
        return refuse(format!("expected a result file, found a folder; give --output the name of a file, such as {}", example.display()));
    }
    if let Some(problem) = journal::refused_name(output) {
        return refuse(problem.to_owned());
    }
    if output.to_str().is_none() {
        return refuse("its path is no text in UTF-8, as HDF5 takes paths; choose another --output".to_owned());
    }
    Ok(())
}

/// The checkpoint that a study goes on from; what is lost where there was one and it is of no use is told.
fn usable(loaded: journal::Loaded, path: &Path, possible: &Possible, tell: &mut dyn FnMut(Event)) -> Option<Checkpoint> {
    match loaded {
        journal::Loaded::Absent => None,
        journal::Loaded::Checkpoint(found) => match possible.checkpoint(&found) {
            Ok(()) => Some(found),
            Err(problem) => {
                let line = format!("the checkpoint cannot be of this study ({problem}): its cell's unfinished trials start again");
                tell(Event::Lost(&format!("{}: {line}", path.display())));
                None
            }
        },
        journal::Loaded::Damaged(sentence) => {
            tell(Event::Lost(&sentence));
            None
        }
    }
}

/// Letters of a host or a program that a start of a result file without starts gets: their bytes fit a table's text.
const LONGEST_NAME: usize = 60;

/// Starts the journal at `path` with what the result file at `from` has, which is to be of this run's study and data, and gives the file's cells.
/// Where another file is written, of the study `apart`, its confirmations are those that this study asks for, as it would of a file without any: the
/// file they are in keeps the others. Trainings that end at the goal are none of a study whose trainings go on, nor the other way round.
fn adopt(from: &Path, now: &Header, apart: Option<&Study>, path: &Path, storage: &dyn Storage) -> Result<Vec<Cell>> {
    let mut results = results::read(from)?;
    let environment = results.environment;
    let refuse = |problem: String| Err(Error::Results { path: from.to_owned(), problem });
    if ![&now.data_digest, &now.earlier_data_digest].contains(&&environment.data_digest) {
        let (found, files) = (environment.data_digest, &now.data_digest);
        return refuse(format!("it is of other data (SHA-256 {found}; the data files have {files}): name its data with --data"));
    }
    let mut configuration = settings::recorded(&from.display().to_string(), &results.configuration, &[])?;
    if let Some(study) = apart {
        let goes_on = |study: &Study| study.confirm.as_ref().map(|confirm| confirm.mean_error);
        let is_unlike = goes_on(&configuration.study) != goes_on(study);
        let known: Vec<Vec<Confirmation>> = results.cells.iter_mut().map(|cell| std::mem::take(&mut cell.confirmations)).collect();
        let points_of = |cell: &Cell| Wanted::of(cell, &results.cells, study).iter().flat_map(Wanted::points).collect();
        let points: Vec<HashSet<u32>> = results.cells.iter().map(points_of).collect();
        for ((cell, known), points) in results.cells.iter_mut().zip(known).zip(points) {
            cell.confirmations = known.into_iter().filter(|one| !is_unlike && points.contains(&one.training.point)).collect();
        }
        configuration.study.confirm = study.confirm.clone();
        configuration.text = settings::canonical(&configuration.study)?;
        keep_wanted(&mut results.cells, &configuration.study);
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
    if let Some(difference) = journal::other_configuration("result file", &header, now) {
        return refuse(format!("{difference}: leave these keys as they are, or measure a study of its own"));
    }
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
        records.extend(of_cell(cell, &[]));
        let of = |confirmation: &Confirmation| Record::Confirmation { key: cell.key, confirmation: confirmation.clone() };
        records.extend(cell.confirmations.iter().map(of));
    }
    if results.complete {
        records.push(Record::End(Ending::Finished));
    }
    Journal::begin(path, &header, &records, storage)?;
    Ok(results.cells)
}

/// The refusal of a result file without a journal beside it.
fn alone(output: &Path, journal: &Path, beginning: Beginning) -> Error {
    // `dps-train confirm` has no --fresh.
    let fresh = if matches!(beginning, Beginning::Confirmed(_)) { "" } else { ", or --fresh to move it aside" };
    let found = if journal.exists() { "that the journal is empty" } else { "the file alone" };
    let goes_on = match results::read(output) {
        Ok(_) => format!("dps-train {} goes on from the file alone, with the settings in it", output.display()),
        Err(problem) => format!("nothing can go on from the file ({problem})"),
    };
    let journal = journal.display();
    let problem =
        format!("expected no such file, or the journal {journal} beside it, found {found}; choose another --output{fresh}; {goes_on}");
    Error::Journal { path: output.into(), problem }
}

/// Says where `whole`, the study with what earlier runs of it asked for, is another one than the study `asked` for now.
fn tell_of_growth(asked: &Study, whole: &Study, tell: &mut dyn FnMut(Event)) {
    let most = whole.grid.trials;
    if most > asked.grid.trials {
        let line = format!(
            "the study has {most} trials a cell since an earlier run, so {} are no fewer; choose another --output for a study of its own",
            asked.grid.trials
        );
        tell(Event::Note(&line));
    }
    let differences = settings::differences(asked, whole, &[]);
    for found in differences.iter().filter(|found| asked.confirm.is_some() && found.is_of_confirmations()) {
        let line = format!(
            "{}: an earlier run of the study had {}, by which it goes on, not by {}; choose another --output for confirmations of their own",
            found.key, found.right, found.left
        );
        tell(Event::Note(&line));
    }
}

/// The records of a further start of a study with such a journal. Where cells `grow`, trials that have ended may be cut short by new ones.
fn of_restart(contents: &Contents, grow: bool, configuration: Option<String>) -> Vec<Record> {
    let grows = |partial: &&journal::Partial| grow && !partial.cell.trials.is_empty();
    let extensions = contents.partial.iter().filter(grows).map(|partial| Record::Extension { key: partial.cell.key });
    extensions.chain([Record::Restart { started: now(), configuration }]).collect()
}

/// The records of a cell's trials, but for those that the journal has, and of its end. A cell that lacks trials between others, as parts put together
/// may leave it, gets more trials, which may cut the others short.
fn of_cell(&Cell { key, ref trials, test_errors, seconds, .. }: &Cell, journaled: &[Trial]) -> Vec<Record> {
    let journaled: HashMap<u32, &Trial> = journaled.iter().map(|trial| (trial.index, trial)).collect();
    let is_there = |trial: &Trial| {
        let known = journaled.get(&trial.index);
        known.is_some_and(|known| known.agrees(trial) && known.times() == trial.times())
    };
    let fresh = trials.iter().filter(|trial| !is_there(trial));
    let mut records: Vec<Record> = fresh.map(|trial| Record::Trial { key, trial: trial.clone() }).collect();
    // The trials before a gap are the fewer ones with which the cell ended.
    let first = trials.first().map_or(0, |trial| trial.index);
    let leading = (first..).zip(trials).take_while(|(number, trial)| trial.index == *number).count();
    records.push(Record::Cell { key, trials: leading as u32, test_errors, seconds });
    if leading < trials.len() {
        records.push(Record::Extension { key });
    }
    records
}

/// The configuration with the cells, trials and confirmations of both `configuration` and the journal's configuration `before`, where these are not
/// those of `configuration`; and the trials a cell of the run before.
fn grown(configuration: &Configuration, before: &str) -> Result<(Option<Configuration>, u32)> {
    let mut study = configuration.study.clone();
    let trials = study.grid.trials;
    if *before == configuration.text {
        return Ok((None, trials));
    }
    let Ok(Configuration { study: before, .. }) = settings::recorded("the journal's configuration", before, &[]) else {
        return Ok((None, trials));
    };
    if (&before.grid, &before.confirm) == (&study.grid, &study.confirm) {
        return Ok((None, trials));
    }
    study.join(&before);
    let text = settings::canonical(&study)?;
    check_length(configuration, &text)?;
    let source = "the configuration with the batch sizes, sparsities, trials and confirmations of earlier runs";
    Ok((Some(settings::recorded(source, &text, &[])?), before.grid.trials))
}

/// This moment, ISO 8601 in UTC.
pub(super) fn now() -> String {
    moment(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::{Metaparameter, Metaparameters};
    use crate::records::{CurvePoint, Status};

    /// The journal's record may be longer than the file's, and may then reach the goal. It may be neither shorter nor another one of the same length.
    #[test]
    fn the_record_of_a_confirmation_may_be_longer_in_the_journal() {
        let curve =
            |errors: &[u32]| (1..).zip(errors).map(|(step, &errors)| CurvePoint { step, loss: 0.5, errors, examples: 10 }).collect();
        let run =
            |errors: &[u32]| Trial { steps_run: errors.len() as u32, curve: curve(errors), ..Trial::new(3, Metaparameters::default()) };
        let reached = |errors: &[u32], steps: u32| Trial { steps: Some(steps), status: Status::Complete, ..run(errors) };
        let other_point = Trial { metaparameters: [(Metaparameter::LearningRate, 0.5)].into_iter().collect(), ..run(&[5, 4]) };
        let file = run(&[5, 4]);
        for (journal, expected) in [
            (run(&[5, 4]), true),
            (run(&[5, 4, 4]), true),
            (reached(&[5, 4, 1], 3), true),
            (reached(&[5, 3, 1], 3), true),
            (run(&[5]), false),
            (run(&[5, 3]), false),
            (reached(&[5, 4], 2), false),
            (other_point, false),
        ] {
            assert_eq!(goes_on(&journal, &file), expected, "{journal:?}");
        }
        let file = reached(&[5, 1], 2);
        for (journal, expected) in [(reached(&[5, 1], 2), true), (reached(&[5, 1, 1], 2), true), (reached(&[5, 4, 1], 3), false)] {
            assert_eq!(goes_on(&journal, &file), expected, "{journal:?}");
        }
    }

    #[test]
    fn a_trial_that_the_journal_has_is_not_journaled_again_with_its_cell() {
        let trial = |index: u32| Trial::new(index, Metaparameters::default());
        let index_of = |record: &Record| if let Record::Trial { trial, .. } = record { Some(trial.index) } else { None };
        let key = CellKey { batch_size: 2, sparsity: 0.0 };
        let cell = Cell { key, trials: vec![trial(0), trial(1), trial(2)], test_errors: None, seconds: 1.0, confirmations: Vec::new() };
        let cut = Trial { steps_run: 5, ..trial(1) };
        let later = Trial { seconds: 0.5, ..trial(0) };
        for (journaled, expected) in
            [(vec![], vec![0, 1, 2]), (vec![trial(2), trial(0)], vec![1]), (vec![later, cut, trial(2)], vec![0, 1])]
        {
            let mut records = of_cell(&cell, &journaled);
            assert_eq!(records.pop(), Some(Record::Cell { key, trials: 3, test_errors: None, seconds: 1.0 }));
            assert_eq!(records.iter().filter_map(index_of).collect::<Vec<_>>(), expected);
        }
        // Without trial 1 the cell has ended with trial 0 alone, and gets more.
        let records = of_cell(&Cell { trials: vec![trial(0), trial(2)], ..cell }, &[]);
        assert!(records.iter().filter_map(index_of).eq([0, 2]), "{records:?}");
        let ended = Record::Cell { key, trials: 1, test_errors: None, seconds: 1.0 };
        assert_eq!(records[2..], [ended, Record::Extension { key }]);
    }
}

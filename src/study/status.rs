//! How far a study is, from its files alone: while it runs, between two runs and after it.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use super::cost::numbers;
use super::measured;
use crate::forecast::Forecast;
use crate::journal::{self, Checkpoint, Holder, Journal, Loaded, Lock, Partial};
use crate::readable::{duration, first_line, moment, some};
use crate::records::{Cell, CellKey, Ending, Start, Status, Wanted, cells, counted, is_searched};
use crate::settings::{self, Study};
use crate::storage::Disk;
use crate::{Error, Result, results};

/// How far a study is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyStatus {
    /// The result file's name without its ending.
    pub study: String,
    /// Whether a job works on it, else whether anything is left to do.
    pub state: State,
    /// Cells of the grid.
    pub cells: usize,
    /// The finished cells, in the order in which they were finished.
    pub finished: Vec<FinishedCell>,
    /// Cells that were finished with fewer trials than the study has since it grew.
    pub grown: Vec<FinishedCell>,
    /// Trials of each cell.
    pub trials: u32,
    /// The number of the first trial.
    pub first_trial: u32,
    /// The first cell whose trials are not all measured, where it has begun or a job works on the study.
    pub under_way: Option<UnderWay>,
    /// The cell whose points are being confirmed, and the step of its checkpoint, where it has one.
    pub confirming: Option<Confirming>,
    /// Trials whose connections are scored, and masks that rounds of scores made.
    pub scored: usize,
    /// The job that works on the study.
    pub job: Option<Holder>,
    /// The time that is left, in seconds, from the cells that are measured; none where none is, or all are.
    pub left: Option<Forecast>,
    /// The digest of what decides its results.
    pub digest: String,
    /// How many later runs continued the study; unknown of a result file without a journal.
    pub restarts: Option<u32>,
    /// How the run before each of those had ended, in words.
    pub causes: Vec<String>,
    /// Start of the study, ISO 8601 in UTC.
    pub started: String,
    /// When the journal, the checkpoint or the result file was last written, ISO 8601 in UTC.
    pub last_write: String,
}

/// Whether a study is worked on, and whether it has anything left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A job works on it.
    Running,
    /// No job works on it, and cells are left.
    Stopped,
    /// All cells are measured, and confirmed where the study asks for that; the journal has them, and the result file lacks some: it could not be
    /// written at the end.
    Unwritten,
    /// All cells are measured, and confirmed where the study asks for that.
    Finished,
}

/// A cell that is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FinishedCell {
    /// Batch size and sparsity of the cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// K*, where a trial reached the goal.
    pub steps_to_result: Option<u32>,
    /// The trial that reached it in K* steps.
    pub best_trial: Option<u32>,
    /// Trials that reached the goal.
    pub complete: usize,
    /// All trials.
    pub trials: usize,
    /// Wall-clock seconds of its trials, over all runs.
    pub seconds: f64,
    /// Wall-clock seconds of its confirmations, over all runs.
    pub confirmation_seconds: f64,
    /// Trainings that have confirmed its points.
    pub confirmed: usize,
    /// Trainings that are to confirm its points; 0 in a study that confirms nothing.
    pub to_confirm: usize,
}

/// A cell whose points are being confirmed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirming {
    /// Batch size and sparsity of the cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// Steps of the trainings under way at the last checkpoint.
    pub step: u32,
}

/// A cell that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnderWay {
    /// Batch size and sparsity of the cell.
    #[serde(flatten)]
    pub key: CellKey,
    /// Steps at the last checkpoint, where there is one.
    pub step: Option<u32>,
    /// Seconds that it had taken then.
    pub seconds: Option<f64>,
    /// Step budget.
    pub max_steps: u32,
    /// Trials that have ended.
    pub ended: usize,
    /// All trials.
    pub trials: u32,
}

/// Reads how far the study of the result file at `output` is. Nothing is changed or waited for, and a job that works on it is not disturbed;
/// the result file itself need not be there.
///
/// # Errors
/// [`Error::Results`]: there is neither a result file nor a journal beside it; and what reading them meets.
pub fn status(output: &Path) -> Result<StudyStatus> {
    let Found { study, digest, started, finished, partial, scored, starts, checkpoint } = found(output)?;
    let job = Lock::holder(&journal::lock_path(output));
    let keys = cells(&study.grid);
    // A run goes on with the cell of the checkpoint.
    let left = measured::left(&finished, &keys, &study, checkpoint.as_ref().map(begun));
    let next = left.first();
    let under_way = left.iter().map(|(key, _)| key).find(|&&key| !is_searched(&finished, key, study.grid.trials)).and_then(|&key| {
        let known = under_way(&study, key, &partial, checkpoint.as_ref());
        (job.is_some() || known.step.is_some() || known.ended > 0).then_some(known)
    });
    let measured = measured::measured(&finished, &study);
    let (whole, grown): (Vec<&Cell>, Vec<&Cell>) = finished.iter().partition(|cell| cell.trials.len() >= study.grid.trials as usize);
    let state = match (&job, next) {
        (Some(_), _) => State::Running,
        (None, Some(_)) => State::Stopped,
        (None, None) if starts.is_some() && !is_written(output, &keys, &study) => State::Unwritten,
        (None, None) => State::Finished,
    };
    let files = [output, &journal::journal_path(output), &journal::checkpoint_path(output)];
    let written = files.iter().filter_map(|path| fs::metadata(path).ok()?.modified().ok()).max();
    let confirming = checkpoint.as_ref().filter(|found| found.confirming.is_some());
    // Parts put together have several first starts.
    let causes: Vec<Ending> = starts.iter().flatten().map(|start| start.before).filter(|&before| before != Ending::First).collect();
    Ok(StudyStatus {
        study: output.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        state,
        cells: keys.len(),
        left: Forecast::new(&measured, &left, study.grid.trials as usize, None),
        digest,
        finished: whole.into_iter().map(|cell| FinishedCell::new(cell, &finished, &study)).collect(),
        grown: grown.into_iter().map(|cell| FinishedCell::new(cell, &finished, &study)).collect(),
        trials: study.grid.trials,
        first_trial: study.search.first_trial,
        under_way,
        confirming: confirming.map(|found| Confirming { key: found.key, step: found.state.step }),
        scored,
        job,
        restarts: starts.is_some().then_some(causes.len() as u32),
        causes: causes.iter().map(Ending::to_string).collect(),
        started,
        last_write: written.map(moment).unwrap_or_default(),
    })
}

/// Whether the result file has all cells of a study that is finished by its journal.
fn is_written(output: &Path, keys: &[CellKey], study: &Study) -> bool {
    results::read(output).is_ok_and(|results| measured::left(&results.cells, keys, study, None).is_empty())
}

/// Contents of the files of a study.
pub(super) struct Found {
    /// The configuration, and the digest of what decides its results.
    pub study: Study,
    pub digest: String,
    started: String,
    /// Cells whose trials are measured, and others that have some.
    pub finished: Vec<Cell>,
    partial: Vec<Partial>,
    scored: usize,
    /// Unknown of a result file without a journal.
    starts: Option<Vec<Start>>,
    pub checkpoint: Option<Checkpoint>,
}

/// Reads the files of the study of the result file at `output`.
pub(super) fn found(output: &Path) -> Result<Found> {
    let path = journal::journal_path(output);
    let (configuration, started, finished, partial, scored, starts, checkpoint) = match Journal::read(&path, &Disk)? {
        Some(contents) => {
            let header = contents.header;
            let checkpoint = match journal::load(&journal::checkpoint_path(output), &header.digest, &header.data_digest, &Disk)? {
                Loaded::Checkpoint(found) => Some(found),
                Loaded::Absent | Loaded::Damaged(_) => None,
            };
            let scored = contents.scores.len() + contents.masks.len();
            (header.configuration, header.started, contents.finished, contents.partial, scored, Some(contents.starts), checkpoint)
        }
        None if output.exists() => {
            let results = results::read(output)?;
            (results.configuration, results.environment.started, results.cells, Vec::new(), 0, None, None)
        }
        None => {
            let problem = format!(
                "expected a result file or its journal {}, found neither; give the --output of the study, by default results/<name of CONFIG>.h5",
                path.display()
            );
            return Err(Error::Results { path: output.to_owned(), problem });
        }
    };
    let configuration = settings::recorded("its configuration", &configuration, &[]).map_err(|error| Error::Results {
        path: output.to_owned(),
        problem: format!(
            "its configuration is damaged, or of another version of this program, which reads it: {}",
            first_line(&error.to_string())
        ),
    })?;
    let (study, digest) = (configuration.study, configuration.digest);
    Ok(Found { study, digest, started, finished, partial, scored, starts, checkpoint })
}

/// The cell of a checkpoint, and the seconds that it or its confirmation had taken then.
pub(super) fn begun(checkpoint: &Checkpoint) -> (CellKey, f64) {
    (checkpoint.key, checkpoint.state.seconds)
}

fn under_way(study: &Study, key: CellKey, partial: &[Partial], checkpoint: Option<&Checkpoint>) -> UnderWay {
    let checkpoint = checkpoint.filter(|found| found.key == key && found.confirming.is_none());
    // The journal is written as trials end, the checkpoint from time to time.
    let journaled = partial.iter().find(|partial| partial.cell.key == key).map_or(0, |partial| partial.cell.trials.len());
    UnderWay {
        key,
        step: checkpoint.map(|found| found.state.step),
        seconds: checkpoint.map(|found| found.state.seconds),
        max_steps: study.workload.budget(),
        ended: checkpoint.map_or(0, |found| found.state.ended.len()).max(journaled),
        trials: study.grid.trials,
    }
}

impl FinishedCell {
    fn new(cell: &Cell, cells: &[Cell], study: &Study) -> FinishedCell {
        let wanted = Wanted::of(cell, cells, study);
        FinishedCell {
            confirmed: wanted.as_ref().map_or(0, |wanted| wanted.among(&cell.confirmations).len()),
            to_confirm: wanted.as_ref().map_or(0, |wanted| wanted.trainings.len()),
            key: cell.key,
            steps_to_result: cell.steps_to_result(),
            best_trial: cell.best().map(|trial| trial.index),
            complete: cell.count(Status::Complete),
            trials: cell.trials.len(),
            seconds: cell.seconds,
            confirmation_seconds: cell.confirmation_seconds(),
        }
    }
}

impl StudyStatus {
    /// A line that changes exactly when the study advances: finished cells, ended trials and steps of the cell under way, and scored trials. Scripts
    /// that restart a job give up where the line stays the same.
    pub fn progress(&self) -> String {
        let (ended, step) = self.under_way.as_ref().map_or((0, 0), |cell| (cell.ended, cell.step.unwrap_or(0)));
        let confirmed: usize = self.finished.iter().map(|cell| cell.confirmed).sum();
        let confirming = self.confirming.as_ref().map_or(0, |cell| cell.step);
        let confirmed =
            if confirmed + confirming as usize > 0 { format!(" confirmed {confirmed} step {confirming}") } else { String::new() };
        format!("cells {} trials {ended} step {step} scored {}{confirmed}", self.finished.len(), self.scored)
    }

    /// The status as one JSON object on one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Lines for a person.
impl fmt::Display for StudyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = |cell: &FinishedCell| {
            let best = match (cell.steps_to_result, cell.best_trial) {
                (Some(steps), Some(trial)) => format!("K* = {steps} by trial {trial}"),
                _ => "no trial reached the goal".to_owned(),
            };
            let FinishedCell { key, complete, trials, seconds, .. } = cell;
            let confirmed = match (cell.confirmed, cell.to_confirm) {
                (_, 0) => String::new(),
                (done, all) => format!(", {done} of {all} confirmations"),
            };
            format!("    {key}: {best} ({complete} of {trials} trials complete{confirmed}, {seconds:.1} s)")
        };
        let state = match self.state {
            State::Running => "running",
            State::Stopped if self.restarts.is_none() => {
                "not whole, and no journal is beside it; dps-train or dps-train confirm with the file's name measures what it lacks"
            }
            State::Stopped => "stopped; the command that started it continues it, or dps-train with the file's name",
            State::Unwritten => "measured, but the result file lacks some of it; the command that started the study writes the file",
            State::Finished => "finished",
        };
        writeln!(f, "{}: {state}", self.study)?;
        if let Some(Holder { host, process, since }) = &self.job {
            writeln!(f, "  job         process {process} on {host}, since {since}")?;
        }
        let restarts = self.restarts.map_or(String::new(), |restarts| format!(", restarted {}", some(restarts as usize, "time")));
        let causes = counted(&self.causes).join("; ");
        let causes = if causes.is_empty() { causes } else { format!(", after {causes}") };
        writeln!(f, "  started     {}{restarts}{causes}", self.started)?;
        let ago = humantime::parse_rfc3339(&self.last_write).ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        let ago = ago.map_or(String::new(), |ago| format!(", {} ago", duration(ago.as_secs_f64())));
        writeln!(f, "  last write  {}{ago}", self.last_write)?;
        let numbers = numbers(&(self.first_trial..self.first_trial + self.trials));
        let numbers = if numbers.is_empty() { numbers } else { format!(", {}{numbers} each", some(self.trials as usize, "trial")) };
        writeln!(f, "  cells       {} of {} finished{numbers}", self.finished.len(), self.cells)?;
        for cell in &self.finished {
            writeln!(f, "{}", found(cell))?;
        }
        for cell in &self.grown {
            writeln!(f, "{}; {} more to come", found(cell), some(self.trials as usize - cell.trials, "trial"))?;
        }
        if let Some(cell) = &self.under_way {
            write!(f, "    {}: ", cell.key)?;
            match cell.step {
                Some(step) => write!(f, "at step {step} of at most {} at the last checkpoint", cell.max_steps)?,
                None => write!(f, "no checkpoint yet")?,
            }
            writeln!(f, ", {} of {} trials ended", cell.ended, cell.trials)?;
        }
        if let Some(Confirming { key, step }) = self.confirming {
            writeln!(f, "    {key}: being confirmed, at step {step} at the last checkpoint")?;
        }
        self.left.map_or(Ok(()), |left| writeln!(f, "  left        {left}"))
    }
}

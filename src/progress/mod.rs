//! What a person, or a log, sees of a running study.
//!
//! Rank 0 alone has an [`Observer`]. It shows events and may not change anything.

mod bar;
mod json;
mod lines;
mod terminal;

use clap::ValueEnum;

use crate::forecast::Forecast;
use crate::readable::some;
use crate::records::{Cell, CellKey};
use crate::training::Moment;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar on a terminal, plain lines elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// One JSON object a line.
    Json,
    /// Nothing.
    None,
}

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The study begins.
    Study {
        /// Its name.
        name: &'a str,
        /// Where it runs.
        device: &'a str,
        /// Ranks.
        ranks: usize,
        /// Cells in all.
        cells: usize,
        /// Cells measured by an earlier run.
        done: usize,
        /// Trials a cell.
        trials: u32,
        /// Most validation errors of a trial that is complete.
        threshold: u32,
        /// Examples of the validation set.
        validation_examples: usize,
    },
    /// The connections of a trial's network are scored.
    Scored {
        /// The trial.
        seed: u64,
        /// Trials a cell.
        trials: u32,
    },
    /// A cell begins.
    CellStarted {
        /// Which one.
        key: CellKey,
        /// Its number, from 0.
        index: usize,
        /// Most steps a trial may take.
        max_steps: u32,
        /// Ranks that share a batch.
        ranks_a_batch: usize,
    },
    /// A cell goes on where an earlier run left it.
    Resumed {
        /// Which one.
        key: CellKey,
        /// Steps that the trials under way have taken; 0: none has begun.
        step: u32,
        /// Trials that have ended.
        ended: usize,
        /// Trials a cell.
        trials: u32,
    },
    /// A cell has taken some steps.
    Moment {
        /// The cell.
        key: CellKey,
        /// How far it is.
        moment: &'a Moment,
    },
    /// A cell is measured.
    CellFinished {
        /// Its trials.
        cell: &'a Cell,
        /// When the rest is probably done; none where nothing is left.
        left: Option<Forecast>,
    },
    /// Something that is shown with `--verbose` alone.
    Detail {
        /// One or more lines of text.
        line: &'a str,
    },
    /// Something a person should know.
    Note {
        /// One sentence.
        line: &'a str,
    },
}

/// Shows events, or passes them on.
pub trait Observer {
    /// Tells of an event.
    fn event(&mut self, event: &Event);
}

/// Passes on all events but details.
struct Brief(Box<dyn Observer>);

impl Observer for Brief {
    fn event(&mut self, event: &Event) {
        if !matches!(event, Event::Detail { .. }) {
            self.0.event(event);
        }
    }
}

/// Shows nothing.
struct Silent;

impl Observer for Silent {
    fn event(&mut self, _event: &Event) {}
}

/// The observer for a way of showing progress; `verbose` also shows details, in lines, and `terminal` says whether standard error is one.
pub fn observer(progress: ProgressForm, verbose: bool, terminal: bool) -> Box<dyn Observer> {
    let observer: Box<dyn Observer> = match progress {
        ProgressForm::Auto if verbose => Box::new(lines::Lines::verbose()),
        ProgressForm::None => Box::new(Silent),
        ProgressForm::Json => Box::new(json::Json),
        ProgressForm::Bar => Box::new(bar::Bar::new(terminal::of_launcher())),
        ProgressForm::Auto if terminal => Box::new(bar::Bar::new(None)),
        ProgressForm::Auto => match terminal::of_launcher() {
            Some(found) => Box::new(bar::Bar::new(Some(found))),
            None => Box::new(lines::Lines::default()),
        },
    };
    if verbose { observer } else { Box::new(Brief(observer)) }
}

/// An observer that shows nothing: for the ranks other than 0.
pub fn silent() -> Box<dyn Observer> {
    Box::new(Silent)
}

/// A finished cell in a few words.
fn outcome(cell: &Cell) -> String {
    match cell.best() {
        Some(best) => format!(
            "{} steps (trial {}{})",
            best.steps.unwrap_or_default(),
            best.index,
            best.metaparameters.iter().map(|(name, value)| format!(", {} {}", name.title(), name.show(value))).collect::<String>()
        ),
        None => "no trial reached the goal".into(),
    }
}

/// How far a cell is beside its step, in words.
fn standing(moment: &Moment) -> String {
    let best = moment.best_errors.map_or(String::new(), |errors| format!(", best {errors} errors"));
    let rate = moment.examples as f64 / moment.seconds.max(1e-9);
    format!("{} left{best}, {rate:.0} images/s", some(moment.alive, "trial"))
}

/// The line for a finished cell, the `number`-th of so many.
fn finished(number: usize, cells: usize, cell: &Cell, left: Option<Forecast>) -> String {
    let left = left.map_or(String::new(), |forecast| format!("; left: {}", forecast.left));
    format!("[{number}/{cells}] {}: {} in {:.1} s{left}", cell.key, outcome(cell), cell.seconds)
}

/// Where a cell goes on, in words.
fn resumed(key: &CellKey, step: u32, ended: usize, trials: u32) -> String {
    let from = if step > 0 { format!("goes on from step {step}") } else { "goes on".into() };
    format!("{} {from}, {ended} of {trials} trials ended", key)
}

//! What happens while a study runs, who is told, and the words that observers share.

use crate::forecast::Forecast;
use crate::readable::some;
use crate::records::{Cell, CellKey, median_steps};
use crate::training::Moment;

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
    /// The connections of a network are scored.
    Scored {
        /// The network's seed, which for a trial is its number.
        seed: u64,
        /// Networks that are scored.
        done: usize,
        /// Networks of the cell.
        all: usize,
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
    /// The best points of a cell are trained again.
    Confirming {
        /// Which cell.
        key: CellKey,
        /// Points.
        points: usize,
        /// Trainings of them all.
        trainings: usize,
        /// Trainings that have ended in an earlier run.
        done: usize,
        /// Steps that the others have taken; 0: none has begun.
        step: u32,
        /// Most steps of a training.
        last_step: u32,
    },
    /// A cell is confirmed.
    Confirmed {
        /// Its trials and confirmations.
        cell: &'a Cell,
        /// Most steps of a training.
        last_step: u32,
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
    /// Work of an earlier run that is lost. It is said also where nothing else is shown.
    Lost {
        /// One sentence.
        line: &'a str,
    },
}

/// Shows events, or passes them on.
pub trait Observer {
    /// Tells of an event.
    fn event(&mut self, event: &Event);
}

/// A finished cell in a few words.
pub(super) fn outcome(cell: &Cell) -> String {
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
pub(super) fn standing(moment: &Moment) -> String {
    let best = moment.best_errors.map_or(String::new(), |errors| format!(", best {errors} errors"));
    let rate = moment.examples as f64 / moment.seconds.max(1e-9);
    format!("{} left{best}, {rate:.0} images/s", some(moment.alive, "trial"))
}

/// The line for a finished cell, the `number`-th of so many.
pub(super) fn finished(number: usize, cells: usize, cell: &Cell, left: Option<Forecast>) -> String {
    let left = left.map_or(String::new(), |forecast| format!("; left: {}", forecast.left));
    format!("[{number}/{cells}] {}: {} in {:.1} s{left}", cell.key, outcome(cell), cell.seconds)
}

/// The beginning of a cell's confirmation, in words.
pub(super) fn confirming(key: &CellKey, points: usize, trainings: usize, done: usize) -> String {
    let before = if done > 0 { format!(", {done} of them ended before") } else { String::new() };
    format!("{key}: confirms {} by {}{before}", some(points, "point"), some(trainings, "training"))
}

/// A cell's confirmation in words.
pub(super) fn confirmed(cell: &Cell, last_step: u32, left: Option<Forecast>) -> String {
    let left = left.map_or(String::new(), |forecast| format!("; left: {}", forecast.left));
    let points = cell.confirmed_points().into_iter().map(|point| format!("trial {point}'s point {}", scatter(cell, point, last_step)));
    let points: Vec<String> = points.collect();
    format!("{} confirmed: {} in {:.1} s{left}", cell.key, points.join(", "), cell.confirmation_seconds())
}

/// The median and the range of a point's steps to the goal; trainings that did not reach it within the limit are beyond it.
fn scatter(cell: &Cell, point: u32, last_step: u32) -> String {
    let steps = || cell.confirmations_of(point).map(|one| one.run.steps);
    let (all, there) = (steps().count(), steps().flatten().count());
    let word = |steps: Option<u32>| steps.map_or_else(|| format!("over {last_step}"), |steps| steps.to_string());
    let last = if there < all { None } else { steps().flatten().max() };
    let beyond = if there < all { format!(", {} of {all} never there", all - there) } else { String::new() };
    let (middle, first) = (median_steps(cell.confirmations_of(point)), steps().flatten().min());
    format!("{} steps ({} to {}{beyond})", word(middle), word(first), word(last))
}

/// Where a cell goes on, in words.
pub(super) fn resumed(key: &CellKey, step: u32, ended: usize, trials: u32) -> String {
    let from = if step > 0 { format!("goes on from step {step}") } else { "goes on".into() };
    format!("{} {from}, {ended} of {trials} trials ended", key)
}

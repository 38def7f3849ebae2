//! Events of a running study, the observers that are told of them, and the words that observers share.

use crate::forecast::Forecast;
use crate::readable::{digits, duration, some};
use crate::records::{Cell, CellKey, median_steps};
use crate::training::Moment;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The study begins.
    Study {
        /// Name of the study.
        name: &'a str,
        /// Device, in words.
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
        /// Batch size and sparsity of the cell.
        key: CellKey,
        /// Number of the cell, from 0.
        index: usize,
        /// Most steps a trial may take.
        max_steps: u32,
        /// Ranks that share a batch.
        ranks_a_batch: usize,
    },
    /// A cell goes on where an earlier run left it.
    Resumed {
        /// Batch size and sparsity of the cell.
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
        /// State of the cell's wave.
        moment: &'a Moment,
        /// When the study is probably done; none before a cell is measured.
        left: Option<Forecast>,
    },
    /// A cell is measured.
    CellFinished {
        /// The cell with its trials.
        cell: &'a Cell,
        /// When the rest is probably done; none where nothing is left.
        left: Option<Forecast>,
    },
    /// The best points of a cell are trained again.
    Confirming {
        /// Batch size and sparsity of the cell.
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
        /// The cell with its trials and confirmations.
        cell: &'a Cell,
        /// Most steps of a training.
        last_step: u32,
        /// When the rest is probably done; none where nothing is left.
        left: Option<Forecast>,
    },
    /// Something that is shown with `--verbose` alone.
    Detail(&'a str),
    /// Something a person should know.
    Note(&'a str),
    /// Work of an earlier run that is lost. It is said also where nothing else is shown.
    Lost(&'a str),
}

/// Shows events, or passes them on.
pub trait Observer {
    /// Tells of an event.
    fn event(&mut self, event: &Event);
}

impl<F: FnMut(&Event)> Observer for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// How near its goal the cell under way, or its confirmation, has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Nearness {
    threshold: u32,
    examples: usize,
    /// Fewest errors, and whether all of them were counted.
    pub best: Option<(u32, bool)>,
}

impl Nearness {
    /// Takes notice of an event.
    pub(super) fn notice(&mut self, event: &Event) {
        match event {
            Event::Study { threshold, validation_examples, .. } => (self.threshold, self.examples) = (*threshold, *validation_examples),
            Event::CellStarted { .. } | Event::Confirming { .. } => self.best = None,
            Event::Moment { moment, .. } => {
                let counted = moment.best_errors.map(|errors| (errors, true));
                let least = moment.least_errors.map(|errors| (errors, false));
                // A count is no worse than a bound of the same.
                self.best = self.best.into_iter().chain(counted).chain(least).min_by_key(|(errors, counted)| (*errors, !counted));
            }
            _ => {}
        }
    }

    /// `12.3 %`, or `at least 12.3 %` where it is a bound.
    pub(super) fn error(&self) -> Option<String> {
        self.best.map(|(errors, counted)| format!("{}{}", if counted { "" } else { "at least " }, self.percent(errors)))
    }

    /// The goal's error.
    pub(super) fn goal(&self) -> String {
        self.percent(self.threshold)
    }

    fn percent(&self, errors: u32) -> String {
        format!("{} %", digits(100.0 * f64::from(errors) / self.examples.max(1) as f64, 3))
    }
}

/// The events so far, as far as the words for the next one need them.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Cells in all.
    pub cells: usize,
    /// Cells that are measured.
    pub finished: usize,
    nearness: Nearness,
}

impl Told {
    /// Takes notice of an event, and returns its lines where every text of a study has them.
    pub(super) fn lines(&mut self, event: &Event) -> Option<String> {
        self.nearness.notice(event);
        Some(match event {
            Event::Study { name, device, ranks, cells, done, trials, threshold, validation_examples } => {
                (self.cells, self.finished) = (*cells, *done);
                let (cells, trials, ranks) = (some(*cells, "cell"), some(*trials as usize, "trial"), some(*ranks, "rank"));
                format!("{name}: {cells} of {trials}; goal: at most {threshold} errors of {validation_examples}\n{ranks}; {device}")
            }
            Event::Scored { .. } | Event::CellStarted { .. } | Event::Moment { .. } => return None,
            Event::Resumed { key, step, ended, trials } => {
                let from = if *step > 0 { format!("goes on from step {step}") } else { "goes on".into() };
                format!("{key} {from}, {ended} of {trials} trials ended")
            }
            Event::CellFinished { cell, left } => {
                self.finished += 1;
                let (number, outcome) = (self.finished, outcome(cell, &self.nearness));
                format!("[{number}/{}] {}: {outcome} in {:.1} s{}", self.cells, cell.key, cell.seconds, rest(*left))
            }
            Event::Confirming { key, points, trainings, done, .. } => {
                let before = if *done > 0 { format!(", {done} of them ended before") } else { String::new() };
                format!("{key}: confirms {} by {}{before}", some(*points, "point"), some(*trainings, "training"))
            }
            Event::Confirmed { cell, last_step, left } => {
                let points = cell.confirmed_points().into_iter();
                let points: Vec<String> =
                    points.map(|point| format!("trial {point}'s point {}", scatter(cell, point, *last_step))).collect();
                format!("{} confirmed: {} in {:.1} s{}", cell.key, points.join(", "), cell.confirmation_seconds(), rest(*left))
            }
            Event::Detail(line) | Event::Note(line) | Event::Lost(line) => (*line).to_owned(),
        })
    }

    /// How far the cell under way is beside its step, in words: error, goal, loss, trials, and when the study is probably done.
    pub(super) fn standing(&self, moment: &Moment, left: Option<Forecast>) -> String {
        let error = self.nearness.error().map_or(String::new(), |error| format!("error {error}, "));
        let loss = moment.loss.map_or(String::new(), |loss| format!(", loss {}", digits(loss.into(), 3)));
        let left = left.map_or(String::new(), |forecast| format!(", {} more", duration(forecast.left.seconds)));
        format!("{error}goal {}{loss}, {} left{left}", self.nearness.goal(), some(moment.alive, "trial"))
    }
}

/// The end of a line: when the rest is probably done, where anything is left.
fn rest(left: Option<Forecast>) -> String {
    left.map_or(String::new(), |forecast| format!("; left: {}", forecast.left))
}

/// A finished cell in a few words.
fn outcome(cell: &Cell, nearness: &Nearness) -> String {
    match cell.best() {
        Some(best) => format!(
            "{} steps (trial {}{})",
            best.steps.unwrap_or_default(),
            best.index,
            best.metaparameters.iter().map(|(name, value)| format!(", {} {}", name.title(), name.show(value))).collect::<String>()
        ),
        None => {
            let near = nearness.error().map_or(String::new(), |error| format!(", the best error was {error} (goal {})", nearness.goal()));
            format!("no trial reached the goal{near}")
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Measured;

    const KEY: CellKey = CellKey { batch_size: 16_384, sparsity: 0.95 };

    fn told(moments: &[Moment]) -> Told {
        let mut told = Told::default();
        let (name, device) = ("", "");
        let study = Event::Study { name, device, ranks: 1, cells: 2, done: 0, trials: 100, threshold: 1_320, validation_examples: 6_000 };
        told.lines(&study);
        let started = Event::CellStarted { key: KEY, index: 0, max_steps: 40_000, ranks_a_batch: 1 };
        let moments = moments.iter().map(|moment| Event::Moment { key: KEY, moment, left: None });
        assert!([started].into_iter().chain(moments).all(|event| told.lines(&event).is_none()));
        told
    }

    #[test]
    fn a_bound_is_said_as_one() {
        let least = |errors| Moment { least_errors: Some(errors), ..Moment::default() };
        assert_eq!(told(&[]).nearness.error(), None);
        let mut bound = told(&[least(3_000), least(2_400), least(2_500)]);
        assert_eq!((bound.nearness.error().as_deref(), bound.nearness.goal().as_str()), (Some("at least 40.0 %"), "22.0 %"));
        let counted = Moment { best_errors: Some(1_300), ..least(1_300) };
        assert_eq!(told(&[least(2_400), counted]).nearness.error().as_deref(), Some("21.7 %"));
        let cell = Cell { key: KEY, trials: Vec::new(), test_errors: None, seconds: 2.0, confirmations: Vec::new() };
        let line = bound.lines(&Event::CellFinished { cell: &cell, left: None });
        assert_eq!(
            line.unwrap(),
            "[1/2] batch size 16384, sparsity 0.95: no trial reached the goal, the best error was at least 40.0 % (goal 22.0 %) in 2.0 s"
        );
    }

    #[test]
    fn what_a_bar_says_fits_a_line_of_eighty_letters() {
        let moment = Moment { least_errors: Some(2_400), loss: Some(0.123_456), alive: 100, ..Moment::default() };
        let measured = [Measured { key: KEY, trials: 100, seconds: 40_000.0 }];
        let left = crate::forecast::Forecast::new(&measured, &[(KEY, 0.0); 3], 100, None);
        let words = told(&[moment]).standing(&moment, left);
        assert!(
            words.starts_with("error at least 40.0 %, goal 22.0 %, loss 0.123, 100 trials left, ") && words.ends_with(" more"),
            "{words}"
        );
        assert!(words.chars().count() <= 78, "{words}");
    }
}

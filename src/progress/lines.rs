//! Plain lines for a log: one when the study begins, one a finished cell, and one a minute between.

use std::time::{Duration, Instant};

use super::event::{Event, Nearness, Observer, confirmed, confirming, finished, resumed, standing};
use crate::readable::some;
use crate::streams;

const EVERY: Duration = Duration::from_secs(60);

/// Writes to standard error.
pub(super) struct Lines {
    last: Instant,
    cells: usize,
    finished: usize,
    /// Whether each evaluation is shown.
    verbose: bool,
    nearness: Nearness,
}

impl Lines {
    /// Lines that show each evaluation, too, where they are `verbose`.
    pub(super) fn new(verbose: bool) -> Lines {
        Lines { last: Instant::now(), cells: 0, finished: 0, verbose, nearness: Nearness::default() }
    }
}

impl Observer for Lines {
    fn event(&mut self, event: &Event) {
        self.nearness.notice(event);
        match event {
            Event::Study { name, device, ranks, cells, done, trials, threshold, validation_examples } => {
                (self.cells, self.finished) = (*cells, *done);
                let (cells, trials) = (some(*cells, "cell"), some(*trials as usize, "trial"));
                streams::err(&format!("{name}: {cells} of {trials}; goal: at most {threshold} errors of {validation_examples}"));
                streams::err(&format!("{}; {device}", some(*ranks, "rank")));
                if *done > 0 {
                    streams::err(&format!("{} measured before", some(*done, "cell")));
                }
            }
            Event::Resumed { key, step, ended, trials } => streams::err(&resumed(key, *step, *ended, *trials)),
            Event::CellStarted { .. } => self.last = Instant::now(),
            Event::Scored { done, all, .. } if self.last.elapsed() >= EVERY => {
                self.last = Instant::now();
                streams::err(&format!("connections of {done} of {all} networks are scored"));
            }
            Event::Moment { key, moment, left } if self.verbose && moment.evaluated || self.last.elapsed() >= EVERY => {
                self.last = Instant::now();
                let rate = moment.examples as f64 / moment.seconds.max(1e-9);
                let standing = standing(moment, &self.nearness, *left);
                streams::err(&format!("{key}: step {} of {}, {standing}, {rate:.0} images/s", moment.step, moment.last_step));
            }
            Event::Scored { .. } | Event::Moment { .. } => {}
            Event::Detail(line) | Event::Note(line) | Event::Lost(line) => streams::err(line),
            Event::Confirming { key, points, trainings, done, .. } => {
                self.last = Instant::now();
                streams::err(&confirming(key, *points, *trainings, *done));
            }
            Event::Confirmed { cell, last_step, left } => streams::err(&confirmed(cell, *last_step, *left)),
            Event::CellFinished { cell, left } => {
                self.finished += 1;
                streams::err(&finished(self.finished, self.cells, cell, &self.nearness, *left));
            }
        }
    }
}

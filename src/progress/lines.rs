//! Plain lines for a log: one when the study begins, one a finished cell, and one a minute between.

use std::time::{Duration, Instant};

use super::event::{Event, Observer, Told};
use crate::readable::some;
use crate::streams;

const EVERY: Duration = Duration::from_secs(60);

/// Writes to standard error.
pub(super) struct Lines {
    last: Instant,
    /// Whether each evaluation is shown.
    verbose: bool,
    told: Told,
}

impl Lines {
    /// Lines that show each evaluation, too, where they are `verbose`.
    pub(super) fn new(verbose: bool) -> Lines {
        Lines { last: Instant::now(), verbose, told: Told::default() }
    }
}

impl Observer for Lines {
    fn event(&mut self, event: &Event) {
        if let Some(lines) = self.told.lines(event) {
            streams::err(&lines);
        }
        match event {
            Event::Study { done, .. } if *done > 0 => streams::err(&format!("{} measured before", some(*done, "cell"))),
            Event::CellStarted { .. } | Event::Confirming { .. } => self.last = Instant::now(),
            Event::Scored { done, all, .. } if self.last.elapsed() >= EVERY => {
                self.last = Instant::now();
                streams::err(&format!("connections of {done} of {all} networks are scored"));
            }
            Event::Moment { key, moment, left } if self.verbose && moment.evaluated || self.last.elapsed() >= EVERY => {
                self.last = Instant::now();
                let rate = moment.examples as f64 / moment.seconds.max(1e-9);
                let standing = self.told.standing(moment, *left);
                streams::err(&format!("{key}: step {} of {}, {standing}, {rate:.0} images/s", moment.step, moment.last_step));
            }
            _ => {}
        }
    }
}

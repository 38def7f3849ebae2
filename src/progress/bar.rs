//! A live bar for the cell being measured, under one line for each finished cell.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Event, Nearness, Observer, confirmed, confirming, finished, resumed, standing};
use crate::readable::some;
use crate::streams::plain;

pub(super) struct Bar {
    bar: ProgressBar,
    cells: usize,
    finished: usize,
    nearness: Nearness,
}

impl Bar {
    /// A bar on `terminal`, or on standard error where that is `None`.
    pub(super) fn new(terminal: Option<Term>) -> Bar {
        let target = ProgressDrawTarget::term(terminal.unwrap_or_else(Term::stderr), 10);
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant; should it ever be wrong, the default style still shows where the cell is.
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len}\n  {wide_msg}") {
            bar.set_style(style);
        }
        Bar { bar, cells: 0, finished: 0, nearness: Nearness::default() }
    }
}

impl Observer for Bar {
    fn event(&mut self, event: &Event) {
        self.nearness.notice(event);
        match event {
            Event::Study { name, device, ranks, cells, done, trials, threshold, validation_examples } => {
                (self.cells, self.finished) = (*cells, *done);
                self.bar.println(format!(
                    "{}: {} of {}; goal: at most {threshold} errors of {validation_examples}\n{}; {device}",
                    plain(name),
                    some(*cells, "cell"),
                    some(*trials as usize, "trial"),
                    some(*ranks, "rank")
                ));
            }
            Event::CellStarted { key, index, max_steps, .. } => {
                self.bar.reset();
                self.bar.set_length(u64::from(*max_steps));
                self.bar.set_prefix(format!("[{}/{}] {}", index + 1, self.cells, key));
                self.bar.set_message("");
            }
            Event::Resumed { key, step, ended, trials } => self.bar.println(resumed(key, *step, *ended, *trials)),
            Event::Scored { done, all, .. } => {
                self.bar.set_length(*all as u64);
                self.bar.set_position(*done as u64);
                self.bar.set_prefix("scoring connections");
                self.bar.set_message("networks");
            }
            Event::Detail(line) | Event::Note(line) | Event::Lost(line) => self.bar.println(plain(line)),
            Event::Moment { moment, left, .. } => {
                self.bar.set_message(standing(moment, &self.nearness, *left));
                self.bar.set_length(u64::from(moment.last_step));
                self.bar.set_position(u64::from(moment.step));
            }
            Event::Confirming { key, points, trainings, done, step, last_step } => {
                self.bar.println(confirming(key, *points, *trainings, *done));
                self.bar.reset();
                self.bar.set_length(u64::from(*last_step));
                self.bar.set_position(u64::from(*step));
                self.bar.set_prefix(format!("confirming {key}"));
                self.bar.set_message("");
            }
            Event::Confirmed { cell, last_step, left } => self.bar.println(confirmed(cell, *last_step, *left)),
            Event::CellFinished { cell, left } => {
                self.finished += 1;
                self.bar.println(finished(self.finished, self.cells, cell, &self.nearness, *left));
            }
        }
        if self.finished == self.cells && matches!(event, Event::Confirmed { .. } | Event::CellFinished { .. }) {
            self.bar.finish_and_clear();
        }
    }
}

//! A live bar for the cell being measured, under one line for each finished cell.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Event, Observer, Told};
use crate::streams::plain;

pub(super) struct Bar {
    bar: ProgressBar,
    told: Told,
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
        Bar { bar, told: Told::default() }
    }

    /// Shows trainings that have taken so many steps.
    fn begin(&self, step: u32, last_step: u32, prefix: String) {
        self.bar.reset();
        self.bar.set_length(u64::from(last_step));
        self.bar.set_position(u64::from(step));
        self.bar.set_prefix(prefix);
        self.bar.set_message("");
    }
}

impl Observer for Bar {
    fn event(&mut self, event: &Event) {
        if let Some(lines) = self.told.lines(event) {
            self.bar.println(plain(&lines));
        }
        match event {
            Event::CellStarted { key, index, max_steps, .. } => {
                self.begin(0, *max_steps, format!("[{}/{}] {key}", index + 1, self.told.cells))
            }
            Event::Scored { done, all, .. } => {
                self.bar.set_length(*all as u64);
                self.bar.set_position(*done as u64);
                self.bar.set_prefix("scoring connections");
                self.bar.set_message("networks");
            }
            Event::Moment { moment, left, .. } => {
                self.bar.set_message(self.told.standing(moment, *left));
                self.bar.set_length(u64::from(moment.last_step));
                self.bar.set_position(u64::from(moment.step));
            }
            Event::Confirming { key, step, last_step, .. } => self.begin(*step, *last_step, format!("confirming {key}")),
            Event::Confirmed { .. } | Event::CellFinished { .. } if self.told.finished == self.told.cells => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}

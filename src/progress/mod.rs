//! Progress of a running study, as a person or a log sees it.
//!
//! Rank 0 alone has an [`Observer`]. It shows events and may not change anything.

mod bar;
mod event;
mod json;
mod lines;
mod terminal;

pub use event::{Event, Observer};

use clap::ValueEnum;

use crate::streams;

/// How progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A bar.
    Bar,
    /// One JSON object a line.
    Json,
    /// Nothing.
    None,
}

/// The observer for a way of showing progress; `verbose` also shows details, in lines, and `terminal` says whether standard error is one.
pub fn observer(progress: ProgressForm, verbose: bool, terminal: bool) -> Box<dyn Observer> {
    let mut observer: Box<dyn Observer> = match progress {
        ProgressForm::Auto if verbose => Box::new(lines::Lines::new(true)),
        ProgressForm::None => silent(),
        ProgressForm::Json => Box::new(json::Json::default()),
        ProgressForm::Bar => Box::new(bar::Bar::new(terminal::of_launcher())),
        ProgressForm::Auto if terminal => Box::new(bar::Bar::new(None)),
        ProgressForm::Auto => match terminal::of_launcher() {
            Some(found) => Box::new(bar::Bar::new(Some(found))),
            None => Box::new(lines::Lines::new(false)),
        },
    };
    Box::new(move |event: &Event| {
        if verbose || !matches!(event, Event::Detail(_)) {
            observer.event(event);
        }
    })
}

/// An observer that shows nothing but what is lost; of that the ranks other than 0 are not told.
pub fn silent() -> Box<dyn Observer> {
    Box::new(|event: &Event| {
        if let Event::Lost(line) = event {
            streams::err(line);
        }
    })
}

//! The exit codes of both programs, each with what it means. Help, README and docs/how-it-works.md take them from here.
//!
//! `STOPPED` is "try again later" of sysexits.h, for a batch script to requeue on. `DEVICE` is also for memory that is used up: the host cannot do
//! what is asked of it. `KILLED` is what a shell reports of a program that SIGINT ended.

/// Declares the exit codes; the doc comment of one is the sentence that users read.
macro_rules! codes {
    ($(#[doc = $meaning:literal] $name:ident = $code:literal),+ $(,)?) => {
        $(#[doc = $meaning] pub const $name: u8 = $code;)+

        /// Every exit code and what it means, in ascending order.
        pub const CODES: &[(u8, &str)] = &[$(($code, $meaning)),+];
    };
}

codes! {
    /// done
    DONE = 0,
    /// an unexpected failure
    UNEXPECTED = 1,
    /// the configuration or the command line is wrong
    CONFIGURATION = 2,
    /// a data file is missing, damaged or not the original
    DATA = 3,
    /// a result file or a report cannot be read or written
    RESULTS = 4,
    /// the ranks disagree, or one is lost or stuck
    COMMUNICATION = 5,
    /// the device asked for cannot be used, or memory is used up
    DEVICE = 6,
    /// the study's journal, checkpoint or lock cannot be used
    JOURNAL = 7,
    /// the report has warnings, with `dps-report --strict`
    WARNINGS = 8,
    /// done, but standard output could not be written
    UNPRINTED = 9,
    /// a signal stopped the study; the same command continues it
    STOPPED = 75,
    /// Ctrl-C ended a command that saves nothing, or a second Ctrl-C a study at once
    KILLED = 130,
}

/// The codes as help prints them, without the marks of code that pages have.
pub fn help() -> String {
    let lines = CODES.iter().map(|(code, meaning)| format!("\n  {code:<2} {}", meaning.trim().replace('`', "")));
    format!("Exit codes:{}", lines.collect::<String>())
}

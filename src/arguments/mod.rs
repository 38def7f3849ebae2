//! The command lines of the two programs, each declared once.
//!
//! Nothing here opens a file or ends the process: under MPI every rank reads the command line, and one of them speaks. Only whether a word names a
//! file is asked.

mod manual;
mod report;
mod train;

pub use manual::{completions, manual_pages};
pub use report::ReportArguments;
pub use train::{
    ConfirmArguments, DataCommand, DataFolder, ExecutionArguments, PilotArguments, ReplayArguments, ShownArguments, Source, StudyArguments,
    Train, supervised,
};

use std::ffi::OsString;

use clap::{ArgMatches, Command};

/// Columns of help.
const WIDTH: usize = 80;

/// The commands and options that `words` give to the command line `line`, whose help by `-h` lists the commands and options `shown` alone.
///
/// # Errors
/// The error is clap's, help included.
fn matches(line: Command, shown: &[&str], words: impl IntoIterator<Item = OsString>) -> Result<ArgMatches, clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let line = if words.iter().any(|word| word == "-h") { brief(line, shown) } else { line };
    line.try_get_matches_from(words)
}

fn brief(line: Command, shown: &[&str]) -> Command {
    let is_shown = |name: &str| shown.contains(&name);
    let more = format!("All of it: {} --help.", line.get_name());
    line.after_help(more)
        .disable_help_subcommand(true)
        .mut_subcommands(|command| if is_shown(command.get_name()) { command } else { command.hide(true) })
        .mut_args(|argument| if is_shown(argument.get_id().as_str()) { argument } else { argument.hide(true) })
}

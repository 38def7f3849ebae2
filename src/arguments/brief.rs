//! A command line read, with the short help of `-h`.

use std::ffi::OsString;

use clap::{ArgMatches, Command};

/// The commands and options that `words` give to the command line `line`, whose help by `-h` lists the commands and options `shown` alone.
///
/// # Errors
/// The error is clap's, help included.
pub(super) fn matches(line: Command, shown: &[&str], words: impl IntoIterator<Item = OsString>) -> Result<ArgMatches, clap::Error> {
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

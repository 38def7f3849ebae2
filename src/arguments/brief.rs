//! The short help of `-h`.

use clap::Command;

/// A command line whose help lists the commands and options `shown` alone.
pub(super) fn brief(line: Command, shown: &[&str]) -> Command {
    let is_shown = |name: &str| shown.contains(&name);
    let more = format!("All of it: {} --help.", line.get_name());
    line.after_help(more)
        .disable_help_subcommand(true)
        .mut_subcommands(|command| if is_shown(command.get_name()) { command } else { command.hide(true) })
        .mut_args(|argument| if is_shown(argument.get_id().as_str()) { argument } else { argument.hide(true) })
}

//! Completions of shells and manual pages, made of the definitions of the command lines.

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::train::programs;

/// Completions of both programs' command lines for a shell.
pub fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    for mut program in programs() {
        let name = program.get_name().to_owned();
        let begin = text.len();
        generate(shell, &mut program, name.clone(), &mut text);
        if shell == Shell::Bash {
            // clap_complete takes the hyphen of a program's name for one between commands in one of two places, so no command would be found:
            // https://github.com/clap-rs/clap/issues/6421
            let made = String::from_utf8_lossy(&text[begin..]).replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"));
            text.splice(begin.., made.into_bytes());
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A manual page for each program and each of its commands: the file's name, and the page in roff.
pub fn manual_pages() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for program in programs() {
        let mut program = program.disable_help_subcommand(true);
        program.build();
        collect(&program, program.get_name(), &mut found);
    }
    found
}

fn collect(command: &Command, name: &str, found: &mut Vec<(String, String)>) {
    let mut page = Vec::new();
    let man = Man::new(command.clone().name(name.to_owned()).display_name(name.to_owned()));
    // Writing to memory does not fail.
    let _ = man.render(&mut page);
    found.push((format!("{name}.1"), String::from_utf8_lossy(&page).into_owned()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        collect(inner, &format!("{name}-{}", inner.get_name()), found);
    }
}

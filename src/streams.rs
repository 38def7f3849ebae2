//! Standard output and standard error. A failed write to either does not end the program: a study goes on where a log's disk is full or a terminal
//! is closed.
//!
//! Rust's `println!` and `eprintln!` panic where they cannot write, so no other module may use them.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::short;
use crate::exit;
use crate::readable::steers;

/// Letters of a line of [`usage`] at most.
const LINE: usize = 420;

static LOST: AtomicBool = AtomicBool::new(false);

/// The name of the running program.
static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Writes to standard output. A reader that has gone (`| head`) is no failure; any other one is remembered for [`exit_code`].
pub fn out(text: &str) {
    print(&plain(text));
}

fn print(text: &str) {
    let mut output = std::io::stdout();
    if let Err(cause) = output.write_all(text.as_bytes()).and_then(|()| output.flush())
        && cause.kind() != ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        let program = PROGRAM.get().map_or("dps", |name| name);
        err(&format!("{program}: standard output cannot be written ({cause}); name a file or a pipe that can"));
    }
}

/// Writes a line to standard error, or nowhere if that cannot be written.
pub fn err(line: &str) {
    // In one piece, so that lines of several ranks do not mix.
    let _ = std::io::stderr().write_all(format!("{}\n", plain(line)).as_bytes());
}

/// A text without letters that would steer the reader's terminal, but for ends of lines and tabs: names of files, words of a command line and texts
/// of damaged files may hold some.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| !steers(letter) || letter == '\n' || letter == '\t';
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let escaped = |letter: char| if is_plain(letter) { letter.to_string() } else { letter.escape_unicode().to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Writes a question to standard error, on the line on which the answer is typed.
pub fn prompt(question: &str) {
    let _ = std::io::stderr().write_all(question.as_bytes());
}

/// Prints what clap says of a command line: help and the version on standard output, a mistake on standard error, shortened, since the word that it
/// quotes may be megabytes long. Returns the exit code.
pub fn usage(answer: &clap::Error) -> u8 {
    let text = answer.render();
    if answer.use_stderr() {
        let lines: Vec<String> = text.to_string().trim_end().lines().map(|line| short(line, LINE)).collect();
        err(&lines.join("\n"));
    } else {
        print(&if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() });
    }
    answer.exit_code() as u8
}

/// The exit code of a program that ends with `code`: `UNPRINTED` in place of 0 where something could not be printed on standard output.
pub fn exit_code(code: u8) -> ExitCode {
    ExitCode::from(if code == exit::DONE && LOST.load(Ordering::Relaxed) { exit::UNPRINTED } else { code })
}

/// Names the running program in messages. From now on, writing beyond a file size limit (`ulimit -f`) becomes an error like that of a full disk,
/// where the signal of it would end the program.
pub fn prepare(program: &'static str) {
    let _ = PROGRAM.set(program);
    // SAFETY: a signal that is ignored runs no handler, so none of ours can be wrong.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(plain("a\tb\nµ"), "a\tb\nµ");
        assert_eq!(plain("a\u{202e}b\u{2066}"), "a\\u{202e}b\\u{2066}");
        assert_eq!(plain("\u{1b}[31mred\r\u{9b}\u{7f}"), "\\u{1b}[31mred\\u{d}\\u{9b}\\u{7f}");
    }
}

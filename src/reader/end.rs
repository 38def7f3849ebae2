//! End of a reading process, and its meaning.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use crate::exit;

/// The exit code of a reading process that has said what is wrong with the file: on standard error, behind a NUL, since libraries may write there,
/// too.
pub(super) const PROBLEM: u8 = exit::DATA;

/// Bytes of a reading process's standard error that are read, at most.
const WORDS: u64 = 1 << 16;

/// A problem of a file, in words that follow its name: the cause of an [`io::Error`] that reading the answer of [`ask`](super::ask) gives.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(pub(crate) String);

impl Problem {
    /// The words of the problem that is the cause of `error`, if one is.
    pub(crate) fn of(error: &io::Error) -> Option<&str> {
        error.get_ref()?.downcast_ref::<Problem>().map(|Problem(words)| words.as_str())
    }
}

/// Waits for a reading process that has closed its standard output.
///
/// # Errors
/// A [`Problem`]: the file's, or why the process has not said its answer to the end.
pub(super) fn judged(child: &mut Child) -> io::Result<()> {
    let mut words = Vec::new();
    if let Some(errors) = child.stderr.take() {
        errors.take(WORDS).read_to_end(&mut words)?;
    }
    let status = child.wait()?;
    let problem = match status.code() {
        Some(0) => return Ok(()),
        Some(code) if code == i32::from(PROBLEM) => {
            String::from_utf8_lossy(words.rsplit(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
        }
        _ => ended(status),
    };
    let kind = if status.signal().is_some_and(|signal| STOPS.contains(&signal)) { STOPPED } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, Problem(problem)))
}

/// Signals by which a person or a scheduler stops a study. A reading process ignores them, but for the moment in which it starts.
pub(super) const STOPS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1];

/// The kind of error of a reading process that one of [`STOPS`] has ended, which says nothing of the file.
pub(super) const STOPPED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Sentence on the end of a process that has not said its answer to the end.
fn ended(status: ExitStatus) -> String {
    let advice = "the file is probably damaged; copy it again, or write it anew";
    match (status.signal(), status.code()) {
        (Some(libc::SIGXCPU | libc::SIGALRM), _) => format!("reading it took longer than a file of its length can; {advice}"),
        (Some(signal), _) if STOPS.contains(&signal) => {
            format!("signal {signal} ended the process that reads it; run the same command again")
        }
        (Some(libc::SIGKILL), _) => format!("the process that reads it was killed: memory is short, or {advice}"),
        (Some(signal), _) => format!("the HDF5 library failed on it (signal {signal}): {advice}"),
        (None, Some(code)) if code == i32::from(exit::DEVICE) => {
            format!("reading it takes more memory than a file of its length can, or than there is; {advice}")
        }
        (None, code) => format!("the process that reads it ended without a word (exit code {}); {advice}", code.unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_sentence() {
        let by_signal = |signal| ended(ExitStatus::from_raw(signal));
        assert!(by_signal(libc::SIGSEGV).contains("the HDF5 library failed on it (signal 11)"), "{}", by_signal(libc::SIGSEGV));
        assert!(by_signal(libc::SIGXCPU).contains("took longer"), "{}", by_signal(libc::SIGXCPU));
        assert!(by_signal(libc::SIGTERM).contains("run the same command again"), "{}", by_signal(libc::SIGTERM));
        assert!(by_signal(libc::SIGKILL).contains("was killed"), "{}", by_signal(libc::SIGKILL));
        let by_code = |code: u8| ended(ExitStatus::from_raw(i32::from(code) << 8));
        assert!(by_code(exit::DEVICE).contains("more memory"), "{}", by_code(exit::DEVICE));
        assert!(by_code(exit::DONE).contains("without a word"), "{}", by_code(exit::DONE));
    }
}

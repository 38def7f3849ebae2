//! What the end of a reading process means.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::exit;

/// What the end of a process means that has not said its answer to the end.
pub(super) fn ended(status: ExitStatus) -> String {
    let advice = "the file is probably damaged; copy it again, or write it anew";
    match (status.signal(), status.code()) {
        (Some(libc::SIGXCPU | libc::SIGALRM), _) => format!("reading it took longer than a file of its length can; {advice}"),
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
        assert!(by_signal(libc::SIGKILL).contains("was killed"), "{}", by_signal(libc::SIGKILL));
        let by_code = |code: u8| ended(ExitStatus::from_raw(i32::from(code) << 8));
        assert!(by_code(exit::DEVICE).contains("more memory"), "{}", by_code(exit::DEVICE));
        assert!(by_code(exit::DONE).contains("without a word"), "{}", by_code(exit::DONE));
    }
}

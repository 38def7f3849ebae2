//! The terminal of the person who started the ranks.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::parent_id;

use console::Term;

/// Programs that start the ranks of MPI.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// The terminal behind the standard error of the MPI launcher that started this process. Launchers give their ranks a pipe and pass on
/// what comes through it; a bar must know the terminal itself. `None` where the launcher has none, or runs on another host, and where the system is
/// not Linux, which alone says it in `/proc`.
pub(super) fn of_launcher() -> Option<Term> {
    let parent = format!("/proc/{}", parent_id());
    let name = fs::read_to_string(format!("{parent}/comm")).ok()?;
    // A shell's terminal is not meant for a process whose own standard error was sent elsewhere.
    if !LAUNCHERS.iter().any(|launcher| name.starts_with(launcher)) {
        return None;
    }
    let errors = format!("{parent}/fd/2");
    // A terminal that is opened must not become the one that controls this process.
    let open = || OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(&errors);
    let terminal = fs::read_link(&errors).ok()?.starts_with("/dev/");
    let term = Term::read_write_pair(terminal.then(open)?.ok()?, open().ok()?);
    term.is_term().then_some(term)
}

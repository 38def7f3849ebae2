//! The terminal of the person who started the ranks.

use console::Term;

/// The terminal behind the standard error of the MPI launcher that started this process. Launchers give their ranks a pipe and pass on
/// what comes through it; a bar must know the terminal itself. `None` where the launcher has none, or runs on another host.
#[cfg(target_os = "linux")]
pub(super) fn of_launcher() -> Option<Term> {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];
    let parent = std::os::unix::process::parent_id();
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    // A shell's terminal is not meant for a process whose own standard error was sent elsewhere.
    if !LAUNCHERS.iter().any(|launcher| name.starts_with(launcher)) {
        return None;
    }
    // A terminal that is opened must not become the one that controls this process.
    let open = || OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(format!("/proc/{parent}/fd/2"));
    let terminal = std::fs::read_link(format!("/proc/{parent}/fd/2")).ok()?.starts_with("/dev/");
    let term = Term::read_write_pair(terminal.then(open)?.ok()?, open().ok()?);
    term.is_term().then_some(term)
}

/// Only Linux tells what a parent's standard error is.
#[cfg(not(target_os = "linux"))]
pub(super) fn of_launcher() -> Option<Term> {
    None
}

//! A study that goes on by itself: a command that measures one, started again after ends that a new start can mend.
//!
//! The module starts a process, waits for it and looks at the study's files; it knows nothing of MPI and trains nothing.

mod hosts;
mod output;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::output::say;
use crate::exit::{self, CODES};
use crate::journal::{Journal, Lock, journal_path, lock_path};
use crate::storage::Disk;
use crate::study::status;
use crate::{Error, Result, signals};

pub use hosts::Hosts;
use hosts::{Answers, Watch as HostWatch};

/// How often the command is looked at, and how often the study's lock.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_AT_LOCK: Duration = Duration::from_secs(1);

/// The pause after a start that brought progress; each start in a row that brings none doubles the pause.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the command may go on once nobody works on the study any more: Open MPI's mpirun may hang when it has lost a rank. It is shorter where
/// the study did not end in order, after which its ranks have nothing more to do.
const HANGING: Duration = Duration::from_secs(30);
const HANGING_AFTER_A_LOSS: Duration = Duration::from_secs(5);

/// How long ranks that a lost launcher left may take to end before the next start.
const LEFT_BEHIND: Duration = Duration::from_secs(90);

/// How often a command that is to stop is told so, and how long it may take to begin with the study before it is killed instead: Open MPI's mpirun
/// hangs on a signal that comes while its ranks are being started.
const TELL_EVERY: Duration = Duration::from_secs(10);
const BEGINNING: Duration = Duration::from_secs(45);

/// Runs `command`, which measures the study of the result file at `output`, until it is done, until it ends in a way that a new start does not mend,
/// until a signal stops it, or until `tries` starts in a row have brought no progress. Returns the
/// command's last exit code; of a study that a signal stopped [`exit::STOPPED`], and where no host answers [`exit::COMMUNICATION`].
///
/// With `hosts`, each start is on those of them that answer. The command is killed where one of these falls silent and the study makes no progress.
///
/// # Errors
/// [`Error::Configuration`]: the command cannot be started, or is not one that takes hosts. [`Error::Results`]: the list of hosts cannot be written.
pub fn supervise(command: &[OsString], hosts: Option<&Hosts>, output: &Path, tries: u32) -> Result<u8> {
    let mut stalls = 0;
    for start in 1_u64.. {
        let before = progress(output);
        let on_hosts = match hosts {
            Some(hosts) => hosts.command(command, output)?.map(|(command, hosts)| (command, Some(HostWatch::new(hosts)))),
            None => Some((command.to_vec(), None)),
        };
        let has_begun = on_hosts.is_some();
        let (code, ended) = match on_hosts {
            Some((command, hosts)) => run(&command, hosts, output).map(|status| (code(status), format!("ended {}", words(status))))?,
            None => (exit::COMMUNICATION, "did not begin, as no host answers".to_owned()),
        };
        let after = progress(output);
        // The journal notes how this start ended, for the next start to record.
        let note = || if has_begun { Journal::note_end(output, code, Arc::new(Disk)) } else { Ok(()) };
        let at = after.as_ref().map_or(String::new(), |after| format!(", at {after}"));
        if signals::stop() {
            // A signal to the whole process group gives mpirun an exit code of its own, so the journal tells whether the study was stopped.
            let (code, ended) = if was_stopped(output) {
                (exit::STOPPED, "ended with everything saved".to_owned())
            } else {
                let _ = note();
                (code, ended)
            };
            say(&format!("start {start} {ended}{at}; not started again, as a signal stopped it"));
            return Ok(code);
        }
        let words = format!("start {start} {ended}{at}");
        if !is_mended_by_a_start(code, start) {
            return Ok(code);
        }
        stalls = if before == after { stalls + 1 } else { 0 };
        if stalls >= tries {
            let _ = note();
            say(&format!(
                "{words}; given up: {tries} starts in a row brought no progress. Mend what the command says, then run this again"
            ));
            return Ok(code);
        }
        let pause = PAUSE.saturating_mul(1 << stalls.min(6)).min(LONGEST_PAUSE);
        say(&format!("{words}; started again in {} s", pause.as_secs()));
        wait(pause, signals::stop);
        // The ranks of a launcher that was killed notice it, save and end.
        wait(LEFT_BEHIND, || signals::stop() || holder(output).is_none());
        if let Err(error) = note() {
            say(&format!("how the start ended could not be noted: {error}"));
        }
        if signals::stop() {
            return Ok(exit::STOPPED);
        }
    }
    Ok(exit::DONE)
}

/// Runs the command once, on hosts that are asked whether they are still there.
fn run(command: &[OsString], hosts: Option<HostWatch>, output: &Path) -> Result<ExitStatus> {
    let refuse = |cause: std::io::Error| Error::Configuration {
        path: "supervise".to_owned(),
        problems: vec![format!(
            "expected a command that can be run, found {} ({cause}); write it as you would without supervise",
            command.first().map_or("none".into(), |word| word.to_string_lossy())
        )],
    };
    let Some((program, words)) = command.split_first() else { return Err(refuse(std::io::ErrorKind::NotFound.into())) };
    let mut child = Command::new(program).args(words).spawn().map_err(refuse)?;
    let mut watch =
        Watch { looked: Instant::now(), journal: journal_bytes(output), held: None, told: None, stopping: None, hosts, silent_at: None };
    loop {
        if let Some(status) = child.try_wait().map_err(refuse)? {
            return Ok(status);
        }
        watch.look(&mut child, output);
        std::thread::sleep(LOOK);
    }
}

/// Observations of a running command.
struct Watch {
    /// Time of the last look at the lock.
    looked: Instant,
    /// Bytes of the journal before the command began.
    journal: Option<u64>,
    /// Time at which the study was last seen being worked on.
    held: Option<Instant>,
    /// Time at which the command was last told to stop.
    told: Option<Instant>,
    /// Time since which the command is to stop.
    stopping: Option<Instant>,
    hosts: Option<HostWatch>,
    /// How far the study was when a host did not answer.
    silent_at: Option<String>,
}

impl Watch {
    /// Tells the command to stop where a signal wants that, and kills it where it hangs.
    fn look(&mut self, child: &mut Child, output: &Path) {
        let is_stopping = signals::stop();
        if self.looked.elapsed() < LOOK_AT_LOCK && is_stopping == self.stopping.is_some() {
            return;
        }
        self.looked = Instant::now();
        // A job that was lost between two looks has left its start in the journal.
        if holder(output).is_some() || self.held.is_none() && journal_bytes(output) != self.journal {
            self.held = Some(self.looked);
        }
        if is_stopping {
            let since = *self.stopping.get_or_insert(self.looked);
            if self.held.is_some() && self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                self.told = Some(self.looked);
                // SAFETY: the child has not been waited for, so its number is its own.
                unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGUSR1) };
            } else if self.held.is_none() && since.elapsed() >= BEGINNING {
                let _ = child.kill();
            }
        }
        match self.hosts.as_mut().and_then(HostWatch::look) {
            Some(Answers::All) => self.silent_at = None,
            Some(Answers::Silent(_)) => self.silent_at = progress(output),
            // Ranks may go on where nothing but the way to ask their host is broken.
            Some(Answers::Lost(names)) => {
                let at = progress(output);
                if at == self.silent_at {
                    say(&format!("no answer from {}, twice in a row, and no progress: the command is killed", names.join(", ")));
                    let _ = child.kill();
                }
                self.silent_at = at;
            }
            None => {}
        }
        let left_for = self.held.map_or(Duration::ZERO, |held| held.elapsed());
        if left_for >= HANGING || left_for >= HANGING_AFTER_A_LOSS && !has_ended_in_order(output) {
            say("nobody works on the study any more, but the command goes on: it is killed");
            let _ = child.kill();
        }
    }
}

/// Holder of the study's lock, where a process works on the study.
fn holder(output: &Path) -> Option<impl Sized + use<>> {
    Lock::holder(&lock_path(output))
}

/// Bytes of the journal, where there is one.
fn journal_bytes(output: &Path) -> Option<u64> {
    std::fs::metadata(journal_path(output)).ok().map(|found| found.len())
}

/// Whether the last start noted how it ended, as each does that no rank's death cut short. Where that cannot be read, it may have.
fn has_ended_in_order(output: &Path) -> bool {
    Journal::read(&journal_path(output), &Disk).map_or(true, |journal| journal.is_none_or(|journal| journal.ended.is_some()))
}

/// Whether the last start noted that a signal stopped it.
fn was_stopped(output: &Path) -> bool {
    Journal::read(&journal_path(output), &Disk).is_ok_and(|journal| journal.is_some_and(|journal| journal.was_stopped()))
}

/// How far the study is; none before it begins, and where its files cannot be read.
fn progress(output: &Path) -> Option<String> {
    status(output).ok().map(|found| found.progress())
}

/// Waits until `holds` returns true, but no longer than `most`.
fn wait(most: Duration, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < most && !holds() {
        std::thread::sleep(LOOK);
    }
}

/// Whether a new start may mend such an end. A wrong configuration, missing data, a device that cannot be used or a disk that refuses stay what they
/// are. Another job's lock may be one that ranks of an earlier start still hold.
fn is_mended_by_a_start(code: u8, start: u64) -> bool {
    const LASTING: [u8; 8] =
        [exit::DONE, exit::CONFIGURATION, exit::DATA, exit::RESULTS, exit::DEVICE, exit::WARNINGS, exit::UNPRINTED, exit::KILLED];
    !LASTING.contains(&code) && (code != exit::JOURNAL || start > 1)
}

/// The command's exit code as a shell has it: 128 and the number of the signal that ended it.
fn code(status: ExitStatus) -> u8 {
    status.code().or(status.signal().map(|signal| 128 + signal)).and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::UNEXPECTED)
}

fn words(status: ExitStatus) -> String {
    match (status.signal(), CODES.iter().find(|(code, _)| status.code() == Some((*code).into()))) {
        (Some(signal), _) => format!("by {}", signal_hook::low_level::signal_name(signal).unwrap_or("a signal")),
        (None, Some((code, meaning))) => format!("with exit code {code} ({})", meaning.trim()),
        (None, None) => format!("with exit code {}", code(status)),
    }
}

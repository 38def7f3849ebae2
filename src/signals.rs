//! Signals that ask a study to stop, the launcher's death, and what a person hears of them at once.
//!
//! `mpirun` gives its ranks little time: Open MPI 4.1 sends SIGCONT, a second later SIGTERM, and another second later SIGKILL. So a thread of its own hears
//! signals and says so, whatever the program is doing; a SIGCONT asks for a checkpoint; and what is saved by then is what the last checkpoint has.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::error::LOST;
use crate::streams;

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static URGENT: AtomicBool = AtomicBool::new(false);
static ORPHANED: AtomicBool = AtomicBool::new(false);
static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);
/// The signal that came before there was somebody to speak; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Who tells a person of a signal: rank 0.
struct Speaker {
    /// Whether as a JSON object.
    json: bool,
    /// What the last checkpoint has, and when it was written.
    saved: Option<(String, Instant)>,
}

/// How often a process looks whether its launcher is still there.
const LOOK: Duration = Duration::from_millis(500);

/// How long ranks without a launcher have to save what they have.
const ALONE: Duration = Duration::from_secs(60);

/// Listens from now on. A second SIGINT ends the process at once, for a person who does not want to wait. `launched`: a launcher such as mpirun started this
/// process, and its death means the same as a signal.
///
/// # Errors
/// The operating system refused.
pub fn listen(launched: bool) -> std::io::Result<()> {
    let flag = STOP.get_or_init(Default::default);
    // Registered before the flag is set by the same signal, so that the first SIGINT finds it unset.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, flag.clone())?;
    // Who was started by nohup is to live on when the terminal goes.
    let stopping = [SIGTERM, SIGUSR1, SIGINT].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP));
    let stopping: Vec<i32> = stopping.collect();
    for &signal in &stopping {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    let mut signals = Signals::new(stopping.iter().chain(&[SIGCONT]))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || signals.forever().for_each(heard))?;
    if launched {
        let launcher = std::os::unix::process::parent_id();
        std::thread::Builder::new().name("launcher".into()).spawn(move || watch(launcher))?;
    }
    Ok(())
}

/// Whether a signal asked to stop, or the launcher is gone.
pub fn stop() -> bool {
    STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Whether a checkpoint is wanted soon; asked, it is answered.
pub fn urgent() -> bool {
    URGENT.swap(false, Ordering::Relaxed)
}

/// Whether the launcher is gone: MPI cannot be ended in peace then.
pub fn orphaned() -> bool {
    ORPHANED.load(Ordering::Relaxed)
}

/// Ends the process at once, without the launcher that MPI would take leave of.
pub fn leave(code: u8) -> ! {
    // SAFETY: _exit does nothing but end the process.
    unsafe { libc::_exit(code.into()) }
}

/// From now on this process tells a person of signals, or a program, in JSON.
pub fn speak(json: bool) {
    *SPEAKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Speaker { json, saved: None });
    match EARLY.load(Ordering::Relaxed) {
        0 => {}
        signal => say(signal),
    }
}

/// A checkpoint is on the disk; `what` says of which moment it is.
pub fn saved(what: String) {
    if let Some(speaker) = &mut *SPEAKER.lock().unwrap_or_else(PoisonError::into_inner) {
        speaker.saved = Some((what, Instant::now()));
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction only writes the old action, which is a plain struct that zeros make valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn heard(signal: i32) {
    if signal == SIGCONT {
        URGENT.store(true, Ordering::Relaxed);
    } else if EARLY.swap(signal, Ordering::Relaxed) == 0 {
        // Once: mpirun passes on what a person's keyboard sent, too.
        say(signal);
    }
}

/// Tells what a signal does, where this process speaks.
fn say(signal: i32) {
    tell(signal_hook::low_level::signal_name(signal).unwrap_or("a signal"));
}

/// Tells that the study stops, and why.
fn tell(why: &str) {
    let Some(speaker) = &*SPEAKER.lock().unwrap_or_else(PoisonError::into_inner) else { return };
    let (saved, ago) = match &speaker.saved {
        Some((what, when)) => (what.as_str(), Some(when.elapsed().as_secs_f64())),
        None => ("every trial that has ended", None),
    };
    if speaker.json {
        let event = serde_json::json!({ "event": "stopping", "why": why, "saved": saved, "seconds_ago": ago });
        return streams::err(&event.to_string());
    }
    let ago = ago.map_or(String::new(), |ago| format!(", {ago:.1} s ago"));
    streams::err(&format!("dps-train: {why}: the study stops and saves; saved so far: {saved}{ago}; the same command continues"));
}

/// Stops the study once `launcher` is no longer this process's parent, and ends the process if that takes too long.
fn watch(launcher: u32) {
    while std::os::unix::process::parent_id() == launcher {
        std::thread::sleep(LOOK);
    }
    ORPHANED.store(true, Ordering::Relaxed);
    STOP.get_or_init(Default::default).store(true, Ordering::Relaxed);
    tell("the launcher is gone");
    std::thread::sleep(ALONE);
    std::process::exit(LOST.into());
}

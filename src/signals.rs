//! Signals that ask a study to stop, the death of its launcher, and the sentence that tells a person of them.
//!
//! `mpirun` gives its ranks little time: Open MPI 4.1 sends SIGCONT, a second later SIGTERM, and another second later SIGKILL. So a thread
//! of its own waits for signals and prints the sentence at once, whatever the program is doing. A SIGCONT asks for a checkpoint. The study later
//! goes on from the last checkpoint that was written.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::streams;

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static URGENT: AtomicBool = AtomicBool::new(false);
static ORPHANED: AtomicBool = AtomicBool::new(false);
static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);
/// The first signal that came, which is told later where no speaker was set yet; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// How this process tells a person of a signal. Rank 0 alone does.
struct Speaker {
    /// Whether the process tells of a signal as a JSON object.
    json: bool,
    /// Contents of the last checkpoint, in words, and when it was written.
    saved: Option<(String, Instant)>,
}

/// Time between two looks at whether the launcher is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Time that ranks have to save a checkpoint once their launcher is gone.
const ALONE: Duration = Duration::from_secs(60);

/// Starts to listen for signals. `launcher_gone` is there where a launcher such as mpirun started this process: its death then stops the study as a
/// signal does, and a minute later this action is called, which should end the process.
///
/// # Errors
/// The operating system refused.
pub fn listen(launcher_gone: Option<fn()>) -> std::io::Result<()> {
    let flag = stop_flag();
    // A program started by nohup ignores SIGHUP, and goes on when its terminal closes.
    let stopping = [SIGTERM, SIGUSR1, SIGINT].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP));
    let stopping: Vec<i32> = stopping.collect();
    for &signal in &stopping {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    let mut signals = Signals::new(stopping.iter().chain(&[SIGCONT]))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || signals.forever().for_each(heard))?;
    if let Some(action) = launcher_gone {
        let launcher = std::os::unix::process::parent_id();
        std::thread::Builder::new().name("launcher".into()).spawn(move || watch(launcher, action))?;
    }
    Ok(())
}

/// The flag that signals set, for a program's own handler of a second one: register that before [`listen`], so that the first signal finds it unset.
pub fn stop_flag() -> Arc<AtomicBool> {
    STOP.get_or_init(Default::default).clone()
}

/// Whether a signal asked to stop, or the launcher is gone.
pub fn stop() -> bool {
    STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Whether a SIGCONT asked for a checkpoint since the last call.
pub fn urgent() -> bool {
    URGENT.swap(false, Ordering::Relaxed)
}

/// Whether the launcher is gone. MPI cannot be finalised then.
pub fn orphaned() -> bool {
    ORPHANED.load(Ordering::Relaxed)
}

/// Makes this process the one that tells of signals: a person, or with `json` a program.
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
        // Told once: a Ctrl-C reaches the ranks from the terminal and again from mpirun.
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

/// Stops the study once `launcher` is no longer this process's parent, and takes an action if that takes too long.
fn watch(launcher: u32, action: fn()) {
    while std::os::unix::process::parent_id() == launcher {
        std::thread::sleep(LOOK);
    }
    ORPHANED.store(true, Ordering::Relaxed);
    stop_flag().store(true, Ordering::Relaxed);
    tell("the launcher is gone");
    std::thread::sleep(ALONE);
    action();
}

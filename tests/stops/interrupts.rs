//! How people stop the program: Ctrl-C at mpirun's terminal, a closed terminal, a killed launcher. A sentence says what was saved, and the study goes
//! on from it, on a busy machine and with a slow disk too.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::records::timeless;
use crate::support::study::{Study, at_a_terminal, mpirun, mpirun_alone, on, signal, succeed, train};
use dps::journal::{self, Loaded};
use dps::records::Cell;
use dps::results;
use dps::storage::Disk;

/// A cell that takes a minute. No test waits for its end.
const LONG: [(&str, &str); 6] = [
    ("batch_sizes = [2, 37]", "batch_sizes = [16]"),
    ("sparsities = [0, 0.9]", "sparsities = [0]"),
    ("trials = 5", "trials = 4"),
    ("goal_error = 0.3", "goal_error = 0.0001"),
    ("max_steps = 40", "max_steps = 40000"),
    // The learning rate is so low that nothing is learnt.
    ("min = 1e-3, max = 1e4", "min = 1e-9, max = 1e-8"),
];

impl Study {
    /// Steps and lanes of the checkpoint, if there is one.
    fn checkpoint(&self) -> Option<(u32, usize)> {
        let contents = journal::Journal::read(&journal::journal_path(&self.output), &Disk).ok()??;
        let path = journal::checkpoint_path(&self.output);
        match journal::load(&path, &contents.header.digest, &contents.header.data_digest, &Disk).ok()? {
            Loaded::Checkpoint(found) => Some((found.state.step, found.state.lanes.len())),
            _ => None,
        }
    }

    /// Waits for a checkpoint.
    fn begun(&self) {
        let start = Instant::now();
        while self.checkpoint().is_none() {
            assert!(start.elapsed() < Duration::from_secs(90), "no checkpoint after 90 s");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Twice as many processes as processors, which do nothing but keep them busy.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Load {
        let count = 2 * std::thread::available_parallelism().map_or(2, usize::from);
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Load((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Compiles the library that makes writes to the disk slow.
fn slow_disk(folder: &Path) -> PathBuf {
    let (source, library) = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/slow_disk.c"), folder.join("slow_disk.so"));
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status().unwrap();
    assert!(compiled.success());
    library
}

/// Text that was shown after Ctrl-C was typed.
fn interrupted(mut child: Child, study: &Study) -> String {
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let start = Instant::now();
    while !study.ranks().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "ranks outlive Ctrl-C");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Seconds ago at which what was saved was saved, as the sentence at a signal says.
fn saved_ago(shown: &str) -> f64 {
    let (_, rest) = shown.split_once("saved so far: step ").unwrap_or_else(|| panic!("nothing is said of what is saved: {shown}"));
    let (_, seconds) = rest.split_once("sparsity 0, ").unwrap();
    seconds.split_once(" s ago").unwrap().0.parse().unwrap()
}

#[test]
fn control_c_to_mpirun_loses_seconds_and_is_answered_on_a_busy_machine_with_a_slow_disk() {
    let study = Study::new(&LONG);
    let library = slow_disk(study.folder.path());
    let _load = Load::new();
    let mut last = 0;
    for (ranks, slow) in [(1, "0"), (4, "1.5")] {
        let mut command = study.command(mpirun_alone(ranks));
        command.arg("--quiet").envs([("SLOW_DISK_SECONDS", slow), ("LD_PRELOAD", library.to_str().unwrap())]);
        let mut terminal = at_a_terminal(&command);
        let child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while study.checkpoint().is_none_or(|(step, _)| step <= last) {
            assert!(start.elapsed() < Duration::from_secs(120), "{ranks} ranks: no further than step {last}");
            std::thread::sleep(Duration::from_millis(50));
        }
        // At any moment between two checkpoints.
        std::thread::sleep(Duration::from_millis(700));
        let shown = interrupted(child, &study);
        let ago = saved_ago(&shown);
        assert!(ago < 15.0, "{ranks} ranks: {ago} s are lost: {shown}");
        let (step, lanes) = study.checkpoint().unwrap_or_else(|| panic!("{ranks} ranks: the checkpoint is gone: {shown}"));
        assert!(step > last && lanes == 4, "step {step} after {last}, {lanes} lanes");
        last = step;
    }
    // The lock that a killed rank left keeps nobody out, and the records are those of a study that nobody stopped.
    let end = "workload.max_steps=40";
    let whole = Study::new(&LONG);
    let short = |study: &Study| {
        succeed(study.command(train()).args(["--quiet", "--fresh", "--set", end]));
        timeless(results::read(&study.output).unwrap().cells)
    };
    assert_eq!(short(&study), short(&whole));
}

/// The records of a study that was stopped, and then continued alone.
fn finished(study: &Study) -> Vec<Cell> {
    succeed(study.command(train()).arg("--quiet"));
    timeless(results::read(&study.output).unwrap().cells)
}

#[test]
fn a_lost_terminal_stops_a_study_as_gently_as_any_signal_unless_nohup_started_it() {
    let study = Study::new(&LONG);
    let start = |command: &mut Command| command.arg("--quiet").stderr(Stdio::piped()).spawn().unwrap();
    let mut command = study.command(train());
    // The tests themselves may have been started by nohup.
    // SAFETY: between fork and exec nothing is called but `signal`, which may be called there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        })
    };
    let child = start(&mut command);
    study.begun();
    signal(child.id(), "HUP");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("SIGHUP: the study stops and saves; saved so far: step "), "{stderr}");

    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_dps-train"));
    let mut child = start(&mut study.command(nohup));
    std::thread::sleep(Duration::from_secs(1));
    signal(child.id(), "HUP");
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "a study that nohup started ended with its terminal");
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(75));
}

#[test]
fn no_rank_outlives_a_launcher_that_is_killed() {
    let study = Study::new(&LONG);
    let mut child = study.command(mpirun(2)).arg("--quiet").stderr(Stdio::piped()).spawn().unwrap();
    study.begun();
    assert_eq!(study.ranks().len(), 2);
    // mpirun() runs it under timeout(1).
    let launcher = Command::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap();
    let launcher = String::from_utf8_lossy(&launcher.stdout).trim().parse().unwrap();
    signal(launcher, "KILL");
    let start = Instant::now();
    while !study.ranks().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "ranks {:?} are still there", study.ranks());
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = child.wait();
    assert!(study.checkpoint().is_some_and(|(_, lanes)| lanes == 4));
}

/// A long step is left in its middle, and so is a long evaluation. The records are the same.
#[test]
fn a_long_step_is_left_in_the_middle() {
    let changes = [
        ("batch_sizes = [2, 37]", "batch_sizes = [20000]"),
        ("sparsities = [0, 0.9]", "sparsities = [0]"),
        ("trials = 5", "trials = 2"),
        ("goal_error = 0.3", "goal_error = 0.0001"),
        ("max_steps = 40", "max_steps = 1"),
        ("evaluate_every = 4", "evaluate_every = 1"),
        ("min = 1e-3, max = 1e4", "min = 1e-9, max = 1e-8"),
    ];
    let study = Study::new(&changes);
    for ranks in [0, 2] {
        let child = study.command(on(ranks)).args(["--quiet", "--fresh"]).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while !study.output.exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(1500));
        let asked = Instant::now();
        // mpirun tells all of its ranks, too.
        study.ranks().into_iter().for_each(|rank| signal(rank, "TERM"));
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(75), "{ranks} ranks: {stderr}");
        assert!(asked.elapsed() < Duration::from_secs(6), "{ranks} ranks: it took {:?} to hear a signal", asked.elapsed());
    }
    let continued = finished(&study);
    let undisturbed = finished(&Study::new(&changes));
    assert_eq!(continued, undisturbed);
}

//! A study that was killed, stopped or left without disk space goes on, on any number of ranks, to the results of an undisturbed one.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::noise;
use crate::support::records::complete;
use crate::support::study::{Study, fail, mpirun, signal, succeed, train};
use dps::records::Cell;

impl Study {
    /// One second between checkpoints, a goal that takes a while, and measurements that an interruption must not lose or repeat.
    fn interruptible() -> Study {
        Study::of("[2, 37]")
    }

    /// An interruptible study of several seconds, so that it writes checkpoints however fast the processor is.
    fn long() -> Study {
        Study::of("[2, 600]")
    }

    fn of(batch_sizes: &str) -> Study {
        Study::new(&[
            ("[2, 37]", batch_sizes),
            ("goal_error = 0.3", "goal_error = 0.05"),
            ("max_steps = 40", "max_steps = 160"),
            ("= 4\n\n", "= 8\n\n"),
            ("[search]", "[smoothness]\nevery = 20\ntrials = 2\npoints = 1\nexamples = 20\n\n[search]"),
        ])
    }

    /// The command of the study, with a checkpoint each second.
    fn saving(&self, command: Command) -> Command {
        self.measuring(command, "x.h5", &["--threads", "1", "--quiet", "--set", "execution.checkpoint_seconds=1"])
    }
}

/// The cells of an undisturbed study, and how long it took.
fn undisturbed() -> (Vec<Cell>, Duration) {
    let study = Study::interruptible();
    let start = Instant::now();
    succeed(&mut study.saving(train()));
    let duration = start.elapsed();
    let cells = complete(&study.output);
    assert!(cells.iter().flat_map(|cell| &cell.trials).any(|trial| trial.measurements.len() > 3));
    (cells, duration)
}

/// Waits until all of the study's ranks run and it has begun to write, or until it has ended; then for `delay` more.
fn wait(study: &Study, child: &mut Child, ranks: usize, delay: Duration) {
    let start = Instant::now();
    let has_begun = || study.output.exists() && study.ranks().len() == ranks;
    while start.elapsed() < Duration::from_secs(60) && !has_begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(delay);
}

/// Kills a random rank of a study until it is finished, on another number of ranks and in waves of another size each time; returns the kills.
/// Each comes within a quarter of the time that the undisturbed study takes.
fn kill_until_finished(study: &Study, undisturbed: Duration, most: u32, seed: u32) -> u32 {
    let mut kills = 0;
    for attempt in 0.. {
        let random = noise::hash(seed, attempt) as usize;
        let size = random % 3 + 1;
        let lanes = format!("execution.lanes={}", random >> 4 & 3);
        let mut child = study.saving(mpirun(size)).args(["--set", &lanes]).stderr(Stdio::null()).spawn().unwrap();
        wait(study, &mut child, size, undisturbed * (random as u32 >> 8 & 255) / 1024);
        if kills < most
            && let Some(&victim) = study.ranks().get(random % size)
        {
            // The victim may have ended by itself in the meantime.
            let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).stderr(Stdio::null()).status().unwrap();
            kills += u32::from(killed.success());
        }
        if ended(study, &mut child).is_some_and(|status| status.success()) {
            break;
        }
    }
    kills
}

/// How mpirun ended. None: it hung after all its ranks had ended, and was killed. Open MPI 4.1.4 does so now and then when a rank was
/// killed (a lock in its own PMIx_server_finalize).
fn ended(study: &Study, child: &mut Child) -> Option<ExitStatus> {
    let mut alone = None;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if study.ranks().is_empty() {
            if alone.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(20) {
                println!("mpirun hung after its ranks had ended");
                // The child is `timeout`, which passes this on to mpirun, and kills it five seconds later.
                signal(child.id(), "TERM");
                child.wait().unwrap();
                return None;
            }
        } else {
            alone = None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_rank_killed_at_any_time_loses_nothing() {
    let (expected, duration) = undisturbed();
    let study = Study::interruptible();
    let kills = kill_until_finished(&study, duration, 8, 1);
    assert!(kills >= 2, "only {kills} kills before the study was finished, which takes {duration:?} undisturbed");
    assert_eq!(complete(&study.output), expected);
}

/// `make soak`: kills random ranks as the test before it does, until 200 kills are made.
#[test]
#[ignore = "takes a quarter of an hour: make soak"]
fn soak() {
    let (expected, duration) = undisturbed();
    let trials = |cells: &[Cell]| cells.iter().map(|cell| cell.trials.len()).sum::<usize>();
    let (mut kills, mut studies, mut lost, mut differing) = (0, 0, 0, 0);
    while kills < 200 {
        let study = Study::interruptible();
        kills += kill_until_finished(&study, duration, 200 - kills, 100 + studies);
        studies += 1;
        let found = complete(&study.output);
        lost += trials(&expected) - trials(&found);
        differing += usize::from(found != expected);
        println!("{kills} kills, {studies} studies, {lost} trials lost, {differing} results differing");
    }
    assert_eq!((lost, differing), (0, 0));
}

#[test]
fn a_full_disk_and_a_folder_that_cannot_be_written_end_in_a_sentence_and_lose_nothing() {
    let (study, undisturbed) = (Study::long(), Study::long());
    // Files may grow to some blocks of 512 bytes: in 4,000 of them the results and the journal fit, a checkpoint does not. Ignoring the signal makes
    // it an error.
    for blocks in [1, 4000] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &blocks.to_string(), env!("CARGO_BIN_EXE_dps-train")]);
        // Or Open MPI wants files of its own.
        shell.env("OMPI_MCA_ess_singleton_isolated", "1");
        let stderr = fail(&mut study.saving(shell), 7);
        assert!(stderr.contains("free some space") && stderr.trim().lines().count() == 1, "{stderr}");
    }
    for study in [&study, &undisturbed] {
        succeed(&mut study.saving(train()));
    }
    assert_eq!(complete(&study.output), complete(&undisturbed.output));

    // A file is where the folder of the results would be.
    fail(&mut study.measuring(train(), "small.toml/x.h5", &[]), 7);
}

#[test]
fn a_signal_to_one_rank_stops_all_with_everything_saved() {
    let (expected, duration) = undisturbed();
    let study = Study::interruptible();
    let mut stops = 0;
    for attempt in 0..20_usize {
        let size = [2, 3, 1][attempt % 3];
        let mut child = study.saving(mpirun(size)).stderr(Stdio::piped()).spawn().unwrap();
        // Longer each time, so that the study goes on; three of them are shorter than the study on any of these numbers of ranks.
        wait(&study, &mut child, size, duration / 16 * (attempt as u32 + 1));
        let Some(&chosen) = study.ranks().get(attempt % size) else { break };
        signal(chosen, if attempt % 2 == 0 { "USR1" } else { "TERM" });
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            break;
        }
        assert_eq!(output.status.code(), Some(75), "{stderr}");
        // Once when it comes, on rank 0, and once at the end.
        assert_eq!(stderr.matches("stopped by a signal, with everything saved; the same command continues").count(), 1, "{stderr}");
        assert!(stderr.matches("the study stops and saves; saved so far: ").count() <= 1, "{stderr}");
        stops += 1;
    }
    assert!(stops >= 3, "only {stops} stops before the study was finished");
    succeed(&mut study.saving(train()));
    assert_eq!(complete(&study.output), expected);
}

#[test]
fn a_signal_is_heard_in_the_middle_of_a_long_measurement() {
    // The measurement before the first step takes seconds.
    let study = || {
        Study::new(&[
            ("goal_error = 0.3", "goal_error = 0.001"),
            ("[search]", "[smoothness]\nevery = 40\nstart = true\ntrials = 3\npoints = 20\nexamples = 300\n\n[search]"),
        ])
    };
    let cell = ["--batch-size", "37", "--sparsity", "0.9"];
    let (whole, stopped) = (study(), study());
    let mut child =
        stopped.saving(mpirun(2)).args(cell).args(["--set", "execution.data_parallel=1"]).stderr(Stdio::piped()).spawn().unwrap();
    wait(&stopped, &mut child, 2, Duration::from_millis(200));
    signal(stopped.ranks()[1], "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
    let status = train().arg("status").arg(&stopped.output).arg("--progress").output().unwrap();
    let said = String::from_utf8_lossy(&status.stdout);
    assert!(said.starts_with("cells 0 trials 0 step 0 scored "), "the step whose measurement was stopped counts: {said}");
    succeed(stopped.saving(train()).args(cell));
    succeed(whole.saving(train()).args(cell));
    let cells = complete(&whole.output);
    assert!(cells[0].trials.iter().any(|trial| trial.measurements.first().is_some_and(|first| first.step == 0)));
    assert_eq!(complete(&stopped.output), cells);
}

#[test]
fn a_rank_that_hangs_ends_the_others_with_a_sentence_in_bounded_time() {
    let (expected, duration) = undisturbed();
    let study = Study::interruptible();
    let mut command = study.saving(mpirun(3));
    let mut child = command.args(["--set", "execution.deadline_seconds=3"]).stderr(Stdio::piped()).spawn().unwrap();
    wait(&study, &mut child, 3, duration / 8);
    let victim = *study.ranks().last().unwrap();
    signal(victim, "STOP");
    let stopped = Instant::now();
    // mpirun ends a stopped process as well, once another has ended.
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("expected the other ranks within 3 s"), "{stderr}");
    assert!(stopped.elapsed() < Duration::from_secs(60), "{:?}", stopped.elapsed());
    succeed(&mut study.saving(mpirun(2)));
    assert_eq!(complete(&study.output), expected);
}

#[test]
fn a_finished_study_is_not_measured_again_and_another_is_refused() {
    let study = Study::interruptible();
    succeed(&mut study.saving(train()));
    let journal = std::fs::metadata(study.output.with_extension("journal")).unwrap().len();
    let cells = complete(&study.output);
    std::fs::remove_file(&study.output).unwrap();
    succeed(&mut study.saving(train()));
    assert_eq!(complete(&study.output), cells, "results rebuilt from the journal");
    let grown = std::fs::metadata(study.output.with_extension("journal")).unwrap().len() - journal;
    assert!(grown < 500 && journal > 10 * 500, "only the restart, its host and its end are recorded anew, not {grown} bytes of {journal}");

    let stderr = fail(study.saving(train()).args(["--set", "search.momentum=0.9"]), 7);
    assert!(stderr.contains("search.momentum") && stderr.contains("--fresh"), "{stderr}");
    assert_eq!(complete(&study.output), cells);

    succeed(study.saving(train()).args(["--fresh", "--trials", "2"]));
    assert_eq!(complete(&study.output)[0].trials.len(), 2);
    assert!(study.folder.path().join("x.journal.old-1").exists() && study.folder.path().join("x.h5.old-1").exists());
}

#[test]
fn a_second_job_on_the_study_is_refused_by_name() {
    let study = Study::interruptible();
    let mut first = study.saving(train()).spawn().unwrap();
    wait(&study, &mut first, 1, Duration::ZERO);
    let stderr = fail(&mut study.saving(train()), 7);
    assert!(stderr.contains(&format!("process {}", first.id())), "{stderr}");
    assert!(first.wait().unwrap().success());
}

//! `dps-train supervise`: a study that loses a rank goes on by itself; what a new start does not mend ends at once.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::records::complete;
use crate::support::study::{Study, around, environment, fail, mpirun_alone, signal, succeed, train};
use dps::journal::{Contents, Journal};
use dps::records::{Cell, Ending};
use dps::storage::Disk;

/// Longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A study of some seconds.
fn study() -> Study {
    Study::new(&[("goal_error = 0.3", "goal_error = 0.001"), ("max_steps = 40", "max_steps = 400")])
}

/// A command that measures it on so many ranks.
fn measure(study: &Study, ranks: usize) -> Command {
    study.measuring(mpirun_alone(ranks), "x.h5", &["--quiet", "--threads", "1", "--set", "execution.checkpoint_seconds=1"])
}

/// The records of the study that nothing disturbed.
fn expected() -> &'static Vec<Cell> {
    static CELLS: OnceLock<Vec<Cell>> = OnceLock::new();
    CELLS.get_or_init(|| {
        let study = study();
        succeed(&mut measure(&study, 1));
        complete(&study.output)
    })
}

/// A command under supervision.
fn supervised(command: &Command, options: &[&str]) -> Command {
    let mut supervised = train();
    supervised.arg("supervise").args(options).arg("--").stderr(Stdio::piped());
    around(supervised, command)
}

/// Ranks of a study: processes that were given its output, but for the one that supervises and what launches them.
fn ranks(study: &Study) -> Vec<u32> {
    let is_rank = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1).is_some_and(|word| word != b"supervise")
    };
    study.ranks().into_iter().filter(is_rank).collect()
}

fn wait_for(what: &str, child: &mut Child, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        assert_eq!(child.try_wait().unwrap(), None, "it ended before {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Progress of a study, as `dps-train status` says it.
fn progress(study: &Study) -> String {
    String::from_utf8(train().arg("status").arg(&study.output).arg("--progress").output().unwrap().stdout).unwrap()
}

/// Contents of a study's journal; none where there is no file.
fn journal(study: &Study) -> Option<Contents> {
    Journal::read(&study.output.with_extension("journal"), &Disk).unwrap()
}

/// Starts that a study's journal knows.
fn starts(study: &Study) -> usize {
    journal(study).map_or(0, |contents| contents.starts.len())
}

fn ended(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn a_study_that_loses_ranks_is_finished_with_the_same_records() {
    let study = study();
    let mut child = supervised(&measure(&study, 2), &[]).spawn().unwrap();
    for (begun, victim) in [(1, 1), (2, 0)] {
        wait_for("two ranks have a checkpoint", &mut child, || {
            ranks(&study).len() == 2 && starts(&study) == begun && progress(&study).contains("step ")
        });
        let (known, lost) = (progress(&study), Instant::now());
        signal(ranks(&study)[victim], "KILL");
        // The rank that is left may save another checkpoint before it is ended: only the next start goes on.
        wait_for("the study has gone on", &mut child, || starts(&study) > begun && progress(&study) != known);
        println!("from the loss of a rank to the next progress: {:.1} s", lost.elapsed().as_secs_f64());
    }
    let (code, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("dps-train supervise: start 1 ended ") && stderr.contains("; started again in "), "{stderr}");
    assert_eq!(complete(&study.output), *expected());
    // Each start is in the file, with the cause of the restart. Where mpirun hangs, supervise kills it.
    let starts = dps::results::read(&study.output).unwrap().environment.starts;
    assert_eq!(starts.iter().map(|start| start.number).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(starts[0].before, Ending::First);
    for start in &starts[1..] {
        assert!(matches!(start.before, Ending::Killed(_) | Ending::RankLost), "{starts:?}");
    }
    assert!(starts.is_sorted_by_key(|start| start.began) && starts[0].began > 1_700_000_000_000_000, "{starts:?}");
    for start in &starts {
        assert_eq!((start.ranks, start.threads, start.hosts), (2, 1, 1), "{starts:?}");
        assert!(start.program.starts_with(env!("CARGO_PKG_VERSION")), "{starts:?}");
    }
}

#[test]
fn a_launcher_that_hangs_after_the_loss_of_a_rank_is_killed() {
    let study = study();
    let plain = measure(&study, 1);
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" || exec sleep 600", "sh"]).arg(plain.get_program()).args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = supervised(&command, &["--results", study.output.to_str().unwrap()]).spawn().unwrap();
    wait_for("it has begun", &mut child, || ranks(&study).len() == 1 && progress(&study).contains("cells 0"));
    let lost = Instant::now();
    signal(ranks(&study)[0], "KILL");
    wait_for("another start", &mut child, || starts(&study) == 2);
    println!("from the loss of a rank, with a launcher that hangs, to the next start: {:.1} s", lost.elapsed().as_secs_f64());
    let (code, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("nobody works on the study any more, but the command goes on: it is killed"), "{stderr}");
    assert_eq!(complete(&study.output), *expected());
}

/// In place of ssh: runs a command on this machine, in the name of a host. A host is lost once a file says so.
const AGENT: &str = r#"
while :; do case $1 in -*) shift ;; *) break ;; esac; done
host=$1
shift
[ ! -e "$(dirname "$0")/lost-$host" ] || exit 255
[ "$*" = true ] || echo $$ > "$(dirname "$0")/daemon-$host"
exec sh -c "exec $*"
"#;

/// The command that measures a study on two ranks, started through the agent, and the agent.
fn by_agent(study: &Study) -> (Command, String) {
    let agent = study.at("agent");
    std::fs::write(&agent, format!("#!/bin/sh{AGENT}")).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = agent.to_str().unwrap().to_owned();
    let plain = measure(study, 2);
    let mut command = Command::new(plain.get_program());
    command.args(["--mca", "plm_rsh_agent", &agent]).args(plain.get_args()).envs(environment(&plain));
    (command, agent)
}

#[test]
fn a_study_that_loses_a_host_goes_on_with_the_others() {
    let study = study();
    let (command, agent) = by_agent(&study);
    let mut child = supervised(&command, &["--hosts", "alpha:1,beta:1", "--reach", &agent]).spawn().unwrap();
    wait_for("two ranks have a checkpoint", &mut child, || ranks(&study).len() == 2 && progress(&study).contains("step "));
    std::fs::write(study.at("lost-beta"), "").unwrap();
    let daemon = std::fs::read_to_string(study.at("daemon-beta")).unwrap();
    // The daemon first, or it would tell mpirun of the death of its rank.
    succeed(Command::new("sh").args(["-c", "ranks=$(pgrep -P $0) && kill -KILL $0 $ranks", daemon.trim()]));
    let (code, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("dps-train supervise: no answer from beta: goes on with 1 of 2 ranks on the other hosts"), "{stderr}");
    assert_eq!(complete(&study.output), *expected());
    let starts = dps::results::read(&study.output).unwrap().environment.starts;
    assert_eq!(starts.iter().map(|start| start.ranks).collect::<Vec<_>>(), [2, 1], "{stderr}");
    assert_eq!(starts[1].before, Ending::RankLost, "{stderr}");
    assert_eq!(std::fs::read_to_string(study.at("x.hosts")).unwrap(), "alpha slots=1\n");
}

#[test]
fn a_host_that_falls_silent_is_left_out() {
    let study = study();
    let (command, agent) = by_agent(&study);
    let mut child = supervised(&command, &["--hosts", "alpha:1,beta:1", "--reach", &agent, "--ask-every", "1"]).spawn().unwrap();
    wait_for("two ranks have a checkpoint", &mut child, || ranks(&study).len() == 2 && progress(&study).contains("step "));
    std::fs::write(study.at("lost-beta"), "").unwrap();
    let daemon = std::fs::read_to_string(study.at("daemon-beta")).unwrap();
    // A host whose cable was pulled sends nothing, and closes no connection.
    succeed(Command::new("sh").args([
        "-c",
        "pgrep -P $0 > $1 && echo $0 >> $1 && kill -STOP $(cat $1)",
        daemon.trim(),
        study.at("stopped").to_str().unwrap(),
    ]));
    wait_for("another start", &mut child, || starts(&study) == 2);
    let stopped = std::fs::read_to_string(study.at("stopped")).unwrap();
    // Some of them may have been killed with mpirun.
    let _ = Command::new("kill").arg("-KILL").args(stopped.split_whitespace()).output();
    let (code, stderr) = ended(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("dps-train supervise: no answer from beta, twice in a row, and no progress: the command is killed"),
        "{stderr}"
    );
    assert_eq!(complete(&study.output), *expected());
    let starts = dps::results::read(&study.output).unwrap().environment.starts;
    assert_eq!(starts.iter().map(|start| start.ranks).collect::<Vec<_>>(), [2, 1], "{stderr}");
}

#[test]
fn a_signal_stops_the_study_for_good() {
    // The last one goes to mpirun and the ranks too, as a terminal's Ctrl-C does.
    for (name, whole_group) in [("TERM", false), ("USR1", false), ("INT", true)] {
        let study = study();
        let mut child = supervised(&measure(&study, 2), &[]).process_group(0).spawn().unwrap();
        wait_for("it has begun", &mut child, || progress(&study).contains("cells 0"));
        if whole_group {
            let group = format!("-{}", child.id());
            assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        } else {
            signal(child.id(), name);
        }
        let (code, stderr) = ended(child);
        assert!(stderr.contains("; not started again, as a signal stopped it"), "{stderr}");
        assert_eq!(ranks(&study), [0_u32; 0]);
        let is_stopped = journal(&study).unwrap().ended == Some(Ending::Stopped);
        // mpirun gives its ranks two seconds after Ctrl-C, which a busy machine may take longer to save.
        assert!(is_stopped || whole_group, "{stderr}");
        assert_eq!(code == Some(75), is_stopped, "{stderr}");
    }
}

#[test]
fn what_a_start_does_not_mend_ends_at_once() {
    let study = study();
    let mut wrong = measure(&study, 1);
    wrong.args(["--set", "grid.trials=none"]);
    let (code, stderr) = ended(supervised(&wrong, &[]).spawn().unwrap());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(!stderr.contains("supervise"), "{stderr}");
    // Without progress it gives up.
    let results = study.output.to_str().unwrap();
    let mut dying = Command::new("sh");
    dying.args(["-c", "kill -9 $$"]);
    let (code, stderr) = ended(supervised(&dying, &["--results", results, "--tries", "2"]).spawn().unwrap());
    assert_eq!(code, Some(137), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines[0], "dps-train supervise: start 1 ended by SIGKILL; started again in 2 s");
    assert!(
        lines[1].starts_with("dps-train supervise: start 2 ended by SIGKILL; given up: 2 starts in a row brought no progress."),
        "{stderr}"
    );
    assert_eq!(lines.len(), 2);
}

#[test]
fn commands_that_measure_nothing_are_refused() {
    let refused = |words: &[&str]| fail(train().arg("supervise").args(words), 2);
    assert!(refused(&["--", "true"]).contains("name the study's result file with --results"));
    assert!(refused(&["--", "dps-train", "x.toml", "--fresh"]).contains("--fresh"));
    assert!(refused(&["--", "dps-train", "status", "x.h5"]).contains("expected a command that measures a study"));
    let at = |hosts: &str| refused(&["--results", "x.h5", "--hosts", hosts, "--", "srun", "-n", "2"]);
    assert!(
        at("a:0").contains("expected hosts such as node1:4,node2:4") && at("a:1").contains("begins with Open MPI's mpirun, found srun")
    );
    assert!(refused(&["--results", "x.h5", "--", "/nowhere/mpirun"]).contains("expected a command that can be run, found /nowhere/mpirun"));
}

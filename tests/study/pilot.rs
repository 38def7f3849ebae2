//! `dps-train pilot`: what it proposes is a configuration that reaches its goal in every corner, the same on any ranks and after an interruption.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::study::{fail, mpirun, signal, succeed, train, write_config, write_data};
use dps::results;
use dps::settings;

/// A folder with data, and a configuration whose goal, steps and interval are guessed badly.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let changes = [
        ("batch_sizes = [2, 37]", "batch_sizes = [8, 37]"),
        ("min = 1e-3, max = 1e4", "min = 3e-3, max = 1"),
        ("goal_error = 0.3", "goal_error = 0.001 # guessed"),
    ];
    write_config(folder.path(), &changes);
    folder
}

/// The program in the folder.
fn within(mut command: Command, folder: &Path, words: &[&str]) -> Command {
    command.current_dir(folder).args(words).args(["--data", "."]);
    command
}

fn pilot(folder: &Path, words: &[&str]) -> Command {
    within(train(), folder, &[&["pilot", "small.toml", "--trials", "5"], words].concat())
}

#[test]
fn its_proposal_reaches_its_goal_in_every_corner() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let output = pilot(folder.path(), &[]).output().unwrap();
    let (log, summary) = (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    assert!(output.status.success(), "{log}");
    assert!(log.contains("pilot: 20 whole curves, probably "), "{log}");
    assert!(summary.contains("goal_error = ") && summary.contains("small-pilot.svg"), "{summary}");

    let text = fs::read_to_string(at("small-pilot.toml")).unwrap();
    let (before, after) =
        (settings::load(&at("small.toml"), &[]).unwrap().study, settings::load(&at("small-pilot.toml"), &[]).unwrap().study);
    assert!(text.starts_with("# Proposed by dps-train pilot from small.toml"), "{text}");
    assert!(!text.contains("# guessed"), "{text}");
    assert_eq!((&before.grid, &before.pruning, &before.data), (&after.grid, &after.pruning, &after.data));
    let svg = fs::read_to_string(at("small-pilot.svg")).unwrap();
    assert!(svg.contains("<title>") && svg.contains("batch size 37, sparsity 0.9"), "a panel for each corner");

    let plan = within(train(), folder.path(), &["small-pilot.toml", "--plan"]).output().unwrap();
    assert!(plan.status.success());
    succeed(&mut within(train(), folder.path(), &["small-pilot.toml", "--quiet"]));
    let measured = results::read(&at("results/small-pilot.h5")).unwrap();
    assert_eq!(measured.cells.len(), 4);
    for cell in &measured.cells {
        let steps = cell.steps_to_result().unwrap_or_else(|| panic!("{} reached no goal", cell.key));
        let evaluations = steps / after.workload.evaluate_every;
        assert!(steps * 2 <= after.workload.max_steps && evaluations >= 4, "{}: {steps} steps, {evaluations} evaluations", cell.key);
    }

    // Nothing is overwritten.
    assert!(fail(&mut pilot(folder.path(), &[]), 2).contains("expected no such file, found one"));
    // The other commands would take the proposal for a result file.
    assert!(fail(&mut pilot(folder.path(), &["-o", "new.h5"]), 2).contains("expected the name of a configuration"));
}

#[test]
fn it_proposes_the_same_on_any_ranks_and_after_an_interruption() {
    let folder = folder();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap().replace(&name.replace(".toml", ".svg"), "PICTURE");
    let words = |name| ["pilot", "small.toml", "--trials", "2", "--steps", "24", "--quiet", "-o", name];
    succeed(&mut within(train(), folder.path(), &words("one.toml")));
    fs::remove_dir_all(folder.path().join("results")).unwrap();
    succeed(&mut within(mpirun(2), folder.path(), &words("two.toml")));
    assert_eq!(read("one.toml"), read("two.toml"));
    fs::remove_dir_all(folder.path().join("results")).unwrap();

    let mut stopped = within(train(), folder.path(), &words("three.toml")).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !folder.path().join("results/small-pilot-8.journal").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(stopped.id(), "INT");
    assert_eq!(stopped.wait().unwrap().code(), Some(75));
    assert!(!folder.path().join("three.toml").exists());
    succeed(&mut within(train(), folder.path(), &words("three.toml")));
    assert_eq!(read("one.toml"), read("three.toml"));
}

#[test]
fn what_cannot_be_proposed_is_said_in_a_sentence() {
    let folder = folder();
    let refused = |words: &[&str]| fail(&mut pilot(folder.path(), words), 2);
    let nothing = refused(&["--set", "search.learning_rate=1e-9", "--steps", "3", "--progress", "none"]);
    assert!(
        nothing.contains("expected a curve with an error of at most") && nothing.contains("small-pilot.svg shows the curves"),
        "{nothing}"
    );
    assert!(folder.path().join("small-pilot.svg").exists() && !folder.path().join("small-pilot.toml").exists());
    // The picture of a pilot without a proposal is in no later pilot's way, another one is.
    let again = refused(&["--set", "search.learning_rate=1e-9", "--steps", "3", "--progress", "none"]);
    assert_eq!(again, nothing);
    std::fs::write(folder.path().join("small-pilot.svg"), "<svg><title>mine</title></svg>").unwrap();
    let mine = refused(&["--steps", "3"]);
    assert!(mine.contains("expected no such file, found one"), "{mine}");
    let same = refused(&["-o", "small.toml"]);
    assert!(same.contains("expected --output to be another file than CONFIG"), "{same}");
    let unknown = refused(&["--set", "workload.goal=3", "-o", "other.toml"]);
    assert!(unknown.contains("goal"), "{unknown}");
    fail(&mut within(train(), folder.path(), &["pilot", "no.toml"]), 2);
}

//! `dps-train status`: what it says of a study while it runs, between two runs and after it, and that it changes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::study::{Study, fail, signal, succeed, train};
use dps::results;
use serde_json::Value;

/// The status of a result file: as JSON, and as the line for scripts.
fn status(output: &Path) -> (Value, String) {
    let ask = |form: &str| {
        let found = train().arg("status").arg(output).arg(form).output().unwrap();
        assert!(found.status.success(), "{found:?}");
        let text = String::from_utf8(found.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    (serde_json::from_str(&ask("--json")).unwrap(), ask("--progress"))
}

fn lines(output: &Path) -> String {
    String::from_utf8(train().arg("status").arg(output).output().unwrap().stdout).unwrap()
}

fn start(study: &Study) -> Child {
    study.command(train()).args(["--quiet", "--set", "execution.checkpoint_seconds=1"]).spawn().unwrap()
}

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Names and contents of all files beside the results.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut files: Vec<_> = names.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_study_is_seen_running_stopped_killed_and_finished() {
    // No trial reaches this goal: the first cell takes all of its steps.
    let study =
        Study::new(&[("goal_error = 0.3", "goal_error = 0.001"), ("max_steps = 40", "max_steps = 600"), ("trials = 5", "trials = 6")]);
    let (folder, output) = (study.folder.path(), study.output.clone());

    let said = fail(train().arg("status").arg(&output), 4);
    assert!(said.contains("found neither"), "{said}");

    let mut child = start(&study);
    wait("no journal", || study.at("x.journal").exists());
    let (begun, line) = status(&output);
    assert_eq!((&begun["study"], &begun["state"], &begun["cells"]), (&"x".into(), &"running".into(), &4.into()));
    assert_eq!(begun["job"]["process"], child.id().to_string());
    assert_eq!(begun["under_way"]["batch_size"], 2);
    assert!(lines(&output).contains(&format!("process {} on ", child.id())), "{}", lines(&output));
    wait("no checkpoint", || study.at("x.checkpoint").exists());
    let (saved, later) = status(&output);
    assert!(saved["under_way"]["step"].as_u64().unwrap() > 0, "{saved}");
    assert_ne!(line, later);

    signal(child.id(), "USR1");
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let before = files(folder);
    let (stopped, line) = status(&output);
    assert_eq!((&stopped["state"], &stopped["job"], &stopped["restarts"]), (&"stopped".into(), &Value::Null, &0.into()));
    assert!(stopped["under_way"]["step"].as_u64() >= saved["under_way"]["step"].as_u64(), "{stopped}");
    assert_eq!(status(&output).1, line, "nothing advances between two runs");
    // The result file is not needed.
    let aside = folder.join("aside");
    fs::rename(&output, &aside).unwrap();
    assert_eq!(status(&output).1, line);
    fs::rename(&aside, &output).unwrap();
    assert_eq!(files(folder), before, "status changed a file");

    let mut child = start(&study);
    wait("no second run", || status(&output).0["restarts"] == 1);
    // A job finds its lock free while another process asks for the status all the time.
    signal(child.id(), "KILL");
    child.wait().unwrap();
    assert!(folder.join("x.lock").exists(), "a killed job leaves its lock's file");
    let (killed, _) = status(&output);
    assert_eq!((&killed["state"], &killed["job"]), (&"stopped".into(), &Value::Null));
    let mut child = start(&study);
    wait("no third run", || status(&output).0["restarts"] == 2);
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(75));
}

#[test]
fn a_finished_study_tells_its_steps_to_result_with_and_without_a_journal() {
    let study = Study::new(&[("trials = 5", "trials = 3")]);
    let output = study.measure(train(), "x.h5", &[]);
    let (report, line) = status(&output);
    assert_eq!((&report["state"], &report["under_way"]), (&"finished".into(), &Value::Null));
    assert_eq!(line, "cells 4 trials 0 step 0 scored 3\n");
    let results = results::read(&output).unwrap();
    let text = lines(&output);
    assert!(text.contains("4 of 4 finished"), "{text}");
    let mut reached = 0;
    for (cell, told) in results.cells.iter().zip(report["finished"].as_array().unwrap()) {
        assert_eq!(told["steps_to_result"].as_u64(), cell.steps_to_result().map(u64::from));
        assert_eq!(told["best_trial"].as_u64(), cell.best().map(|trial| trial.index.into()));
        if let Some(steps) = cell.steps_to_result() {
            reached += 1;
            assert!(
                text.contains(&format!("batch size {}, sparsity {}: K* = {steps} by", cell.key.batch_size, cell.key.sparsity)),
                "{text}"
            );
        }
    }
    assert!(reached > 0);

    // Of several files each is told, and the exit code is that of the one that cannot be read.
    let several = train().arg("status").arg(study.at("none.h5")).arg(&output).output().unwrap();
    assert_eq!(several.status.code(), Some(4));
    assert!(
        String::from_utf8_lossy(&several.stderr).contains("none.h5") && String::from_utf8_lossy(&several.stdout).contains("x: finished")
    );

    // A file that the end of the study could not write: here one of a part of its cells.
    let aside = study.at("aside");
    fs::rename(&output, &aside).unwrap();
    assert_eq!(status(&output).0["state"], "unwritten");
    study.measure(train(), "part.h5", &["--batch-size", "2"]);
    fs::rename(study.at("part.h5"), &output).unwrap();
    let (unwritten, same) = status(&output);
    assert_eq!((&unwritten["state"], &unwritten["finished"], &same), (&"unwritten".into(), &report["finished"], &line));
    assert!(lines(&output).starts_with("x: measured, but the result file lacks some of it; the command that started the study writes"));
    fs::rename(&aside, &output).unwrap();

    fs::remove_file(study.at("x.journal")).unwrap();
    let (alone, _) = status(&output);
    assert_eq!((&alone["finished"], &alone["state"], &alone["restarts"]), (&report["finished"], &report["state"], &Value::Null));
}

/// Of four cells one is measured, then two: the plan, the status and the line of each finished cell say when the rest is probably done.
#[test]
fn the_time_that_is_left_is_forecast_from_the_measured_cells() {
    let study = Study::new(&[("trials = 5", "trials = 3")]);
    let output = &study.output;
    let measure = |options: &[&str]| study.measuring(train(), "x.h5", options);
    let plan = || String::from_utf8(measure(&["--plan"]).output().unwrap().stdout).unwrap();
    let guess = plan();
    assert!(guess.contains("\nProbably about ") && guess.contains("No cell is measured yet"), "{guess}");

    // Nothing is known of a goal that may never be reached.
    let never = measure(&["--plan", "--set", "workload.goal_error=0.0001"]).output().unwrap().stdout;
    assert!(!String::from_utf8(never).unwrap().contains("Probably"));

    study.measure(train(), "x.h5", &["--batch-size", "2", "--sparsity", "0"]);
    assert_eq!(status(output).0["left"], Value::Null, "nothing is left of a grid of one cell");
    let learnt = plan();
    assert!(learnt.contains("\nLeft: about ") && learnt.contains(", from 1 measured cell.\n"), "{learnt}");
    let other = measure(&["--plan", "--set", "workload.goal_error=0.2"]).output().unwrap().stdout;
    assert!(String::from_utf8(other).unwrap().contains("No cell is measured yet"), "a study of another goal says nothing of this one");

    let told = succeed(&mut measure(&["--progress", "json"]));
    let events = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let left: Vec<Value> = events.filter(|event| event["event"] == "cell_finished").map(|event| event["left"].clone()).collect();
    assert_eq!(left.len(), 3);
    for (number, left) in left[..2].iter().enumerate() {
        assert_eq!(left["cells"], number + 2, "{left}");
        let [low, seconds, high] = ["low", "seconds", "high"].map(|name| left[name].as_f64().unwrap());
        assert!(0.0 < low && low < seconds && seconds < high, "{left}");
    }
    assert!(left[1]["last_over_forecast"].as_f64().unwrap() > 0.0);
    assert_eq!(left[2], Value::Null);
}

//! A study is stopped and its files are damaged. It goes on to the results of an undisturbed study, or is refused with a sentence.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::records::complete_in_order;
use crate::support::study::{Study, signal, succeed, train};

fn command(study: &Study) -> Command {
    study.measuring(train(), "x.h5", &["--set", "execution.checkpoint_seconds=1"])
}

/// Runs the study until it has finished a cell, and stops it by a signal after the first evaluation of another; a checkpoint is there then. Where
/// that cell was finished before the signal came, the study goes on and is stopped again.
fn stop_in_the_middle(study: &Study) {
    let mut has_finished = false;
    for _ in 0..3 {
        let mut child = command(study).args(["--progress", "json"]).stderr(Stdio::piped()).spawn().unwrap();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            has_finished |= event["event"] == "cell_finished";
            if has_finished && event["event"] == "evaluated" {
                signal(child.id(), "TERM");
                break;
            }
        }
        let code = child.wait().unwrap().code();
        assert_ne!(code, Some(0), "the study ended before it could be stopped");
        if code == Some(75) && study.at("x.checkpoint").exists() {
            return;
        }
    }
    panic!("no signal came within a cell");
}

/// Change of a file's bytes, by damage.
type Damage = fn(Vec<u8>) -> Vec<u8>;

const DAMAGES: [(&str, Damage); 6] = [
    ("empty", |_| Vec::new()),
    ("cut to a half", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("its last byte cut off", |bytes| bytes[..bytes.len() - 1].to_vec()),
    ("a bit flipped in its middle", |mut bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        bytes
    }),
    ("zeros at its end", |bytes| [bytes, vec![0; 4096]].concat()),
    ("twice", |bytes| [bytes.clone(), bytes].concat()),
];

#[test]
fn a_stopped_study_with_damaged_files_goes_on_to_the_same_results_or_is_refused() {
    let study = Study::new(&[("goal_error = 0.3", "goal_error = 0.05"), ("max_steps = 40", "max_steps = 200"), ("= 4\n\n", "= 8\n\n")]);
    succeed(command(&study).arg("--quiet"));
    let expected = complete_in_order(&study.output);
    for name in ["x.h5", "x.journal"] {
        fs::remove_file(study.at(name)).unwrap();
    }
    stop_in_the_middle(&study);
    let kept: Vec<(&str, Vec<u8>)> =
        ["x.h5", "x.journal", "x.checkpoint"].iter().map(|name| (*name, fs::read(study.at(name)).unwrap())).collect();

    let mut refused = Vec::new();
    for (name, bytes) in &kept {
        for (what, damage) in DAMAGES {
            for (name, bytes) in &kept {
                fs::write(study.at(name), bytes).unwrap();
            }
            fs::write(study.at(name), damage(bytes.clone())).unwrap();
            let output = command(&study).arg("--quiet").output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => assert_eq!(complete_in_order(&study.output), expected, "{name}: {what}"),
                Some(7) => {
                    assert!(said.contains(name), "{name}: {what}: {said}");
                    refused.push((*name, what));
                }
                other => panic!("{name}: {what}: exit code {other:?}: {said}"),
            }
        }
    }
    // A result file is written anew, and a study goes on without a checkpoint. A journal is refused where more than its last record is damaged.
    assert!(refused.iter().all(|(name, _)| *name == "x.journal"), "{refused:?}");
    assert!(refused.contains(&("x.journal", "a bit flipped in its middle")), "{refused:?}");
    assert!(!refused.contains(&("x.journal", "its last byte cut off")), "{refused:?}");
}

//! A study is stopped and its files are damaged. It goes on to the results of an undisturbed study, or is refused with a sentence.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::records::complete_in_order;
use crate::support::study::{succeed, train, write_config, write_data};

fn command(folder: &Path) -> Command {
    let mut command = train();
    command.arg(folder.join("small.toml")).arg("--data").arg(folder).arg("--output").arg(folder.join("x.h5"));
    command.args(["--set", "execution.checkpoint_seconds=1"]);
    command
}

/// Runs the study until it has finished a cell, and stops it by a signal after the first evaluation of another; a checkpoint is there then. Where
/// that cell was finished before the signal came, the study goes on and is stopped again.
fn stop_in_the_middle(folder: &Path) {
    let mut has_finished = false;
    for _ in 0..3 {
        let mut child = command(folder).args(["--progress", "json"]).stderr(Stdio::piped()).spawn().unwrap();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            has_finished |= event["event"] == "cell_finished";
            if has_finished && event["event"] == "evaluated" {
                assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
                break;
            }
        }
        let code = child.wait().unwrap().code();
        assert_ne!(code, Some(0), "the study ended before it could be stopped");
        if code == Some(75) && folder.join("x.checkpoint").exists() {
            return;
        }
    }
    panic!("no signal came within a cell");
}

/// What may happen to a file.
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
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_data(folder, 600, 90);
    write_config(folder, &[("goal_error = 0.3", "goal_error = 0.05"), ("max_steps = 40", "max_steps = 200"), ("= 4\n\n", "= 8\n\n")]);
    succeed(command(folder).arg("--quiet"));
    let expected = complete_in_order(&folder.join("x.h5"));
    for name in ["x.h5", "x.journal"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    stop_in_the_middle(folder);
    let kept: Vec<(&str, Vec<u8>)> =
        ["x.h5", "x.journal", "x.checkpoint"].iter().map(|name| (*name, fs::read(folder.join(name)).unwrap())).collect();

    let mut refused = Vec::new();
    for (name, bytes) in &kept {
        for (what, damage) in DAMAGES {
            for (name, bytes) in &kept {
                fs::write(folder.join(name), bytes).unwrap();
            }
            fs::write(folder.join(name), damage(bytes.clone())).unwrap();
            let output = command(folder).arg("--quiet").output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => assert_eq!(complete_in_order(&folder.join("x.h5")), expected, "{name}: {what}"),
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

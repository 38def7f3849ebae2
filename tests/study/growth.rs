//! A study can grow: with more batch sizes, sparsities or trials the same output measures only what is missing, and ends with the records of a
//! study that was that large from the beginning.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::records::complete_in_order;
use crate::support::study::{Study, fail, kill, signal, succeed, train};
use dps::records::Cell;
use dps::results;
use serde_json::Value;

/// A command that measures the part of the grid that `options` name.
fn command(study: &Study, output: &str, options: &[&str]) -> Command {
    study.measuring(train(), output, options)
}

/// The cells that a run measured, as batch size and sparsity.
fn measured(study: &Study, output: &str, options: &[&str]) -> Vec<(u64, f64)> {
    let log = succeed(command(study, output, options).args(["--progress", "json"]));
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let finished = events.filter(|event| event["event"] == "cell_finished");
    finished.map(|event| (event["batch_size"].as_u64().unwrap(), event["sparsity"].as_f64().unwrap())).collect()
}

/// The cells of a complete study in order of their keys, without their times.
fn cells(study: &Study, output: &str) -> Vec<Cell> {
    complete_in_order(&study.at(output))
}

#[test]
fn only_what_is_missing_is_measured_and_the_records_are_those_of_a_large_study() {
    let study = Study::new(&[]);
    let all = [(2, 0.0), (2, 0.9), (37, 0.0), (37, 0.9)];
    assert_eq!(measured(&study, "whole.h5", &[]), all);
    let whole = cells(&study, "whole.h5");
    assert!(whole.iter().any(|cell| cell.steps_to_result().is_some()), "no trial reached the goal: nothing to compare");

    let small = ["--batch-size", "37", "--sparsity", "0", "--trials", "2"];
    assert_eq!(measured(&study, "grown.h5", &small), [(37, 0.0)]);
    assert_eq!(measured(&study, "grown.h5", &["--batch-size", "37", "--trials", "2"]), [(37, 0.9)]);
    assert_eq!(measured(&study, "grown.h5", &["--trials", "2"]), [(2, 0.0), (2, 0.9)]);
    assert_eq!(measured(&study, "grown.h5", &["--batch-size", "37"]), [(37, 0.0), (37, 0.9)]);
    assert_eq!(measured(&study, "grown.h5", &[]), [(2, 0.0), (2, 0.9)]);
    assert_eq!(cells(&study, "grown.h5"), whole);
    // The result holds every smaller study already.
    assert_eq!(measured(&study, "grown.h5", &small), []);
    assert_eq!(cells(&study, "grown.h5"), whole);
}

/// A result file alone has the settings of its study, by which it grows, and which another file may begin with.
#[test]
fn a_result_file_alone_grows_and_gives_its_settings_to_another() {
    let study = Study::new(&[]);
    study.measure(train(), "whole.h5", &[]);
    let whole = cells(&study, "whole.h5");
    study.measure(train(), "grown.h5", &["--trials", "2"]);
    for file in ["small.toml", "grown.journal"] {
        std::fs::remove_file(study.at(file)).unwrap();
    }
    let of_results = |file: &str, options: &[&str]| {
        let mut command = train();
        command.arg(study.at(file)).arg("--data").arg(study.folder.path()).arg("--quiet").args(options);
        command
    };
    succeed(&mut of_results("grown.h5", &["--trials", "5"]));
    assert_eq!(cells(&study, "grown.h5"), whole);
    // The journal that was begun from the file goes on.
    succeed(&mut of_results("grown.h5", &[]));
    assert_eq!(cells(&study, "grown.h5"), whole);
    let other = study.at("other.h5");
    let options = ["--set", "search.first_trial=5", "--trials", "2", "--batch-size", "37", "--output", other.to_str().unwrap()];
    succeed(&mut of_results("grown.h5", &options));
    let other = cells(&study, "other.h5");
    assert!(other.len() == 2 && other.iter().all(|cell| cell.trials.iter().map(|trial| trial.index).eq(5..7)), "{other:?}");
    let said = fail(&mut of_results("grown.h5", &["--fresh"]), 2);
    assert!(said.contains("expected no --fresh with a result file"), "{said}");
    std::fs::rename(study.at("other.h5"), study.at("moved.h5")).unwrap();
    let said = fail(&mut of_results("other.h5", &[]), 4);
    assert!(said.contains("found its journal") && said.contains("the command that started the study goes on with it"), "{said}");
    assert_eq!(cells(&study, "grown.h5"), whole);
}

#[test]
fn a_run_killed_while_a_study_grows_loses_nothing() {
    let study = Study::new(&[]);
    study.measure(train(), "whole.h5", &[]);
    let whole = cells(&study, "whole.h5");
    study.measure(train(), "grown.h5", &["--trials", "2"]);
    for milliseconds in [20, 80, 140, 200, 320, 440] {
        let options = ["--quiet", "--threads", "1", "--set", "execution.lanes=2"];
        kill(&mut command(&study, "grown.h5", &options), milliseconds);
    }
    study.measure(train(), "grown.h5", &[]);
    assert_eq!(cells(&study, "grown.h5"), whole);
}

#[test]
fn what_changes_a_cells_meaning_is_refused_by_its_key() {
    let study = Study::new(&[]);
    study.measure(train(), "x.h5", &["--batch-size", "37", "--trials", "2"]);
    let before = std::fs::read(study.at("x.journal")).unwrap();
    for (setting, key) in [("workload.max_steps=48", "workload.max_steps"), ("pruning.examples=50", "pruning.examples")] {
        let said = fail(&mut command(&study, "x.h5", &["--set", setting]), 7);
        assert!(said.contains(key), "{said}");
    }
    assert_eq!(std::fs::read(study.at("x.journal")).unwrap(), before);
}

/// There is one checkpoint, so the cell that was left goes on before one that comes earlier in the grid.
#[test]
fn a_cell_that_was_left_goes_on_first_when_the_study_grows() {
    // Too small a learning rate for any trial to end before its last step.
    let slow = [("max_steps = 40", "max_steps = 600"), ("trials = 5", "trials = 2"), ("min = 1e-3, max = 1e4", "min = 1e-7, max = 1e-6")];
    let study = Study::new(&slow);
    let one = ["--batch-size", "37", "--sparsity", "0", "--threads", "1", "--set", "execution.checkpoint_seconds=1"];
    let mut child = command(&study, "x.h5", &one).stderr(Stdio::null()).spawn().unwrap();
    let checkpoint = study.at("x.checkpoint");
    while !checkpoint.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the study ended before its first checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(75));

    // A run of another cell says what is lost, as does one that cannot read the checkpoint, however quiet they are.
    for (copy, whole, said) in [("y", true, "batch size 37, sparsity 0 was left at step "), ("z", false, "z.checkpoint: ")] {
        for ending in ["h5", "journal", "checkpoint"] {
            std::fs::copy(study.at("x").with_extension(ending), study.at(copy).with_extension(ending)).unwrap();
        }
        if !whole {
            let file = std::fs::OpenOptions::new().write(true).open(study.at(copy).with_extension("checkpoint")).unwrap();
            file.set_len(1000).unwrap();
        }
        let log = succeed(&mut command(&study, &format!("{copy}.h5"), &["--batch-size", "2", "--sparsity", "0", "--quiet"]));
        assert!(log.contains(said) && log.lines().count() == 1, "{log}");
    }

    let status = String::from_utf8(train().arg("status").arg(study.at("x.h5")).output().unwrap().stdout).unwrap();
    assert!(status.contains("batch size 37, sparsity 0: at step "), "{status}");
    let log = succeed(&mut command(&study, "x.h5", &["--batch-size", "2,37", "--sparsity", "0", "--progress", "json"]));
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let resumed = events.iter().position(|event| event["event"] == "resumed").expect("it goes on");
    assert!(events[resumed]["batch_size"] == 37 && events[resumed]["step"].as_u64().unwrap() > 0, "{}", events[resumed]);
    let started = events.iter().position(|event| event["event"] == "cell_started").unwrap();
    assert!(started < resumed && events[started]["batch_size"] == 37 && events[started]["cell"] == 1, "{}", events[started]);
}

#[test]
fn two_results_do_not_share_a_journal() {
    let study = Study::new(&[]);
    study.measure(train(), "x.h5", &["--batch-size", "37", "--trials", "1"]);
    let before = std::fs::read(study.at("x.journal")).unwrap();
    for options in [&[][..], &["--fresh"]] {
        let said = fail(&mut command(&study, "x", options), 7);
        assert!(said.contains("x.h5 beside it, which has the same one"), "{said}");
    }
    assert_eq!(std::fs::read(study.at("x.journal")).unwrap(), before);
}

/// A study that has got more trials is not finished where it has not measured them, and a smaller command says that it trains as many.
#[test]
fn cells_with_fewer_trials_than_the_study_are_told_apart() {
    let study = Study::new(&[]);
    study.measure(train(), "x.h5", &["--trials", "2"]);
    study.measure(train(), "x.h5", &["--batch-size", "37", "--sparsity", "0", "--trials", "3"]);
    let status = |form: &str| {
        let mut command = train();
        let output = command.current_dir(study.folder.path()).args(["status", "x.h5", form]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let json: Value = serde_json::from_str(&status("--json")).unwrap();
    let count = |name: &str| json[name].as_array().unwrap().len();
    assert_eq!((count("finished"), count("grown"), json["trials"].as_u64()), (1, 3, Some(3)), "{json}");
    assert!(status("--progress").starts_with("cells 1 trials 0 step 0 "));
    let said = succeed(&mut command(&study, "x.h5", &["--trials", "2", "--batch-size", "37", "--sparsity", "0.9"]));
    assert!(said.contains("the study has 3 trials a cell since an earlier run, so 2 are no fewer"), "{said}");
}

/// A cell that lacks trials between others, as of parts put together, or that gets more, stays in the result file until all its trials are measured.
#[test]
fn a_cell_stays_in_its_file_until_all_its_trials_are_measured() {
    let study = Study::new(&[]);
    let one = ["--batch-size", "37", "--sparsity", "0"];
    study.measure(train(), "whole.h5", &one);
    study.measure(train(), "first.h5", &[&one[..], &["--trials", "2"]].concat());
    study.measure(train(), "last.h5", &[&one[..], &["--trials", "2", "--set", "search.first_trial=3"]].concat());
    let merge = ["merge", "first.h5", "last.h5", "-o", "parts.h5"];
    succeed(train().args(merge).current_dir(study.folder.path()));
    let parts = results::read(&study.at("parts.h5")).unwrap().cells;
    assert_eq!(parts[0].trials.len(), 4);
    let said = succeed(study.subcommand("confirm", "parts.h5").args(["--set", "confirm.seeds=2"]));
    assert!(said.contains("trials are still to come") && said.contains("parts.h5 measures"), "{said}");
    assert_eq!(results::read(&study.at("parts.h5")).unwrap().cells, parts);
    // Starts with more trials end before they have all of them.
    let grows = ["--trials", "5", "--set", "confirm="];
    for name in ["first.h5", "parts.h5"] {
        let before = results::read(&study.at(name)).unwrap().cells;
        let command = || {
            let mut command = train();
            command.arg(study.at(name)).arg("--data").arg(study.folder.path()).args(grows).arg("--quiet");
            command
        };
        for milliseconds in [30, 60, 90, 120] {
            kill(&mut command(), milliseconds);
            assert_eq!(results::read(&study.at(name)).unwrap().cells[0].key, before[0].key, "after {milliseconds} ms");
        }
        succeed(&mut command());
        let trials = |file: &str| cells(&study, file).into_iter().map(|cell| cell.trials).collect::<Vec<_>>();
        assert_eq!(trials(name), trials("whole.h5"), "{name}");
        succeed(&mut command());
        assert_eq!(trials(name), trials("whole.h5"), "{name}, read again");
    }
}

/// A journal of no bytes beside a result file knows nothing; the file begins another.
#[test]
fn an_empty_journal_costs_no_cell() {
    let study = Study::new(&[]);
    study.measure(train(), "x.h5", &["--trials", "2"]);
    let before = cells(&study, "x.h5");
    std::fs::write(study.at("x.journal"), "").unwrap();
    let said = fail(&mut command(&study, "x.h5", &[]), 7);
    assert!(said.contains("found that the journal is empty"), "{said}");
    let mut alone = train();
    succeed(alone.arg(study.at("x.h5")).arg("--data").arg(study.folder.path()));
    assert_eq!(cells(&study, "x.h5"), before);
}

/// A file that is no result file is nothing to go on from.
#[test]
fn a_file_of_another_kind_is_said_to_be_one() {
    let study = Study::new(&[]);
    std::fs::write(study.at("x.h5"), "junk").unwrap();
    let said = fail(&mut command(&study, "x.h5", &[]), 7);
    assert!(
        said.contains("found the file alone; ") && said.contains("nothing can go on from the file (") && said.contains("HDF5"),
        "{said}"
    );
    assert!(!said.contains("goes on from the file alone"), "{said}");
}

/// An earlier journal in the place of the one that wrote a result file knows less than the file, which is kept.
#[test]
fn what_a_journal_does_not_know_of_its_result_file_is_moved_aside() {
    let study = Study::new(&[]);
    let small = ["--batch-size", "37", "--trials", "2"];
    measured(&study, "study.h5", &small);
    let journal = std::fs::read(study.at("study.journal")).unwrap();
    measured(&study, "study.h5", &["--batch-size", "37"]);
    let whole = cells(&study, "study.h5");
    std::fs::write(study.at("study.journal"), journal).unwrap();

    let said = succeed(&mut command(&study, "study.h5", &small));
    assert!(said.contains("study.h5.old-1") && said.contains("trial 2 of batch size 37"), "{said}");
    assert_eq!(cells(&study, "study.h5.old-1"), whole);
    let mut merge = train();
    merge.args(["merge", "study.h5", "study.h5.old-1", "-o", "merged.h5"]).current_dir(study.folder.path());
    succeed(&mut merge);
    assert_eq!(cells(&study, "merged.h5"), whole);
    // The study's own files go on without a word.
    assert!(!succeed(&mut command(&study, "study.h5", &small)).contains("old-"));

    // A file that cannot be read may have what the journal lacks: it is kept, and the study's results are written anew.
    let known = cells(&study, "study.h5");
    std::fs::write(study.at("study.h5"), "damaged").unwrap();
    let said = succeed(&mut command(&study, "study.h5", &small));
    assert!(said.contains("study.h5.old-2, and written anew"), "{said}");
    assert_eq!(std::fs::read_to_string(study.at("study.h5.old-2")).unwrap(), "damaged");
    assert_eq!(cells(&study, "study.h5"), known);
}

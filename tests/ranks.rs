//! Results are the same on any number of ranks, groups, threads and lanes, under a real mpirun.
#![cfg(feature = "mpi")]

mod support;

use std::path::Path;

use dps::config::CriterionName;
use dps::records::{Cell, Status};
use dps::results::{self, Results};
use support::records::timeless;
use support::study::{mpirun, succeed, train, write_config, write_data};

/// The finished cells without their times.
fn cells(path: &Path) -> Vec<Cell> {
    let Results { cells, complete, .. } = results::read(path).unwrap();
    assert!(complete);
    timeless(cells)
}

#[test]
fn every_record_is_the_same_on_any_ranks_groups_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    // Steps that are measured are not those that are evaluated, and some trials are not measured at all.
    let smoothness = "[smoothness]\nevery = 6\ntrials = 3\npoints = 2\nexamples = 30\n\n[search]";
    let config = write_config(folder.path(), &[("[search]", smoothness)]);
    // Each run has files of its own, or it would find that all is done.
    let mut runs = 0;
    let mut run = |ranks: usize, options: &[&str]| {
        runs += 1;
        let output = folder.path().join(format!("{runs}.h5"));
        let mut command = if ranks == 0 { train() } else { mpirun(ranks) };
        succeed(command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(&output).arg("--quiet").args(options));
        cells(&output)
    };
    let expected = run(0, &["--threads", "1"]);
    assert_eq!(expected.len(), 4);
    let all = || expected.iter().flat_map(|cell| &cell.trials);
    for status in [Status::Complete, Status::Infeasible, Status::Censored] {
        assert!(all().any(|trial| trial.status == status), "the small study must have a trial that is {}", status.name());
    }
    assert!(all().map(|trial| trial.curve.len()).sum::<usize>() > 20);
    assert!(all().map(|trial| trial.measurements.len()).sum::<usize>() > 10);
    // Measuring smoothness changes no step.
    let mut bare = expected.clone();
    bare.iter_mut().flat_map(|cell| &mut cell.trials).for_each(|trial| trial.measurements.clear());
    assert_eq!(run(0, &["--set", "smoothness="]), bare);
    for threads in ["2", "3", "8"] {
        assert_eq!(run(0, &["--threads", threads]), expected, "{threads} threads");
    }
    for lanes in [1, 2, 3] {
        let setting = format!("execution.lanes={lanes}");
        assert_eq!(run(0, &["--set", &setting]), expected, "{lanes} lanes at once");
    }
    assert_eq!(run(3, &["--set", "execution.lanes=2", "--set", "execution.data_parallel=1"]), expected, "waves shared by groups");
    for ranks in 1..=4 {
        assert_eq!(run(ranks, &["--threads", "1"]), expected, "{ranks} ranks");
        for size in (1..=ranks).filter(|size| ranks % size == 0) {
            let setting = format!("execution.data_parallel={size}");
            let found = run(ranks, &["--threads", "2", "--set", &setting]);
            assert_eq!(found, expected, "{ranks} ranks in groups of {size}");
        }
    }
}

/// Every criterion's masks, which all ranks and threads make together.
#[test]
fn masks_are_the_same_on_any_ranks_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let config = write_config(
        folder.path(),
        &[
            ("batch_sizes = [2, 37]", "batch_sizes = [37]"),
            ("sparsities = [0, 0.9]", "sparsities = [0.9]"),
            ("max_steps = 40", "max_steps = 4"),
        ],
    );
    let mut hashes = std::collections::BTreeSet::new();
    let criteria = CriterionName::NAMES.iter().flat_map(|criterion| ["false", "true"].map(|shuffle| (criterion, shuffle)));
    for (criterion, shuffle) in criteria.clone() {
        let masks = |ranks: usize, threads: &str| {
            let output = folder.path().join(format!("{criterion}-{shuffle}-{ranks}-{threads}.h5"));
            let mut command = if ranks == 0 { train() } else { mpirun(ranks) };
            command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(&output).args(["--quiet", "--threads", threads]);
            let settings = [format!("pruning.criterion={criterion}"), format!("pruning.shuffle={shuffle}")];
            succeed(command.args(settings.iter().flat_map(|setting| ["--set", setting])));
            cells(&output)
        };
        let expected = masks(0, "1");
        assert_eq!(masks(3, "2"), expected, "{criterion}, 3 ranks of 2 threads");
        if shuffle == "false" {
            assert_eq!(masks(0, "3"), expected, "{criterion}, 3 threads");
            assert_eq!(masks(2, "1"), expected, "{criterion}, 2 ranks");
        }
        hashes.extend(expected[0].trials.iter().map(|trial| trial.mask_hash));
    }
    assert_eq!(hashes.len(), criteria.count() * 5, "every criterion and seed has a mask of its own, and so has each shuffled one");
}

#[test]
fn a_race_finds_the_steps_to_result_and_the_best_trial_of_a_full_run() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let config = write_config(folder.path(), &[("trials = 5", "trials = 8")]);
    let run = |race: &str| {
        let output = folder.path().join(format!("{race}.h5"));
        let mut command = train();
        command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(&output).arg("--quiet").args(["--set", race]);
        succeed(&mut command);
        cells(&output)
    };
    let (raced, full) = (run("execution.race=true"), run("execution.race=false"));
    let mut spared = 0;
    for (raced, full) in raced.iter().zip(&full) {
        assert_eq!(raced.steps_to_result(), full.steps_to_result());
        assert_eq!(raced.best().map(|trial| trial.index), full.best().map(|trial| trial.index));
        assert_eq!(raced.test_errors, full.test_errors);
        assert_eq!(full.count(Status::Censored), 0);
        for (raced, full) in raced.trials.iter().zip(&full.trials) {
            // A trial that a race ended is the beginning of the trial without a race.
            assert_eq!(raced.curve[..], full.curve[..raced.curve.len()]);
            spared += full.steps_run - raced.steps_run;
        }
    }
    assert!(spared > 0, "the race ended nothing early");
}

#[test]
fn a_rank_without_its_data_ends_all_of_them_with_its_sentence() {
    let folder = tempfile::tempdir().unwrap();
    // Fashion-MNIST might be installed on this machine.
    let config = write_config(folder.path(), &[("dataset = \"fashion-mnist\"", "dataset = \"mnist\"")]);
    let output = mpirun(3).arg(&config).arg("--data").arg(folder.path().join("nowhere")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(stderr.matches("dps-train data fetch mnist").count(), 1, "{stderr}");
}

/// Starts two ranks with different words after the program's name: a shell puts the rank's number in place of RANK.
fn unequal(words: &str) -> std::process::Output {
    let script = format!("exec \"$0\" {}", words.replace("RANK", "$OMPI_COMM_WORLD_RANK"));
    let mut command = std::process::Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", "2", "sh", "-c", &script, env!("CARGO_BIN_EXE_dps-train")]);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.output().unwrap()
}

#[test]
fn ranks_with_different_data_or_configurations_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (config, place) = (write_config(folder.path(), &[]), folder.path().display());
    let config = config.display();
    for (name, examples) in [("0", 600), ("1", 601)] {
        write_data(&folder.path().join(name), examples, 90);
    }
    for (what, words) in [
        ("data", format!("{config} --data {place}/RANK --output {place}/x.h5")),
        ("configuration", format!("{config} --data {place}/0 --trials 1RANK --output {place}/x.h5")),
    ] {
        let output = unequal(&words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        assert_eq!(stderr.matches(&format!("rank 1: expected the same {what} as rank 0")).count(), 1, "{stderr}");
    }
}

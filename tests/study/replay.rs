//! `dps-train replay`: a recorded trial trains again from its file alone, and comes out as recorded.

use std::path::Path;

use crate::support::study::{Study, fail, on, train, write_data};
use dps::records::{Cell, Status, Trial};
use dps::results;

/// A change of a trial's record.
type Change = fn(&mut Trial);

/// Result of `dps-train replay` for a trial: its exit code, standard output and standard error.
fn replay(folder: &Path, results: &Path, cell: &Cell, more: &[&str]) -> (i32, String, String) {
    let mut command = train();
    command.arg("replay").arg(results).arg("--data").arg(folder);
    command.args(["--batch-size", &cell.key.batch_size.to_string(), "--sparsity", &cell.key.sparsity.to_string()]).args(more);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The weights of a sparse network change and its mask does not; a dense network is as without the key. The records are the same on two ranks, and a
/// replay repeats them.
#[test]
fn weights_drawn_anew_keep_the_mask() {
    let study =
        Study::new(&[("batch_sizes = [2, 37]", "batch_sizes = [37]"), ("max_steps = 40", "max_steps = 12"), ("max = 1e4", "max = 1")]);
    let measure = |name: &str, ranks: usize, reinitialise: &str| {
        let setting = format!("pruning.reinitialise={reinitialise}");
        results::read(&study.measure(on(ranks), name, &["--threads", "1", "--set", &setting])).unwrap()
    };
    let usual = measure("usual.h5", 0, "false");
    let anew = measure("anew.h5", 0, "true");
    let on_two_ranks = measure("two-ranks.h5", 2, "true");
    assert!(!usual.configuration.contains("reinitialise") && anew.configuration.contains("reinitialise = true"));
    for ((usual, anew), other) in usual.cells.iter().zip(&anew.cells).zip(&on_two_ranks.cells) {
        assert!(anew.agrees(other), "{}", anew.key);
        let is_sparse = usual.key.sparsity > 0.0;
        for (usual, anew) in usual.trials.iter().zip(&anew.trials) {
            assert_eq!((usual.mask_hash, usual.parameters_kept), (anew.mask_hash, anew.parameters_kept));
            assert_eq!(is_sparse, usual.curve != anew.curve, "trial {}", usual.index);
        }
        if is_sparse {
            let (code, told, said) = replay(study.folder.path(), &study.at("two-ranks.h5"), anew, &["--trial", "1"]);
            assert_eq!(code, 0, "{told}{said}");
        }
    }
}

#[test]
fn every_kind_of_trial_comes_out_as_recorded_and_a_changed_record_does_not() {
    let study = Study::new(&[]);
    // Trials in waves, raced beyond K*; the loss surface is measured on the way and not by a replay.
    let smoothness = "smoothness={ every = 6, points = 1, examples = 30, trials = 2 }";
    let options = ["--threads", "2", "--set", "execution.race=2", "--set", "execution.lanes=3", "--set", smoothness];
    let path = study.measure(train(), "study.h5", &options);
    let found = results::read(&path).unwrap();

    let mut kinds = Vec::new();
    for cell in &found.cells {
        for trial in &cell.trials {
            let (code, told, said) = replay(study.folder.path(), &path, cell, &["--trial", &trial.index.to_string(), "--threads", "1"]);
            assert_eq!(code, 0, "{told}{said}");
            let end = format!(
                "trial {} of batch size {}, sparsity {}: as recorded, {}\n",
                trial.index,
                cell.key.batch_size,
                cell.key.sparsity,
                trial.status.name()
            );
            assert!(told.ends_with(&end), "{told}");
            // A heading, a line an evaluation, an empty line, the end.
            assert_eq!(told.lines().count(), trial.curve.len() + 3, "{told}");
            kinds.push(trial.status);
        }
    }
    for kind in [Status::Complete, Status::Infeasible, Status::Censored] {
        assert!(kinds.contains(&kind), "the small study must have a trial that is {}", kind.name());
    }

    // Without a number it is the best trial; its curve, as a table for other programs, has whole evaluations alone.
    let cell = found.cells.iter().find(|cell| cell.best().is_some_and(|best| best.curve.len() > 1)).unwrap();
    let (best, csv) = (cell.best().unwrap(), study.at("curve.csv"));
    let (code, told, _) = replay(study.folder.path(), &path, cell, &["--csv", csv.to_str().unwrap()]);
    assert!(code == 0 && told.contains(&format!("trial {} of", best.index)) && told.contains("at least"), "{told}");
    let mut reader = csv::Reader::from_path(&csv).unwrap();
    let rows: Vec<Vec<f64>> = reader.records().map(|row| row.unwrap().iter().map(|field| field.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), best.curve.len());
    assert!(rows.iter().all(|row| row[3] == f64::from(found.workload.validation_examples)));
    let last = rows.last().unwrap();
    assert!(last[0] == f64::from(best.steps.unwrap()) && last[2] <= f64::from(found.workload.goal_threshold), "{last:?}");

    // The study's own files are not written over.
    let journal = study.at("study.journal");
    for own in [&path, &journal] {
        let before = std::fs::read(own).unwrap();
        let (code, _, said) = replay(study.folder.path(), &path, cell, &["--csv", own.to_str().unwrap()]);
        assert!(code == 4 && said.contains("expected --csv to be another file than those of the study"), "{said}");
        assert_eq!(std::fs::read(own).unwrap(), before);
    }
    // Nor is any other file.
    let (code, _, said) = replay(study.folder.path(), &path, cell, &["--csv", csv.to_str().unwrap()]);
    assert!(code == 4 && said.contains("expected no such file for --csv, found one"), "{said}");

    // Records that were changed.
    let changed = study.at("changed.h5");
    let place = found.cells.iter().position(|other| other.key == cell.key).unwrap();
    let changes: [(Change, &str); 2] = [
        (|trial| trial.curve[0].loss += 1e-6, "the first evaluation that differs: the file has"),
        (|trial| trial.dead_layers += 1, "dead_layers: the file has 1, now 0"),
    ];
    for (change, words) in changes {
        let mut other = found.clone();
        change(&mut other.cells[place].trials[best.index as usize]);
        results::write(&changed, &other).unwrap();
        let (code, _, said) = replay(study.folder.path(), &changed, cell, &[]);
        assert!(code == 4 && said.contains(&format!("does not come out as recorded: {words}")), "{said}");
    }

    // Trials and cells that are not there.
    for (more, words) in [
        (&["--trial", "5"][..], "expected trial 5 of batch size 2, sparsity 0, found 5 trials, from 0"),
        (&["--batch-size", "3"], "expected a cell of batch size 3, sparsity 0, found batch size 2 at 0"),
    ] {
        let mut command = study.subcommand("replay", "study.h5");
        command.args(["--sparsity", "0"]);
        if more[0] == "--trial" {
            command.args(["--batch-size", "2"]);
        }
        let said = fail(command.args(more), 4);
        assert!(said.contains(words), "{said}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    write_data(elsewhere.path(), 601, 90);
    let (code, _, said) = replay(elsewhere.path(), &path, cell, &[]);
    assert!(code == 4 && said.contains("expected the data that the study was measured on, SHA-256"), "{said}");
}

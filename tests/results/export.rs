//! The export to the layout of Shallue et al., read back as their analysis reads it.

use std::fs;
use std::path::Path;

use crate::support::synthetic::Synthetic;
use dps::optimizer::Metaparameter;
use dps::records::Status;
use dps::results::{self, Results};

#[test]
fn an_export_has_the_layout_of_shallue_and_says_the_same_steps_to_result() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let results = Synthetic::small().results();
    results::write(&folder.path().join("study.h5"), &results).unwrap();
    let export = || {
        let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
        report.current_dir(folder.path()).args(["study.h5", "--shallue", "data"]);
        report
    };
    let text = String::from_utf8(export().assert().success().get_output().stdout.clone()).unwrap();
    assert!(text.contains("Export: data (8 cells)\n"), "{text}");
    let json = |path: &Path| serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).unwrap();
    for cell in &results.cells {
        let model = if cell.key.sparsity == 0.0 { "simple_cnn" } else { "simple_cnn_sparsity_0.9" };
        let place = folder.path().join("data/fashion_mnist").join(model).join("momentum").join(cell.key.batch_size.to_string());
        let study = json(&place.join("study.json"));
        assert_eq!(study["batch_size"], cell.key.batch_size);
        assert_eq!(study["parameter_configs"]["momentum"]["scale"], "REVERSE_LOG_SCALE");
        assert_eq!((&study["dps"]["pruning"], &study["dps"]["masks_shuffled"]), (&"snip".into(), &false.into()));
        assert_eq!((&study["train_steps"], &study["early_stopping"]), (&40_000.into(), &false.into()));
        let goal = study["dps"]["strict_goal_error"].as_f64().unwrap();
        // Shallue's analysis finds it so: the first measurement, by step and then by trial, with an error below the goal.
        let mut best = None;
        for trial in &cell.trials {
            let place = place.join(trial.index.to_string());
            let metadata = json(&place.join("metadata.json"));
            // serde_json may read the last digit otherwise.
            let rate = metadata["parameters"]["learning_rate"].as_f64().unwrap();
            assert!((rate / trial.metaparameters.get(Metaparameter::LearningRate).unwrap() - 1.0).abs() < 1e-15);
            assert_eq!(metadata["status"], if trial.status == Status::Infeasible { "INFEASIBLE" } else { "COMPLETE" });
            let mut rows = csv::Reader::from_path(place.join("measurements.csv")).unwrap();
            let column = rows.headers().unwrap().iter().position(|name| name == "val/classification_error").unwrap();
            let mut read = 0;
            for row in rows.records().map(Result::unwrap) {
                let (step, error): (u32, f64) = (row[0].parse().unwrap(), row[column].parse().unwrap());
                if error < goal {
                    best = best.min(Some((step, trial.index))).or(Some((step, trial.index)));
                }
                read += 1;
            }
            assert_eq!(read, trial.curve.len());
        }
        assert_eq!(best, cell.best().map(|trial| (trial.steps.unwrap(), trial.index)));
    }
    let error = export().assert().code(4).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("expected no such folder, found one"));
}

/// A control that is read back is no study of the usual pruning.
#[test]
fn the_pruning_of_an_export_is_read_back() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let results = Synthetic::small().results();
    for (name, pruning, words) in [
        ("plain", "", "fashion-mnist, simple-cnn, momentum"),
        ("shuffled", "\n[pruning]\nshuffle = true\n\n[search]", "simple-cnn, snip pruning, shuffled, momentum"),
    ] {
        let configuration =
            if pruning.is_empty() { results.configuration.clone() } else { results.configuration.replace("\n[search]", pruning) };
        results::write(&folder.path().join(format!("{name}.h5")), &Results { configuration, ..results.clone() }).unwrap();
        let report = |arguments: &[&str]| {
            let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
            report.current_dir(folder.path()).args(arguments).assert().success();
        };
        report(&[&format!("{name}.h5"), "--shallue", name, "-o", "first"]);
        report(&[name, "-o", name.to_uppercase().as_str()]);
        let page = fs::read_to_string(folder.path().join(name.to_uppercase()).join("index.html")).unwrap();
        assert!(page.contains(words), "{name}");
    }
}

#[test]
fn studies_that_the_layout_cannot_tell_apart_leave_no_half_of_an_export() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let small = Synthetic::small();
    // The network and the optimizer are one study's and the other's; the goal has no place in the layout.
    for (name, goal) in [("one.h5", "0.14"), ("other.h5", "0.15")] {
        let configuration = small.configuration().replace("goal_error = 0.14", &format!("goal_error = {goal}"));
        results::write(&folder.path().join(name), &Results { configuration, ..small.results() }).unwrap();
    }
    let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
    report.current_dir(folder.path()).args(["one.h5", "other.h5", "--shallue", "data"]);
    let error = String::from_utf8(report.assert().code(4).get_output().stderr.clone()).unwrap();
    assert!(error.contains("found that of one.h5 and that of other.h5"), "{error}");
    assert!(!folder.path().join("data").exists());
}

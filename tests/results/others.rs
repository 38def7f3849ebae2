//! Studies that others measured: tables of steps-to-result and the layout of Shallue et al., in a report beside our own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::synthetic::Synthetic;
use dps::analysis::{self, StudyResults, fits, gather, read_layout};
use dps::results::{self, Results};
use dps::settings::Race;
use serde_json::Value;

fn study(results: Results) -> StudyResults {
    gather(vec![("study".to_owned(), results)]).remove(0)
}

/// The files of a name below a folder.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, name));
        } else if path.ends_with(name) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_export_read_back_has_the_same_steps_the_same_trials_and_the_same_fits() {
    let _alone = crate::alone();
    for race in [Race::Off, Race::Until(1.0), Race::Until(3.0)] {
        let made = Synthetic { race, optimizer: "nesterov", trials: 12, ..Synthetic::small() };
        let ours = study(made.results());
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(analysis::shallue(std::slice::from_ref(&ours), &folder.path().join("data")).unwrap(), 8);
        // Any folder from the top down to a batch size's holds studies.
        assert_eq!(read_layout(&folder.path().join("data/fashion_mnist/simple_cnn/nesterov_momentum/8"), None).unwrap()[0].cells.len(), 1);
        let mut read = read_layout(&folder.path().join("data"), None).unwrap();
        assert_eq!(read.len(), 1);
        let theirs = study(read.remove(0));
        let mut workload = ours.results.workload.clone();
        // The layout has no place for these.
        (workload.test_examples, workload.parameters) = (0, 0);
        assert_eq!(theirs.results.workload, workload);
        assert_eq!(theirs.results.cells.len(), ours.results.cells.len());
        for (theirs, ours) in theirs.results.cells.iter().zip(&ours.results.cells) {
            assert_eq!((theirs.key, theirs.steps_to_result()), (ours.key, ours.steps_to_result()));
            for (theirs, ours) in theirs.trials.iter().zip(&ours.trials) {
                assert_eq!(
                    (theirs.index, theirs.status, theirs.steps, theirs.steps_run),
                    (ours.index, ours.status, ours.steps, ours.steps_run)
                );
                assert!(theirs.curve == ours.curve && theirs.parameters_kept == ours.parameters_kept);
                assert_eq!(
                    theirs.metaparameters.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                    ours.metaparameters.iter().map(|(name, _)| name).collect::<Vec<_>>()
                );
            }
        }
        for (theirs, ours) in fits(&theirs).iter().zip(fits(&ours)) {
            assert_eq!(theirs.fit, ours.fit);
            assert_eq!((theirs.c1_ratio, theirs.shift, theirs.enough_trials), (ours.c1_ratio, ours.shift, ours.enough_trials));
        }
    }
}

#[test]
fn data_without_a_goal_are_read_by_the_goal_that_is_given() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let ours = study(Synthetic::small().results());
    analysis::shallue(std::slice::from_ref(&ours), folder.path()).unwrap();
    let mut strict = 0.0;
    for path in files(folder.path(), "study.json").into_iter().chain(files(folder.path(), "metadata.json")) {
        let mut value = json(&path);
        strict = value["dps"]["strict_goal_error"].as_f64().unwrap_or(strict);
        value.as_object_mut().unwrap().remove("dps");
        fs::write(&path, value.to_string()).unwrap();
    }
    let problem = read_layout(folder.path(), None).unwrap_err().to_string();
    assert!(problem.contains("study.json: expected a goal, found none") && problem.ends_with("give --goal ERROR"), "{problem}");
    let read = read_layout(folder.path(), Some(strict)).unwrap();
    // Shallue's layout knows sparse networks by name alone: two studies.
    assert_eq!(read.iter().map(|one| one.workload.network.as_str()).collect::<Vec<_>>(), ["simple_cnn", "simple_cnn_sparsity_0.9"]);
    for (theirs, sparsity) in read.iter().zip([0.0, 0.9]) {
        for theirs in &theirs.cells {
            let ours = ours.grid().cell(theirs.key.batch_size, sparsity).unwrap();
            assert!(theirs.key.sparsity == 0.0 && theirs.steps_to_result() == ours.steps_to_result(), "{:?}", theirs.key);
        }
    }
    // Half the goal is reached by none, and twice the goal sooner.
    let with = |goal: f64| {
        read_layout(folder.path(), Some(goal)).unwrap().remove(0).cells.iter().map(|cell| cell.steps_to_result()).collect::<Vec<_>>()
    };
    assert!(with(strict / 2.0).iter().all(Option::is_none));
    assert!(with(strict * 2.0).iter().zip(with(strict)).all(|(sooner, later)| sooner.unwrap() < later.unwrap()));
}

#[test]
fn what_is_damaged_is_named_in_a_sentence() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let refused = |path: &Path| read_layout(path, Some(0.1)).unwrap_err().to_string();
    assert!(refused(&folder.path().join("empty")).ends_with("found no study.json in it"));
    assert!(refused(&folder.path().join("none")).contains("cannot be read"));
    analysis::shallue(
        &[study(Synthetic { batch_sizes: vec![8], sparsities: vec![0.0], ..Synthetic::small() }.results())],
        &folder.path().join("data"),
    )
    .unwrap();
    let place = folder.path().join("data/fashion_mnist/simple_cnn/momentum/8");
    let best = study(read_layout(&place, None).unwrap().remove(0)).results.cells[0].best().unwrap().index;
    let trial = place.join(best.to_string());
    for (path, from, to, words) in [
        (place.join("study.json"), "\"batch_size\": 8", "\"batch_size\": 0", "expected a batch_size, a whole number from 1, found {"),
        (place.join("study.json"), "\"validation_examples\": 6000", "\"validation_examples\": -1", "dps.validation_examples"),
        (place.join("study.json"), "{", "", "expected JSON"),
        (
            trial.join("metadata.json"),
            "\"steps_to_result\": ",
            "\"steps_to_result\": 1",
            "damaged: its dps.steps_to_result is not what measurements.csv beside it has",
        ),
        (trial.join("metadata.json"), "complete", "finished", "expected how the trial ended as dps.status"),
        (trial.join("measurements.csv"), "val/errors", "errors", "expected a column val/errors, found none"),
        (trial.join("measurements.csv"), "\n16,", "\nsixteen,", "expected numbers of steps, steps ascending, found \"sixteen,"),
        (trial.join("measurements.csv"), "\n32,", "\n16,", "expected numbers of steps, steps ascending"),
    ] {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let problem = refused(&folder.path().join("data"));
        assert!(
            problem.contains(words) && problem.contains(path.file_name().unwrap().to_str().unwrap()) && !problem.contains('\n'),
            "{problem}"
        );
        fs::write(&path, text).unwrap();
    }
    fs::create_dir(place.join("notes")).unwrap();
    assert!(refused(&folder.path().join("data")).contains("expected a folder a trial, named by its number"));
}

/// K = 12,800,000/B + 2,000 and a second goal, as a table; ours beside it, once as a file and once as an export.
#[test]
fn a_report_has_what_others_measured_and_nothing_that_they_did_not() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let ours = Synthetic::small().results();
    results::write(&folder.path().join("study.h5"), &ours).unwrap();
    analysis::shallue(&[study(ours)], &folder.path().join("export")).unwrap();
    let row = |size: u32| {
        format!("language model,{size},0,{},3.42\nlanguage model,{size},0,{},3.0\n", 12_800_000 / size + 2_000, 19_200_000 / size + 3_000)
    };
    let table: String = (6..13).map(|power| row(1 << power)).collect();
    fs::write(folder.path().join("others.CSV"), format!("study,batch_size,sparsity,steps_to_result,goal\n{table}")).unwrap();
    let report = |arguments: &str| {
        let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
        report.current_dir(folder.path()).args(arguments.split(' '));
        report
    };
    let output = report("study.h5 others.CSV export -o all --claims claims.md").assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("language model\nGoal: 3.42. Others measured it.\n\nSteps-to-result")
            && text.matches("Work of the trials").count() == 2,
        "{text}"
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let claims = fs::read_to_string(folder.path().join("claims.md")).unwrap();
    assert!(claims.contains("Goal: 3.42, as its files or the command line have it. 7 of 7 cells measured; 1 file.\n"), "{claims}");
    let page = fs::read_to_string(folder.path().join("all/index.html")).unwrap();
    // Trials and curves of ours, and of the export; time and configuration of ours alone.
    for (words, times) in [
        ("<summary>Trials</summary>", 2),
        ("<summary>Training loss of the best trials</summary>", 2),
        ("<summary>Time to the goal</summary>", 1),
        ("<pre>", 1),
        ("<summary>Fits</summary>", 4),
    ] {
        assert_eq!(page.matches(words).count(), times, "{words}");
    }
    assert!(
        page.contains("language model, goal 3.42")
            && page.contains("language model, goal 3</h2>")
            && page.contains("others; what is not here"),
        "{page}"
    );
    let rows = |name: &str| {
        let mut reader = csv::Reader::from_path(folder.path().join("all").join(name)).unwrap();
        let heading = reader.headers().unwrap().clone();
        let place = move |column: &str| heading.iter().position(|name| name == column).unwrap();
        (reader.records().map(Result::unwrap).collect::<Vec<_>>(), place)
    };
    let (fits, column) = rows("fits.csv");
    let fitted: Vec<&csv::StringRecord> = fits.iter().filter(|row| row[0].starts_with("language-model")).collect();
    let number = |row: &csv::StringRecord, name: &str| row[column(name)].parse::<f64>().unwrap();
    assert_eq!(fitted.len(), 2);
    assert!(
        (number(fitted[0], "critical_batch_size") / 6_400.0 - 1.0).abs() < 0.1 && (number(fitted[1], "c2") / 3_000.0 - 1.0).abs() < 0.1
    );
    for name in ["trials.csv", "fewer-trials.csv", "work.csv", "time.csv", "curves.csv"] {
        assert!(rows(name).0.iter().all(|row| !row[0].starts_with("language-model")), "{name}");
    }
    let (cells, column) = rows("cells.csv");
    let others: Vec<_> = cells.iter().filter(|row| row[0].starts_with("language-model")).collect();
    assert_eq!(others.len(), 14);
    assert!(
        others.iter().all(|row| row.iter().skip(column("trials")).all(str::is_empty)),
        "nothing is known of trials, test errors and seconds"
    );

    fs::write(folder.path().join("bad.csv"), "study,batch_size\na,1\n").unwrap();
    for (file, sentence) in [
        (
            "bad.csv",
            "dps-report: bad.csv: expected the columns study, batch_size, sparsity, steps_to_result, goal, found none called sparsity, but \"study, batch_size\"\n",
        ),
        ("none.csv", "dps-report: none.csv: the file cannot be read"),
        ("all", "found no study.json in it\n"),
    ] {
        let error = String::from_utf8(report(file).assert().code(4).get_output().stderr.clone()).unwrap();
        assert!(error.contains(sentence) && error.lines().count() == 1, "{error}");
    }
}

/// Reports of tables: `K` by batch size at each sparsity of a study, and its page of claims, answers and figures of fits.
#[test]
fn few_cells_decide_nothing_and_draw_no_axis_without_end() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let reported = |cells: &[(u32, f64, u32)]| {
        let rows: String = cells.iter().map(|(size, sparsity, steps)| format!("A,{size},{sparsity},{steps},0.1\n")).collect();
        fs::write(folder.path().join("a.csv"), format!("study,batch_size,sparsity,steps_to_result,goal\n{rows}")).unwrap();
        let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
        let output = report.current_dir(folder.path()).args(["a.csv", "-o", "made"]).assert().success().get_output().clone();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (
            said.split_whitespace().collect::<Vec<_>>().join(" "),
            fs::read_to_string(folder.path().join("made/claims.csv")).unwrap_or_default(),
        )
    };
    let dense = [(16, 0.0, 1001), (32, 0.0, 533), (64, 0.0, 311)];
    // One common batch size: no claim about all of them is decided, and the answer names it once.
    let (said, claims) = reported(&[&dense[..], &[(64, 0.9, 3003), (128, 0.9, 1533), (256, 0.9, 933)]].concat());
    let of_ratio: Vec<&str> = claims.lines().filter(|line| line.contains("1 batch size at which both sparsities have a result")).collect();
    assert!(of_ratio.len() == 5 && of_ratio.iter().all(|line| line.contains("cannot be said")), "{claims}");
    assert_eq!(said.matches("at batch size 64").count(), 1, "{said}");
    // The sparsest network shares none, another one does.
    let half = [(16, 0.5, 2001), (32, 0.5, 1033), (64, 0.5, 611)];
    let sparsest = [(128, 0.9, 3003), (256, 0.9, 1533), (512, 0.9, 933)];
    let (said, _) = reported(&[&dense[..], &half, &sparsest].concat());
    assert!(said.contains("By the fits, the network of sparsity 0.5 takes"), "{said}");
    let (said, _) = reported(&[&dense[..], &sparsest].concat());
    assert!(said.contains("no sparse network has a result at a batch size of the dense one"), "{said}");
    // Steps that show no floor.
    let (_, _) = reported(&[(16, 0.0, 8000), (32, 0.0, 4000), (64, 0.0, 2000), (128, 0.0, 1000)]);
    let figure = fs::read_to_string(folder.path().join("made/a-fits.svg")).unwrap();
    assert!(!figure.contains("³⁰⁷"), "{figure}");
    // One cell says nothing of how often it was evaluated.
    let (said, _) = reported(&[(16, 0.0, 6)]);
    assert!(!said.contains("evaluations"), "{said}");
}

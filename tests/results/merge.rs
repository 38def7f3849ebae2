//! `dps-train merge`: parts of one study become one result file; files of different studies are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::study::{Study, fail, succeed, train};
use crate::support::synthetic::Synthetic;
use dps::records::{Confirmation, Ending, Seeds, Training};
use dps::results::{self, Results};
use dps::settings;

/// A study of three trials a cell.
fn study(changes: &[(&str, &str)]) -> Study {
    Study::with_data(200, 40, &[changes, &[("trials = 5", "trials = 3")]].concat())
}

/// A study of twelve steps.
fn short() -> Study {
    study(&[("max_steps = 40", "max_steps = 12")])
}

fn merge(parts: &[&Path], output: &Path, options: &[&str]) -> Command {
    let mut command = train();
    command.arg("merge").args(parts).arg("--output").arg(output).args(options);
    command
}

/// The sentence with which a merge is refused, after checking that nothing was written.
fn refusal(command: &mut Command, output: &Path) -> String {
    let before = fs::read(output).ok();
    let stderr = fail(command, 4);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(fs::read(output).ok(), before, "{stderr}");
    stderr
}

/// Results without what depends on the run: times, and the environment.
fn timeless(mut results: Results) -> Results {
    results.environment = results::Environment::default();
    results.cells = crate::support::records::timeless(results.cells);
    results
}

/// Of confirmations that were evaluated at unlike distances a cell keeps the finest alone, and the command says how many are left out.
#[test]
fn confirmations_that_a_merged_study_leaves_out_are_counted() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, evaluate_every: u32, numbers: std::ops::Range<u32>| {
        let mut results = Synthetic::small().results();
        let section = "\n[confirm]\npoints = 1\nseeds = 4\nlimit = 4.0\nevaluate_every = 0\n\n[execution]";
        results.configuration = settings::recorded("small", &results.configuration.replace("\n[execution]", section), &[]).unwrap().text;
        for cell in &mut results.cells {
            let run = cell.best().unwrap().clone();
            let seeds = |number: u32| Seeds { weights: (1 << 31) + u64::from(number), order: (1 << 31) + u64::from(number) };
            let training = |number: u32| Training { point: run.index, number, seeds: seeds(number), evaluate_every };
            cell.confirmations = numbers.clone().map(|number| Confirmation { training: training(number), run: run.clone() }).collect();
        }
        let path = folder.path().join(name);
        results::write(&path, &results).unwrap();
        path
    };
    let (coarse, fine, more) = (part("coarse.h5", 4, 0..3), part("fine.h5", 2, 0..2), part("more.h5", 2, 2..4));
    let said = |parts: [&PathBuf; 2]| {
        let output = merge(&parts.map(PathBuf::as_path), &folder.path().join("all.h5"), &["--force"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said([&coarse, &fine]).contains("without 24 confirmations, of points"), "{}", said([&coarse, &fine]));
    assert!(!said([&fine, &more]).contains("without"));
}

#[test]
fn parts_in_any_order_become_the_result_of_the_whole() {
    let _alone = crate::alone();
    let study = short();
    let whole = study.measure(train(), "whole.h5", &[]);
    let a = study.measure(train(), "a.h5", &["--batch-size", "37", "--threads", "1"]);
    let b = study.measure(train(), "b.h5", &["--batch-size", "2", "--sparsity", "0.9", "--threads", "2"]);
    // Another device than that of the others, and the first part below.
    let c = study.measure(train(), "c.h5", &["--sparsity", "0", "--device", "cpu"]);
    let output = study.at("folder/all.h5");

    // These two files lack one cell, and share another.
    succeed(&mut merge(&[&a, &b], &output, &[]));
    let found = results::read(&output).unwrap();
    assert_eq!((found.cells.len(), found.complete), (3, false));
    succeed(&mut merge(&[&c, &b, &a], &output, &["--force"]));
    let found = results::read(&output).unwrap();
    assert_eq!((found.cells.len(), found.environment.threads >= 2), (4, true));
    assert_eq!(timeless(found.clone()), timeless(results::read(&whole).unwrap()));

    // A cell that is to get more trials is not whole.
    let mut growing = results::read(&whole).unwrap();
    growing.cells[1].trials.truncate(2);
    let part = study.at("growing.h5");
    results::write(&part, &growing).unwrap();
    let grown = study.at("grown.h5");
    succeed(&mut merge(&[&part], &grown, &[]));
    assert!(!results::read(&grown).unwrap().complete);

    // The starts of all parts, by time.
    let starts = &found.environment.starts;
    assert_eq!((starts.len(), starts.is_sorted_by_key(|start| start.began)), (3, true), "{starts:?}");
    assert!(starts.iter().all(|start| (start.number, start.before, start.ranks) == (0, Ending::First, 1)), "{starts:?}");

    let environment = &found.environment;
    assert_eq!(environment.command_line.matches("dps-train ").count(), 3, "{}", environment.command_line);
    assert!(environment.compiler.starts_with("rustc 1.") && !environment.processor.is_empty(), "{environment:?}");
    assert!(["clean", "modified", "unknown"].contains(&environment.source_tree.as_str()), "{environment:?}");

    // A merged file can be merged again, and its parts with it.
    let again = study.at("again.h5");
    succeed(&mut merge(&[&output, &a, &output], &again, &[]));
    assert_eq!(results::read(&again).unwrap(), found);
}

/// Trials 0 to 4 and trials 5 to 7 of the same cells are trials 0 to 7, in either order: without a race record by record, with a race once the
/// files' races are one.
#[test]
fn disjoint_trials_of_the_same_cells_become_one_study() {
    let _alone = crate::alone();
    let study = study(&[
        ("evaluate_every = 4", "evaluate_every = 1"),
        ("max_steps = 40", "max_steps = 24"),
        ("min = 1e-3, max = 1e4", "min = 1e-2, max = 1"),
    ]);
    let measure = |name: &str, first: &str, trials: &str, race: &str| {
        let (first, race) = (format!("search.first_trial={first}"), format!("execution.race={race}"));
        study.measure(train(), name, &["--set", &first, "--trials", trials, "--set", &race])
    };
    let mut shortened = 0;
    for race in ["false", "1"] {
        let parts = ["0", "5", "0"].into_iter().zip(["5", "3", "8"]).zip(["a", "b", "whole"]);
        let files: Vec<PathBuf> = parts.map(|((first, trials), name)| measure(&format!("{name}{race}.h5"), first, trials, race)).collect();
        let [a, b, whole] = [&files[0], &files[1], &files[2]];
        let second = results::read(b).unwrap();
        assert!(second.cells.iter().all(|cell| cell.trials.iter().map(|trial| trial.index).eq(5..8)) && second.complete);
        assert!(second.configuration.contains("first_trial = 5"), "{}", second.configuration);
        let expected = timeless(results::read(whole).unwrap());
        assert!(!expected.configuration.contains("first_trial"));
        let of_whole = |at: usize| expected.cells[at].trials[5..].iter();
        let second = timeless(second);
        let differing: usize =
            second.cells.iter().enumerate().map(|(at, cell)| cell.trials.iter().zip(of_whole(at)).filter(|(a, b)| a != b).count()).sum();
        assert!(race != "false" || differing == 0, "{differing} trials differ from those of the whole study");
        shortened += differing;
        for (name, parts) in [("ab.h5", [a, b]), ("ba.h5", [b, a])] {
            let output = study.at(name);
            succeed(&mut merge(&parts.map(PathBuf::as_path), &output, &["--force"]));
            assert_eq!(timeless(results::read(&output).unwrap()), expected);
            // With a part of it once more, whose own race may have been longer.
            let again = study.at("again.h5");
            succeed(&mut merge(&[&output, b], &again, &["--force"]));
            assert_eq!(timeless(results::read(&again).unwrap()), expected);
        }
    }
    assert!(shortened > 0, "no race of a file was longer than that of all trials");

    // The plan and the status say which trials there are, a study goes on with more of them, and a trial is replayed.
    let (a, b) = (study.at("a1.h5"), study.at("b1.h5"));
    let mut plan = train();
    plan.arg(&study.config).arg("--data").arg(study.folder.path()).args(["--set", "search.first_trial=5", "--plan"]);
    let text = |output: std::process::Output| String::from_utf8(output.stdout).unwrap();
    assert!(text(plan.output().unwrap()).contains("3 trials (numbers 5 to 7)"));
    let mut status = train();
    assert!(text(status.arg("status").arg(&b).output().unwrap()).contains("3 trials (numbers 5 to 7) each"));
    measure("b1.h5", "5", "4", "1");
    let numbers = |path: &Path| results::read(path).unwrap().cells[0].trials.iter().map(|trial| trial.index).collect::<Vec<_>>();
    assert_eq!(numbers(&b), [5, 6, 7, 8]);
    let replay = |trial: &str| {
        let mut replay = study.subcommand("replay", "b1.h5");
        replay.args(["--batch-size", "37", "--sparsity", "0.9", "--trial", trial]);
        replay
    };
    succeed(&mut replay("8"));
    let said = fail(&mut replay("4"), 4);
    assert!(said.contains("found 4 trials, from 5"), "{said}");

    // Another first trial is another study, not its growth.
    let said = fail(&mut study.measuring(train(), "b1.h5", &["--set", "search.first_trial=4"]), 7);
    assert!(said.contains("search.first_trial: journal has 5, configuration has 4"), "{said}");

    // The points of the whole are confirmed, with seeds that no trial has.
    succeed(study.subcommand("confirm", "b1.h5").args(["--set", "confirm.points=2", "--set", "confirm.seeds=2", "--quiet"]));
    let cells = results::read(&b).unwrap().cells;
    let confirmed: Vec<_> = cells.iter().flat_map(|cell| &cell.confirmations).collect();
    assert!(!confirmed.is_empty() && confirmed.iter().all(|one| (5..9).contains(&one.training.point) && one.training.seeds.weights > 8));

    // A gap between the trials leaves the study unfinished: the merged file alone goes on with the trials in it. A gap that is too wide is refused.
    let far = measure("far.h5", "9", "1", "1");
    let gap = study.at("gap.h5");
    succeed(&mut merge(&[&a, &far], &gap, &[]));
    let parts = results::read(&gap).unwrap();
    assert!(!parts.complete);
    succeed(train().arg(&gap).arg("--data").arg(study.folder.path()).arg("--quiet"));
    let whole = results::read(&gap).unwrap();
    assert!(whole.complete && numbers(&gap).into_iter().eq(0..10));
    for (whole, parts) in whole.cells.iter().zip(&parts.cells) {
        assert!(whole.seconds > 0.9 * parts.seconds, "{}: {} s, of parts {} s", whole.key, whole.seconds, parts.seconds);
    }
    let status = train().arg("status").arg(&gap).arg("--json").output().unwrap().stdout;
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!((&status["restarts"], status["causes"].as_array().unwrap().len()), (&1.into(), 1), "two parts, of which one start went on");
    let farther = measure("farther.h5", "200000", "1", "1");
    let said = refusal(&mut merge(&[&a, &farther], &study.at("none.h5"), &[]), &study.at("none.h5"));
    assert!(said.contains("at most 100000 apart, found trials from 0 to 200000"), "{said}");
}

#[test]
fn an_existing_file_is_replaced_only_by_force_and_a_study_never() {
    let _alone = crate::alone();
    let study = short();
    let a = study.measure(train(), "a.h5", &["--batch-size", "2"]);
    let output = study.at("all.h5");
    fs::write(&output, "a letter").unwrap();
    let sentence = refusal(&mut merge(&[&a], &output, &[]), &output);
    assert!(sentence.contains("all.h5") && sentence.contains("--force"), "{sentence}");
    succeed(&mut merge(&[&a], &output, &["--force"]));
    assert_eq!(results::read(&output).unwrap().cells.len(), 2);
    let old = |number: u32| study.at(&format!("all.h5.old-{number}"));
    assert_eq!(fs::read_to_string(old(1)).unwrap(), "a letter");
    // A file of which the new one has everything is replaced; another one is kept beside it.
    let b = study.measure(train(), "b.h5", &["--batch-size", "37"]);
    succeed(&mut merge(&[&a, &b], &output, &["--force"]));
    assert!(!old(2).exists());
    succeed(&mut merge(&[&a], &output, &["--force"]));
    // A link is replaced, and what it leads to is not touched.
    let link = study.at("link.h5");
    std::os::unix::fs::symlink(old(1), &link).unwrap();
    succeed(&mut merge(&[&a], &link, &["--force"]));
    assert!(fs::symlink_metadata(&link).unwrap().is_file() && fs::read_to_string(old(1)).unwrap() == "a letter");
    assert_eq!([results::read(&output).unwrap().cells.len(), results::read(&old(2)).unwrap().cells.len()], [2, 4]);
    let sentence = refusal(&mut merge(&[&output], &a, &["--force"]), &a);
    assert!(sentence.contains("a.journal"), "{sentence}");
}

#[test]
fn what_is_not_of_one_study_is_refused_by_name() {
    let _alone = crate::alone();
    let study = short();
    let a = study.measure(train(), "a.h5", &["--batch-size", "2"]);
    let output = study.at("all.h5");
    let other = study.measure(train(), "other.h5", &["--batch-size", "37", "--trials", "2", "--set", "search.momentum=0.9"]);
    let sentence = refusal(&mut merge(&[&a, &other], &output, &[]), &output);
    for expected in ["other.h5: expected a part of the study in", "search.momentum", "this file has 0.9"] {
        assert!(sentence.contains(expected), "{expected}: {sentence}");
    }
    assert!(!sentence.contains("grid."), "{sentence}");
    let keys = ["data.split_seed=3", "pruning.shuffle=true", "search.momentum=0.9", "workload.goal_error=0.5", "workload.max_steps=24"];
    let far = study.measure(train(), "far.h5", &keys.map(|key| ["--set", key]).concat());
    let sentence = refusal(&mut merge(&[&a, &far], &output, &[]), &output);
    assert!(
        sentence.contains("data.split_seed: ") && sentence.contains("search.momentum: ") && sentence.contains("; and 6 more); merge parts"),
        "{sentence}"
    );
    let raced = study.measure(train(), "raced.h5", &["--batch-size", "37", "--set", "execution.race=false"]);
    let sentence = refusal(&mut merge(&[&a, &raced], &output, &[]), &output);
    assert!(sentence.contains("execution.race"), "{sentence}");

    let changed = |name: &str, change: &dyn Fn(&mut Results)| {
        let mut results = results::read(&a).unwrap();
        change(&mut results);
        let path = study.at(name);
        results::write(&path, &results).unwrap();
        refusal(&mut merge(&[&a, &path], &output, &[]), &output)
    };
    let sentence = changed("data.h5", &|results| results.environment.data_digest = "0".repeat(64));
    assert!(sentence.contains("data.h5: ") && sentence.contains("this file has 0000"), "{sentence}");
    let sentence = changed("hash.h5", &|results| results.cells[1].trials[2].mask_hash ^= 1);
    assert!(sentence.contains("hash.h5: its records of batch size 2, sparsity 0.9 differ"), "{sentence}");
    let sentence = changed("size.h5", &|results| results.workload.parameters += 1);
    assert!(sentence.contains("/workload"), "{sentence}");
    let sentence = changed("old.h5", &|results| results.environment.program_version = "0.1.0".into());
    assert!(sentence.contains("that study is by dps 0.3, this file by dps 0.1"), "{sentence}");
    let sentence = changed("earlier.h5", &|results| results.environment.program_version = "0.2.0".into());
    assert!(sentence.contains("that study is by dps 0.3, this file by dps 0.2"), "{sentence}");
    // By direct convolutions 0.2 and 0.3 record the same.
    let direct = |name: &str, version: &str| {
        let mut results = results::read(&a).unwrap();
        results.configuration = results.configuration.replace("convolutions = \"winograd\"\n", "");
        results.environment.program_version = version.into();
        results::write(&study.at(name), &results).unwrap();
        study.at(name)
    };
    succeed(&mut merge(&[&direct("new.h5", "0.3.0"), &direct("old.h5", "0.2.0")], &study.at("both.h5"), &[]));
    let sentence = changed("text.h5", &|results| results.configuration = "[workload]\nshape = 3\n".into());
    assert!(sentence.contains("text.h5: its configuration is none"), "{sentence}");

    let sentence = refusal(&mut merge(&[&a, &study.at("nowhere.h5")], &output, &[]), &output);
    assert!(sentence.contains("nowhere.h5"), "{sentence}");
}

//! `dps-train merge`: parts of one study become one result file; files of different studies are refused.
#![cfg(feature = "mpi")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dps::records::Ending;
use dps::results::{self, Results};
use support::study::{succeed, train, write_config, write_data};

/// A small study's folder.
struct Folder {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        write_data(folder.path(), 200, 40);
        let config = write_config(folder.path(), &[("max_steps = 40", "max_steps = 12"), ("trials = 5", "trials = 3")]);
        Folder { folder, config }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Measures a part, or all, into a file.
    fn measure(&self, name: &str, options: &[&str]) -> PathBuf {
        let output = self.path(name);
        let mut command = train();
        command.arg(&self.config).arg("--data").arg(self.folder.path()).arg("--output").arg(&output).arg("--quiet");
        succeed(command.args(options));
        output
    }
}

fn merge(parts: &[&Path], output: &Path, options: &[&str]) -> Command {
    let mut command = train();
    command.arg("merge").args(parts).arg("--output").arg(output).args(options);
    command
}

/// The sentence with which a merge is refused, after checking that nothing was written.
fn refusal(command: &mut Command, output: &Path) -> String {
    let before = fs::read(output).ok();
    let found = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&found.stderr).into_owned();
    assert_eq!(found.status.code(), Some(4), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(fs::read(output).ok(), before, "{stderr}");
    stderr
}

/// Results without what depends on the run: times, and the environment.
fn timeless(mut results: Results) -> Results {
    results.environment = results::Environment::default();
    results.cells = support::records::timeless(results.cells);
    results
}

#[test]
fn parts_in_any_order_become_the_result_of_the_whole() {
    let study = Folder::new();
    let whole = study.measure("whole.h5", &[]);
    let a = study.measure("a.h5", &["--batch-size", "37", "--threads", "1"]);
    let b = study.measure("b.h5", &["--batch-size", "2", "--sparsity", "0.9", "--threads", "2"]);
    let c = study.measure("c.h5", &["--sparsity", "0"]);
    let output = study.path("folder/all.h5");

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
    let part = study.path("growing.h5");
    results::write(&part, &growing).unwrap();
    let grown = study.path("grown.h5");
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

    // What was merged can be merged again, and its parts with it.
    let again = study.path("again.h5");
    succeed(&mut merge(&[&output, &a, &output], &again, &[]));
    assert_eq!(results::read(&again).unwrap(), found);
}

#[test]
fn an_existing_file_is_replaced_only_by_force_and_a_study_never() {
    let study = Folder::new();
    let a = study.measure("a.h5", &["--batch-size", "2"]);
    let output = study.path("all.h5");
    fs::write(&output, "a letter").unwrap();
    let sentence = refusal(&mut merge(&[&a], &output, &[]), &output);
    assert!(sentence.contains("all.h5") && sentence.contains("--force"), "{sentence}");
    succeed(&mut merge(&[&a], &output, &["--force"]));
    assert_eq!(results::read(&output).unwrap().cells.len(), 2);
    let sentence = refusal(&mut merge(&[&output], &a, &["--force"]), &a);
    assert!(sentence.contains("a.journal"), "{sentence}");
}

#[test]
fn what_is_not_of_one_study_is_refused_by_name() {
    let study = Folder::new();
    let a = study.measure("a.h5", &["--batch-size", "2"]);
    let output = study.path("all.h5");
    let other = study.measure("other.h5", &["--batch-size", "37", "--trials", "2", "--set", "search.momentum=0.9"]);
    let sentence = refusal(&mut merge(&[&a, &other], &output, &[]), &output);
    for expected in ["other.h5: expected a part of the study in", "search.momentum", "this file has 0.9"] {
        assert!(sentence.contains(expected), "{expected}: {sentence}");
    }
    assert!(!sentence.contains("grid."), "{sentence}");
    let raced = study.measure("raced.h5", &["--batch-size", "37", "--set", "execution.race=false"]);
    let sentence = refusal(&mut merge(&[&a, &raced], &output, &[]), &output);
    assert!(sentence.contains("execution.race"), "{sentence}");

    let changed = |name: &str, change: &dyn Fn(&mut Results)| {
        let mut results = results::read(&a).unwrap();
        change(&mut results);
        let path = study.path(name);
        results::write(&path, &results).unwrap();
        refusal(&mut merge(&[&a, &path], &output, &[]), &output)
    };
    let sentence = changed("data.h5", &|results| results.environment.data_digest = "0".repeat(64));
    assert!(sentence.contains("data.h5: ") && sentence.contains("this file has 0000"), "{sentence}");
    let sentence = changed("hash.h5", &|results| results.cells[1].trials[2].mask_hash ^= 1);
    assert!(sentence.contains("hash.h5: its records of batch size 2 at sparsity 0.9 differ"), "{sentence}");
    let sentence = changed("size.h5", &|results| results.workload.parameters += 1);
    assert!(sentence.contains("/workload"), "{sentence}");
    let sentence = changed("old.h5", &|results| results.environment.program_version = "0.1.0".into());
    assert!(sentence.contains("a.h5 is by dps 0.2, this file by dps 0.1"), "{sentence}");
    let sentence = changed("text.h5", &|results| results.configuration = "[workload]\nshape = 3\n".into());
    assert!(sentence.contains("text.h5: its configuration is none"), "{sentence}");

    let sentence = refusal(&mut merge(&[&a, &study.path("nowhere.h5")], &output, &[]), &output);
    assert!(sentence.contains("nowhere.h5"), "{sentence}");
}

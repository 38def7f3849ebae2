//! The batch scripts of `slurm/` without Slurm: `sbatch` and `scontrol` are scripts that note what they were asked. `make test-slurm` runs them on a
//! real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::study::{succeed, train, write_config, write_data};

/// A folder with data, `small.toml` of 4 cells × 5 trials, and programs in `bin`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    write_config(folder.path(), &[]);
    fs::create_dir(folder.path().join("bin")).unwrap();
    program(folder.path(), "sbatch", "echo \"$@\" >>asked; wc -l <asked; [ ! -e refuse ] || [ \"$(wc -l <asked)\" = 1 ]");
    program(folder.path(), "scontrol", "echo \"$@\" >>requeued");
    folder
}

fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join("bin").join(name);
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The exit code of a script in that folder, and what it printed.
fn run(folder: &Path, script: &str, words: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm");
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.arg(scripts.join(script)).args(words).current_dir(folder).env("PATH", path).env("DPS_SLURM", &scripts).env("DPS_LAUNCH", "");
    command.env("DPS_TRAIN", env!("CARGO_BIN_EXE_dps-train")).env("DPS_REPORT", env!("CARGO_BIN_EXE_dps-report"));
    let output = command.envs(environment.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn what_would_fail_in_the_queue_is_not_submitted() {
    let folder = folder();
    let folder = folder.path();
    for option in ["--batch-size=2", "-ox.h5", "-qo", "--fresh", "--help", "-V"] {
        let (code, said) = run(folder, "submit.sh", &["small.toml", option], &[]);
        assert!(code == 2 && said.contains(option), "{said}");
    }
    let (code, said) = run(folder, "submit.sh", &["small.toml"], &[("DPS_STALLS", "three")]);
    assert!(code == 2 && said.contains("expected DPS_STALLS to be a whole number"), "{said}");
    let (code, said) = run(folder, "submit.sh", &["--time=1:00", "small.toml"], &[]);
    assert!(code == 2 && said.contains("found --time=1:00; -- goes between"), "{said}");
    fs::create_dir(folder.join("results")).unwrap();
    fs::write(folder.join("results/small.journal"), "").unwrap();
    let (code, said) = run(folder, "submit.sh", &["small.toml"], &[]);
    assert!(code == 7 && said.contains("set DPS_RESULTS to another folder"), "{said}");
    assert!(!folder.join("asked").exists());
    let (code, said) = run(folder, "submit.sh", &["--time=1:00", "--", "small.toml"], &[("DPS_RESULTS", "other")]);
    assert_eq!((code, said.trim()), (0, "array 1, report 2"));
    assert!(fs::read_to_string(folder.join("asked")).unwrap().contains("--array=0-3 --time=1:00"));
    // The second sbatch refuses.
    fs::remove_file(folder.join("asked")).unwrap();
    fs::write(folder.join("refuse"), "").unwrap();
    let (code, said) = run(folder, "submit.sh", &["small.toml"], &[("DPS_RESULTS", "other")]);
    assert!(code == 1 && said.contains("array 1 is submitted, but not the report"), "{said}");
}

#[test]
fn the_report_names_cells_with_fewer_trials_than_the_study() {
    let folder = folder();
    let folder = folder.path();
    let measure = |batch: &str, sparsity: &str, trials: &str| {
        let output = folder.join(format!("parts/batch-{batch}-sparsity-{sparsity}.h5"));
        let mut command = train();
        command.arg("small.toml").current_dir(folder).args(["--data", ".", "--quiet", "--threads", "1", "--trials", trials]);
        succeed(command.args(["--batch-size", batch, "--sparsity", sparsity, "--output"]).arg(output));
    };
    for batch in ["2", "37"] {
        measure(batch, "0", "2");
    }
    let report = |trials: &str| run(folder, "report.sbatch", &["parts", "all.h5", "small.toml", "--trials", trials], &[]);
    let (code, said) = report("2");
    assert_eq!((code, said.matches("not measured: ").count()), (1, 2), "{said}");
    assert!(said.contains("not measured: batch size 2, sparsity 0.9"), "{said}");
    let (code, said) = report("3");
    assert_eq!((code, said.matches("not measured: ").count()), (1, 4), "{said}");
    // A part has grown; parts of several numbers of trials are merged.
    measure("37", "0", "3");
    let (code, said) = report("3");
    assert_eq!((code, said.matches("not measured: ").count()), (1, 3), "{said}");
    assert!(said.contains("2 cells from 2 files, incomplete") && !said.contains("batch size 37, sparsity 0;"), "{said}");
    assert!(folder.join("all-report/index.html").exists());
    for batch in ["2", "37"] {
        measure(batch, "0", "3");
        measure(batch, "0.9", "3");
    }
    let (code, said) = report("3");
    assert!(code == 0 && said.contains("4 cells from 4 files, complete"), "{said}");
}

#[test]
fn a_job_that_brings_no_progress_is_given_up() {
    let folder = folder();
    let folder = folder.path();
    program(folder, "die", "kill -9 $$");
    let launch = folder.join("bin/die");
    let job = |output: &str, runs_before: &str| {
        let environment = [("SLURM_JOB_ID", "5"), ("SLURM_RESTART_COUNT", runs_before), ("DPS_LAUNCH", launch.to_str().unwrap())];
        run(folder, "cell.sbatch", &[output, "small.toml", "--data", "a b"], &environment)
    };
    // In a folder that no run has made yet.
    for (number, last) in
        [("0", "requeued after exit code 137"), ("1", "requeued after exit code 137"), ("2", "given up: ended 3 times in a row")]
    {
        let (code, said) = job("new/x.h5", number);
        assert!(code == 137 && said.contains(last), "{said}");
        assert!(said.contains("dps-train 'small.toml' '--data' 'a b' --output 'new/x.h5'"), "{said}");
    }
    assert_eq!(fs::read_to_string(folder.join("requeued")).unwrap(), "requeue 5\n".repeat(2));
    // The count cannot be written.
    fs::create_dir(folder.join("new/y.stalls")).unwrap();
    let (code, said) = job("new/y.h5", "1");
    assert!(code == 137 && !said.contains("requeued after"), "{said}");
    let (code, said) = run(folder, "cell.sbatch", &["z.h5", "small.toml", "--fresh"], &[]);
    assert!(code == 2 && said.contains("--fresh, which each run of a requeued job would begin anew"), "{said}");
}

/// Whoever may write to the folder of results may write that file.
#[test]
fn the_count_of_runs_without_progress_is_a_number_or_nothing() {
    let folder = folder();
    let folder = folder.path();
    program(folder, "die", "kill -9 $$");
    let launch = folder.join("bin/die");
    let counter = folder.join("x.stalls");
    let job = || {
        let environment = [("SLURM_JOB_ID", "5"), ("SLURM_RESTART_COUNT", "1"), ("DPS_LAUNCH", launch.to_str().unwrap())];
        let (code, said) = run(folder, "cell.sbatch", &["x.h5", "small.toml"], &environment);
        assert_eq!(code, 137, "{said}");
        said
    };
    // Arithmetic runs what an index names, in several notations.
    for text in ["a[$(touch ran)]", "a[`touch ran`]", "x=a[$(touch ran)0]", "PATH", "08", "-1", "1 2", "1; touch ran", "9999999", ""] {
        let _ = fs::remove_file(&counter);
        fs::write(&counter, format!("{text}\n")).unwrap();
        let said = job();
        assert!(!folder.join("ran").exists(), "{text} was run");
        let expected = if text == "08" { "given up: ended 9 times" } else { "requeued after exit code 137" };
        assert!(said.contains(expected), "{text}: {said}");
        if text != "08" {
            assert_eq!(fs::read_to_string(&counter).unwrap(), "1\n", "{text}");
        }
    }
    // Links are neither read nor written through, and a pipe is not waited at.
    fs::write(folder.join("mine"), "2\n").unwrap();
    for target in ["mine", "nothing"] {
        fs::remove_file(&counter).unwrap();
        std::os::unix::fs::symlink(folder.join(target), &counter).unwrap();
        assert!(job().contains("requeued after"), "{target}");
        assert!(!counter.is_symlink() && fs::read_to_string(&counter).unwrap() == "1\n", "{target}");
    }
    assert!(fs::read_to_string(folder.join("mine")).unwrap() == "2\n" && !folder.join("nothing").exists());
    fs::remove_file(&counter).unwrap();
    assert!(Command::new("mkfifo").arg(&counter).status().unwrap().success());
    assert!(job().contains("requeued after"));
}

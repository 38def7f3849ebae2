//! A small study on GPUs, by the program: the same records on any number of ranks, and the CPU's up to rounding. Skipped without a GPU, as
//! tests/cuda.rs is.
#![cfg(all(feature = "cuda", feature = "mpi"))]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dps::records::{Cell, Status};
use dps::results::{self, Results};
use support::records::timeless;
use support::study::{mpirun, train, write_config, write_data};

/// The finished cells without their times, and the device.
fn records(path: &Path) -> (Vec<Cell>, String) {
    let Results { cells, complete, environment, .. } = results::read(path).unwrap();
    assert!(complete);
    (timeless(cells), environment.device)
}

/// Exit code of a device that cannot be used (docs/how-it-works.md, "Exit codes").
const DEVICE: i32 = 6;

#[test]
fn records_are_the_same_on_any_ranks_and_the_cpus_up_to_rounding() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let changes = [
        ("batch_sizes = [2, 37]", "batch_sizes = [5]"),
        ("trials = 5", "trials = 3"),
        ("max_steps = 40", "max_steps = 12"),
        // The third trial's rate is far too high: it is infeasible.
        ("max = 1e4", "max = 1e5"),
    ];
    let config = write_config(folder.path(), &changes);
    let mut runs = 0;
    let mut run = |mut command: Command, options: &[&str]| {
        runs += 1;
        let output = folder.path().join(format!("{runs}.h5"));
        command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(&output).arg("--quiet").args(options);
        let ended = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        match ended.status.code() {
            Some(0) => Ok(records(&output)),
            Some(DEVICE) => Err(stderr),
            other => panic!("{command:?}: {other:?}\n{stderr}"),
        }
    };
    let (expected, device) = match run(train(), &["--device", "cuda"]) {
        Ok(found) => found,
        Err(why) if std::env::var_os("DPS_NEED_CUDA").is_some() => panic!("{why}"),
        Err(why) => return println!("skipped: {why}"),
    };
    for ranks in [2, 3] {
        let sharing = format!("execution.data_parallel={ranks}");
        let shared = ["--device", "cuda", "--set", "execution.share_gpu=true", "--set", &sharing];
        let (found, sharing) = run(mpirun(ranks), &shared).unwrap();
        assert_eq!(found, expected, "{ranks} ranks");
        // Where every rank has a GPU, the permission to share one changes nothing.
        assert!(sharing.starts_with(&device) && sharing.contains("summed over") && sharing.contains("reproducible"), "{sharing}");
    }
    match run(mpirun(2), &["--device", "cuda", "--set", "execution.reduction=nccl", "--set", "execution.data_parallel=2"]) {
        Ok((found, device)) => {
            assert!(device.contains("summed by NCCL"), "{device}");
            close(&found, &expected);
        }
        Err(why) => {
            assert!(why.contains("ranks 0 and 1 have the same one"), "{why}");
            println!("skipped: NCCL, because two ranks have not two GPUs here");
        }
    }
    let (cpu, _) = run(train(), &["--device", "cpu"]).unwrap();
    close(&expected, &cpu);
    let all = || cpu.iter().flat_map(|cell| &cell.trials);
    assert!(all().any(|trial| trial.status == Status::Infeasible) && all().any(|trial| !trial.curve.is_empty()));
}

/// Compares records up to rounding: 12 steps may turn differences of 1e-6 into some of 1e-3, and an example or two of 60 at the border to the other
/// side.
fn close(found: &[Cell], expected: &[Cell]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.key, expected.key);
        for (found, expected) in found.trials.iter().zip(&expected.trials) {
            let what = format!("{:?} and {:?}", found, expected);
            assert_eq!((found.mask_hash, found.parameters_kept), (expected.mask_hash, expected.parameters_kept), "{what}");
            assert_eq!(
                (found.status, found.steps_run, found.curve.len()),
                (expected.status, expected.steps_run, expected.curve.len()),
                "{what}"
            );
            for (found, expected) in found.curve.iter().zip(&expected.curve) {
                assert_eq!((found.step, found.examples), (expected.step, expected.examples), "{what}");
                assert!((found.loss - expected.loss).abs() <= 1e-3 * expected.loss.abs().max(0.1), "{what}");
                assert!(found.errors.abs_diff(expected.errors) <= 2, "{what}");
            }
        }
    }
}

/// A GPU that hangs: the program says so after the deadline and ends, instead of waiting for it once more where it lets go of memory.
#[test]
fn a_gpu_that_hangs_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 600, 90);
    let config = write_config(folder.path(), &[]);
    let mut command = train();
    command.arg(&config).arg("--data").arg(folder.path()).arg("--output").arg(folder.path().join("stuck.h5"));
    command.args(["--quiet", "--device", "cuda", "--set", "execution.deadline_seconds=2"]);
    let begun = Instant::now();
    // The stand-in's settings; a real GPU does not know them.
    let ended = command.env("CUDA_EMU_STUCK", "300").env("CUDA_EMU_HANG", "600").output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    if !stderr.contains("waited in vain") {
        assert!(std::env::var_os("DPS_NEED_CUDA_EMU").is_none(), "{:?}: {stderr}", ended.status);
        return println!("skipped: this GPU does not hang when it is asked to");
    }
    assert_eq!(ended.status.code(), Some(DEVICE), "{stderr}");
    // Most of it is starting: the kernels are compiled.
    assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
}

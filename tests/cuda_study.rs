//! A small study on GPUs, by the program: the same records on any number of ranks, and the CPU's up to rounding. Skipped without a GPU, as
//! tests/cuda.rs is.
#![cfg(all(feature = "cuda", feature = "mpi"))]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use dps::records::Status;
use support::records::{complete_on, difference};
use support::study::{Study, mpirun, train};

/// Exit code of a device that cannot be used (docs/how-it-works.md, "Exit codes").
const DEVICE: i32 = 6;

#[test]
fn records_are_the_same_on_any_ranks_and_the_cpus_up_to_rounding() {
    let changes = [
        ("batch_sizes = [2, 37]", "batch_sizes = [5]"),
        ("trials = 5", "trials = 3"),
        ("max_steps = 40", "max_steps = 8"),
        // The third trial's rate is far too high: it is infeasible.
        ("max = 1e4", "max = 1e5"),
    ];
    let study = Study::with_data(300, 60, &changes);
    let run = |command: Command, options: &[&str]| {
        let mut command = study.measuring(command, "x.h5", options);
        let ended = command.args(["--quiet", "--fresh"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        match ended.status.code() {
            Some(0) => Ok(complete_on(&study.output)),
            Some(DEVICE) => Err(stderr),
            other => panic!("{command:?}: {other:?}\n{stderr}"),
        }
    };
    let (expected, device) = match run(train(), &["--device", "cuda"]) {
        Ok(found) => found,
        Err(why) if std::env::var_os("DPS_NEED_CUDA").is_some() => panic!("{why}"),
        Err(why) => return println!("skipped: {why}"),
    };
    // Ranks that share each batch, and ranks that share the trials.
    for (ranks, a_batch) in [(2, 2), (3, 3), (3, 1)] {
        let sharing = format!("execution.data_parallel={a_batch}");
        let shared = ["--device", "cuda", "--set", "execution.share_gpu=true", "--set", &sharing];
        let (found, sharing) = run(mpirun(ranks), &shared).unwrap();
        assert_eq!(found, expected, "{ranks} ranks, {a_batch} a batch");
        // Where every rank has a GPU, the permission to share one changes nothing. All ranks add up the scores of connections, however the ranks
        // share the training.
        assert!(sharing.starts_with(&device) && sharing.contains("summed over") && sharing.contains("reproducible"), "{sharing}");
    }
    match run(mpirun(2), &["--device", "cuda", "--set", "execution.reduction=nccl", "--set", "execution.data_parallel=2"]) {
        Ok((found, device)) => {
            assert!(device.contains("summed by NCCL"), "{device}");
            assert_eq!(difference(&found, &expected), None);
        }
        Err(why) => {
            assert!(why.contains("ranks 0 and 1 have the same one"), "{why}");
            println!("skipped: NCCL, because two ranks have not two GPUs here");
        }
    }
    let (cpu, _) = run(train(), &["--device", "cpu"]).unwrap();
    assert_eq!(difference(&expected, &cpu), None);
    let all = || cpu.iter().flat_map(|cell| &cell.trials);
    assert!(all().any(|trial| trial.status == Status::Infeasible) && all().any(|trial| !trial.curve.is_empty()));
}

/// A GPU that hangs: the program says so after the deadline and ends, instead of waiting for it once more where it lets go of memory.
#[test]
fn a_gpu_that_hangs_ends_the_program() {
    let study = Study::new(&[]);
    let mut command = study.measuring(train(), "stuck.h5", &["--quiet", "--device", "cuda", "--set", "execution.deadline_seconds=2"]);
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

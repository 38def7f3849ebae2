//! A full disk while a result file or a configuration is written, as the kernel shows it to a process whose files may not grow.

use std::path::Path;
use std::process::Command;

use dps::optimizer::{Metaparameter, Metaparameters};
use dps::records::{Cell, CellKey, Trial};
use dps::results::{self, Environment, Results, WorkloadSummary};

fn study(trials: u32) -> Results {
    let metaparameters = Metaparameters::from([(Metaparameter::LearningRate, 0.1)]);
    let trial = |index: u32| Trial {
        steps_run: 64,
        parameters_kept: 62_346,
        // Spread over all 64 bits, as hashes are.
        mask_hash: u64::from(index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ..Trial::new(index, metaparameters)
    };
    let key = CellKey { batch_size: 2, sparsity: 0.0 };
    let (environment, workload) =
        (Environment::default(), WorkloadSummary { max_steps: 1, evaluate_every: 1, ..WorkloadSummary::default() });
    let cells = vec![Cell { key, trials: (0..trials).map(trial).collect(), test_errors: None, seconds: 1.0, confirmations: Vec::new() }];
    Results { configuration: String::new(), environment, workload, cells, complete: false }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let _alone = crate::alone();
    const TARGET: &str = "DPS_TEST_FULL_DISK_TARGET";
    if let Some(path) = std::env::var_os(TARGET) {
        let problem = results::write(Path::new(&path), &study(200_000)).unwrap_err().to_string();
        assert!(problem.contains("free some space"), "{problem}");
        // And HDF5 keeps nothing of the failure: once there is space, the next write succeeds.
        return results::write(&Path::new(&path).with_file_name("second.h5"), &study(3)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first.h5");
    results::write(&path, &study(2)).unwrap();
    let limited = "ulimit -f 256; trap '' XFSZ; exec \"$0\" --exact full_disk::a_full_disk_leaves_the_old_file";
    let child = Command::new("sh").args(["-c", limited]).arg(std::env::current_exe().unwrap()).env(TARGET, &path).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(results::read(&path).unwrap(), study(2));
    assert_eq!(results::read(&folder.path().join("second.h5")).unwrap(), study(3));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file is left");
}

#[test]
fn a_full_disk_leaves_no_part_of_a_configuration() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let limited = "ulimit -f 0; trap '' XFSZ; exec \"$0\" init new.toml --dataset mnist --optimizer sgd";
    let child = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_dps-train")]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.code() == Some(2) && said.contains("the file cannot be written"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

//! `dps-train doctor` on machines without data, without a GPU or without NVIDIA's libraries.

use std::path::Path;
use std::process::Command;

use crate::support::study::{train, write_data};

/// Output of `dps-train doctor`, and its exit code.
fn doctor(command: &mut Command, data: &Path, options: &[&str]) -> (String, Option<i32>) {
    let output = command.arg("doctor").arg("--data").arg(data).args(options).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn says_what_is_there_and_whether_a_study_can_run() {
    let folder = tempfile::tempdir().unwrap();
    let (text, code) = doctor(&mut train(), folder.path(), &[]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains(&format!("dps-train data fetch fashion-mnist --data {}", folder.path().display())), "{text}");
    write_data(folder.path(), 20, 10);
    let (text, code) = doctor(&mut train(), folder.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("launched by"), "{text}");
    let (text, _) = doctor(train().env("PMI_SIZE", "4"), folder.path(), &[]);
    #[cfg(feature = "mpi")]
    let text = text.replace("4): does not fit the program's MPI", "4)");
    assert!(text.contains("launched by") && text.contains("MPICH's mpirun or srun --mpi=pmi2 (PMI_SIZE = 4)\n"), "{text}");
    assert!(
        text.contains(&format!("in {}; not the original: ", folder.path().join("fashion-mnist").display()))
            && text.contains("Studies can run here"),
        "{text}"
    );
}

#[cfg(all(unix, feature = "mpi"))]
#[test]
fn an_mpirun_that_does_not_answer_is_not_waited_for() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mpirun = folder.path().join("mpirun");
    std::fs::write(&mpirun, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&mpirun, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let begun = std::time::Instant::now();
    let (text, _) = doctor(train().env("PATH", path), folder.path(), &[]);
    assert!(text.contains("did not say its version within 10 s: does not fit ") && begun.elapsed().as_secs() < 120, "{text}");
}

#[cfg(feature = "cuda")]
#[test]
fn names_each_library_and_what_to_do_where_it_is_missing_or_too_old() {
    use crate::support::double::{DEVICE, under};
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), 20, 10);
    let examine = |variables: &[(&str, &str)]| {
        let mut command = train();
        under(&mut command, ("fwd", "eager")).envs(variables.iter().copied());
        doctor(&mut command, folder.path(), &["--gpu"])
    };
    let (text, code) = examine(&[("CUDA_EMU_DEVICES", "2")]);
    assert_eq!(code, Some(0), "{text}");
    for line in ["NVIDIA driver  for CUDA 12.8", "NVRTC          12.8 at ", "NCCL           2.26.4 at ", "on 2 GPUs"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        text.contains(&format!("GPU 1          {DEVICE}, compute capability 8.0, 4.0 GiB, GPU-e0e0e0e0-e0e0-e0e0-e0e0-e0e0e0e00001")),
        "{text}"
    );
    // A driver loads the machine code of a later release with its own first number.
    let (text, code) = examine(&[("CUDA_EMU_DRIVER", "12020")]);
    assert!(code == Some(0) && text.contains("NVIDIA driver  for CUDA 12.2"), "{text}");
    // NCCL is for several GPUs alone.
    let (text, code) = examine(&[("CUDA_EMU_NCCL", "21005")]);
    assert!(code == Some(0) && text.contains("expected NCCL 2.18 or newer, found 2.10.5 at "), "{text}");
    for (variable, value, words) in [
        ("LD_LIBRARY_PATH", "", "expected NVIDIA driver (libcuda.so), found none; install NVIDIA's driver"),
        ("CUDA_EMU_DEVICES", "0", "expected a GPU, found none that this process may see"),
        ("CUDA_EMU_DRIVER", "11020", "expected NVIDIA driver 11.4 or newer, found 11.2 at "),
        ("CUDA_EMU_DRIVER", "11080", "expected an NVRTC for the driver's CUDA 11.8, found 12.8 at "),
    ] {
        let (text, code) = examine(&[(variable, value)]);
        assert!(code == Some(6) && text.contains(words), "{variable}={value}: {text}");
        assert!(text.ends_with("No study can run on a GPU here; what is missing is said above.\n"), "{text}");
    }
}

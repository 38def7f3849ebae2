//! Our owner of an NCCL communicator, by several processes under mpirun through the CUDA double: it sums, and no rank waits for ever for
//! one that does something else, or nothing, or fails alone. The ignored tests are the programs.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::double::{folder, itself, under};
use crate::support::study::{Study, around, fail, launcher, mpirun};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use dps::backend::cuda::libraries::{Library, find};
use dps::backend::cuda::nccl::Nccl;
use dps::comm::MpiWorld;
use dps::{Error, exit};

const RANKS: usize = 3;

/// An ignored test by [`RANKS`] processes, each with a device of its own.
fn program(test: &str, order: (&str, &str)) -> Command {
    let mut command = around(launcher(RANKS), &itself(test));
    under(&mut command, order).env("CUDA_EMU_DEVICES", "3");
    command
}

fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {}\n{}{printed}", output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.matches("1 passed").count(), RANKS, "{printed}");
}

/// This rank's device, and floats on it.
fn device(rank: usize, values: &[f32]) -> (std::sync::Arc<CudaStream>, CudaSlice<f32>) {
    find(Library::Driver).unwrap();
    let context = CudaContext::new(rank).unwrap();
    let stream = context.new_stream().unwrap();
    let values = stream.clone_htod(values).unwrap();
    (stream, values)
}

#[test]
fn ranks_sum_and_gather_in_their_streams() {
    for order in [("fwd", "eager"), ("fwd", "lazy")] {
        passes(&mut program("cuda_nccl::program_sums", order));
    }
}

#[test]
fn nccl_is_found_by_the_only_name_that_nvidias_package_has() {
    // libcuda where the loader looks; libnccl.so.2 alone, in a toolkit's folder where it does not.
    let place = tempfile::tempdir().unwrap();
    let (path, toolkit) = (place.path().join("path"), place.path().join("toolkit"));
    std::fs::create_dir(&path).unwrap();
    std::fs::create_dir_all(toolkit.join("lib")).unwrap();
    std::fs::copy(folder().join("libcuda.so"), path.join("libcuda.so")).unwrap();
    std::fs::copy(folder().join("libnccl.so"), toolkit.join("lib/libnccl.so.2")).unwrap();
    passes(program("cuda_nccl::program_sums", ("fwd", "eager")).env("LD_LIBRARY_PATH", &path).env("CUDA_HOME", &toolkit));
}

#[test]
fn ranks_that_disagree_or_stay_away_end_in_words() {
    passes(&mut program("cuda_nccl::program_disagrees", ("fwd", "eager")));
    passes(&mut program("cuda_nccl::program_stays_away", ("fwd", "lazy")));
}

/// A rank on which NCCL fails, as it joins, in its first step or while it records the second one, says so and ends. The other rank, which could wait
/// for half an hour, ends with it.
#[test]
fn a_rank_that_fails_alone_speaks_and_ends_the_others() {
    let study = Study::with_data(300, 60, &[("batch_sizes = [2, 37]", "batch_sizes = [6]"), ("examples = 100", "examples = 40")]);
    let options = ["--progress", "json", "--device", "cuda", "--set", "execution.data_parallel=2"];
    for good_calls in 0..3 {
        // An mpirun that hangs is killed after five minutes, with another exit code.
        let mut command = study.measuring(mpirun(2), "alone.h5", &options);
        under(&mut command, ("fwd", "eager")).envs([("CUDA_EMU_DEVICES", "2"), ("CUDA_EMU_NCCL_REFUSES", &format!("1:{good_calls}"))]);
        let words = fail(command.arg("--fresh"), exit::COMMUNICATION.into());
        let said = |line: &str| ["\"error\"", "rank 1", "ncclSystemError"].iter().all(|part| line.contains(part));
        assert!(words.lines().any(said), "{good_calls}: {words}");
        assert!(!words.contains("waited in vain"), "{good_calls}: {words}");
    }
}

#[test]
#[ignore = "a program of ranks_sum_and_gather_in_their_streams"]
fn program_sums() {
    let world = MpiWorld::start().unwrap();
    let rank = world.ranks().rank();
    // The second is longer than one of the double's messages.
    for len in [5, 300_000] {
        let (stream, mut values) = device(rank, &(0..len).map(|i| ((i % 100) * (rank + 1)) as f32).collect::<Vec<_>>());
        let mut gathered = stream.alloc_zeros::<f32>(RANKS * len).unwrap();
        let nccl = Nccl::new(world.ranks(), Duration::from_secs(60)).unwrap();
        assert_eq!(nccl.version().to_string(), "2.26.4");
        nccl.all_gather(&values, &mut gathered, len).unwrap();
        nccl.all_reduce(&mut values, len).unwrap();
        nccl.wait(&stream).unwrap();
        let sum = stream.clone_dtoh(&values).unwrap();
        assert!(sum.iter().enumerate().all(|(i, &value)| value == ((i % 100) * (1 + 2 + 3)) as f32));
        let all = stream.clone_dtoh(&gathered).unwrap();
        assert!(all.iter().enumerate().all(|(i, &value)| value == ((i % len % 100) * (i / len + 1)) as f32));
    }
}

#[test]
#[ignore = "a program of ranks_that_disagree_or_stay_away_end_in_words"]
fn program_disagrees() {
    let world = MpiWorld::start().unwrap();
    let rank = world.ranks().rank();
    let (stream, mut values) = device(rank, &[1.0; 20]);
    let nccl = Nccl::new(world.ranks(), Duration::from_secs(60)).unwrap();
    let found = nccl.all_reduce(&mut values, 10 + rank).and_then(|()| nccl.wait(&stream));
    let Err(Error::Communication { rank: who, problem }) = found else { panic!("{found:?}") };
    assert!(who == rank && problem.contains("ncclInvalidUsage (5)"), "{problem}");
    // The communicator stays so, and says so.
    let again = nccl.all_reduce(&mut values, 10).unwrap_err();
    assert!(again.to_string().contains("failed before"), "{again}");
}

#[test]
#[ignore = "a program of ranks_that_disagree_or_stay_away_end_in_words"]
fn program_stays_away() {
    let world = MpiWorld::start().unwrap();
    let rank = world.ranks().rank();
    let (stream, mut values) = device(rank, &[1.0; 20]);
    let nccl = Nccl::new(world.ranks(), Duration::from_secs(5)).unwrap();
    if rank == 1 {
        std::thread::sleep(Duration::from_secs(12));
        return;
    }
    let begun = Instant::now();
    nccl.all_reduce(&mut values, 20).unwrap();
    let problem = nccl.wait(&stream).unwrap_err().to_string();
    assert!(problem.contains("waited in vain") && begun.elapsed() < Duration::from_secs(11), "{:?}: {problem}", begun.elapsed());
}

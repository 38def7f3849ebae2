//! The unmodified program with `--device cuda` under mpirun, through the CUDA double: its records are the CPU's up to rounding, and kernels
//! with a fault planted in them are noticed. `make test` runs tests/cuda.rs and tests/cuda_study.rs through the double, too.

use std::process::Command;

use crate::support::double::{DEVICE, itself, under};
use crate::support::gpu::{constant, problem, start};
use crate::support::records::{complete_on, difference};
use crate::support::study::{Study, around, launcher, mpirun, train};
use dps::backend::cuda::Cuda;
use dps::backend::{Backend, Device, EVALUATION_BLOCK, EvaluationSet};
use dps::comm::MpiWorld;
use dps::network::NetworkName;
use dps::optimizer::OptimizerName;
use dps::records::Cell;
use dps::settings::Execution;

/// A study of two cells of two trials.
fn study() -> Study {
    Study::with_data(
        300,
        60,
        &[
            ("batch_sizes = [2, 37]", "batch_sizes = [6]"),
            ("trials = 5", "trials = 2"),
            ("max_steps = 40", "max_steps = 8"),
            ("examples = 100", "examples = 40"),
            ("min = 1e-3, max = 1e4", "min = 1e-3, max = 1e-1"),
        ],
    )
}

/// Runs the study; the records and the device's name, or what the program said instead.
fn run(study: &Study, command: Command, name: &str, options: &[&str]) -> Result<(Vec<Cell>, String), String> {
    let output = format!("{name}.h5");
    let mut command = study.measuring(command, &output, options);
    command.args(["--quiet", "--set", "execution.full_evaluation=true", "--set", "execution.race=false"]);
    let ended = command.output().unwrap();
    if !ended.status.success() {
        return Err(format!("{}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr)));
    }
    Ok(complete_on(&study.at(&output)))
}

#[test]
fn four_ranks_on_four_gpus_record_what_the_cpu_does() {
    let study = study();
    let (cpu, _) = run(&study, train(), "cpu", &["--device", "cpu"]).unwrap();
    assert_eq!(cpu.len(), 2);
    let gpus = |ranks, order| {
        let mut command = if ranks == 1 { train() } else { mpirun(ranks) };
        under(&mut command, order).envs([("CUDA_EMU_DEVICES", "4"), ("CUDA_EMU_PAGEABLE", "late")]);
        command
    };
    let (one, device) = run(&study, gpus(1, ("fwd", "eager")), "1", &["--device", "cuda"]).unwrap();
    assert!(device.starts_with(DEVICE), "{device}");
    assert_eq!(difference(&one, &cpu), None);
    // The default reduction gives the same bits on any ranks, in any order of threads and streams.
    let shared = ["--device", "cuda", "--set", "execution.data_parallel=4"];
    let (four, device) = run(&study, gpus(4, ("rand", "lazy")), "4", &shared).unwrap();
    assert!(device.contains("NCCL"), "{device}");
    assert_eq!(four, one);
    // NCCL's own sums are another order.
    let by_nccl = [&shared[..], &["--set", "execution.reduction=nccl"]].concat();
    let (four, device) = run(&study, gpus(4, ("rev", "eager")), "nccl", &by_nccl).unwrap();
    assert!(device.contains("summed by NCCL"), "{device}");
    assert_eq!(difference(&four, &cpu), None);
}

#[test]
fn faults_planted_in_the_kernels_are_noticed() {
    let study = study();
    let (cpu, _) = run(&study, train(), "cpu", &["--device", "cpu"]).unwrap();
    let planted = |name: &str, fault: &str| {
        let mut command = train();
        under(&mut command, ("fwd", "eager")).env("CUDA_EMU_PLANT", fault);
        run(&study, command, name, &["--device", "cuda"])
    };
    for (name, fault) in [
        ("momentum", "rule.momentum * velocity[j] + g=>rule.momentum * velocity[j] - g"),
        ("softmax", "o == label ? 1.0f : 0.0f=>o == label ? 0.9f : 0.0f"),
    ] {
        let (found, _) = planted(name, fault).unwrap();
        assert!(difference(&found, &cpu).is_some(), "nobody noticed {fault}");
    }
    // A thread that reads another's part before it is written, one that does not wait for its copies, and one that reads behind the data set.
    for (name, fault) in
        [("barrier", "__syncthreads();=>"), ("copies", "COPIES_WAIT(STAGES - 2);=>"), ("bounds", "labels[index]=>labels[index + n]")]
    {
        let words = planted(name, fault).map(|(found, _)| difference(&found, &cpu)).unwrap_or_else(Some);
        assert!(words.is_some(), "nobody noticed {fault}");
        if name == "bounds" {
            assert!(words.is_some_and(|words| words.contains("kernel gather: access")), "the message names the kernel");
        }
    }
    // Products of tensor cores that a thread takes for another's. One step of one trial: the stand-in works them out number by number.
    let one_step = ["--sparsity", "0", "--set", "grid.trials=1", "--set", "workload.max_steps=1", "--set", "workload.evaluate_every=1"];
    let (cpu, _) = run(&study, train(), "cpu-step", &[&["--device", "cpu"], &one_step[..]].concat()).unwrap();
    let split = |name: &str, fault: Option<&str>| {
        let mut command = train();
        under(&mut command, ("fwd", "eager")).envs(fault.map(|fault| ("CUDA_EMU_PLANT", fault)));
        let options = [&["--device", "cuda", "--set", "execution.products=split"], &one_step[..]].concat();
        run(&study, command, name, &options).map(|(found, _)| difference(&found, &cpu)).unwrap_or_else(Some)
    };
    assert_eq!(split("whole", None), None);
    assert!(split("fragment", Some("sums[2] += lower * left;=>sums[2] += upper * left;")).is_some(), "nobody noticed the fragment");
    // A struct that is longer than Rust's.
    let words = planted("layout", "struct OutputMap {=>struct OutputMap { int more;").unwrap_err();
    assert!(words.contains("the size of OutputMap"), "{words}");
    let words = planted("nowhere", "no such text=>").unwrap_err();
    assert!(words.contains("changed 0 places"), "{words}");
}

/// A recorded step holds a collective, which NCCL replays only with ranks that recorded theirs at the same time. Here one rank's memory for images
/// moves, as by evaluations that are shared unevenly, so that its recorded step serves no more: all ranks record theirs anew.
#[test]
fn ranks_record_steps_together() {
    let mut command = around(launcher(2), &itself("cuda_backend::program_evaluates_on_one_rank"));
    under(&mut command, ("fwd", "eager")).envs([("CUDA_EMU_DEVICES", "2"), ("NCCL_GRAPH_REGISTER", "0"), ("NCCL_RUNTIME_CONNECT", "0")]);
    let output = command.output().unwrap();
    let printed = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    assert!(output.status.success() && printed.matches("1 passed").count() == 2, "{}\n{printed}", output.status);
}

#[test]
#[ignore = "a program of ranks_record_steps_together"]
fn program_evaluates_on_one_rank() {
    let world = MpiWorld::start().unwrap();
    let group = world.ranks();
    let (network, dataset) = problem(NetworkName::SimpleCnn, 30);
    let cuda = Cuda::open(&Execution::default(), group).unwrap();
    let mut backend = cuda.backend(&network, &dataset, group).unwrap();
    let mut lanes = backend.lanes(vec![start(&network, 1, 1.0, OptimizerName::Sgd, constant(0.01))]).unwrap();
    // Four blocks, two a rank; then five, of which rank 1 takes three.
    for (turn, blocks) in (0..).zip([4, 5]) {
        let (images, before): (Vec<u32>, _) = ((0..blocks * EVALUATION_BLOCK as u32).collect(), cuda.workspaces());
        backend.margins(&lanes, &[0], EvaluationSet::Test, &images).unwrap();
        assert_eq!(cuda.workspaces() > before, turn == 0 || group.rank() == 1);
        backend.train(&mut lanes, 3 * turn..3 * turn + 3, 4).unwrap();
    }
}

/// Recorded steps that use NCCL's communicator are gone before it is aborted: the stand-in refuses the abort that waits for ever on a GPU, and
/// says so.
#[test]
fn a_communicator_outlives_the_steps_that_were_recorded_with_it() {
    let study = study();
    // The first step is not recorded; each has one collective.
    let mut command = mpirun(2);
    under(&mut command, ("fwd", "eager")).envs([("CUDA_EMU_DEVICES", "2"), ("CUDA_EMU_NCCL_BREAKS", "3")]);
    let words = run(&study, command, "broken", &["--device", "cuda", "--set", "execution.data_parallel=2"]).unwrap_err();
    assert!(words.contains("ncclRemoteError") && words.contains("graphs used is aborted"), "{words}");
    assert!(!words.contains("not destroyed yet"), "{words}");
}

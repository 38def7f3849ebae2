//! The kernels as NVIDIA's compiler makes them, executed by the CUDA double (tests/cuda-double/ptx): faults planted in their source are noticed, most
//! of them in the line of PTX that does what it may not. `make test-double` runs the tests of the GPU back end so. Needs NVRTC: `make nvrtc`.

use crate::kernels_compile::nvrtc;
use crate::support::double::{itself, run_command, under};
use crate::support::gpu::{difference, open, problem};
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::{Backend, Device};
use dps::comm::Single;
use dps::network::{NetworkName, initial_weights};
use dps::settings::{Execution, Products};

/// Runs a program below through the double, by PTX; whether it passed, and what it printed.
fn by_ptx(program: &str, fault: Option<&str>) -> Option<(bool, String)> {
    let Some(folder) = nvrtc().and_then(|library| library.parent().map(std::path::Path::to_owned)) else {
        assert!(std::env::var_os("DPS_NEED_NVRTC").is_none(), "NVRTC is not installed; run: make nvrtc");
        println!("skipped: NVRTC is not installed; run: make nvrtc");
        return None;
    };
    let mut command = itself(&format!("ptx::{program}"));
    under(&mut command, ("turns", "eager")).env("CUDA_EMU_CODE", "ptx").env("CUDA_EMU_NVRTC", folder);
    command.envs(fault.map(|fault| ("CUDA_EMU_PLANT", fault)));
    let (output, errors) = run_command(program, &mut command);
    Some((output.status.success(), errors + &String::from_utf8_lossy(&output.stdout)))
}

/// A gradient of Simple-CNN, as tests/cuda.rs compares it, by kernels with everything that a fault is planted in below.
fn gradient_agrees(products: Products) {
    let cuda = open(&Execution { products, ..Execution::default() }).expect("the double");
    let (network, dataset) = problem(NetworkName::SimpleCnn, 30);
    let weights = initial_weights(&network, 2);
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single);
    let found = cuda.backend(&network, &dataset, &Single).unwrap().gradient(&weights, 3).unwrap();
    let expected = cpu.gradient(&weights, 3).unwrap();
    let off = difference(&found.0, &expected.0);
    assert!(off < 2e-5, "the gradient is off by {off}");
}

#[test]
#[ignore = "a program of faults_planted_in_the_kernels_are_noticed"]
fn program_fused() {
    gradient_agrees(Products::Fused);
}

#[test]
#[ignore = "a program of faults_planted_in_the_kernels_are_noticed"]
fn program_split() {
    gradient_agrees(Products::Split);
}

#[test]
#[ignore = "a program of faults_planted_in_the_kernels_are_noticed"]
fn program_pairs() {
    gradient_agrees(Products::Pairs);
}

#[test]
fn faults_planted_in_the_kernels_are_noticed() {
    for program in ["program_fused", "program_split", "program_pairs"] {
        let Some((passed, printed)) = by_ptx(program, None) else { return };
        assert!(passed, "{program}: {printed}");
    }
    for (program, from, to, words) in FAULTS {
        let fault = format!("{from}=>{to}");
        let (passed, printed) = by_ptx(program, Some(&fault)).expect("NVRTC");
        let said = |line: &&str| line.contains("cuda-double: ") || line.contains("is off by");
        println!("{fault}\n{}\n", printed.lines().filter(said).collect::<Vec<_>>().join("\n"));
        assert!(!printed.contains("changed 0 places"), "the kernels have no text \"{from}\" any more");
        assert!(!passed && printed.contains(words), "expected \"{words}\" of {fault}, found\n{printed}");
    }
}

/// The heart of `pipeline` in kernels/product.cuh: copies of a slab are waited for, then those of a later one begin.
const WAIT: &str = "COPIES_WAIT(STAGES - 2);\n        __syncthreads();\n        if (slab + STAGES - 1 < slabs) stage(space + into);";
/// `sum_of_warps` in kernels/common.cuh.
const SUM: &str = "    __syncthreads();\n    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;\n    __syncthreads();";

/// A program, text of the kernels, what takes its place, and words by which it is noticed.
const FAULTS: [(&str, &str, &str, &str); 16] = [
    // A barrier out.
    ("program_fused", WAIT, "COPIES_WAIT(STAGES - 2); if (slab + STAGES - 1 < slabs) stage(space + into);", "a read after a write by"),
    ("program_fused", SUM, "if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;", "nobody has written"),
    // A wait too late.
    ("program_fused", "COPIES_WAIT(STAGES - 2)", "COPIES_WAIT(STAGES - 1)", "while an asynchronous copy of thread"),
    // Copies into a stage of shared memory that others may still read.
    (
        "program_split",
        WAIT,
        "COPIES_WAIT(STAGES - 2); if (slab + STAGES - 1 < slabs) stage(space + into); __syncthreads();",
        "a write after a read by",
    ),
    // Fragments exchanged, which the numbers alone show.
    ("program_split", "{%4,%5,%6,%7}", "{%4,%6,%5,%7}", "the gradient is off by"),
    ("program_split", "{%8,%9}", "{%9,%8}", "the gradient is off by"),
    // In pairs: the rests of two factors in the wrong order, a term where another's partner is read, and the number of a slab's group unwritten.
    ("program_pairs", "0x5410", "0x1054", "the gradient is off by"),
    ("program_pairs", "term % 4 * 4 + term / 4 % 4", "term % 16", "the gradient is off by"),
    ("program_pairs", "if (APART && thread == 0)", "if (APART && thread == 0 && tap > 0)", "nobody has written it"),
    // Copies of something in place of zeros.
    ("program_fused", "((there) ? bytes : 0)", "(bytes)", "the gradient is off by"),
    // A copy of 16 bytes from between two multiples of 16.
    ("program_fused", "(there ? offset : 0), 16, there", "(there ? offset + 1 : 0), 16, there", "misaligned"),
    // An index one past, in shared and in global memory.
    ("program_fused", "scratch[threadIdx.x >> 5] = value", "scratch[(threadIdx.x >> 5) + 1] = value", "in no variable"),
    ("program_fused", "labels[index]", "labels[n]", "it is 0 bytes behind the end of an allocation"),
    // A gradient that is left out.
    ("program_fused", "if (thread == 0) {\n#pragma unroll", "if (thread == 40) {\n#pragma unroll", "that nobody has written"),
    // A barrier for a part of a warp.
    (
        "program_fused",
        "if ((threadIdx.x & 31) == 0) scratch",
        "if (threadIdx.x & 1) __syncthreads();\n    else if ((threadIdx.x & 31) == 0) scratch",
        "of its warp at another line",
    ),
    // An instruction that is not known.
    (
        "program_fused",
        "    float sum = 0.0f;\n    for (int warp = 0;",
        "    float sum = 0.0f;\n    asm volatile(\"nanosleep.u32 5;\");\n    for (int warp = 0;",
        "of kernel group_norm_forward: expected PTX that tests/cuda-double/ptx knows, found: nanosleep.u32",
    ),
];

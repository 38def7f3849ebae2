//! The GPU back end with products = "cublas" against the CPU's, as tests/cuda.rs does it for the fused kernels. Without a GPU (or the
//! stand-in of tests/cuda-double) tests say that they are skipped; with DPS_NEED_CUDA=1 that is a failure.
#![cfg(feature = "cuda")]

mod support;

use std::ops::Range;

use dps::Error;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::cuda::{Cuda, CudaBackend};
use dps::backend::{Backend, Device, EvaluationSet, choose};
use dps::comm::Single;
use dps::network::{LayerSpec, Network, NetworkName, Padding, initial_weights};
use dps::optimizer::{Decay, OptimizerName, Schedule};
use dps::pruning::Mask;
use dps::random::{Numbers, Purpose};
use dps::settings::{self, DeviceName, Execution, Products, Study};
use support::gpu::*;

fn cublas() -> Option<Cuda> {
    open(&Execution { products: Products::Cublas, ..Execution::default() })
}

/// The tolerance is that of tests/cuda.rs: the same sums, in other orders. A ReLU whose input is zero up to rounding may still go either
/// way, and then one position of one image has another gradient: one case of five may differ by so much, which is less than an image is
/// worth. With 1 MiB for patches, chunks are of a few images, and leaves are cut.
#[test]
fn gradients_and_losses_agree() {
    for name in NETWORKS {
        let (network, dataset) = problem(name, 90);
        let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
        let mut rounded = [0; 2];
        // Leaves of one image, or of 5 (ResNet-8: 2), the last of which is shorter.
        for (seed, examples) in [(1, 1), (2, 7), (3, if name == NetworkName::SimpleCnn { 41 } else { 19 }), (4, 2), (5, 3)] {
            // Biases are not zero, so that they are tested.
            let mut weights = initial_weights(&network, seed);
            let numbers = Numbers::new(seed, Purpose::RandomMask);
            weights.iter_mut().enumerate().for_each(|(j, w)| *w += 0.02 * (numbers.uniform(j as u64) as f32 - 0.5));
            let (expected, expected_loss) = cpu.gradient(&weights, examples).unwrap();
            for (scratch, rounded) in [usize::MAX, 1 << 20].into_iter().zip(&mut rounded) {
                let Some(cuda) = cublas().map(|cuda| cuda.with_scratch(scratch)) else { return };
                let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
                let (found, loss) = gpu.gradient(&weights, examples).unwrap();
                let what = format!("{name}, {examples} examples, {scratch} bytes");
                assert!((loss / expected_loss - 1.0).abs() < 1e-5, "{what}: loss {loss}, expected {expected_loss}");
                let off = |range: Range<usize>| difference(&found[range.clone()], &expected[range]);
                let off: Vec<_> = network.tensors.iter().map(|tensor| (&tensor.name, off(tensor.range()))).collect();
                assert!(off.iter().all(|(_, off)| *off < 0.03), "{what}: {off:?}");
                *rounded += usize::from(!off.iter().all(|(_, off)| *off < 2e-5));
                assert!(*rounded <= 1, "{what}, and another: {off:?}");
            }
        }
    }
}

/// Steps are replays of a graph. Batches have leaves of one image, and of two with a last one of one.
#[test]
fn steps_agree_and_have_the_same_bits_in_every_run() {
    let decay = Schedule { decay: Decay::Linear { end: 0.01, steps: 3.0 }, ..Schedule::constant(0.1) };
    for (name, steps, batch, slots, scratch) in [
        (NetworkName::SimpleCnn, 4, 11, usize::MAX, usize::MAX),
        (NetworkName::SimpleCnn, 4, 11, 16, 1 << 20),
        (NetworkName::Resnet8, 3, 3, usize::MAX, 1 << 20),
    ] {
        let Some(cuda) = cublas().map(|cuda| cuda.with_slots(slots).with_scratch(scratch)) else { return };
        let (network, dataset) = problem(name, 90);
        let starts = [
            start(&network, 0, 1.0, OptimizerName::Sgd, constant(0.05)),
            start(&network, 1, 0.2, OptimizerName::Momentum, decay),
            start(&network, 2, 1.0, OptimizerName::Nesterov, constant(0.05)),
        ];
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
        let made = steps_agree(&mut gpu, &mut cpu, &starts, steps, batch, 1e-4, &name.to_string());
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        assert_eq!(trained(&mut gpu, &starts, steps, batch), made, "{name}, again");
    }
}

/// Lanes in another order than they were made in: their weights are put in that order.
#[test]
fn margins_of_listed_examples_agree() {
    let Some(cuda) = cublas() else { return };
    margins_agree(
        &cuda,
        &[(EvaluationSet::Test, &[2, 0], 260), (EvaluationSet::Test, &[1], 1), (EvaluationSet::Validation, &[0, 1, 2], 9)],
    );
}

#[test]
fn squared_norms_of_single_examples_agree() {
    let Some(cuda) = cublas() else { return };
    let (network, dataset) = problem(NetworkName::SimpleCnn, 30);
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let (weights, mask) = (initial_weights(&network, 4), Mask::Dense(network.parameters()));
    let [found, expected] = [gpu.squared_norms(&weights, &mask, 9), cpu.squared_norms(&weights, &mask, 9)].map(|norms| norms.unwrap());
    assert!((found / expected - 1.0).abs() < 1e-5, "{found}, expected {expected}");
}

/// The scorer's gradient has the bits of the fused kernels in 32 bits, whatever training multiplies by; training's own has others.
#[test]
fn scores_of_connections_are_in_32_bits_whatever_training_multiplies_by() {
    let layers = [
        LayerSpec::convolution(8, 3, 1, Padding::Same),
        LayerSpec::Relu,
        LayerSpec::convolution(16, 3, 1, Padding::Same),
        LayerSpec::Relu,
        LayerSpec::MaxPool { size: 2, stride: 2 },
        LayerSpec::Flatten,
        LayerSpec::dense(10),
    ];
    let (network, dataset) = problem_of(Network::listed(&layers, [8, 8, 3], 10).unwrap(), 30);
    let weights = initial_weights(&network, 6);
    let bits = |backend: dps::Result<CudaBackend>| {
        let (gradient, loss) = backend.unwrap().gradient(&weights, 20).unwrap();
        gradient.into_iter().chain([loss]).map(f32::to_bits).collect::<Vec<_>>()
    };
    let Some(cuda) = gpu() else { return };
    let expected = bits(cuda.backend(&network, &dataset, &Single));
    for (products, tf32) in [(Products::Split, false), (Products::Pairs, false), (Products::Cublas, false), (Products::Fused, true)] {
        let Some(cuda) = open(&Execution { products, tf32, ..Execution::default() }) else { continue };
        let what = format!("products {products}, tf32 {tf32}");
        assert!(bits(cuda.backend(&network, &dataset, &Single)) != expected, "{what}: training's gradient");
        assert!(bits(cuda.scorer(cuda.backend(&network, &dataset, &Single).unwrap())) == expected, "{what}: the scorer's gradient");
    }
}

#[test]
fn results_say_who_multiplied_and_how() {
    for (products, tf32, said) in [
        (Products::Fused, false, None),
        (Products::Cublas, false, Some(("products by cuBLAS ", " in fp32"))),
        (Products::Cublas, true, Some(("products by cuBLAS ", " in TF32"))),
    ] {
        let Some(cuda) = open(&Execution { products, tf32, ..Execution::default() }) else { continue };
        let (network, dataset) = problem(NetworkName::SimpleCnn, 30);
        let text = cuda.backend(&network, &dataset, &Single).unwrap().describe();
        assert_eq!(text.contains("products"), said.is_some(), "{text}");
        assert!(said.is_none_or(|(who, how)| text.contains(who) && text.contains(how)), "{text}");
    }
}

#[test]
fn a_cpu_is_no_substitute_for_cublas() {
    let execution = Execution { device: DeviceName::Cpu, products: Products::Cublas, ..Execution::default() };
    // On a machine with a GPU there may be this program without the repository.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, include_str!("../configs/quickstart.toml")).unwrap();
    let study = Study { execution, ..settings::load(file.path(), &[]).unwrap().study };
    match choose(&study, &Single) {
        Err(error @ Error::Device { .. }) => assert!(error.to_string().contains("execution.products = \"cublas\""), "{error}"),
        Err(error) => panic!("{error}"),
        Ok((chosen, _)) => panic!("{}", chosen.name()),
    }
}

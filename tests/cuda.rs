//! The GPU back end against the CPU's, operation by operation, on random inputs. Without a GPU (or the stand-in of tests/cuda-double) every test
//! says that it is skipped; with DPS_NEED_CUDA=1 that is a failure.
#![cfg(feature = "cuda")]

mod support;

use std::time::Instant;

use cudarc::driver::sys as driver;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::{Backend, Device, EvaluationSet, LaneStart, LaneState};
use dps::comm::Single;
use dps::data::Sampler;
use dps::network::{Initialisation, LayerSpec, Network, NetworkName, Padding, initial_weights};
use dps::optimizer::{Decay, OptimizerName, Rule, Schedule};
use dps::pruning::Mask;
use dps::random::{Numbers, Purpose};
use dps::settings::{Execution, Products};
use dps::training::decide;
use support::foreign;
use support::gpu::*;

#[test]
fn batches_are_the_cpus_bit_for_bit() {
    let half = |value: f32| f32::from_bits((value.to_bits() + 0x7fff + (value.to_bits() >> 16 & 1)) & 0xffff_0000);
    let paired = |value: f32| half(value) + half(value - half(value));
    let choices = NETWORKS.map(|name| [Products::Fused, Products::Pairs].map(|products| (name, products)));
    for (name, products) in some(choices.as_flattened(), 0) {
        let Some(cuda) = open(&Execution { products, ..Execution::default() }) else { continue };
        let (network, dataset) = problem(name, 300);
        let mut backend = cuda.backend(&network, &dataset, &Single).unwrap();
        let (map, tables) = (network.maps[0], dataset.lookup_table());
        let count = dataset.training.len();
        // Within an epoch, over its end, and far beyond 2³² examples.
        for (seed, step, batch) in [(0, 0, 13), (7, 20, 13), (u64::MAX, 3, 300), (1 << 40, u32::MAX, 37)] {
            let (images, labels) = backend.batch(seed, step, batch).unwrap();
            let sampler = Sampler::new(seed, count as u32);
            for image in 0..batch {
                let index = sampler.index(u64::from(step) * batch as u64 + image as u64) as usize;
                assert_eq!(labels[image], dataset.training.labels[index], "{name} seed {seed}, step {step}, image {image}");
                let mut expected = vec![0.0; map.len()];
                let row = map.width * map.channels;
                for (at, &byte) in dataset.training.image(index).iter().enumerate() {
                    let pixel = tables[at % map.channels][usize::from(byte)];
                    expected[map.at_row(at / row) + at % row] = if products == Products::Pairs { paired(pixel) } else { pixel };
                }
                let found = &images[image * map.len()..][..map.len()];
                assert_eq!(found, expected, "{name}, {products}, seed {seed}, step {step}, image {image}");
            }
        }
    }
}

/// The gradients of a network on a GPU with these settings against the CPU's, for some numbers of examples, each with weights of a seed.
///
/// The sums of a few thousand products each differ by rounding: some 1e-7 of the largest value for each halving of the order, so 2e-5 is
/// generous, and one wrong element of a hundred would be far beyond it. But a sum may be so close to zero that its ReLU opens on one side alone,
/// and an image has 74,000 of them: where gradients are off by what one image's unit can do, other weights must agree.
fn gradients_agree(execution: &Execution, what: &str, network: &Network, cases: &[(u64, usize)]) {
    let Some(cuda) = open(execution) else { return };
    let (network, dataset) = problem_of(network.clone(), 90);
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let mut off_most = |seed: u64, examples: usize| {
        // Biases are not zero, so that they are tested.
        let mut weights = initial_weights(&network, seed);
        let numbers = Numbers::new(seed, Purpose::RandomMask);
        weights.iter_mut().enumerate().for_each(|(j, w)| *w += 0.02 * (numbers.uniform(j as u64) as f32 - 0.5));
        let (found, loss) = gpu.gradient(&weights, examples).unwrap();
        let (expected, expected_loss) = cpu.gradient(&weights, examples).unwrap();
        assert!((loss / expected_loss - 1.0).abs() < 1e-5, "{what}, {examples} examples: loss {loss}, expected {expected_loss}");
        let off = network.tensors.iter().map(|tensor| (difference(&found[tensor.range()], &expected[tensor.range()]), &tensor.name));
        off.max_by(|(a, _), (b, _)| a.total_cmp(b)).expect("tensors")
    };
    for &(seed, examples) in cases {
        let (mut off, mut tensor) = off_most(seed, examples);
        println!("{what}, {examples} examples: at most {off} of the largest, in {tensor}");
        if (2e-5..0.1).contains(&off) {
            println!("{what}, {examples} examples, {tensor}: off by {off}, as if a ReLU had opened; with other weights:");
            (off, tensor) = off_most(100 + seed, examples);
        }
        assert!(off < 2e-5, "{what}, {examples} examples, {tensor}: {off}");
    }
}

#[test]
fn gradients_and_losses_agree() {
    for name in NETWORKS {
        let examples = if name == NetworkName::SimpleCnn { 41 } else { 19 };
        gradients_agree(&Execution::default(), &name.to_string(), &Network::new(name), &[(1, 1), (2, 7), (3, examples)]);
    }
}

/// Prints margins of Simple-CNN, and its gradient by fused products, number by number in hexadecimal.
#[test]
#[ignore = "a tool: tests/gpu/build.sh keeps what the stand-in prints here, and tests/gpu/run.py compares it with what a GPU prints"]
fn numbers_that_a_gpu_is_to_find() {
    for products in [Products::Fused, Products::Split, Products::Pairs] {
        let Some(cuda) = open(&Execution { products, ..Execution::default() }) else { continue };
        let (network, dataset) = problem(NetworkName::SimpleCnn, 160);
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        let lanes = gpu.lanes(vec![start(&network, 5, 0.5, OptimizerName::Sgd, constant(0.1))]).unwrap();
        let images: Vec<u32> = (0..dataset.validation.len() as u32).collect();
        let margins = gpu.margins(&lanes, &[0], EvaluationSet::Validation, &images).unwrap();
        let print = |what: &str, numbers: &[f32]| {
            let digits: String = numbers.iter().map(|number| format!("{:08x}", number.to_bits())).collect();
            println!("\n{what}, {products}: {digits}");
        };
        print("margins", &margins);
        if products == Products::Fused {
            print("gradient", &gpu.gradient(&initial_weights(&network, 5), 16).unwrap().0);
        }
    }
}

/// Split products keep the bounds of 32 bits, which TF32 alone does not (below).
#[test]
fn gradients_by_split_products_agree() {
    gradients_by_agree(Products::Split, 0);
}

/// Products in pairs keep these bounds, too.
#[test]
fn gradients_in_pairs_agree() {
    gradients_by_agree(Products::Pairs, 1);
}

fn gradients_by_agree(products: Products, turn: usize) {
    for name in some(&NETWORKS, turn) {
        let execution = Execution { products, ..Execution::default() };
        gradients_agree(&execution, &format!("{name}, {products}"), &Network::new(name), &[(2, 3)]);
    }
}

/// Layers unlike the paper's, for which kernels are made as for any other: channels that are no multiple of a tile, of a slab or of 4, more of them
/// than one tile has, kernels of 2 to 5, a stride of 2, images that are not square, residual blocks.
#[test]
fn gradients_of_other_networks_agree() {
    let convolution = |channels, kernel, stride, padding| LayerSpec::Convolution {
        channels,
        kernel,
        stride,
        padding,
        initialisation: Initialisation::He,
        bias: true,
    };
    let pool = LayerSpec::MaxPool { size: 2, stride: 2 };
    let (same, valid) = (Padding::Same, Padding::Valid);
    let networks = [
        (
            [12, 10, 3],
            vec![
                convolution(20, 3, 1, same),
                LayerSpec::Relu,
                pool.clone(),
                convolution(72, 2, 1, same),
                LayerSpec::Relu,
                LayerSpec::GlobalMean,
            ],
        ),
        (
            [16, 16, 1],
            vec![
                convolution(6, 5, 1, valid),
                LayerSpec::Relu,
                convolution(12, 3, 2, same),
                LayerSpec::Relu,
                convolution(40, 3, 1, valid),
                LayerSpec::Relu,
                pool,
                LayerSpec::Flatten,
            ],
        ),
        (
            [8, 8, 3],
            vec![convolution(8, 3, 1, same), LayerSpec::residual(8, 1), LayerSpec::residual(24, 2), LayerSpec::Relu, LayerSpec::GlobalMean],
        ),
    ];
    for (image, layers) in networks {
        let network = Network::listed(&[layers, vec![LayerSpec::dense(10)]].concat(), image, 10).unwrap();
        // All have equal layouts, but for the order of rows and columns in shared memory: one network stands for the others.
        let all = if image[2] == 1 { &[Products::Fused, Products::Split, Products::Pairs][..] } else { &[Products::Fused] };
        for &products in all {
            let execution = Execution { products, ..Execution::default() };
            gradients_agree(&execution, &format!("{products} {image:?}"), &network, &[(1, 3), (2, 40)]);
        }
    }
}

/// Squares of gradients that agree as those above do.
#[test]
fn squared_norms_of_single_examples_agree() {
    let Some(cuda) = gpu() else { return };
    let (network, dataset) = problem(NetworkName::SimpleCnn, 400);
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let weights = initial_weights(&network, 4);
    let dense = Mask::Dense(network.parameters());
    let sparse = Mask::Sparse { kept: (0..network.parameters() as u32).step_by(7).collect(), parameters: network.parameters() };
    for (mask, examples) in [(dense, 9), (sparse, 260)] {
        let mut weights = weights.clone();
        mask.apply(&mut weights);
        let (found, expected) =
            (gpu.squared_norms(&weights, &mask, examples).unwrap(), cpu.squared_norms(&weights, &mask, examples).unwrap());
        assert!((found / expected - 1.0).abs() < 1e-5, "{examples} examples: {found}, expected {expected}");
    }
}

/// TF32 rounds the factors of products to 11 significant bits, off by up to 2^−12 of themselves. Such errors partly cancel in a sum, but may
/// also open or close a ReLU near zero: 3 % of a tensor's norm is generous, while a fragment in the wrong place would be off by all of it.
#[test]
fn gradients_in_tf32_agree_as_far_as_it_can() {
    let Some(cuda) = open(&Execution { tf32: true, ..Execution::default() }) else { return };
    for (name, examples) in some(&[(NetworkName::SimpleCnn, 3), (NetworkName::Resnet8, 2)], 0) {
        let (network, dataset) = problem(name, 90);
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        assert!(gpu.describe().contains("TF32"), "{}", gpu.describe());
        let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
        let weights = initial_weights(&network, 5);
        let (found, loss) = gpu.gradient(&weights, examples).unwrap();
        let (expected, expected_loss) = cpu.gradient(&weights, examples).unwrap();
        assert!((loss / expected_loss - 1.0).abs() < 2e-3, "{name}: loss {loss}, expected {expected_loss}");
        let mut most = 0.0_f64;
        for tensor in &network.tensors {
            let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            let (found, expected) = (&found[tensor.range()], &expected[tensor.range()]);
            let off = norm(&mut found.iter().zip(expected).map(|(a, b)| a - b)) / norm(&mut expected.iter().copied());
            assert!(off < 0.03, "{name}, {}: {off}", tensor.name);
            most = most.max(off);
        }
        assert!(most > 2e-5, "{name}: {most} is too good to be TF32");
    }
}

/// Weights after a step differ by the learning rate times the gradient's rounding; the velocity is the gradient.
#[test]
fn a_step_of_every_rule_and_schedule_agrees() {
    let Some(cuda) = gpu() else { return };
    let decay = Schedule { decay: Decay::Linear { end: 0.01, steps: 3.0 }, ..Schedule::constant(0.1) };
    for name in NETWORKS {
        let (network, dataset) = problem(name, 90);
        let mut starts = Vec::new();
        for (at, optimizer) in [OptimizerName::Sgd, OptimizerName::Momentum, OptimizerName::Nesterov].into_iter().enumerate() {
            for (then, schedule) in [constant(0.05), decay].into_iter().enumerate() {
                let kept = if then == 0 { 1.0 } else { 0.2 };
                starts.push(start(&network, (2 * at + then) as u64, kept, optimizer, schedule));
            }
        }
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
        for (steps, batch, tolerance) in [(1, 3, 2e-6), (4, 2, 1e-4)] {
            steps_agree(&mut gpu, &mut cpu, &starts, steps, batch, tolerance, &name.to_string());
        }
    }
}

/// Rules and schedules that the paper does not use: Adam and AdamW, cosines, steps and warm-ups, weight decay and averaged weights, for more steps
/// than learning rates go to the GPU at once; and evaluations, which are of the averages.
#[test]
fn steps_of_every_other_rule_and_schedule_agree() {
    other_rules_agree(Products::Fused, 67, 1e-4);
    other_rules_agree(Products::Pairs, 3, 1e-3);
}

fn other_rules_agree(products: Products, steps: u32, most: f32) {
    let Some(cuda) = open(&Execution { products, ..Execution::default() }) else { return };
    let cosine = Schedule { decay: Decay::Cosine { end: 0.001, steps: 50.0 }, ..Schedule::constant(0.02) };
    let step = Schedule { decay: Decay::Step { factor: 0.5, every: 20 }, warmup_steps: 4, ..Schedule::constant(0.02) };
    let convolution = LayerSpec::Convolution {
        channels: 16,
        kernel: 3,
        stride: 1,
        padding: Padding::Same,
        initialisation: Initialisation::He,
        bias: true,
    };
    let layers = [convolution, LayerSpec::Relu, LayerSpec::MaxPool { size: 2, stride: 2 }, LayerSpec::Flatten, LayerSpec::dense(10)];
    let (network, dataset) = problem_of(Network::listed(&layers, [12, 12, 1], 10).unwrap(), 90);
    let mut starts = Vec::new();
    for (seed, &optimizer) in OptimizerName::ALL.iter().enumerate() {
        for (schedule, kept) in [(cosine, 1.0), (step, 0.5)] {
            let start = start(&network, seed as u64, kept, optimizer, schedule);
            // A large ε: a gradient that is zero up to rounding may have either sign.
            let rule = Rule { epsilon: 0.1, weight_decay: 0.01, average_decay: Some(0.9), ..start.rule };
            starts.push(LaneStart { rule, ..start });
        }
    }
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let (_, states) = steps_agree(&mut gpu, &mut cpu, &starts, steps, 3, most, "other rules");
    assert!(states.iter().all(|state| state.average.iter().zip(&state.weights).any(|(average, weight)| average != weight)));
    assert_eq!(states.iter().filter(|state| !state.squares.is_empty()).count(), 4);

    let resumed: Vec<_> = starts.into_iter().zip(states).map(|(start, state)| LaneStart { state: Some(state), ..start }).collect();
    let which: Vec<usize> = (0..resumed.len()).collect();
    let (gpu_lanes, cpu_lanes) = (gpu.lanes(resumed.clone()).unwrap(), cpu.lanes(resumed).unwrap());
    let lists: Vec<u32> = which.iter().flat_map(|_| 0..20).collect();
    let found = gpu.margins(&gpu_lanes, &which, EvaluationSet::Test, &lists).unwrap();
    let off = difference(&found, &cpu.margins(&cpu_lanes, &which, EvaluationSet::Test, &lists).unwrap());
    assert!(off < most, "margins off by {off}");
}

#[test]
fn margins_of_listed_examples_agree() {
    let Some(cuda) = gpu() else { return };
    margins_agree(
        &cuda,
        &[(EvaluationSet::Test, &[0, 2], 260), (EvaluationSet::Test, &[1], 1), (EvaluationSet::Validation, &[0, 1, 2], 9)],
    );
}

#[test]
fn a_lanes_bits_depend_on_nothing_but_the_lane() {
    bits_depend_on_the_lane(Products::Fused, Network::new(NetworkName::SimpleCnn));
    // The stand-in works out products of tensor cores number by number.
    let pool = LayerSpec::MaxPool { size: 2, stride: 2 };
    let layers = [LayerSpec::convolution(4, 3, 1, Padding::Valid), LayerSpec::Relu, pool, LayerSpec::Flatten, LayerSpec::dense(10)];
    bits_depend_on_the_lane(Products::Pairs, Network::listed(&layers, [8, 8, 1], 10).unwrap());
}

fn bits_depend_on_the_lane(products: Products, network: Network) {
    let execution = Execution { products, ..Execution::default() };
    let Some(cuda) = open(&execution) else { return };
    let (network, dataset) = problem_of(network, 90);
    let optimizers = [OptimizerName::Momentum, OptimizerName::Nesterov, OptimizerName::Sgd, OptimizerName::Momentum];
    let starts: Vec<LaneStart> = optimizers
        .into_iter()
        .zip(0..)
        .map(|(optimizer, seed)| start(&network, seed, if seed == 1 { 0.3 } else { 1.0 }, optimizer, constant(0.02)))
        .collect();
    let (batch, steps) = (11, 3);
    let mut backend = cuda.backend(&network, &dataset, &Single).unwrap();
    let (progress, together) = trained(&mut backend, &starts, steps, batch);
    for lane in 0..starts.len() {
        let (alone, state) = trained(&mut backend, &starts[lane..=lane], steps, batch);
        assert_eq!((alone[0], &state[0]), (progress[lane], &together[lane]), "lane {lane} alone");
    }

    // Some steps, a checkpoint on the host, other lanes, and the rest of the steps.
    let mut lanes = backend.lanes(starts.clone()).unwrap();
    backend.train(&mut lanes, 0..1, batch).unwrap();
    backend.retain(&mut lanes, &[true, true, false, true]).unwrap();
    backend.train(&mut lanes, 1..2, batch).unwrap();
    let resumed = [3, 0, 1].map(|lane| {
        let place = [0, 1, 9, 2][lane];
        LaneStart { state: Some(backend.state(&lanes, place).unwrap()), ..starts[lane].clone() }
    });
    let mut lanes = backend.lanes(resumed.to_vec()).unwrap();
    backend.train(&mut lanes, 2..steps, batch).unwrap();
    for (place, lane) in [3, 0, 1].into_iter().enumerate() {
        assert_eq!(backend.state(&lanes, place).unwrap(), together[lane], "lane {lane} after a checkpoint");
    }

    // In passes of some leaves, and of fewer lanes than there are.
    for slots in [16, 2] {
        let Some(small) = open(&execution).map(|cuda| cuda.with_slots(slots)) else { return };
        let mut backend = small.backend(&network, &dataset, &Single).unwrap();
        let (found, states) = trained(&mut backend, &starts, steps, batch);
        assert_eq!((&found, &states), (&progress, &together), "{slots} slots");
    }
}

/// The second convolution has high tiles for a batch of 64 images at once. In passes of 56 images its data gradient has low ones, since 38 % of the
/// pairs of a position and a tap meet a sum; in passes of 8 images its forward pass has low ones, too (`src/backend/cuda/launch/layers.rs`).
#[test]
fn bits_do_not_depend_on_how_high_tiles_are() {
    let valid = |channels, kernel| LayerSpec::convolution(channels, kernel, 1, Padding::Valid);
    let pool = LayerSpec::MaxPool { size: 2, stride: 2 };
    let layers = [valid(20, 3), LayerSpec::Relu, valid(40, 4), LayerSpec::Relu, pool, LayerSpec::Flatten, LayerSpec::dense(10)];
    let (network, dataset) = problem_of(Network::listed(&layers, [9, 11, 1], 10).unwrap(), 90);
    let starts = [start(&network, 5, 1.0, OptimizerName::Momentum, constant(0.02))];
    for products in [Products::Fused, Products::Split, Products::Pairs] {
        let in_passes_of = |slots: usize| {
            let cuda = open(&Execution { products, ..Execution::default() })?.with_slots(slots);
            Some(trained(&mut cuda.backend(&network, &dataset, &Single).unwrap(), &starts, 1, 64))
        };
        let Some(expected) = in_passes_of(64) else { return };
        for slots in [56, 8] {
            assert_eq!(in_passes_of(slots).unwrap(), expected, "{products}, passes of {slots} images");
        }
    }
}

/// Memory that cannot grow is not allocated anew at every call, nor are steps recorded anew.
#[test]
fn memory_for_images_that_is_short_is_allocated_once() {
    let (network, dataset) = problem(NetworkName::SimpleCnn, 600);
    let starts: Vec<LaneStart> = (0..2).map(|seed| start(&network, seed, 1.0, OptimizerName::Momentum, constant(0.01))).collect();
    // Less than the batches of both lanes.
    let Some(cuda) = gpu().map(|cuda| cuda.with_slots(20)) else { return };
    let mut backend = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut lanes = backend.lanes(starts).unwrap();
    let examples: Vec<u32> = (0..2 * 60).map(|place| place % 60).collect();
    let mut round = |step: u32| {
        backend.train(&mut lanes, step..step + 1, 16).unwrap();
        backend.margins(&lanes, &[0, 1], EvaluationSet::Validation, &examples).unwrap();
        backend.train(&mut lanes, step + 1..step + 2, 40).unwrap();
        cuda.workspaces()
    };
    let first = round(0);
    assert_eq!(round(2), first, "allocations");
}

/// Memory that is freed stays in the pool, so that it need not be mapped anew.
#[test]
fn freed_memory_stays_in_the_pool() {
    let Some(_cuda) = gpu() else { return };
    let (mut pool, mut kept) = (std::ptr::null_mut(), 0_u64);
    // SAFETY: the GPU is open; the first call writes the handle, the second a number of 64 bits.
    unsafe {
        driver::cuDeviceGetDefaultMemPool(&raw mut pool, 0).result().unwrap();
        let attribute = driver::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        driver::cuMemPoolGetAttribute(pool, attribute, (&raw mut kept).cast()).result().unwrap();
    }
    assert_eq!(kept, u64::MAX, "bytes that the pool keeps");
}

/// An evaluation of networks far from the goal ends after as few examples as they may get wrong. Prints how much of its time is the host's:
/// tests/gpu/run.py asks for 100 lanes by DPS_LANES.
#[test]
fn an_evaluation_ends_where_the_goal_is_missed() {
    const LIMIT: u32 = 120;
    let asked = std::env::var("DPS_LANES").ok().map(|count| count.parse::<usize>().unwrap());
    // The fastest of three where a GPU is timed: the first one allocates.
    let (count, rounds) = (asked.unwrap_or(2), if asked.is_some() { 3 } else { 1 });
    let (network, dataset) = problem(NetworkName::SimpleCnn, 600 * count.max(10));
    let starts: Vec<LaneStart> =
        (0..count as u64).map(|seed| start(&network, seed, 1.0, OptimizerName::Momentum, constant(0.01))).collect();
    let Some(cuda) = gpu() else { return };
    let mut backend = cuda.backend(&network, &dataset, &Single).unwrap();
    let lanes = backend.lanes(starts).unwrap();
    let which: Vec<usize> = (0..count).collect();
    let mut margins = vec![Vec::new(); which.len()];
    let (mut all, mut device) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let begun = Instant::now();
        let outcomes = decide(&mut backend, &lanes, &which, LIMIT, &mut margins).unwrap();
        all = all.min(begun.elapsed().as_secs_f64());
        assert!(outcomes.iter().all(|outcome| outcome.errors > LIMIT && outcome.examples < 256), "{outcomes:?}");
        let examples = 128.max(backend.stride(count)).min(backend.examples(EvaluationSet::Validation)) as u32;
        let lists: Vec<u32> = which.iter().flat_map(|_| 0..examples).collect();
        let begun = Instant::now();
        backend.margins(&lanes, &which, EvaluationSet::Validation, &lists).unwrap();
        device = device.min(begun.elapsed().as_secs_f64());
    }
    println!("an evaluation of {count} lanes: {:.3} ms, {:.3} of them by the device and for it", 1e3 * all, 1e3 * device);
}

#[test]
fn a_lane_goes_on_on_another_device() {
    let Some(cuda) = gpu() else { return };
    let (network, dataset) = problem(NetworkName::SimpleCnn, 90);
    let starts = [(1.0, OptimizerName::Nesterov), (0.2, OptimizerName::Momentum), (0.2, OptimizerName::Sgd)];
    let starts: Vec<LaneStart> =
        starts.into_iter().zip(0..).map(|((kept, optimizer), seed)| start(&network, seed, kept, optimizer, constant(0.02))).collect();
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let (_, expected) = trained(&mut cpu, &starts, 4, 3);
    fn second_half<B: Backend>(backend: &mut B, starts: &[LaneStart], half: Vec<LaneState>) -> Vec<LaneState> {
        let starts = starts.iter().zip(half).map(|(start, state)| LaneStart { state: Some(state), ..start.clone() }).collect();
        let mut lanes = backend.lanes(starts).unwrap();
        backend.train(&mut lanes, 2..4, 3).unwrap();
        states(backend, &lanes, 3)
    }
    let (_, half) = trained(&mut gpu, &starts, 2, 3);
    let there = second_half(&mut cpu, &starts, half);
    let (_, half) = trained(&mut cpu, &starts, 2, 3);
    let back = second_half(&mut gpu, &starts, half);
    for lane in 0..3 {
        for found in [&there[lane], &back[lane]] {
            let off = difference(&found.weights, &expected[lane].weights);
            assert!(off < 1e-4, "lane {lane}: {off}");
            assert_eq!(found.velocity.len(), expected[lane].velocity.len());
        }
    }
}

#[test]
fn what_is_of_another_network_or_gpu_is_refused() {
    let (Some(cuda), Some(other)) = (gpu(), gpu()) else { return };
    foreign::is_refused(&cuda);
    let (network, dataset) = (foreign::network(3), foreign::dataset(50));
    let mut lanes = cuda.backend(&network, &dataset, &Single).unwrap().lanes(vec![foreign::sparse(&network)]).unwrap();
    let mut backend = other.backend(&network, &dataset, &Single).unwrap();
    foreign::refused(backend.train(&mut lanes, 0..1, 4), "found those of another GPU");
}

#[test]
fn a_lane_whose_loss_is_not_finite_stops_where_the_cpus_does() {
    let Some(cuda) = gpu() else { return };
    let (network, dataset) = problem(NetworkName::SimpleCnn, 90);
    let starts: Vec<LaneStart> =
        [0.01, 1e6, 0.01].into_iter().zip(0..).map(|(rate, seed)| start(&network, seed, 1.0, OptimizerName::Sgd, constant(rate))).collect();
    let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
    let (progress, states) = trained(&mut gpu, &starts, 12, 4);
    let (expected, _) = trained(&mut cpu, &starts, 12, 4);
    assert!(expected[1].broken.is_some(), "the rate must be far too high");
    for lane in 0..3 {
        assert_eq!(progress[lane].broken, expected[lane].broken, "lane {lane}");
    }
    assert!(!progress[1].loss.is_finite() && progress[0].loss.is_finite() && progress[2].loss.is_finite());
    // The lane that stopped stays as it was.
    let mut lanes = gpu.lanes(starts.clone()).unwrap();
    gpu.train(&mut lanes, 0..expected[1].broken.unwrap(), 4).unwrap();
    assert_eq!(gpu.state(&lanes, 1).unwrap().weights, states[1].weights);
}

//! Code that the tests of the GPU back end share: the GPU, small problems, and lanes on them.

use std::sync::Arc;

pub use super::inputs::difference;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::cuda::Cuda;
use dps::backend::{Backend, Device, EvaluationSet, LaneStart, LaneState, Progress};
use dps::comm::Single;
use dps::data::{DataSplit, Dataset, Examples, ImageShape};
use dps::network::{Network, NetworkName, initial_weights};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::Mask;
use dps::random::{Numbers, Purpose};
use dps::settings::Execution;

/// The networks that the tests go through.
pub const NETWORKS: [NetworkName; 2] = [NetworkName::SimpleCnn, NetworkName::Resnet8];

/// The GPU with the default settings, if there is one.
pub fn gpu() -> Option<Cuda> {
    open(&Execution::default())
}

/// The GPU with the settings of `execution`, if there is one.
pub fn open(execution: &Execution) -> Option<Cuda> {
    match Cuda::open(execution, &Single) {
        Ok(cuda) => Some(cuda),
        // Tensor cores of compute capability 7.x know neither TF32 nor bfloat16.
        Err(error) if error.to_string().contains("expected compute capability 8.0") => {
            println!("skipped: {error}");
            None
        }
        Err(error) if std::env::var_os("DPS_NEED_CUDA").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The whole number in an environment variable, `without` where it is not set.
pub fn number(variable: &str, without: u64) -> u64 {
    std::env::var(variable).map_or(without, |text| text.parse().expect("a whole number"))
}

/// All choices, each of which needs kernels that take seconds to compile. Where DPS_NETWORKS asks for a part of these tests (fewer than 8 random
/// networks), one choice: by DPS_FROM, so that commits take turns, and by `turn`, so that tests of a commit differ.
pub fn some<T: Copy>(choices: &[T], turn: usize) -> Vec<T> {
    if number("DPS_NETWORKS", 8) >= 8 {
        return choices.to_vec();
    }
    vec![choices[(number("DPS_FROM", 0) as usize + turn) % choices.len()]]
}

/// A network, and 90 % of `examples` random images to train it on; the rest is for validation, and 620 for testing.
pub fn problem(name: NetworkName, examples: usize) -> (Arc<Network>, Dataset) {
    problem_of(Network::new(name), examples)
}

/// A small problem for any network of ten classes.
pub fn problem_of(network: Network, examples: usize) -> (Arc<Network>, Dataset) {
    let network = Arc::new(network);
    let map = network.maps[0];
    let shape = ImageShape { height: map.height, width: map.width, channels: map.channels };
    let numbers = Numbers::new(11, Purpose::RandomMask);
    let random = |from: usize, n: usize| Examples {
        images: (0..(n * shape.values()).div_ceil(64))
            .flat_map(|i| numbers.block((from + i) as u64).into_iter().flat_map(u32::to_le_bytes))
            .take(n * shape.values())
            .collect::<Vec<u8>>()
            .into(),
        labels: (0..n).map(|i| (numbers.uniform((1 << 40) + (from + i) as u64) * 10.0) as u16).collect(),
        shape,
    };
    let split = DataSplit { validation_fraction: 0.1, ..DataSplit::default() };
    let dataset = Dataset::new("random", 10, random(0, examples), random(1 << 30, 620), &split).expect("pixels that differ");
    (network, dataset)
}

/// The first examples of a set.
pub fn first(examples: &Examples, count: usize) -> Examples {
    examples.gather(&(0..count as u32).collect::<Vec<u32>>())
}

/// A schedule with the same rate at every step.
pub fn constant(rate: f64) -> Schedule {
    Schedule::constant(rate)
}

/// The start of a lane that keeps about the fraction `kept` of its parameters; all of them for 1.
pub fn start(network: &Network, seed: u64, kept: f64, optimizer: OptimizerName, schedule: Schedule) -> LaneStart {
    let parameters = network.parameters();
    let numbers = Numbers::new(seed, Purpose::RandomMask);
    let mask = match kept {
        1.0 => Mask::Dense(parameters),
        _ => Mask::Sparse { kept: (0..parameters as u32).filter(|&j| numbers.uniform(j.into()) < kept).collect(), parameters },
    };
    let momentum = if optimizer == OptimizerName::Sgd { 0.0 } else { 0.9 };
    LaneStart {
        seed,
        weights: initial_weights(network, seed),
        mask,
        rule: Rule { momentum, ..Rule::plain(optimizer, schedule) },
        state: None,
    }
}

/// The states of the first `count` lanes.
pub fn states<B: Backend>(backend: &B, lanes: &B::Lanes, count: usize) -> Vec<LaneState> {
    (0..count).map(|lane| backend.state(lanes, lane).unwrap()).collect()
}

/// Trains lanes for some steps; returns each one's progress and state.
pub fn trained<B: Backend>(backend: &mut B, starts: &[LaneStart], steps: u32, batch: usize) -> (Vec<Progress>, Vec<LaneState>) {
    let mut lanes = backend.lanes(starts.to_vec()).unwrap();
    let progress = backend.train(&mut lanes, 0..steps, batch).unwrap();
    let states = states(backend, &lanes, starts.len());
    (progress, states)
}

/// Trains lanes on GPU and CPU, and compares losses, weights up to `tolerance` of the largest, and velocities. Returns the GPU's progress and states.
pub fn steps_agree(
    gpu: &mut impl Backend,
    cpu: &mut impl Backend,
    starts: &[LaneStart],
    steps: u32,
    batch: usize,
    tolerance: f32,
    what: &str,
) -> (Vec<Progress>, Vec<LaneState>) {
    let (progress, found) = trained(gpu, starts, steps, batch);
    let (expected_progress, expected) = trained(cpu, starts, steps, batch);
    for lane in 0..starts.len() {
        let what = format!("{what}, lane {lane} {:?}, {steps} steps", starts[lane].rule);
        assert!((progress[lane].loss / expected_progress[lane].loss - 1.0).abs() < 1e-4, "{what}: {:?}", progress[lane]);
        let off = difference(&found[lane].weights, &expected[lane].weights);
        assert!(off < tolerance, "{what}: weights off by {off}");
        assert_eq!(found[lane].velocity.len(), expected[lane].velocity.len(), "{what}");
        for (name, found, expected, tolerance) in [
            ("velocity", &found[lane].velocity, &expected[lane].velocity, 50.0 * tolerance),
            ("squares", &found[lane].squares, &expected[lane].squares, 100.0 * tolerance),
            ("average", &found[lane].average, &expected[lane].average, tolerance),
        ] {
            let off = difference(found, expected);
            assert!(off < tolerance, "{what}: {name} off by {off}");
        }
        let moved = starts[lane].weights.iter().zip(&found[lane].weights).filter(|(a, b)| a != b).count();
        assert!(moved > 1000, "{what}: {moved} weights moved");
    }
    (progress, found)
}

/// Compares margins on GPU and CPU, of three lanes of each network. A case is a set, the lanes that are evaluated on it, and how many examples each
/// gets, which are different for each lane. Signs are equal but for an example whose two largest logits are equal up to rounding.
pub fn margins_agree(cuda: &Cuda, cases: &[(EvaluationSet, &[usize], usize)]) {
    for name in NETWORKS {
        let (network, dataset) = problem(name, 90);
        let tests = if name == NetworkName::Resnet8 { 260 } else { 620 };
        let dataset = Dataset { test: first(&dataset.test, tests), ..dataset };
        let starts: Vec<LaneStart> = (0..3).map(|seed| start(&network, seed, 1.0, OptimizerName::Sgd, constant(0.1))).collect();
        let mut gpu = cuda.backend(&network, &dataset, &Single).unwrap();
        let mut cpu = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
        let (gpu_lanes, cpu_lanes) = (gpu.lanes(starts.clone()).unwrap(), cpu.lanes(starts).unwrap());
        for &(set, which, count) in cases {
            let size = cpu.examples(set);
            assert_eq!(gpu.examples(set), size);
            let lists: Vec<u32> = which.iter().flat_map(|lane| (0..count).map(move |i| ((7 * i + lane) % size) as u32)).collect();
            let found = gpu.margins(&gpu_lanes, which, set, &lists).unwrap();
            let expected = cpu.margins(&cpu_lanes, which, set, &lists).unwrap();
            let what = format!("{name} {set:?} {which:?} {count}");
            let off = difference(&found, &expected);
            assert!(off < 1e-4, "{what}: off by {off}");
            let same = |(a, b): (&f32, &f32)| a.is_sign_negative() == b.is_sign_negative() || a.abs().max(b.abs()) < 1e-4;
            assert!(found.iter().zip(&expected).all(same), "{what}");
        }
    }
}

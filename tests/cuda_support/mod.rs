//! What the tests of the GPU back end share: the GPU, small problems, and lanes on them.
#![allow(dead_code)] // each test crate uses a part

use std::sync::Arc;

use dps::backend::cuda::Cuda;
use dps::backend::{Backend, LaneStart, LaneState, Progress};
use dps::comm::Single;
use dps::config::{DataSplit, DatasetName, Execution, NetworkName, OptimizerName};
use dps::data::{Dataset, Examples, ImageShape};
use dps::network::{Network, initial_weights};
use dps::optimizer::{Rule, Schedule};
use dps::pruning::Mask;
use dps::random::{Numbers, Purpose};

/// Both networks.
pub const NETWORKS: [NetworkName; 2] = [NetworkName::SimpleCnn, NetworkName::Resnet8];

/// The GPU, if there is one.
pub fn gpu() -> Option<Cuda> {
    open(&Execution::default())
}

/// The GPU for that, if there is one.
pub fn open(execution: &Execution) -> Option<Cuda> {
    match Cuda::open(execution, &Single) {
        Ok(cuda) => Some(cuda),
        Err(error) if std::env::var_os("DPS_NEED_CUDA").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// A network, and 90 % of `examples` random images to train it on; the rest is for validation, and 620 for testing.
pub fn problem(name: NetworkName, examples: usize) -> (Arc<Network>, Dataset) {
    let network = Arc::new(Network::new(name));
    let map = network.maps[0];
    let shape = ImageShape { height: map.height, width: map.width, channels: map.channels };
    let numbers = Numbers::new(11, Purpose::RandomMask);
    let random = |from: usize, n: usize| Examples {
        images: (0..(n * shape.bytes()).div_ceil(64))
            .flat_map(|i| numbers.block((from + i) as u64).into_iter().flat_map(u32::to_le_bytes))
            .take(n * shape.bytes())
            .collect(),
        labels: (0..n).map(|i| (numbers.uniform((1 << 40) + (from + i) as u64) * 10.0) as u8).collect(),
        shape,
    };
    let split = DataSplit { validation_fraction: 0.1, split_seed: 0 };
    let dataset = Dataset::new(DatasetName::Mnist, &random(0, examples), random(1 << 30, 620), &split).expect("pixels that differ");
    (network, dataset)
}

/// The first examples of a set.
pub fn first(examples: &Examples, count: usize) -> Examples {
    let Examples { images, labels, shape } = examples;
    Examples { images: images[..count * shape.bytes()].to_vec(), labels: labels[..count].to_vec(), shape: *shape }
}

/// That rate at every step.
pub fn constant(rate: f64) -> Schedule {
    Schedule::Constant { rate }
}

/// A lane that keeps about `kept` of its parameters, all for 1.
pub fn start(network: &Network, seed: u64, kept: f64, optimizer: OptimizerName, schedule: Schedule) -> LaneStart {
    let parameters = network.parameters();
    let numbers = Numbers::new(seed, Purpose::RandomMask);
    let mask = match kept {
        1.0 => Mask::Dense(parameters),
        _ => Mask::Sparse { kept: (0..parameters as u32).filter(|&j| numbers.uniform(j.into()) < kept).collect(), parameters },
    };
    let momentum = if optimizer == OptimizerName::Sgd { 0.0 } else { 0.9 };
    LaneStart { seed, weights: initial_weights(network, seed), mask, rule: Rule { optimizer, momentum, schedule }, state: None }
}

/// The largest difference, as a share of the largest expected value.
pub fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |most, value| most.max(value.abs())).max(1e-20);
    let off = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f32, |most, off| if off.is_nan() { f32::NAN } else { most.max(off) });
    off / largest
}

/// Where lanes are.
pub fn states<B: Backend>(backend: &B, lanes: &B::Lanes, count: usize) -> Vec<LaneState> {
    (0..count).map(|lane| backend.state(lanes, lane).unwrap()).collect()
}

/// Lanes, trained for some steps: how they did, and where they are.
pub fn trained<B: Backend>(backend: &mut B, starts: &[LaneStart], steps: u32, batch: usize) -> (Vec<Progress>, Vec<LaneState>) {
    let mut lanes = backend.lanes(starts.to_vec()).unwrap();
    let progress = backend.train(&mut lanes, 0..steps, batch).unwrap();
    let states = states(backend, &lanes, starts.len());
    (progress, states)
}

//! Kernels that leave out removed weights, against those that multiply them with zero: the same masks, the same weights, the same numbers.

mod support;

use std::sync::Arc;

use dps::backend::cpu::{CpuBackend, Level};
use dps::backend::{Backend, LaneStart, LaneState, Progress, Set};
use dps::comm::Single;
use dps::config::{BiasPruning, DataSplit, DatasetName, NetworkName, OptimizerName};
use dps::data::{Dataset, Examples, ImageShape};
use dps::network::{Network, initial_weights};
use dps::optimizer::{Rule, Schedule};
use dps::pruning::{Mask, connection_sensitivity, keep_highest, random};
use support::noise;

fn dataset(network: &Network) -> Dataset {
    let map = network.maps[0];
    let shape = ImageShape { height: map.height, width: map.width, channels: map.channels };
    let examples = |seed: u32, count: usize| Examples {
        images: noise::image_bytes(seed, count * shape.bytes()),
        labels: noise::labels(seed, count),
        shape,
    };
    let split = DataSplit { validation_fraction: 0.2, split_seed: 0 };
    Dataset::new(DatasetName::Mnist, &examples(31, 80), examples(32, 10), &split).unwrap()
}

/// A lane after two steps, with its errors on the validation set.
fn train(backend: &mut CpuBackend, weights: &[f32], mask: &Mask, batch: usize) -> (LaneState, Progress, u32) {
    let rule = Rule { optimizer: OptimizerName::Momentum, momentum: 0.9, schedule: Schedule::Constant { rate: 0.05 } };
    let start = LaneStart { seed: 4, weights: weights.to_vec(), mask: mask.clone(), rule, state: None };
    let mut lanes = backend.lanes(vec![start]).unwrap();
    let progress = backend.train(&mut lanes, 0..2, batch).unwrap()[0];
    let errors = backend.evaluate(&lanes, &[0], Set::Validation).unwrap()[0];
    (backend.state(&lanes, 0).unwrap(), progress, errors)
}

/// Equal, or zeros of either sign: all that leaving out a product with zero may change.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Masks of three kinds: by connection sensitivity, random, and one that leaves whole channels with nothing.
fn masks(network: &Network, weights: &[f32], gradient: &[f32]) -> Vec<(String, Mask)> {
    let mut masks = Vec::new();
    for sparsity in if network.name == NetworkName::SimpleCnn { vec![0.3, 0.6, 0.9, 0.98, 0.999] } else { vec![0.9] } {
        let sensitivity = keep_highest(network, &connection_sensitivity(weights, gradient), sparsity, BiasPruning::Prunable);
        masks.push((format!("sensitivity {sparsity}"), sensitivity));
        masks.push((format!("random {sparsity}"), keep_highest(network, &random(network, 8), sparsity, BiasPruning::Exempt)));
    }
    let kept = (0..weights.len() as u32).filter(|index| index % 64 < 9 && index % 3 == 0).collect();
    masks.push(("channels".into(), Mask::Sparse { kept, parameters: weights.len() }));
    masks
}

#[test]
fn leaving_out_removed_weights_changes_no_number() {
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let network = Arc::new(Network::new(name));
        let dataset = dataset(&network);
        let weights = initial_weights(&network, 2);
        let (gradient, _) = CpuBackend::new(network.clone(), &dataset, Level::best(), 1, &Single).gradient(&weights, 30).unwrap();
        for (index, (what, mask)) in masks(&network, &weights, &gradient).into_iter().enumerate() {
            // Biases that are not zero, as a network that has trained has.
            let mut weights = weights.clone();
            weights.iter_mut().filter(|weight| **weight == 0.0).enumerate().for_each(|(i, bias)| *bias = 0.1 * (i as f32).sin());
            let batch = [1, 2, 7, 16, 5][index % 5];
            let mut dense = CpuBackend::new(network.clone(), &dataset, Level::best(), 1, &Single).computing_removed_weights();
            let (expected, expected_progress, expected_errors) = train(&mut dense, &weights, &mask, batch);
            assert!(expected_progress.loss.is_finite() && expected.weights != weights, "{what}: nothing was learnt");
            // Portable fused multiply-adds are slow where the compiler may not assume the instruction: one mask shows that they agree.
            let levels =
                Level::available().into_iter().filter(|&level| level == Level::best() || name == NetworkName::SimpleCnn && index < 8);
            for level in levels.filter(|&level| level != Level::Portable || index == 4) {
                for threads in if level == Level::best() { 1..=2 } else { 1..=1 } {
                    let mut backend = CpuBackend::new(network.clone(), &dataset, level, threads, &Single);
                    let (state, progress, errors) = train(&mut backend, &weights, &mask, batch);
                    let what = format!("{name}, {what}, batch {batch}, {}, {threads} threads", level.name());
                    assert!(same(&state.weights, &expected.weights), "{what}: other weights");
                    assert!(same(&state.velocity, &expected.velocity), "{what}: other velocities");
                    assert_eq!((progress, errors), (expected_progress, expected_errors), "{what}");
                }
            }
        }
    }
}

//! Kernels that leave out removed weights, against those that multiply them with zero: the same masks, the same weights, the same numbers.

use std::sync::Arc;

use crate::support::inputs::{difference, of_noise};
use dps::backend::cpu::{Cpu, CpuBackend, VectorUnit};
use dps::backend::{Backend, EvaluationSet, LaneStart, LaneState, Progress};
use dps::comm::Single;
use dps::data::{Dataset, ImageShape};
use dps::network::{Network, NetworkName, initial_weights};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::{BiasPruning, Mask, connection_sensitivity, keep_highest, random_scores};
use dps::settings::Convolutions;

fn dataset(network: &Network) -> Dataset {
    let map = network.maps[0];
    of_noise(ImageShape { height: map.height, width: map.width, channels: map.channels }, 80, 0.2)
}

/// A lane after some steps, with its errors on the validation set.
fn train(backend: &mut CpuBackend, weights: &[f32], mask: &Mask, batch: usize, steps: u32) -> (LaneState, Progress, u32) {
    let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(0.05)) };
    let start = LaneStart { seed: 4, weights: weights.to_vec(), mask: mask.clone(), rule, state: None };
    let mut lanes = backend.lanes(vec![start]).unwrap();
    let progress = backend.train(&mut lanes, 0..steps, batch).unwrap()[0];
    let errors = backend.evaluate(&lanes, &[0], EvaluationSet::Validation).unwrap()[0];
    (backend.state(&lanes, 0).unwrap(), progress, errors)
}

/// Equal, or zeros of either sign: all that leaving out a product with zero may change.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Masks of three kinds: by connection sensitivity, random, and one that leaves whole channels with nothing.
fn masks(network: &Network, weights: &[f32], gradient: &[f32]) -> Vec<(String, Mask)> {
    let mut masks = Vec::new();
    for sparsity in if network.maps[0].channels == 1 { vec![0.3, 0.6, 0.9, 0.98, 0.999] } else { vec![0.5, 0.9, 0.98] } {
        let sensitivity = keep_highest(network, &connection_sensitivity(weights, gradient), sparsity, BiasPruning::Prunable);
        masks.push((format!("sensitivity {sparsity}"), sensitivity));
        masks.push((format!("random {sparsity}"), keep_highest(network, &random_scores(network, 8), sparsity, BiasPruning::Exempt)));
    }
    let kept = (0..weights.len() as u32).filter(|index| index % 64 < 9 && index % 3 == 0).collect();
    masks.push(("channels".into(), Mask::Sparse { kept, parameters: weights.len() }));
    masks
}

/// Biases that are not zero, as a network that has trained has.
fn with_biases(weights: &[f32]) -> Vec<f32> {
    let mut weights = weights.to_vec();
    weights.iter_mut().filter(|weight| **weight == 0.0).enumerate().for_each(|(i, bias)| *bias = 0.1 * (i as f32).sin());
    weights
}

#[test]
fn what_is_of_another_network_is_refused() {
    crate::support::foreign::is_refused(&Cpu { unit: VectorUnit::best(), threads: 2, convolutions: Convolutions::Direct });
}

#[test]
fn leaving_out_removed_weights_changes_no_number() {
    [NetworkName::SimpleCnn, NetworkName::Lenet300x100].into_iter().for_each(leaving_out_changes_no_number_of);
}

/// The kernels of a network without sub-maps give the same numbers with removed weights and without.
fn leaving_out_changes_no_number_of(name: NetworkName) {
    let network = Arc::new(Network::new(name));
    let dataset = dataset(&network);
    let weights = initial_weights(&network, 2);
    let (gradient, _) = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single).gradient(&weights, 30).unwrap();
    for (index, (what, mask)) in masks(&network, &weights, &gradient).into_iter().enumerate() {
        let weights = with_biases(&weights);
        let batch = [1, 2, 7, 16, 5][index % 5];
        let mut dense = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single).computing_removed_weights();
        let (expected, expected_progress, expected_errors) = train(&mut dense, &weights, &mask, batch, 2);
        assert!(expected_progress.loss.is_finite() && expected.weights != weights, "{what}: nothing was learnt");
        // Portable fused multiply-adds are slow where the compiler may not assume the instruction: one mask shows that they agree.
        let units = VectorUnit::available().into_iter().filter(|&unit| unit == VectorUnit::best() || index < 8);
        for unit in units.filter(|&unit| unit != VectorUnit::PORTABLE || index == 4) {
            for threads in if unit == VectorUnit::best() { 1..=2 } else { 1..=1 } {
                let mut backend = CpuBackend::new(network.clone(), &dataset, unit, threads, &Single);
                let (state, progress, errors) = train(&mut backend, &weights, &mask, batch, 2);
                let what = format!("{name}, {what}, batch {batch}, {}, {threads} threads", unit.name());
                assert!(same(&state.weights, &expected.weights), "{what}: other weights");
                assert!(same(&state.velocity, &expected.velocity), "{what}: other velocities");
                assert_eq!((progress, errors), (expected_progress, expected_errors), "{what}");
            }
        }
    }
}

/// Every set of layers without a weight, with their biases and without, and a network of one parameter.
fn dead(network: &Network) -> Vec<(String, Mask)> {
    let names: Vec<&str> = network.tensors.iter().filter_map(|tensor| tensor.name.strip_suffix(".weights")).collect();
    let mut masks = Vec::new();
    // Of many layers the whole network, each one alone and each one without the others are enough.
    let all = (1_u32 << names.len()) - 1;
    let sets = (1..=all).filter(|set| names.len() < 4 || *set == all || [1, names.len() as u32 - 1].contains(&set.count_ones()));
    for (set, biases) in sets.flat_map(|set| [(set, true), (set, false)]) {
        let is_dead = |name: &str| names.iter().position(|layer| name.starts_with(layer)).is_some_and(|layer| set >> layer & 1 == 1);
        let tensors = network.tensors.iter().filter(|tensor| !is_dead(&tensor.name) || biases && tensor.name.ends_with("bias"));
        // A tenth of the others, so that the kernels of pruned layers run beside them.
        let kept = |index: &usize| set % 2 == 1 || index % 10 == 3;
        let kept: Vec<u32> = tensors.flat_map(|tensor| tensor.range().filter(kept)).map(|index| index as u32).collect();
        if !kept.is_empty() {
            masks.push((format!("dead layers {set:b}, biases {biases}"), Mask::Sparse { kept, parameters: network.parameters() }));
        }
    }
    let one =
        |index: usize| (format!("parameter {index} alone"), Mask::Sparse { kept: vec![index as u32], parameters: network.parameters() });
    masks.extend(network.tensors.iter().map(|tensor| one(tensor.range().end - 1)));
    masks
}

#[test]
fn a_network_with_dead_layers_trains() {
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let network = Arc::new(Network::new(name));
        let dataset = dataset(&network);
        let weights = with_biases(&initial_weights(&network, 2));
        let mut dead_layers = 0;
        for (what, mask) in dead(&network) {
            dead_layers = dead_layers.max(mask.dead_layers(&network));
            let backend = || CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
            let (expected, expected_progress, _) = train(&mut backend().computing_removed_weights(), &weights, &mask, 5, 2);
            let (state, progress, _) = train(&mut backend(), &weights, &mask, 5, 2);
            let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
            assert!(progress.loss.is_finite() && (progress.loss - expected_progress.loss).abs() < 1e-5, "{name}, {what}: {progress:?}");
            assert!(close(&state.weights, &expected.weights) && close(&state.velocity, &expected.velocity), "{name}, {what}");
        }
        assert_eq!(dead_layers, network.tensors.len() / 2);
    }
}

/// Forward passes and data gradients are computed by other formulas, and gradients summed over up to 1,024 positions of 16 images in another order:
/// √16,384 · 2⁻²⁴.
const SUMMED_OTHERWISE: f32 = 7.6e-6;

/// The masks of [`masks`], and some with layers of all kinds: whole ones, dead ones, dead channels, pruned ones beside each other and between
/// those that are not.
fn masks_of_layers(network: &Network, weights: &[f32], gradient: &[f32]) -> Vec<(String, Mask)> {
    let mut masks = masks(network, weights, gradient);
    // The weights kept of some layers; the other layers keep all.
    type Part = (&'static str, fn(usize) -> bool);
    let parts = |parts: &[Part]| {
        let mut kept: Vec<u32> = Vec::new();
        for tensor in &network.tensors {
            let part = parts.iter().find(|(name, _)| tensor.name.starts_with(name));
            kept.extend(tensor.range().filter(|index| part.is_none_or(|(_, part)| part(index - tensor.offset))).map(|index| index as u32));
        }
        Mask::Sparse { kept, parameters: network.parameters() }
    };
    masks.push(("pruned beginning".into(), parts(&[("conv1", |i| i % 5 == 0), ("block1", |i| i % 7 == 0)])));
    masks.push(("pruned end".into(), parts(&[("block3", |i| i % 9 == 4)])));
    masks.push(("pruned middle".into(), parts(&[("block1.conv2", |i| i % 4 == 1), ("block2.conv1", |i| i % 16 == 3)])));
    masks.push((
        "every other layer".into(),
        parts(&[
            ("conv1", |i| i % 3 == 0),
            ("block1.conv2", |i| i % 5 == 0),
            ("block2.conv2", |i| i % 6 == 0),
            ("block3.conv2", |i| i % 7 == 0),
        ]),
    ));
    masks.push((
        "the others".into(),
        parts(&[("block1.conv1", |i| i % 3 == 0), ("block2.conv1", |i| i % 5 == 0), ("block3.conv1", |i| i % 6 == 0)]),
    ));
    masks.push(("a dead layer".into(), parts(&[("block2.conv2", |_| false), ("block3.conv1", |i| i % 8 == 0)])));
    masks
}

#[test]
fn leaving_out_removed_weights_of_resnet_8_changes_rounding_alone() {
    let network = Arc::new(Network::new(NetworkName::Resnet8));
    let dataset = dataset(&network);
    let initial = initial_weights(&network, 2);
    let (gradient, _) = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single).gradient(&initial, 30).unwrap();
    let weights = with_biases(&initial);
    for (index, (what, mask)) in masks_of_layers(&network, &initial, &gradient).into_iter().enumerate() {
        let batch = [1, 2, 7, 16, 5][index % 5];
        let mut dense = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single).computing_removed_weights();
        let (expected, expected_progress, _) = train(&mut dense, &weights, &mask, batch, 1);
        let mut first: Option<(LaneState, Progress, u32)> = None;
        // One mask is enough where the kernels are slow, as above.
        for unit in VectorUnit::available().into_iter().filter(|&unit| unit != VectorUnit::PORTABLE || index == 4) {
            for threads in if unit == VectorUnit::best() { 1..=2 } else { 1..=1 } {
                let mut backend = CpuBackend::new(network.clone(), &dataset, unit, threads, &Single);
                let what = format!("{what}, batch {batch}, {}, {threads} threads", unit.name());
                let (state, progress, _) = train(&mut backend, &weights, &mask, batch, 1);
                let off = difference(&state.velocity, &expected.velocity);
                assert!(off < SUMMED_OTHERWISE, "{what}: gradients off by {off}");
                assert_eq!(progress.broken, expected_progress.broken, "{what}");
                let [loss, expected_loss] = [progress.loss, expected_progress.loss];
                assert!((loss - expected_loss).abs() < SUMMED_OTHERWISE * expected_loss, "{what}: loss {loss}, {expected_loss}");
                let after = train(&mut backend, &weights, &mask, batch, 3);
                match &first {
                    None => first = Some(after),
                    Some((expected, progress, errors)) => {
                        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                        assert_eq!(bits(&after.0.weights), bits(&expected.weights), "{what}: other bits");
                        assert_eq!((after.1, after.2), (*progress, *errors), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_infinite_weight_breaks_a_pruned_lane() {
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let network = Arc::new(Network::new(name));
        let dataset = dataset(&network);
        let mask = keep_highest(&network, &random_scores(&network, 8), 0.9, BiasPruning::Prunable);
        let Mask::Sparse { kept, .. } = &mask else { panic!("a sparse mask") };
        for tensor in network.tensors.iter().filter(|tensor| tensor.name.ends_with("weights")) {
            let mut weights = initial_weights(&network, 2);
            let broken = kept.iter().find(|&&index| tensor.range().contains(&(index as usize))).expect("a kept weight");
            weights[*broken as usize] = f32::INFINITY;
            let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single);
            let (_, progress, _) = train(&mut backend, &weights, &mask, 2, 1);
            assert_eq!(progress.broken, Some(0), "{name}: {} is infinite", tensor.name);
        }
    }
}

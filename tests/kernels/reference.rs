//! The reference back end against what it did not compute: finite differences on random networks, and PyTorch's numbers (tests/fixtures). Then the
//! fast back end against the reference.

use std::collections::BTreeMap;

use crate::random_networks::{Case, Draws};
use crate::support::fixture::{Fixture, Theory};
use crate::support::noise;
use dps::backend::cpu::{self, Cpu, CpuBackend, VectorUnit};
use dps::backend::reference::{self, Batch};
use dps::backend::{Backend, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::network::{DenseOutput, Epilogue, GroupNorm, Layer, LayerSpec, Map, Network, NetworkName, Padding, PoolKind};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::{BiasPruning, Mask, keep_highest, random_scores};
use dps::settings::Convolutions;

/// Networks that the reference is checked on.
const NETWORKS: u64 = 80;

/// √Σ x².
fn norm(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| value.into()).collect()
}

/// from + h · direction.
fn moved(from: &[f64], h: f64, direction: &[f64]) -> Vec<f64> {
    from.iter().zip(direction).map(|(from, direction)| from + h * direction).collect()
}

#[test]
fn random_networks_have_every_kind_of_layer() {
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..NETWORKS {
        let network = Case::new(seed, 1).network;
        assert!(network.layers.len() <= 7 && network.maps[0].inner_len() <= 20 * 20 * 6 && network.forward_flop() < 2e6);
        for layer in &network.layers {
            let plain = |map: usize| network.maps[map].bordered(0, 0);
            let kind = match layer {
                Layer::Convolution(layer) => match layer.epilogue {
                    Epilogue::Linear { .. } => "linear",
                    Epilogue::Relu { .. } => "relu",
                    Epilogue::ReluMaxPool { .. } => "relu and pool",
                    Epilogue::Stream { shortcut: None, .. } => "stream",
                    Epilogue::Stream { shortcut: Some(from), .. } => match (plain(from), layer.output) {
                        (from, to) if from == to => "identity",
                        (Map { height: from, .. }, Map { height: to, .. }) if from == to => "more channels",
                        (Map { channels: from, .. }, Map { channels: to, .. }) if from == to => "averaged",
                        _ => "averaged with more channels",
                    },
                },
                Layer::Pool(pool) => match (pool.kind, pool.relu) {
                    (PoolKind::Max, false) => "maximum",
                    (PoolKind::Max, true) => "maximum and relu",
                    (PoolKind::Average, false) => "average",
                    (PoolKind::Average, true) => "average and relu",
                },
                Layer::GlobalMean(_) => "global mean",
                Layer::GroupNorm(GroupNorm { relu: false, .. }) => "group norm",
                Layer::GroupNorm(GroupNorm { relu: true, .. }) => "group norm and relu",
                Layer::Dense(layer) => match layer.output {
                    DenseOutput::Logits => "logits",
                    DenseOutput::Hidden { relu: true, .. } => "hidden with relu",
                    DenseOutput::Hidden { relu: false, .. } => "hidden",
                },
            };
            found.insert(kind);
            found.extend(match layer {
                Layer::Convolution(layer) => (!layer.has_bias).then_some("a convolution without a bias"),
                Layer::Dense(layer) => (!layer.has_bias).then_some("a dense layer without a bias"),
                Layer::GroupNorm(layer) if layer.groups == 1 => Some("one group"),
                Layer::GroupNorm(layer) => Some(if layer.group_channels == 1 { "groups of one channel" } else { "groups" }),
                Layer::Pool(_) | Layer::GlobalMean(_) => None,
            });
            if let Layer::Convolution(layer) = layer {
                found.extend((layer.input_map.after > layer.input_map.before).then_some("more zeros after"));
                found.extend((layer.input_map.before > 0 && layer.stride > 1).then_some("padding and stride"));
                found.extend((layer.stride > layer.kernel).then_some("unread columns"));
                found.extend((layer.output.height != layer.output.width).then_some("not square"));
            }
        }
    }
    assert_eq!(found.len(), 27, "{found:?}");
}

/// Finite differences at a step and at half of it: the latter, unless the two say that a kink of ReLU or of a maximum lies between, where neither
/// is a derivative. `difference` is half the change from one end of a step to its other end, divided by the step.
fn smooth(difference: impl Fn(f64) -> Vec<f64>) -> Option<Vec<f64>> {
    const STEP: f64 = 1e-6;
    let (far, near) = (difference(STEP), difference(STEP / 2.0));
    let bend = norm(far.iter().zip(&near).map(|(far, near)| far - near));
    (bend < 1e-6 * (norm(near.iter().copied()) + 1e-2)).then_some(near)
}

#[test]
fn gradients_are_finite_differences() {
    let (mut checked, mut kinks) = (0, 0);
    for seed in 0..NETWORKS {
        let case = Case::new(seed, 3);
        let (network, weights, images) = (&case.network, wide(&case.weights), case.images());
        let batch = Batch { images: &images, labels: case.labels() };
        let temperature = [1.0, 3.0][seed as usize % 2];
        let (gradient, loss) = reference::gradient(network, &weights, temperature, batch);
        assert_eq!(loss, reference::loss(network, &weights, temperature, batch), "{}", case.name);
        let mut draws = Draws::new(1000 + seed);
        for tensor in &network.tensors {
            let range = tensor.range();
            let size = (tensor.fan_in as f64).sqrt().recip();
            for _ in 0..3 {
                let mut direction = vec![0.0; weights.len()];
                direction[range.clone()].fill_with(|| size * draws.sign());
                let slope = smooth(|h| {
                    let loss = |h| reference::loss(network, &moved(&weights, h, &direction), temperature, batch);
                    vec![(loss(h) - loss(-h)) / (2.0 * h)]
                });
                let Some(slope) = slope else {
                    kinks += 1;
                    continue;
                };
                let found: f64 = gradient.iter().zip(&direction).map(|(gradient, direction)| gradient * direction).sum();
                let scale = norm(gradient[range.clone()].iter().copied()) * norm(direction.iter().copied());
                assert!((found - slope[0]).abs() < 1e-6 * scale + 1e-8, "{}: {}: {found}, expected {}", case.name, tensor.name, slope[0]);
                checked += 1;
                break;
            }
        }
    }
    assert!(checked > 300 && kinks < checked / 10, "{checked} checked, {kinks} at kinks");
}

#[test]
fn hessian_products_are_finite_differences_of_gradients() {
    let (mut checked, mut kinks) = (0, 0);
    for seed in 0..NETWORKS {
        let case = Case::new(seed, 2);
        let (network, weights, images) = (&case.network, wide(&case.weights), case.images());
        let batch = Batch { images: &images, labels: case.labels() };
        let temperature = [1.0, 3.0][seed as usize % 2];
        let mut draws = Draws::new(2000 + seed);
        for _ in 0..3 {
            let vector: Vec<f64> = weights.iter().map(|_| 0.1 * draws.sign()).collect();
            let difference = smooth(|h| {
                let gradient = |h| reference::gradient(network, &moved(&weights, h, &vector), temperature, batch).0;
                gradient(h).iter().zip(gradient(-h)).map(|(right, left)| (right - left) / (2.0 * h)).collect()
            });
            let Some(difference) = difference else {
                kinks += 1;
                continue;
            };
            let (product, loss) = reference::hessian_product(network, &weights, &vector, temperature, batch);
            assert_eq!(loss, reference::loss(network, &weights, temperature, batch), "{}", case.name);
            let off = norm(product.iter().zip(&difference).map(|(product, difference)| product - difference));
            assert!(off < 1e-6 * (norm(difference) + 1e-2), "{}: off by {off} of {}", case.name, norm(product));
            checked += 1;
            break;
        }
    }
    assert!(checked > 60, "{checked} checked, {kinks} at kinks");
}

/// Whether f32 numbers are f64 ones but for rounding: they may be off by 1e-4 of their tensor's largest number and 1e-6 of the network's largest.
/// Terms are larger than their sums: plain f32 loops are off by up to 4e-5 where a mask leaves few terms. Says where the numbers differ.
fn difference(network: &Network, found: &[f32], expected: &[f64]) -> Option<String> {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    assert_eq!(found.len(), expected.len());
    network.tensors.iter().find_map(|tensor| {
        let (found, own) = (&found[tensor.range()], &expected[tensor.range()]);
        let tolerance = 1e-4 * largest(own) + 1e-6 * largest(expected) + 1e-12;
        let far = |(found, expected): &(&f32, &f64)| (f64::from(**found) - **expected).abs() > tolerance || found.is_nan();
        let place = found.iter().zip(own).position(|pair| far(&pair))?;
        Some(format!("{} {place}: {}, expected {} ± {tolerance}", tensor.name, found[place], own[place]))
    })
}

/// Whether the derivative jumps near the weights as far as an f32 one is off: there a sum is so close to zero, or two so close to each other, that
/// rounding decides what a ReLU or a maximum lets through.
fn is_at_a_kink(weights: &[f64], found: &[f32], expected: &[f64], derivative: impl Fn(&[f64]) -> Vec<f64>) -> bool {
    let off = norm(found.iter().zip(expected).map(|(&found, expected)| f64::from(found) - expected));
    let mut draws = Draws::new(5);
    (0..6).any(|_| {
        let direction: Vec<f64> = weights.iter().map(|weight| weight * draws.sign()).collect();
        [3e-6, -3e-6].iter().any(|&h| {
            let there = derivative(&moved(weights, h, &direction));
            norm(there.iter().zip(expected).map(|(there, expected)| there - expected)) > 0.5 * off
        })
    })
}

#[test]
fn narrow_numbers_are_wide_ones_but_for_rounding() {
    let mut kinks = 0;
    for seed in 0..NETWORKS {
        let case = Case::new(seed, 4);
        let (network, weights, images) = (&case.network, wide(&case.weights), case.images());
        let batch = Batch { images: &images, labels: case.labels() };
        let derivative = |weights: &[f64]| reference::gradient(network, weights, 1.0, batch).0;
        let (found, found_loss) = reference::gradient(network, &case.weights, 1.0, batch);
        let (expected, loss) = reference::gradient(network, &weights, 1.0, batch);
        assert!((f64::from(found_loss) - loss).abs() < 1e-5 * loss, "{}: {found_loss} {loss}", case.name);
        if let Some(difference) = difference(network, &found, &expected) {
            assert!(is_at_a_kink(&weights, &found, &expected, derivative), "{}: {difference}", case.name);
            kinks += 1;
        }
        let margins = reference::margins(network, &case.weights, batch);
        assert_margins(&margins, &wide_margins(&case, &weights), &case.name);
    }
    assert!(kinks < 4, "{kinks} at kinks");
}

/// The margins in f64.
fn wide_margins(case: &Case, weights: &[f64]) -> Vec<f64> {
    let images = case.images();
    let one = |(image, &label): (&[f32], &u16)| {
        let logits = reference::logits(&case.network, weights, image);
        let others = logits.iter().enumerate().filter(|(class, _)| *class != usize::from(label)).map(|(_, &logit)| logit);
        logits[usize::from(label)] - others.fold(f64::NEG_INFINITY, f64::max)
    };
    images.chunks_exact(case.dataset.shape.values()).zip(case.labels()).map(one).collect()
}

fn assert_margins(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{what}: margin {found}, expected {expected}");
    }
}

/// Images are rounded to f32, by 6e-8 of them at most; PyTorch computes in f64 from bytes on.
const ROUNDED_IMAGES: f64 = 1e-6;

#[test]
fn the_papers_networks_are_pytorchs() {
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let (fixture, network) = (Fixture::read(name.name()), Network::new(name));
        let kept = noise::mask(fixture.parameters);
        let images = |seed: u32, count: usize| {
            let (bytes, labels) = fixture.images(seed, count);
            let images = noise::normalise(&bytes, &fixture.image.mean, &fixture.image.std);
            (images.into_iter().map(|value| value as f32).collect::<Vec<f32>>(), labels)
        };
        for expected in &fixture.batches {
            let (images, labels) = images(expected.image_seed, expected.size);
            let batch = Batch { images: &images, labels: &labels };
            let mut weights = wide(&fixture.start());
            let removed = |index: usize| expected.masked && !kept[index];
            weights.iter_mut().enumerate().filter(|(index, _)| removed(*index)).for_each(|(_, weight)| *weight = 0.0);
            for (image, expected) in images.chunks_exact(network.maps[0].inner_len()).zip(&expected.logits) {
                for (found, expected) in reference::logits(&network, &weights, image).iter().zip(expected) {
                    assert!((found - expected).abs() < ROUNDED_IMAGES, "{name}: logit {found}, expected {expected}");
                }
            }
            let (mut gradient, loss) = reference::gradient(&network, &weights, 1.0, batch);
            assert!((loss - expected.loss_sum).abs() < ROUNDED_IMAGES * loss, "{name}: {loss}, expected {}", expected.loss_sum);
            gradient.iter_mut().enumerate().filter(|(index, _)| removed(*index)).for_each(|(_, entry)| *entry = 0.0);
            let samples = gradient.iter().step_by(fixture.sample_stride).zip(&expected.gradient.samples);
            let off = norm(samples.map(|(found, expected)| found - expected));
            assert!(off < ROUNDED_IMAGES * expected.gradient.l2, "{name}: the gradient is off by {off} of {}", expected.gradient.l2);
            for (tensor, expected) in network.tensors.iter().zip(&expected.gradient.tensors) {
                let found = norm(gradient[tensor.range()].iter().copied());
                assert!((found - expected.l2).abs() <= ROUNDED_IMAGES * expected.l2, "{}: {found}, expected {}", tensor.name, expected.l2);
            }
        }
    }
}

#[test]
fn hessian_products_are_pytorchs() {
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let (fixture, theory, network) = (Fixture::read(name.name()), Theory::read(name.name()), Network::new(name));
        let (bytes, labels) = fixture.images(theory.image_seed, theory.images);
        let images: Vec<f32> =
            noise::normalise(&bytes, &fixture.image.mean, &fixture.image.std).into_iter().map(|value| value as f32).collect();
        let batch = Batch { images: &images, labels: &labels };
        let weights = wide(&fixture.start());
        // The larger network takes its time: one temperature shows that it is differentiated.
        for expected in theory.grasp.iter().take(if name == NetworkName::Resnet8 { 1 } else { 2 }) {
            let temperature = expected.temperature as f32;
            let (gradient, _) = reference::gradient(&network, &weights, temperature, batch);
            let (product, _) = reference::hessian_product(&network, &weights, &gradient, temperature, batch);
            let scores: Vec<f64> = weights.iter().zip(product).map(|(weight, product)| weight * product).collect();
            let samples = scores.iter().step_by(fixture.sample_stride).zip(&expected.samples);
            let off = norm(samples.map(|(found, expected)| found - expected)) / norm(expected.samples.iter().copied());
            assert!(off < ROUNDED_IMAGES, "{name}, temperature {temperature}: off by {off}");
            let length = norm(scores);
            assert!((length / expected.norm - 1.0).abs() < ROUNDED_IMAGES, "{name}: norm {length}, expected {}", expected.norm);
        }
    }
}

/// Compares the CPU back end with the reference on a case whose weights a mask removes: margins, the loss, the gradient of a training step and of a
/// whole set, squared norms, and, without a mask, the Hessian's product with the gradient, by all kernels that a configuration can choose and on
/// vector units with so many threads each, all of which must have the same bits. Returns how many gradients were at a kink, or off as far in plain
/// loops.
fn compare(case: &Case, mask: &Mask, units: &[(VectorUnit, usize)]) -> usize {
    let (network, images, labels) = (&case.network, case.images(), case.labels());
    let mut narrow = case.weights.clone();
    mask.apply(&mut narrow);
    let weights = wide(&narrow);
    let what = format!("{} kept of {} in {}", mask.kept(), mask.parameters(), case.name);
    let cut = |mut gradient: Vec<f64>| {
        let mut flags = vec![1.0; gradient.len()];
        mask.apply(&mut flags);
        gradient.iter_mut().zip(flags).for_each(|(entry, flag)| *entry *= f64::from(flag));
        gradient
    };
    let all = Batch { images: &images, labels };
    let gradient_at = |weights: &[f64]| cut(reference::gradient(network, weights, 1.0, all).0);
    let (mut gradient, mut loss, mut squares) = (vec![0.0; weights.len()], 0.0, 0.0);
    for (images, label) in images.chunks_exact(case.dataset.shape.values()).zip(labels.chunks_exact(1)) {
        let (one, one_loss) = reference::gradient(network, &weights, 1.0, Batch { images, labels: label });
        let one = cut(one);
        squares += norm(one.iter().copied()).powi(2);
        loss += one_loss;
        gradient = moved(&gradient, 1.0, &one);
    }
    let mut kinks = 0;
    let mut check = |kind: &str, found: &[f32], expected: &[f64], derivative: &dyn Fn(&[f64]) -> Vec<f64>, plain: &dyn Fn() -> Vec<f32>| {
        if let Some(difference) = difference(network, found, expected) {
            // A normalisation multiplies the rounding of values that are all but equal, by up to 1 / √1e-5, in plain loops as well.
            let off = |found: &[f32]| norm(found.iter().zip(expected).map(|(&found, expected)| f64::from(found) - expected));
            let as_plain_loops = off(&plain()) > 0.1 * off(found);
            assert!(as_plain_loops || is_at_a_kink(&weights, found, expected, derivative), "{kind}, {what}: {difference}");
            kinks += 1;
        }
        kinks > 0
    };
    let margins = wide_margins(case, &weights);
    let examples: Vec<u32> = (0..labels.len() as u32).collect();
    let mut first = BTreeMap::new();
    let runs =
        choices(network, mask).into_iter().flat_map(|convolutions| units.iter().map(move |&(unit, threads)| (convolutions, unit, threads)));
    for (convolutions, unit, threads) in runs {
        let mut backend = CpuBackend::of(Cpu { unit, threads, convolutions }, network.clone(), &case.dataset, &Single);
        let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(0.1)) };
        let start = LaneStart { seed: 4, weights: narrow.clone(), mask: mask.clone(), rule, state: None };
        let mut lanes = backend.lanes(vec![start]).unwrap();
        let found_margins = backend.margins(&lanes, &[0], EvaluationSet::Validation, &examples).unwrap();
        let progress = backend.train(&mut lanes, 0..1, labels.len()).unwrap()[0];
        // After one step the velocity is the mean gradient.
        let velocity = backend.state(&lanes, 0).unwrap().velocity;
        let found_squares = backend.squared_norms(&narrow, mask, labels.len()).unwrap();
        let mut numbers = [&velocity, &found_margins[..], &[progress.loss]].concat();
        if (unit, threads) == units[0] {
            assert_margins(&found_margins, &margins, &what);
            let mean = loss / labels.len() as f64;
            assert!((f64::from(progress.loss) - mean).abs() < 1e-5 * (1.0 + mean), "{what}: loss {}, expected {mean}", progress.loss);
            let stepped: Vec<f32> = velocity.iter().map(|&entry| entry * labels.len() as f32).collect();
            let plain = || {
                let mut flags = vec![1.0; narrow.len()];
                mask.apply(&mut flags);
                let (gradient, _) = reference::gradient(network, &narrow, 1.0, all);
                gradient.iter().zip(flags).map(|(entry, flag)| entry * flag).collect()
            };
            let kink = check("a step", &stepped, &gradient, &gradient_at, &plain);
            assert!(kink || (found_squares - squares).abs() <= 1e-5 * squares, "{what}: squared norms {found_squares}, expected {squares}");
        }
        if let Mask::Dense(_) = mask {
            let (found, _) = backend.gradient(&narrow, labels.len()).unwrap();
            let product = backend.hessian_gradient(&narrow, 3.0, labels.len()).unwrap();
            if (unit, threads) == units[0] {
                check("a set", &found, &gradient, &gradient_at, &|| reference::gradient(network, &narrow, 1.0, all).0);
                let product_at = |weights: &[f64]| {
                    let (gradient, _) = reference::gradient(network, weights, 3.0, all);
                    reference::hessian_product(network, weights, &gradient, 3.0, all).0
                };
                let plain = || {
                    let (gradient, _) = reference::gradient(network, &narrow, 3.0, all);
                    reference::hessian_product(network, &narrow, &gradient, 3.0, all).0
                };
                check("a Hessian product", &product, &product_at(&weights), &product_at, &plain);
            }
            numbers.extend(found.into_iter().chain(product));
        }
        let bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).chain([found_squares.to_bits() as u32]).collect();
        let first = first.entry(convolutions.name()).or_insert_with(|| bits.clone());
        assert!(*first == bits, "{what}: {convolutions} convolutions, {}, {threads} threads: other bits", unit.name());
    }
    kinks
}

/// The values of `execution.convolutions` that differ in the kernels of a masked network.
fn choices(network: &Network, mask: &Mask) -> Vec<Convolutions> {
    let mut choices = Convolutions::ALL.to_vec();
    choices.dedup_by_key(|convolutions| cpu::kernels(network, Some(mask), *convolutions));
    choices
}

/// A random mask of a sparsity that keeps something, with biases and without them.
fn mask(network: &Network, sparsity: f64, seed: u64) -> Mask {
    let scores = random_scores(network, seed);
    let biases = if seed.is_multiple_of(2) { BiasPruning::Prunable } else { BiasPruning::Exempt };
    let mask = keep_highest(network, &scores, sparsity, biases);
    if mask.kept() > 0 { mask } else { Mask::Sparse { kept: vec![0], parameters: network.parameters() } }
}

/// Units of one thread each.
fn alone(units: &[VectorUnit]) -> Vec<(VectorUnit, usize)> {
    units.iter().map(|&unit| (unit, 1)).collect()
}

const SPARSITIES: [f64; 4] = [0.0, 0.5, 0.9, 0.99];

/// Compares one of the paper's networks.
fn compare_named(name: NetworkName) {
    let case = Case::named(name, 2);
    for sparsity in SPARSITIES {
        assert_eq!(compare(&case, &mask(&case.network, sparsity, 3), &alone(&VectorUnit::available()[..1])), 0, "{name}: at a kink");
    }
}

#[test]
fn simple_cnn_is_the_references_on_the_cpu() {
    compare_named(NetworkName::SimpleCnn);
}

#[test]
fn resnet_8_is_the_references_on_the_cpu() {
    compare_named(NetworkName::Resnet8);
}

/// From the fewest classes to the most that a data set may have.
#[test]
fn any_number_of_classes_is_the_references_on_the_cpu() {
    for classes in [2, 47, 100, 257, 1000] {
        let case = Case::of_classes(classes, 6);
        for sparsity in [0.0, 0.9] {
            assert_eq!(
                compare(&case, &mask(&case.network, sparsity, 3), &alone(&VectorUnit::available())),
                0,
                "{classes} classes: at a kink"
            );
        }
    }
}

#[test]
fn random_networks_are_the_references_on_the_cpu() {
    let (mut compared, mut kinks) = (0, 0);
    for seed in 0..250 {
        let case = Case::new(seed, 1 + seed as usize * 7 % 40);
        for (index, sparsity) in (0..).zip(SPARSITIES) {
            // Portable fused multiply-adds are slow where the compiler may not assume the instruction.
            let mut units = VectorUnit::available();
            units.retain(|&unit| unit == VectorUnit::best() || unit != VectorUnit::PORTABLE || (seed + index) % 16 == 0);
            kinks += compare(&case, &mask(&case.network, sparsity, seed), &alone(&units));
            compared += 1;
        }
    }
    assert!(compared == 1000 && kinks < 10, "{compared} compared, {kinks} at kinks");
}

/// Convolutions of 5 × 5 that a pool follows, on maps of any sides and channels, with a border and without, in batches that are no multiple of the
/// tiles that are multiplied together.
#[test]
fn winograds_formula_for_5_x_5_is_the_references_on_the_cpu() {
    let (mut compared, mut kinks) = (0, 0);
    for seed in 0..40 {
        let mut draws = Draws::new(3000 + seed);
        let padding = [Padding::Same, Padding::Valid][seed as usize % 2];
        let (first, second) = (draws.between(1, 40), draws.between(1, 40));
        let relu_and_pool = [LayerSpec::Relu, LayerSpec::MaxPool { size: 2, stride: 2 }];
        let (before, after) = (LayerSpec::convolution(first, 3, 1, padding), LayerSpec::convolution(second, 5, 1, padding));
        let layers = [&[before, LayerSpec::Relu, after][..], &relu_and_pool, &[LayerSpec::Flatten, LayerSpec::dense(10)]].concat();
        let shape = [draws.between(8, 15), draws.between(8, 15), draws.between(1, 3)].map(|extent| extent as usize);
        let case = Case::of_layers(&layers, shape, 10, 1 + seed as usize % 20);
        for sparsity in [0.0, 0.3, 0.9] {
            let mask = mask(&case.network, sparsity, seed);
            compared += choices(&case.network, &mask).len() - 1;
            let units = VectorUnit::available().into_iter().filter(|&unit| unit != VectorUnit::PORTABLE || seed % 8 == 0);
            kinks += compare(&case, &mask, &units.map(|unit| (unit, 1 + seed as usize % 2)).collect::<Vec<_>>());
        }
    }
    assert!(compared > 60 && kinks < 4, "{compared} compared, {kinks} at kinks");
}

/// A batch of 64 examples and more has leaves of eight images, up to eight of which are computed together in fully connected layers. 72 and 77
/// examples are nine and ten leaves: more than are computed together, the last one whole or not.
#[test]
fn leaves_of_eight_images_are_the_references_on_any_threads() {
    let best = VectorUnit::best();
    let narrow = VectorUnit::available().into_iter().filter(|&unit| unit != VectorUnit::PORTABLE && unit != best);
    let crews: Vec<_> = [(best, 1), (best, 2), (best, 3)].into_iter().chain(narrow.map(|unit| (unit, 1))).collect();
    let (mut compared, mut kinks, mut hidden) = (0, 0, 0);
    for seed in 1000.. {
        let examples = [72, 77][seed as usize % 2];
        let case = Case::new(seed, examples);
        let is_hidden = |layer: &Layer| matches!(layer, Layer::Dense(layer) if layer.output != DenseOutput::Logits);
        // Small networks have so many examples, and those without a hidden layer are the most.
        if case.labels().len() < examples || hidden < 20 && !case.network.layers.iter().any(is_hidden) {
            continue;
        }
        hidden += usize::from(case.network.layers.iter().any(is_hidden));
        for sparsity in [0.0, 0.9] {
            kinks += compare(&case, &mask(&case.network, sparsity, seed), &crews);
        }
        compared += 1;
        if compared == 30 {
            break;
        }
    }
    assert!(hidden >= 20 && kinks < 3, "{hidden} with a hidden layer, {kinks} at kinks");
}

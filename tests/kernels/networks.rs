//! The networks and pruning, compared with PyTorch's numbers (tests/fixtures).

use std::sync::Arc;

use crate::support::fixture::{Fixture, Theory};
use crate::support::inputs::{assert_cut, biases, fixture_mask, of_batches};
use crate::support::noise;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::{Backend, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::data::Dataset;
use dps::network::{Network, NetworkName};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::{connection_sensitivity, gradient_signal, keep_highest};
use dps::settings::Smoothness;
use dps::training::Probe;

/// The networks of Lee et al., ICLR 2021.
pub const PAPERS: [NetworkName; 2] = [NetworkName::SimpleCnn, NetworkName::Resnet8];

/// A sum of n float32 products is off by about √n · 2⁻²⁴ of the terms' size; PyTorch's own float32 gradients of these batches differ from
/// float64 by up to 4.8e-6, the losses by 1e-6 (tests/fixtures/README.md).
const GRADIENT_TOLERANCE: f64 = 2e-5;

#[test]
fn losses_errors_and_gradients_are_pytorchs_and_the_same_bits_on_every_vector_unit() {
    for name in PAPERS {
        let fixture = Fixture::read(name.name());
        let network = Arc::new(Network::new(name));
        for (ours, theirs) in network.tensors.iter().zip(&fixture.tensors) {
            assert_eq!((ours.offset, ours.len), (theirs.offset, theirs.length), "{} and {}", ours.name, theirs.name);
        }
        let kept = noise::mask(fixture.parameters);
        for batch in &fixture.batches {
            let dataset = of_batches(&fixture, [batch.image_seed], batch.size);
            let mask = fixture_mask(batch.masked, fixture.parameters);
            let mut weights = fixture.start();
            mask.apply(&mut weights);
            let mut first: Option<(Vec<f32>, f32, Vec<f32>)> = None;
            for unit in VectorUnit::available() {
                let mut backend = CpuBackend::new(network.clone(), &dataset, unit, 1, &Single);
                let (gradient, loss) = backend.gradient(&weights, batch.size).unwrap();
                assert!((f64::from(loss) - batch.loss_sum).abs() < 1e-5, "{name}: loss {loss}, expected {}", batch.loss_sum);
                for (sample, &expected) in batch.gradient.samples.iter().enumerate() {
                    let index = sample * fixture.sample_stride;
                    let found = if batch.masked && !kept[index] { 0.0 } else { f64::from(gradient[index]) };
                    let difference = (found - expected).abs();
                    assert!(difference < GRADIENT_TOLERANCE, "{name} {}: d{index} = {found}, expected {expected}", unit.name());
                }
                for (tensor, expected) in network.tensors.iter().zip(&batch.gradient.tensors) {
                    let squares = tensor.range().filter(|&index| !batch.masked || kept[index]);
                    let norm = squares.map(|index| f64::from(gradient[index]).powi(2)).sum::<f64>().sqrt();
                    let tolerance = GRADIENT_TOLERANCE * (1.0 + expected.l2);
                    assert!((norm - expected.l2).abs() < tolerance, "{}: norm {norm}, expected {}", tensor.name, expected.l2);
                }
                let start = LaneStart {
                    seed: 0,
                    weights: weights.clone(),
                    mask: mask.clone(),
                    rule: Rule::plain(OptimizerName::Sgd, Schedule::constant(0.1)),
                    state: None,
                };
                let lanes = backend.lanes(vec![start]).unwrap();
                assert_eq!(backend.evaluate(&lanes, &[0], EvaluationSet::Validation).unwrap()[0] as usize, batch.errors);
                let examples: Vec<u32> = (0..batch.size as u32).collect();
                let margins = backend.margins(&lanes, &[0], EvaluationSet::Validation, &examples).unwrap();
                match &first {
                    None => first = Some((gradient, loss, margins)),
                    Some((expected, expected_loss, expected_margins)) => {
                        let same = |found: &[f32], expected: &[f32]| found.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
                        let same = same(&gradient, expected) && same(&margins, expected_margins);
                        assert!(same && loss.to_bits() == expected_loss.to_bits(), "{name}: {} has other bits", unit.name());
                    }
                }
            }
        }
    }
}

/// Among the millions of sums that these images make in ResNet-8, one may be so close to zero that its ReLU lets a gradient through on one side
/// alone: that changes scores, whose mean is 1.3e-5, by up to 4e-8.
const OPENED: f64 = 1e-7;

#[test]
fn connection_sensitivity_and_its_masks_are_pytorchs() {
    for name in PAPERS {
        let fixture = Fixture::read(name.name());
        let network = Arc::new(Network::new(name));
        let expected = &fixture.connection_sensitivity;
        let seeds = (0..expected.batches as u32).map(|batch| expected.first_image_seed + batch);
        let dataset = of_batches(&fixture, seeds, expected.batch_size);
        let weights = fixture.start();
        let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single);
        let (gradient, _) = backend.gradient(&weights, dataset.training.len()).unwrap();
        let scores = connection_sensitivity(&weights, &gradient);
        let opened = if name == NetworkName::Resnet8 { OPENED } else { 1e-9 };
        let mut off = 0.0;
        for (sample, &expected) in expected.samples.iter().enumerate() {
            let found = f64::from(scores[sample * fixture.sample_stride]);
            assert!((found - expected).abs() < opened + 1e-4 * expected, "{name}: score {sample}: {found}, expected {expected}");
            off += (found - expected).abs();
        }
        // Scores add up to 1.
        let sampled = expected.samples.iter().sum::<f64>();
        assert!(off < 1e-4 * sampled, "{name}: scores are off by {off} of {sampled}");
        for cut in &expected.cuts {
            assert_cut(cut, &keep_highest(&network, &scores, cut.sparsity, biases(cut)), name.name());
        }
    }
}

/// Float32 gradients are off by about 1e-6 of their largest entries, and the step of the dense Simple-CNN moves its gradient by many times itself.
const SMOOTHNESS_TOLERANCE: f64 = 2e-4;

#[test]
fn smoothness_and_the_gradients_variance_are_pytorchs() {
    for name in PAPERS {
        let (fixture, theory) = (Fixture::read(name.name()), Theory::read(name.name()));
        let network = Arc::new(Network::new(name));
        let dataset = of_batches(&fixture, [theory.image_seed], theory.images);
        for expected in &theory.measurements {
            let mask = fixture_mask(expected.masked, fixture.parameters);
            let mut weights = fixture.start();
            mask.apply(&mut weights);
            let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
            let (mut step, _) = backend.gradient(&weights, expected.step_examples).unwrap();
            mask.apply(&mut step);
            let rate = expected.rate / expected.step_examples as f64;
            let next: Vec<f32> = weights.iter().zip(&step).map(|(&w, &g)| (f64::from(w) - rate * f64::from(g)) as f32).collect();
            let settings = Smoothness { every: 1, start: false, trials: 0, points: expected.points, whole_step: true, examples: 0 };
            let probe = Probe::new(&settings, theory.images);
            let found = probe.measure(&mut backend, 7, &weights, Some(&next), &mask, &mut || Ok(())).unwrap();
            for (what, found, theirs) in [
                ("loss", found.loss, expected.loss),
                ("gradient", found.gradient_norm, expected.gradient_norm),
                ("squares", found.squared_norms, expected.squared_norms),
                ("Lipschitz constant", found.lipschitz.unwrap(), expected.lipschitz),
                ("variance", found.variance(), expected.squared_norms - expected.gradient_norm.powi(2)),
            ] {
                let difference = (found / theirs - 1.0).abs();
                assert!(difference < SMOOTHNESS_TOLERANCE, "{name} masked {}: {what} {found}, expected {theirs}", expected.masked);
            }
            assert_eq!(found.step, 7);
            assert_eq!(
                probe.measure(&mut backend, 7, &weights, None, &mask, &mut || Ok(())).unwrap(),
                dps::records::Measurement { lipschitz: None, ..found }
            );
        }
    }
}

#[test]
fn squared_norms_are_those_of_each_examples_gradient_on_any_threads_and_vector_unit() {
    let fixture = Fixture::read("simple-cnn");
    let network = Arc::new(Network::new(NetworkName::SimpleCnn));
    // More than a block of them, and not a whole number of blocks.
    let dataset = of_batches(&fixture, [3], 150);
    let weights = dps::network::initial_weights(&network, 4);
    for mask in [false, true].map(|masked| fixture_mask(masked, fixture.parameters)) {
        let mut expected = 0.0;
        for example in 0..150 {
            // Alone in a data set, an example's gradient is a batch's.
            let alone = Dataset { training: dataset.training.gather(&[example]), ..dataset.clone() };
            let (mut gradient, _) = CpuBackend::new(network.clone(), &alone, VectorUnit::best(), 1, &Single).gradient(&weights, 1).unwrap();
            mask.apply(&mut gradient);
            expected += gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>();
        }
        let mut bits = Vec::new();
        for (unit, threads) in VectorUnit::available().into_iter().flat_map(|unit| [(unit, 1), (unit, 3)]) {
            // Other units show that threads do not matter; without vectors this takes long.
            if (unit, threads) == (VectorUnit::PORTABLE, 1) && VectorUnit::best() != unit {
                continue;
            }
            let mut backend = CpuBackend::new(network.clone(), &dataset, unit, threads, &Single);
            let found = backend.squared_norms(&weights, &mask, 150).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-12, "{found}, expected {expected}");
            bits.push(found.to_bits());
        }
        bits.dedup();
        assert_eq!(bits.len(), 1, "the bits depend on threads or vector unit");
    }
}

/// Float32 gradients differ from float64's by about 1e-6 of their norm, PyTorch's products by up to 1.5e-6 (make_theory_fixtures.py prints it).
const PRODUCT_TOLERANCE: f64 = 2e-5;

#[test]
fn the_gradient_signal_and_its_masks_are_pytorchs_and_the_same_bits_on_every_vector_unit() {
    for name in PAPERS {
        let (fixture, theory) = (Fixture::read(name.name()), Theory::read(name.name()));
        let network = Arc::new(Network::new(name));
        let dataset = of_batches(&fixture, [theory.image_seed], theory.images);
        let weights = fixture.start();
        let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        for expected in &theory.grasp {
            let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 2, &Single);
            let product = backend.hessian_gradient(&weights, expected.temperature as f32, theory.images).unwrap();
            let scores = gradient_signal(&weights, &product);
            let what = format!("{name}, temperature {}", expected.temperature);
            let samples = scores.iter().step_by(fixture.sample_stride).map(|&score| f64::from(score));
            let off: Vec<f64> = samples.zip(&expected.samples).map(|(found, expected)| found - expected).collect();
            let off = norm(&off) / norm(&expected.samples);
            assert!(off < PRODUCT_TOLERANCE, "{what}: off by {off}");
            let length = norm(&scores.iter().map(|&score| f64::from(score)).collect::<Vec<_>>());
            assert!((length / expected.norm - 1.0).abs() < PRODUCT_TOLERANCE, "{what}: norm {length}, expected {}", expected.norm);
            for cut in &expected.cuts {
                assert_cut(cut, &keep_highest(&network, &scores, cut.sparsity, biases(cut)), &what);
            }
        }
        // Whole passes of four examples and a part of one. The temperature changes the losses alone, which one of them shows.
        let bits = |(unit, threads): (VectorUnit, usize)| {
            let product = CpuBackend::new(network.clone(), &dataset, unit, threads, &Single).hessian_gradient(&weights, 1.0, 33).unwrap();
            product.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let mut units = VectorUnit::available().into_iter().zip([2, 1, 3]);
        let first = units.next().map(bits);
        for (unit, threads) in units {
            assert!(Some(bits((unit, threads))) == first, "{name}: {} has other bits", unit.name());
        }
    }
}

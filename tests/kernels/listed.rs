//! Networks that are lists of layers, forward and backward, compared with PyTorch's numbers (tests/fixtures/listed.json): the reference back end and
//! the CPU's.

use std::sync::Arc;

use crate::support::fixture::TensorLayout;
use crate::support::inputs::of_examples;
use crate::support::noise;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::reference::{self, Batch};
use dps::backend::{Backend, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::data::{Dataset, Examples, ImageShape, Normalisation};
use dps::network::{Network, TensorKind};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::Mask;
use dps::settings;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    image_seed: u32,
    images: usize,
    sample_stride: usize,
    networks: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    /// The list, as TOML.
    network: String,
    image: [usize; 3],
    parameters: usize,
    logits: Vec<Vec<f64>>,
    loss_sum: f64,
    norms: Vec<f64>,
    samples: Vec<f64>,
}

/// The network of a list in a configuration.
fn network(listed: &Listed) -> Network {
    let text = format!(
        "[workload]\ndataset = \"mnist\"\noptimizer = \"sgd\"\ngoal_error = 0.1\nmax_steps = 1\nevaluate_every = 1\nnetwork = {}\n\
         [grid]\nbatch_sizes = [1]\nsparsities = [0]\ntrials = 1\n",
        listed.network
    );
    let study = settings::parse("listed", &text, &[]).unwrap_or_else(|error| panic!("{error}")).study;
    Network::listed(&study.workload.network.layers(10), listed.image, 10).unwrap()
}

/// The parameters of the fixture.
fn parameters(network: &Network) -> Vec<f32> {
    let tensor = |tensor: &dps::network::Tensor| TensorLayout {
        name: tensor.name.clone(),
        offset: tensor.offset,
        length: tensor.len,
        fan_in: (tensor.kind == TensorKind::Weights).then_some(tensor.fan_in),
    };
    let mut parameters = noise::parameters(&network.tensors.iter().map(tensor).collect::<Vec<_>>());
    for scales in network.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Scale) {
        parameters[scales.range()].iter_mut().for_each(|scale| *scale += 1.0);
    }
    parameters
}

fn dataset(fixture: &Fixture, [height, width, channels]: [usize; 3]) -> Dataset {
    let shape = ImageShape { height, width, channels };
    let images = noise::image_bytes(fixture.image_seed, fixture.images * shape.values());
    let all = Examples { images: images.into(), labels: noise::labels(fixture.image_seed, fixture.images), shape };
    of_examples(all, 10, vec![Normalisation { mean: 0.5, std: 0.25 }; channels])
}

/// The gradient is that of the fixture, each tensor to a part `tolerance` of its norm, each sample to a part of the largest one.
fn assert_gradient(what: &str, fixture: &Fixture, expected: &Listed, network: &Network, gradient: &[f64], tolerance: f64) {
    assert_eq!(network.tensors.len(), expected.norms.len(), "{what}: tensors");
    for (tensor, expected) in network.tensors.iter().zip(&expected.norms) {
        let found = gradient[tensor.range()].iter().map(|entry| entry * entry).sum::<f64>().sqrt();
        assert!((found - expected).abs() <= tolerance * expected, "{what}, {}: norm {found}, expected {expected}", tensor.name);
    }
    let largest = expected.samples.iter().fold(0.0_f64, |largest, sample| largest.max(sample.abs()));
    let samples = gradient.iter().step_by(fixture.sample_stride);
    assert_eq!(samples.len(), expected.samples.len(), "{what}: samples");
    for (number, (found, expected)) in samples.zip(&expected.samples).enumerate() {
        assert!((found - expected).abs() <= tolerance * largest, "{what}: sample {number} is {found}, expected {expected}");
    }
}

#[test]
fn listed_networks_are_pytorchs_on_the_reference_and_on_the_cpu() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/listed.json");
    let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(fixture.networks.len(), 5);
    for expected in &fixture.networks {
        let (what, network, dataset) = (&expected.name, Arc::new(network(expected)), dataset(&fixture, expected.image));
        assert_eq!(network.parameters(), expected.parameters, "{what}");
        let narrow = parameters(&network);
        let weights: Vec<f64> = narrow.iter().map(|&weight| weight.into()).collect();
        let images = reference::normalised(&dataset.training, &dataset.lookup_table());
        for (image, expected) in images.chunks_exact(dataset.shape.values()).zip(&expected.logits) {
            let found = reference::logits(&network, &weights, image);
            assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-11), "{what}: {found:?} {expected:?}");
        }
        let batch = Batch { images: &images, labels: &dataset.training.labels };
        let (gradient, loss) = reference::gradient(&network, &weights, 1.0, batch);
        assert!((loss - expected.loss_sum).abs() < 1e-11, "{what}: loss {loss}, expected {}", expected.loss_sum);
        assert_gradient(what, &fixture, expected, &network, &gradient, 1e-10);

        let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single);
        let (gradient, loss) = backend.gradient(&narrow, fixture.images).unwrap();
        assert!((f64::from(loss) / expected.loss_sum - 1.0).abs() < 1e-6, "{what} on the CPU: loss {loss}");
        let gradient: Vec<f64> = gradient.iter().map(|&entry| entry.into()).collect();
        assert_gradient(&format!("{what} on the CPU"), &fixture, expected, &network, &gradient, 2e-5);
        let rule = Rule::plain(OptimizerName::Sgd, Schedule::constant(0.1));
        let mask = Mask::Dense(network.parameters());
        let lanes = backend.lanes(vec![LaneStart { seed: 0, weights: narrow, mask, rule, state: None }]).unwrap();
        let margins = backend.margins(&lanes, &[0], EvaluationSet::Validation, &[0, 1, 2, 3]).unwrap();
        for ((margin, logits), &label) in margins.iter().zip(&expected.logits).zip(&dataset.training.labels) {
            let others = logits.iter().enumerate().filter(|(class, _)| *class != usize::from(label)).map(|(_, logit)| *logit);
            let expected = logits[usize::from(label)] - others.fold(f64::NEG_INFINITY, f64::max);
            assert!((f64::from(*margin) - expected).abs() < 1e-5, "{what} on the CPU: margin {margin}, expected {expected}");
        }
    }
}

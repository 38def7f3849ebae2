//! Foreign arguments that a back end must refuse: lanes, masks and weights of another network, and examples that there are none of.

use std::sync::Arc;

use dps::Error;
use dps::backend::{Backend, Device, EvaluationSet, LaneStart, LaneState};
use dps::comm::Single;
use dps::data::{DataSplit, Dataset, Examples, ImageShape};
use dps::network::{LayerSpec, Network, Padding, initial_weights};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::Mask;

/// A network of two pooled convolutions with kernels of this size, on images of 8 × 8 × 1.
pub fn network(kernel: u32) -> Arc<Network> {
    let convolution = LayerSpec::convolution(16, kernel, 1, Padding::Same);
    let block = [convolution, LayerSpec::Relu, LayerSpec::MaxPool { size: 2, stride: 2 }];
    let layers = [&block[..], &block, &[LayerSpec::Flatten, LayerSpec::dense(10)]].concat();
    Arc::new(Network::listed(&layers, [8, 8, 1], 10).unwrap())
}

/// A data set for these networks of `training` training examples, and 10 for validation and testing each.
pub fn dataset(training: usize) -> Dataset {
    let shape = ImageShape { height: 8, width: 8, channels: 1 };
    let examples = |count: usize| Examples {
        images: (0..count * 64).map(|i| (i * i % 251) as u8).collect::<Vec<u8>>().into(),
        labels: (0..count).map(|i| (i % 10) as u16).collect(),
        shape,
    };
    let split = DataSplit { validation_fraction: 10.0 / (training + 10) as f64, ..DataSplit::default() };
    Dataset::new("squares", 10, examples(training + 10), examples(10), &split).unwrap()
}

/// A lane that keeps every third parameter.
pub fn sparse(network: &Network) -> LaneStart {
    let parameters = network.parameters();
    LaneStart {
        seed: 1,
        weights: initial_weights(network, 1),
        mask: Mask::Sparse { kept: (0..parameters as u32).step_by(3).collect(), parameters },
        rule: Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(0.01)) },
        state: None,
    }
}

/// Panics unless the result is an error of the device whose sentence has these words.
pub fn refused<T>(result: dps::Result<T>, words: &str) {
    match result {
        Err(error @ Error::Device { .. }) => assert!(error.to_string().contains(words), "{error} should say: {words}"),
        Err(error) => panic!("{error} is no error of the device; expected: {words}"),
        Ok(_) => panic!("expected an error: {words}"),
    }
}

/// Gives a device's back ends what is of another network, and all else that they must refuse.
pub fn is_refused(device: &impl Device) {
    let (own, other, data, more) = (network(3), network(5), dataset(50), dataset(60));
    let again = network(3);
    let mut backend = device.backend(&own, &data, &Single).unwrap();
    let mut stranger = device.backend(&other, &data, &Single).unwrap();
    let start = sparse(&own);
    let mut lanes = backend.lanes(vec![start.clone()]).unwrap();
    for set in [EvaluationSet::Validation, EvaluationSet::Test] {
        refused(stranger.margins(&lanes, &[0], set, &[1, 2]), "found lanes of another network");
    }
    refused(stranger.train(&mut lanes, 0..2, 4), "found lanes of another network");
    refused(stranger.state(&lanes, 0), "found lanes of another network");
    let mut larger = device.backend(&own, &more, &Single).unwrap();
    refused(larger.train(&mut lanes, 0..2, 4), "found lanes of another training set");

    // Masks, weights and states.
    let parameters = own.parameters();
    let masks = [
        sparse(&other).mask,
        Mask::Dense(parameters + 1),
        Mask::Sparse { kept: vec![1, parameters as u32], parameters },
        Mask::Sparse { kept: vec![2, 1], parameters },
        Mask::Sparse { kept: vec![1, 1], parameters },
    ];
    for mask in masks {
        refused(backend.squared_norms(&start.weights, &mask, 4), "expected a mask of this back end's network");
        refused(backend.lanes(vec![LaneStart { mask, ..start.clone() }]), "expected a mask of this back end's network");
    }
    let weights = initial_weights(&other, 1);
    refused(backend.gradient(&weights, 4), "weights of this back end's network");
    refused(backend.hessian_gradient(&weights, 1.0, 4), "weights of this back end's network");
    refused(backend.squared_norms(&weights, &start.mask, 4), "weights of this back end's network");
    refused(backend.lanes(vec![LaneStart { weights: weights.clone(), ..start.clone() }]), "weights of this back end's network");
    let state = backend.state(&lanes, 0).unwrap();
    let shorter = LaneState { velocity: state.velocity[1..].to_vec(), ..state.clone() };
    for (state, words) in [(LaneState { weights, ..state }, "weights of this back end's network"), (shorter, "numbers of its velocity")] {
        refused(backend.lanes(vec![LaneStart { state: Some(state), ..start.clone() }]), words);
    }

    // Lanes and examples that there are none of.
    refused(backend.gradient(&start.weights, 51), "50 training examples");
    refused(backend.hessian_gradient(&start.weights, 1.0, 51), "50 training examples");
    refused(backend.squared_norms(&start.weights, &start.mask, 51), "50 training examples");
    for (which, examples) in [(&[1][..], &[0][..]), (&[0], &[10]), (&[0, 0], &[1, 2, 3]), (&[], &[1])] {
        refused(backend.margins(&lanes, which, EvaluationSet::Test, examples), "expected an evaluation of some of 1 lanes");
    }
    refused(backend.train(&mut lanes, 0..2, 0), "expected steps forward");

    // Nothing has changed: the lanes train as if nobody had asked, also by another back end of an equal network.
    let mut untouched = backend.lanes(vec![start]).unwrap();
    backend.train(&mut untouched, 0..4, 4).unwrap();
    backend.train(&mut lanes, 0..2, 4).unwrap();
    let mut equal = device.backend(&again, &data, &Single).unwrap();
    drop(backend);
    equal.train(&mut lanes, 2..4, 4).unwrap();
    assert_eq!(equal.state(&lanes, 0).unwrap(), equal.state(&untouched, 0).unwrap());
}

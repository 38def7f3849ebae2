//! How far kernels round otherwise than 64-bit sums do, at weights that training meets.

use std::sync::Arc;

use super::Worker;
use crate::backend::cpu::CpuBackend;
use crate::backend::cpu::physical::Physical;
use crate::backend::cpu::plan::Plan;
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::backend::{Backend, LaneStart};
use crate::comm::Single;
use crate::data::{DataSplit, Dataset, Examples, ImageShape};
use crate::network::{Convolution, Layer, Network, NetworkName, initial_weights};
use crate::optimizer::{OptimizerName, Rule, Schedule};
use crate::pruning::Mask;
use crate::settings::Convolutions;

const IMAGES: usize = 6;

/// Images of a bar on noise, whose class is the bar's place.
fn dataset() -> Dataset {
    let shape = ImageShape { height: 28, width: 28, channels: 1 };
    let pixel = |i: usize| {
        let (image, y, x) = (i / 784, i % 784 / 28, i % 28);
        let noise = (i.wrapping_mul(2_654_435_761) >> 16) % 64;
        let bar = y.abs_diff(3 + 2 * (image % 10)) < 2 && x.abs_diff(14) < 4 + image % 7;
        (noise + if bar { 180 } else { 0 }) as u8
    };
    let examples = |count: usize| Examples {
        images: (0..count * 784).map(pixel).collect::<Vec<u8>>().into(),
        labels: (0..count).map(|image| (image % 10) as u16).collect(),
        shape,
    };
    Dataset::new("bars", 10, examples(400), examples(10), &DataSplit { validation_fraction: 0.5, ..DataSplit::default() }).unwrap()
}

/// Weights after 60 steps, or, where the loss is no number before, those of the last step but one.
fn trained(network: &Arc<Network>, dataset: &Dataset, rate: f64) -> (Vec<f32>, bool) {
    let mut backend = CpuBackend::new(network.clone(), dataset, VectorUnit::best(), 1, &Single);
    let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(rate)) };
    let start = LaneStart { seed: 3, weights: initial_weights(network, 3), mask: Mask::Dense(network.parameters()), rule, state: None };
    let mut lanes = backend.lanes(vec![start]).unwrap();
    let mut last = Vec::new();
    for step in 0..60 {
        let before = backend.state(&lanes, 0).unwrap().weights;
        if backend.train(&mut lanes, step..step + 1, 32).unwrap()[0].broken.is_some() {
            return (last, true);
        }
        last = before;
    }
    (last, false)
}

/// What a convolution makes of one image's map, in 64 bits, before the pool: the maximum over windows, or zero.
fn pooled(layer: &Convolution, input: &[f32], weights: &[f32]) -> Vec<f64> {
    let (from, outputs, inputs) = (layer.input_map, layer.output.channels, layer.input_map.channels);
    let sum = |y: usize, x: usize, output: usize| {
        let mut sum = f64::from(weights[layer.bias + output]);
        for (tap, row) in weights[layer.weights..layer.bias].chunks_exact(outputs).enumerate() {
            let (place, input_channel) = (tap / inputs, tap % inputs);
            let at = (y + place / layer.kernel) * from.row() + (x + place % layer.kernel) * inputs + input_channel;
            sum += f64::from(input[at]) * f64::from(row[output]);
        }
        sum
    };
    let mut pooled = Vec::new();
    for y in (0..layer.output.height / 2).map(|y| 2 * y) {
        for x in (0..layer.output.width / 2).map(|x| 2 * x) {
            let window = |output: usize| [sum(y, x, output), sum(y, x + 1, output), sum(y + 1, x, output), sum(y + 1, x + 1, output)];
            pooled.extend((0..outputs).map(|output| window(output).into_iter().fold(0.0, f64::max)));
        }
    }
    pooled
}

/// The root mean square of the error of Simple-CNN's second convolution by Winograd's formula is at most four times that by one chain a sum: at the
/// beginning, after training, and shortly before a training diverges. `cargo test --lib rounding -- --nocapture` prints it.
#[test]
#[allow(clippy::print_stdout)] // The page of performance has these numbers.
fn winograds_errors_are_those_of_chains_but_for_a_factor() {
    let (network, dataset) = (Arc::new(Network::new(NetworkName::SimpleCnn)), dataset());
    let Layer::Convolution(layer) = &network.layers[1] else { panic!("it is a convolution") };
    let written = layer.epilogue.written();
    let (tables, indices) = (dataset.lookup_table(), (0..IMAGES as u32).collect::<Vec<_>>());
    let physical = Physical::new(&network);
    for (rate, diverges) in [(1e-7, false), (0.02, false), (200.0, true)] {
        let (weights, diverged) = trained(&network, &dataset, rate);
        assert_eq!(diverged, diverges, "at rate {rate}");
        let largest = weights[layer.weights..layer.bias].iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
        let errors = [Convolutions::Direct, Convolutions::Winograd].map(|convolutions| {
            let mut worker = Worker::new(&physical, VectorUnit::best(), convolutions, IMAGES);
            let plan = Plan::new(&network, &physical.whole(), true, convolutions);
            worker.prepare(&plan, &weights, 0, false);
            worker.gather(&dataset.training, &tables, &indices);
            worker.margins(&plan, &weights, &mut [0.0; IMAGES]);
            let map_of = |slot: usize, image: usize| {
                let len = network.maps[slot].len();
                &worker.space.maps[slot][image * len..][..len]
            };
            let (mut squares, mut positive) = (0.0, 0);
            for image in 0..IMAGES {
                let expected = pooled(layer, map_of(layer.input, image), &weights);
                for (&found, expected) in map_of(written, image).iter().zip(expected) {
                    squares += (f64::from(found) - expected).powi(2);
                    positive += usize::from(expected > 0.0);
                }
            }
            assert!(positive > IMAGES * network.maps[written].len() / 50, "{positive} sums above zero");
            (squares / positive as f64).sqrt()
        });
        let ratio = errors[1] / errors[0];
        println!("weights up to {largest:.1e}: {:.1e} by Winograd's formula, {:.1e} by chains: {ratio:.2} times", errors[1], errors[0]);
        assert!(errors[0] > 0.0 && ratio > 0.1 && ratio < 4.0, "{errors:?}");
    }
}

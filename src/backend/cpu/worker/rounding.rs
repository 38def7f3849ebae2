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
use crate::network::{Convolution, Epilogue, Layer, Network, NetworkName, initial_weights};
use crate::optimizer::{OptimizerName, Rule, Schedule};
use crate::pruning::Mask;
use crate::settings::Convolutions;

const IMAGES: usize = 4;

/// Images of a bar on noise, whose class is the bar's place.
fn dataset(shape: ImageShape) -> Dataset {
    let (row, floats) = (shape.width * shape.channels, shape.height * shape.width * shape.channels);
    let pixel = |i: usize| {
        let (image, y, x) = (i / floats, i % floats / row, i % row / shape.channels);
        let noise = (i.wrapping_mul(2_654_435_761) >> 16) % 64;
        let bar = y.abs_diff(3 + 2 * (image % 10)) < 2 && x.abs_diff(14) < 4 + image % 7;
        (noise + if bar { 180 } else { 0 }) as u8
    };
    let examples = |count: usize| Examples {
        images: (0..count * floats).map(pixel).collect::<Vec<u8>>().into(),
        labels: (0..count).map(|image| (image % 10) as u16).collect(),
        shape,
    };
    Dataset::new("bars", 10, examples(400), examples(10), &DataSplit { validation_fraction: 0.5, ..DataSplit::default() }).unwrap()
}

/// Weights before the last of 20 steps, or, where training diverges, before the last step with a finite loss; and whether training diverged.
fn trained(network: &Arc<Network>, dataset: &Dataset, rate: f64) -> (Vec<f32>, bool) {
    let mut backend = CpuBackend::new(network.clone(), dataset, VectorUnit::best(), 1, &Single);
    let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(rate)) };
    let start = LaneStart { seed: 3, weights: initial_weights(network, 3), mask: Mask::Dense(network.parameters()), rule, state: None };
    let mut lanes = backend.lanes(vec![start]).unwrap();
    let mut last = Vec::new();
    for step in 0..20 {
        let before = backend.state(&lanes, 0).unwrap().weights;
        if backend.train(&mut lanes, step..step + 1, 8).unwrap()[0].broken.is_some() {
            return (last, true);
        }
        last = before;
    }
    (last, false)
}

/// The values that a convolution writes for one image's map, where `sum` adds up a bias and products: the maximum over each window of its pool, or
/// else each place, and zero where it is negative.
fn rectified<T: Copy + Into<f64>>(layer: &Convolution, input: &[f32], weights: &[f32], sum: impl Fn(f32, &[(f32, f32)]) -> T) -> Vec<f64> {
    let (from, outputs, inputs) = (layer.input_map, layer.output.channels, layer.input_map.channels);
    let at_place = |y: usize, x: usize, output: usize| {
        let product = |(tap, row): (usize, &[f32])| {
            let (place, input_channel) = (tap / inputs, tap % inputs);
            let at = (y + place / layer.kernel) * from.row() + (x + place % layer.kernel) * inputs + input_channel;
            (input[at], row[output])
        };
        let products: Vec<_> = weights[layer.weights..layer.bias].chunks_exact(outputs).enumerate().map(product).collect();
        sum(weights[layer.bias + output], &products).into()
    };
    let side = if let Epilogue::ReluMaxPool { .. } = layer.epilogue { 2 } else { 1 };
    let mut found = Vec::new();
    for y in (0..layer.output.height).step_by(side) {
        for x in (0..layer.output.width).step_by(side) {
            let window = |output: usize| (0..side * side).map(move |place| at_place(y + place / side, x + place % side, output));
            found.extend((0..outputs).map(|output| window(output).fold(0.0, f64::max)));
        }
    }
    found
}

fn in_64_bits(bias: f32, products: &[(f32, f32)]) -> f64 {
    products.iter().fold(f64::from(bias), |sum, &(a, b)| sum + f64::from(a) * f64::from(b))
}

fn in_a_chain(bias: f32, products: &[(f32, f32)]) -> f32 {
    products.iter().fold(bias, |sum, &(a, b)| a.mul_add(b, sum))
}

/// The root mean square of the error of a convolution by Winograd's formula is at most four times that by one chain a sum: at the beginning, after
/// training, and shortly before a training diverges. `cargo test --lib rounding -- --nocapture` prints it.
#[test]
#[allow(clippy::print_stdout)] // The page of performance has these numbers.
fn winograds_errors_are_those_of_chains_but_for_a_factor() {
    let (grey, colour) = (ImageShape { height: 28, width: 28, channels: 1 }, ImageShape { height: 32, width: 32, channels: 3 });
    for (name, shape, index, kernels, rates) in [
        (NetworkName::SimpleCnn, grey, 1, "Winograd, pooled in registers", [(1e-7, false), (0.02, false), (200.0, true)]),
        (NetworkName::Resnet8, colour, 1, "rows, Winograd in large tiles", [(1e-7, false), (0.02, false), (20.0, true)]),
    ] {
        let (network, dataset) = (Arc::new(Network::new(name)), dataset(shape));
        let Layer::Convolution(layer) = &network.layers[index] else { panic!("it is a convolution") };
        assert_eq!(crate::backend::cpu::kernels(&network, None, Convolutions::Winograd)[index], kernels);
        let written = layer.epilogue.written();
        let (tables, indices) = (dataset.lookup_table(), (0..IMAGES as u32).collect::<Vec<_>>());
        let physical = Physical::new(&network);
        for (rate, diverges) in rates {
            let (weights, diverged) = trained(&network, &dataset, rate);
            assert_eq!(diverged, diverges, "{name} at rate {rate}");
            let largest = weights[layer.weights..layer.bias].iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
            let mut worker = Worker::new(&physical, VectorUnit::best(), Convolutions::Winograd, IMAGES);
            let plan = Plan::new(&network, &physical.whole(), true, Convolutions::Winograd);
            worker.prepare(&plan, &weights, 0, false);
            // Maps keep the images of one pass.
            let images = worker.pass;
            worker.gather(&dataset.training, &tables, &indices[..images]);
            worker.margins(&plan, &weights, &mut vec![0.0; images]);
            let map_of =
                |slot: usize, image: usize| &worker.space.maps[slot][image * network.maps[slot].len()..][..network.maps[slot].len()];
            let (mut squares, mut positive) = ([0.0; 2], 0);
            for image in 0..images {
                let (input, map, output) = (map_of(layer.input, image), network.maps[written], map_of(written, image));
                let row = map.width * map.channels;
                let found: Vec<f64> = (0..map.height).flat_map(|y| &output[map.at_row(y)..][..row]).map(|&value| value.into()).collect();
                let expected = rectified(layer, input, &weights, in_64_bits);
                for (squares, found) in squares.iter_mut().zip([found, rectified(layer, input, &weights, in_a_chain)]) {
                    *squares += found.iter().zip(&expected).map(|(found, expected)| (found - expected).powi(2)).sum::<f64>();
                }
                positive += expected.iter().filter(|&&expected| expected > 0.0).count();
            }
            assert!(positive > images * network.maps[written].inner_len() / 50, "{positive} sums above zero");
            let [ours, chains] = squares.map(|squares| (squares / positive as f64).sqrt());
            let ratio = ours / chains;
            println!("{name}, weights up to {largest:.1e}: {ours:.1e} by Winograd's formula, {chains:.1e} by chains: {ratio:.2} times");
            assert!(chains > 0.0 && ratio > 0.1 && ratio < 4.0, "{name}: {ours} and {chains}");
        }
    }
}

//! Kernels panic where a caller is wrong about a shape, before they use an address.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::pooled::{forward_resident, pool_rows};
use super::super::simd::{Portable, Simd};
use super::super::tile::{Live, Start};
use super::super::winograd::{self, Points, Tiles};
use super::{ForwardRows, add_positions, data_gradient_rows, filter_gradient_rows};
use crate::network::{Convolution, Epilogue, Map};
use crate::settings::Convolutions;

/// A convolution of 3 × 3 from 16 channels to `channels`, on maps of 16 × 16 with a border of `border`, into `side` rows and columns.
fn convolution(channels: usize, border: usize, side: usize) -> Convolution {
    let (input_map, output) = (Map::plain(16, 16, 16).bordered(border, border), Map::plain(side, side, channels));
    let mut layer = Convolution {
        kernel: 3,
        stride: 1,
        output,
        weights: 0,
        bias: 0,
        has_bias: true,
        input: 0,
        input_map,
        epilogue: Epilogue::Relu { rectified: 1 },
        producer: None,
        bypass: None,
    };
    layer.bias = layer.weight_count();
    layer
}

/// Runs something that must panic with that sentence.
fn refused(sentence: &str, run: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err(sentence);
    let found = panic.downcast_ref::<&str>().map(|text| text.to_string()).or(panic.downcast_ref::<String>().cloned());
    assert!(found.as_ref().is_some_and(|found| found.contains(sentence)), "{found:?} has no {sentence:?}");
}

const INPUT: &str = "a convolution's input is one bordered map";
const WRITES: &str = "rows that a convolution writes";
const READS: &str = "rows that a convolution reads";
const BIAS: &str = "a bias has all channels";
const POSITIONS: &str = "a run has whole positions, and a position the channels that are read";
const VECTORS: &str = "channels are whole vectors";

#[test]
fn forward_passes_stay_in_their_slices() {
    // An output of 14 × 14 without a border is not computed by Winograd's formula.
    let (layer, odd, high) = (convolution(16, 0, 14), convolution(12, 0, 14), convolution(16, 0, 15));
    let run = |layer: &Convolution, input: usize, bias: usize, first: usize| {
        let (input, bias, weights) = (vec![0.0; input], vec![0.0; bias], vec![0.0; layer.weight_count()]);
        let (live, sums, points) = (Live::all(layer.input_map.channels), &mut vec![0.0; 2 * layer.output.row()], &mut Points::default());
        // SAFETY: the extents are a few dozen.
        Portable::call(unsafe { ForwardRows::new(layer, None, live, &input, &weights, Some(&bias), first, sums, points) });
    };
    let len = layer.input_map.len();
    run(&layer, len, 16, 12);
    refused(INPUT, || run(&layer, len - 1, 16, 0));
    refused(WRITES, || run(&layer, len, 16, 13));
    refused(WRITES, || run(&layer, len, 16, usize::MAX));
    refused(READS, || run(&high, len, 16, 13));
    refused("columns that a convolution reads", || run(&high, len, 16, 0));
    refused(BIAS, || run(&layer, len, 8, 0));
    refused(VECTORS, || run(&odd, len, 12, 0));
    let live = |count: usize, of: usize| {
        let (input, bias, weights) = (vec![0.0; len], [0.0; 16], vec![0.0; layer.weight_count()]);
        let (live, sums, points) = (Live { count, of }, &mut vec![0.0; 2 * layer.output.row()], &mut Points::default());
        // SAFETY: the extents are a few dozen.
        Portable::call(unsafe { ForwardRows::new(&layer, None, live, &input, &weights, Some(&bias), 0, sums, points) });
    };
    live(0, 16);
    live(5, 8);
    [(17, 16), (5, 7), (0, 0), (96, 96)].into_iter().for_each(|(count, of)| refused(POSITIONS, || live(count, of)));
}

#[test]
fn gradients_stay_in_their_slices() {
    let (layer, odd) = (convolution(16, 0, 14), convolution(12, 0, 14));
    let filter = |layer: &Convolution, input: usize, first: usize| {
        let (input, d, mut gradient) = (vec![0.0; input], vec![0.0; 2 * layer.output.row()], vec![0.0; layer.weight_count()]);
        // SAFETY: the extents are a few dozen.
        unsafe {
            filter_gradient_rows::<Portable>(layer, Live::all(layer.input_map.channels), &input, &d, first, 2, Start::Chain, &mut gradient)
        };
    };
    let len = layer.input_map.len();
    filter(&layer, len, 12);
    refused(INPUT, || filter(&layer, len - 1, 0));
    refused(WRITES, || filter(&layer, len, 13));
    refused(VECTORS, || filter(&odd, len, 0));
    let data = |layer: &Convolution, first: usize| {
        let (transposed, d, mut to) =
            (vec![0.0; layer.weight_count()], vec![0.0; 2 * layer.output.row()], vec![0.0; layer.input_map.len()]);
        // SAFETY: the extents are a few dozen.
        unsafe { data_gradient_rows::<Portable>(layer, Live::all(layer.output.channels), &transposed, &d, first, 2, &mut to) };
    };
    let mut few = layer.clone();
    few.input_map.channels = 12;
    data(&layer, 12);
    refused(WRITES, || data(&layer, 13));
    refused(VECTORS, || data(&few, 0));
    add_positions::<Portable>(&[0.0; 32], &mut [0.0; 16]);
    refused("", || add_positions::<Portable>(&[0.0; 31], &mut [0.0; 16]));
}

#[test]
fn winograds_kernels_stay_in_their_slices() {
    let layer = convolution(16, 1, 16);
    for (tiles, convolutions, last) in [(Tiles::Two, Convolutions::Direct, 12), (Tiles::Four, Convolutions::Winograd, 0)] {
        assert_eq!(Tiles::of(&layer, convolutions), Some(tiles));
        let mut grown = Points::default();
        grown.grow(tiles.lengths(&layer));
        let forward = |input: usize, bias: usize, first: usize, points: &mut Points| {
            let (input, bias, weights) = (vec![0.0; input], vec![0.0; bias], vec![0.0; tiles.weights_len(&layer)]);
            let mut sums = vec![0.0; tiles.rows(&layer) * layer.output.row()];
            // SAFETY: the extents are a few dozen.
            unsafe { tiles.forward_rows::<Portable>(&layer, Live::all(16), &input, &weights, Some(&bias), first, &mut sums, points) };
        };
        let len = layer.input_map.len();
        forward(len, 16, last, &mut grown);
        refused(INPUT, || forward(len - 1, 16, 0, &mut grown));
        refused(WRITES, || forward(len, 16, last + 1, &mut grown));
        refused(BIAS, || forward(len, 8, 0, &mut grown));
        refused("points are grown", || forward(len, 16, 0, &mut Points::default()));
        let filter = |input: usize, d: usize, points: &mut Points| {
            let (input, d, mut gradient) = (vec![0.0; input], vec![0.0; d], vec![0.0; layer.weight_count()]);
            // SAFETY: the extents are a few dozen.
            unsafe { tiles.filter_gradient::<Portable>(&layer, Live::all(16), 1, |_| &input[..], |_| &d[..], &mut gradient, points) };
        };
        filter(len, layer.output.len(), &mut grown);
        refused(INPUT, || filter(len - 1, layer.output.len(), &mut grown));
        refused("gradients of all sums", || filter(len, layer.output.len() - 1, &mut grown));
        refused("points are grown", || filter(len, layer.output.len(), &mut Points::default()));
        for live in [Live { count: 17, of: 16 }, Live::all(8)] {
            let (input, d, mut gradient) = (vec![0.0; len], vec![0.0; layer.output.len()], vec![0.0; layer.weight_count()]);
            let run =
                // SAFETY: the extents are a few dozen.
                || unsafe { tiles.filter_gradient::<Portable>(&layer, live, 1, |_| &input[..], |_| &d[..], &mut gradient, &mut grown) };
            refused("the layer has the channels that are read", run);
        }
    }
    // A block of large tiles would have more rows than this output of 8 × 8, so the layer gets small tiles.
    assert_eq!(Tiles::of(&convolution(16, 1, 8), Convolutions::Winograd), Some(Tiles::Two));
}

#[test]
fn winograds_kernel_with_a_pool_stays_in_its_slices() {
    let mut layer = Convolution { kernel: 5, epilogue: Epilogue::ReluMaxPool { pooled: 1 }, ..convolution(16, 0, 12) };
    layer.bias = layer.weight_count();
    assert!(winograd::pooled::fits(&layer));
    let (map, len) = (Map::plain(6, 6, 16), layer.input_map.len());
    let mut grown = Points::default();
    grown.grow(winograd::pooled::lengths(&layer));
    let forward = |live: Live, inputs: usize, map: Map, choice: usize, points: &mut Points| {
        let (input, bias, weights) = (vec![0.0; inputs], [0.0; 16], vec![0.0; winograd::pooled::weights_len(&layer)]);
        let (mut pooled, mut choice) = (vec![0.0; 2 * map.len()], vec![0; choice]);
        // SAFETY: the extents are a few dozen.
        unsafe {
            winograd::pooled::forward::<Portable>(&layer, live, 2, &input, &weights, &bias, map, &mut pooled, &mut choice, points);
        }
    };
    let all = Live::all(16);
    forward(all, 2 * len, map, 2 * map.len(), &mut grown);
    forward(Live { count: 3, of: 16 }, 2 * len, map, 0, &mut grown);
    refused("", || forward(all, 2 * len - 1, map, 0, &mut grown));
    refused("", || forward(all, 2 * len, map, 2 * map.len() - 1, &mut grown));
    refused("half of the rows and columns", || forward(all, 2 * len, Map::plain(8, 6, 16), 0, &mut grown));
    refused("the layer has the channels that are read", || forward(Live::all(8), 2 * len, map, 0, &mut grown));
    refused("points are grown", || forward(all, 2 * len, map, 0, &mut Points::default()));
}

#[test]
fn pools_stay_in_their_slices() {
    let layer = convolution(16, 0, 14);
    let map = Map::plain(7, 7, 16);
    let resident = |input: usize, map: Map, choice: usize| {
        let (input, weights, bias) = (vec![0.0; input], vec![0.0; layer.weight_count()], [0.0; 16]);
        // SAFETY: the extents are a few dozen.
        unsafe { forward_resident::<Portable>(&layer, &input, &weights, &bias, map, &mut vec![0.0; map.len()], &mut vec![0; choice]) };
    };
    let len = layer.input_map.len();
    resident(len, map, map.len());
    resident(len, map, 0);
    refused(INPUT, || resident(len - 1, map, 0));
    refused("half of the rows and columns", || resident(len, Map::plain(8, 7, 16), 0));
    refused("room for what a pool makes", || resident(len, map, map.len() - 1));
    let rows = |first: usize, choice: usize| {
        let (sums, mut pooled, mut choice) = (vec![0.0; 2 * layer.output.row()], vec![0.0; map.len()], vec![0; choice]);
        // SAFETY: the extents are a few dozen.
        unsafe { pool_rows::<Portable>(&layer, &sums, first, 2, map, &mut pooled, &mut choice) };
    };
    rows(12, map.len());
    refused("", || rows(14, map.len()));
    refused("room for what a pool makes", || rows(0, 1));
}

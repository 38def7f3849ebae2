//! F(2 × 4, 5 × 5) for convolutions of stride 1 that a 2 × 2 max-pool follows: 48 multiplications where the eight outputs of a tile take 200. The
//! outputs of a tile are two windows of the pool side by side, and go from registers through bias, ReLU and maximum. Where a row has an odd number of
//! windows, its last tile begins one window earlier, and computes that window once more.
//!
//! Larger tiles have fewer multiplications and larger errors. In an experiment with random weights and inputs, tiles of 4 × 4 had 1.6 times the root
//! mean square of these tiles' error, and tiles of 2 × 2 half of it. `worker/rounding.rs` measures the error at weights that networks have.
//!
//! Tiles are multiplied in blocks, whatever image they are of. Each output has its own sums, in the order that `winograd.rs` states, so that no bit
//! depends on which tiles a block has.

use super::super::bounds::assert_reads;
use super::super::pooled::assert_pool;
use super::super::simd::Simd;
use super::super::tile::Live;
use super::forms::{FourOfFive, TwoOfFive};
use super::points::{BLOCK, CHANNELS, Points, apart, multiply};
use super::transforms;
use crate::network::{Convolution, Epilogue, Map};

/// Points of a tile.
const POINTS: usize = 48;

/// Windows of a tile.
const WINDOWS: usize = 2;

/// The part of a layer's multiplications that is left.
pub(in super::super) const MULTIPLIED: f64 = POINTS as f64 / 200.0;

/// Whether a layer can be computed this way: by its shape alone.
pub(in super::super) fn fits(layer: &Convolution) -> bool {
    let whole = [layer.input_map, layer.output].iter().all(|map| map.channels.is_multiple_of(CHANNELS));
    let wide = layer.output.width >= 2 * WINDOWS && layer.output.height >= 2;
    layer.kernel == 5 && layer.stride == 1 && whole && wide && matches!(layer.epilogue, Epilogue::ReluMaxPool { .. })
}

/// Floats of a layer's weights as [`weights`] leaves them.
pub(in super::super) fn weights_len(layer: &Convolution) -> usize {
    POINTS * apart(layer.input_map.channels, layer.output.channels)
}

/// The points of a layer's weights `[5][5][in][out]`, as [`forward`] reads them.
///
/// # Panics
/// Unless both slices are whole, and the layer's output channels whole vectors.
#[inline(always)]
pub(in super::super) fn weights<S: Simd>(layer: &Convolution, from: &[f32], to: &mut [f32]) {
    transforms::weights::<S, TwoOfFive, FourOfFive, _, _, _, _, _>(from, layer.output.channels, to);
}

/// Floats of [`Points`] that a layer needs.
pub(in super::super) fn lengths(layer: &Convolution) -> [usize; 3] {
    let [inputs, outputs] = [layer.input_map, layer.output].map(|map| POINTS * apart(BLOCK, map.channels));
    [inputs, outputs, 0]
}

/// Convolution, bias, ReLU and pool of `images` images, over the `live` inputs; `weights` as [`weights()`] leaves them. An empty `choice` is not
/// written.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are (`bounds.rs`).
///
/// # Panics
/// Unless the layer [`fits`], `points` are grown for it, `input` has the images' bordered maps in which all lies that the layer reads, `weights` and
/// `bias` are whole, `map` has half of the layer's rows and columns, `pooled` the images' maps of that shape, `choice` their insides, and `live` are
/// of the layer's input channels.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(in super::super) unsafe fn forward<S: Simd>(
    layer: &Convolution,
    live: Live,
    images: usize,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    map: Map,
    pooled: &mut [f32],
    choice: &mut [u8],
    points: &mut Points,
) {
    let (from, inputs, outputs) = (layer.input_map, layer.input_map.channels, layer.output.channels);
    let (inputs_apart, outputs_apart) = (apart(BLOCK, inputs), apart(BLOCK, outputs));
    assert!(fits(layer) && weights.len() == weights_len(layer) && bias.len() == outputs);
    live.assert_of(inputs);
    points.assert_room(POINTS, inputs_apart, outputs_apart);
    for image in 0..images {
        let (input, pooled) = (&input[image * from.len()..][..from.len()], &pooled[image * map.len()..][..map.len()]);
        assert_reads(layer, input.len(), 0, layer.output.height);
        assert_pool::<S>(layer, map, pooled, if choice.is_empty() { &[] } else { &choice[image * map.inner_len()..][..map.inner_len()] });
    }
    // Of a row, and of an image.
    let row_tiles = map.width.div_ceil(WINDOWS);
    let image_tiles = map.height * row_tiles;
    for first in (0..images * image_tiles).step_by(BLOCK) {
        let tiles = BLOCK.min(images * image_tiles - first);
        // Image, row and column of a tile's first window.
        let place = |tile: usize| {
            let (image, tile) = ((first + tile) / image_tiles, (first + tile) % image_tiles);
            (image, tile / row_tiles, (WINDOWS * (tile % row_tiles)).min(map.width - WINDOWS))
        };
        let mut tile = 0;
        while tile < tiles {
            let (image, y, x) = place(tile);
            // Tiles side by side share columns of their inputs.
            let across = if x.is_multiple_of(WINDOWS) { ((map.width - x) / WINDOWS).min(tiles - tile) } else { 1 };
            // SAFETY: the tiles read what the layer's outputs read, all of which lies in the image's input (`assert_reads`), from the place of the
            // first one's first output on; `points` have room for BLOCK tiles, of which these are some. No product of extents wraps, for which the
            // caller vouches.
            unsafe {
                let corner = input.as_ptr().add(image * from.len() + 2 * y * from.row() + 2 * x * inputs);
                let to = points.inputs.as_mut_ptr().add(tile * inputs);
                transforms::read::<S, TwoOfFive, FourOfFive, _, _, _, _, _>(corner, [from.row(), inputs], across, to, inputs_apart);
            }
            tile += across;
        }
        let (a, c) = ((points.inputs.as_ptr(), inputs_apart), (points.outputs.as_mut_ptr(), outputs_apart));
        // SAFETY: `points` have room for BLOCK tiles, and the weights are whole (the asserts).
        unsafe { multiply::<S>(POINTS, tiles, live, outputs, a, (weights.as_ptr(), apart(inputs, outputs)), c) };
        for tile in 0..tiles {
            let (image, y, x) = place(tile);
            for v in (0..outputs).step_by(S::WIDTH) {
                // SAFETY: `points` have BLOCK tiles' outputs, a bias all channels (the asserts), and the image's part of `pooled` and of a `choice`
                // these windows (`assert_pool`), which are whole vectors. No product of extents wraps, for which the caller vouches.
                unsafe {
                    let sums = points.outputs.as_ptr().add(tile * outputs + v);
                    let [upper, lower] = transforms::outputs::<S, TwoOfFive, FourOfFive, _, _, _, _, _>(sums, outputs_apart);
                    let bias = S::load(bias.as_ptr().add(v));
                    for window in 0..WINDOWS {
                        let [a, b, c, d] = [upper[2 * window], upper[2 * window + 1], lower[2 * window], lower[2 * window + 1]];
                        let (best, which) = S::largest([S::add(bias, a), S::add(bias, b), S::add(bias, c), S::add(bias, d)]);
                        S::store(pooled.as_mut_ptr().add(image * map.len() + map.at_row(y) + (x + window) * outputs + v), best);
                        if !choice.is_empty() {
                            S::store_bytes(
                                choice.as_mut_ptr().add(image * map.inner_len() + (y * map.width + x + window) * outputs + v),
                                which,
                            );
                        }
                    }
                }
            }
        }
    }
}

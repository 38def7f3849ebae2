//! Winograd's F(2 × 2, 3 × 3) for convolutions of stride 1: 16 multiplications where the four outputs of a tile take 36 (Lavin and Gray,
//! "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.1).
//!
//! A tile of 4 × 4 inputs, one of 2 × 2 outputs and a kernel of 3 × 3 weights become 16 points each; at every point the convolution is a
//! product of matrices. Sums keep one order: a point's over channels (over tiles, for the filter gradient), and a tile's over points.

mod transforms;

pub(super) use transforms::weights;

use self::transforms::{BLOCK, POINTS};
use super::bounds::assert_reads;
use super::floats::Floats;
use super::simd::Simd;
use super::tile::{Live, Positions, Runs, Start, block, outer, product};
use crate::network::{Convolution, Epilogue};

/// Tiles whose filter gradient is added up before it goes to memory.
const CHUNK: usize = 64;

/// Channels come in whole widest vectors.
const CHANNELS: usize = 16;

/// The points of some tiles, `[point][tile][channel]`.
#[derive(Default)]
pub(super) struct Points {
    /// Transformed inputs.
    inputs: Floats,
    /// Transformed outputs, or their transformed gradients.
    outputs: Floats,
    /// Transformed gradients of weights: `[point][in][out]`.
    gradient: Floats,
}

impl Points {
    /// Panics unless there is room for so many tiles' points, with these floats from one point to the next.
    fn assert_room(&self, inputs_apart: usize, outputs_apart: usize) {
        assert!(self.inputs.len() >= POINTS * inputs_apart && self.outputs.len() >= POINTS * outputs_apart, "points are grown");
    }

    /// Makes room for a layer, and for its data gradient.
    pub(super) fn grow(&mut self, layer: &Convolution) {
        let [inputs, outputs, gradient] = lengths(layer);
        self.inputs.grow(inputs);
        self.outputs.grow(outputs);
        self.gradient.grow(gradient);
    }
}

/// Floats of [`Points`] that a layer needs.
pub(super) fn lengths(layer: &Convolution) -> [usize; 3] {
    if !fits(layer) {
        return [0; 3];
    }
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    // The data gradient's outputs are the layer's inputs.
    let points = |channels: usize, others: usize| POINTS * apart(CHUNK, channels).max(apart(BLOCK, others));
    [points(inputs, outputs), points(outputs, inputs), POINTS * inputs * outputs]
}

/// Floats from one point to the next of some tiles: never a power of two, which would put all points into the same few lines of a cache.
fn apart(tiles: usize, channels: usize) -> usize {
    tiles * channels + CHANNELS
}

/// Whether a layer is computed this way: by its shape alone, on which its bits depend.
pub(super) fn fits(layer: &Convolution) -> bool {
    let (map, output) = (layer.input_map, layer.output);
    let tiled = output.width.is_multiple_of(2) && BLOCK.is_multiple_of(output.width / 2) && output.height.is_multiple_of(rows(layer));
    let whole = map.channels.is_multiple_of(CHANNELS) && output.channels.is_multiple_of(CHANNELS);
    let plain = layer.kernel == 3 && layer.stride == 1 && (map.before, map.after) == (1, 1);
    plain && tiled && whole && !matches!(layer.epilogue, Epilogue::ReluMaxPool { .. })
}

/// Rows of outputs in a block of tiles.
pub(super) fn rows(layer: &Convolution) -> usize {
    4 * BLOCK / layer.output.width
}

/// Floats of a layer's weights as [`weights`] leaves them.
pub(super) fn weights_len(layer: &Convolution) -> usize {
    POINTS * layer.input_map.channels * layer.output.channels
}

/// `sums[y][x][out]` = bias, or zero, + Σ input · weights for a block of [`rows`] output rows from row `first`, over the `live` inputs; `weights`
/// as [`weights()`] leaves them.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::bounds)).
///
/// # Panics
/// Unless the layer [`fits`], `points` are grown for it, `input` is one image's bordered map in which all lies that the rows read, `sums` has rows
/// × width × channels floats, a bias has all channels, and `live` are of the layer's input channels.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn forward_rows<S: Simd>(
    layer: &Convolution,
    live: Live,
    input: &[f32],
    weights: &[f32],
    bias: Option<&[f32]>,
    first: usize,
    sums: &mut [f32],
    points: &mut Points,
) {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let (inputs_apart, outputs_apart, block) = (apart(BLOCK, inputs), apart(BLOCK, outputs), block::<S>(outputs));
    assert!(fits(layer) && sums.len() == rows(layer) * layer.output.width * outputs && weights.len() == weights_len(layer));
    assert!(bias.is_none_or(|bias| bias.len() == outputs), "a bias has all channels");
    live.assert_of(inputs);
    assert_reads(layer, input.len(), first, rows(layer));
    points.assert_room(inputs_apart, outputs_apart);
    let runs = Runs::one(live.count);
    // SAFETY: `input` is a whole map that has what the rows read (`assert_reads`); weights and sums are whole, `points` have room for a block of
    // tiles, and channels are whole widest vectors (`fits` and the other asserts). No product of extents wraps, for which the caller vouches.
    unsafe {
        transforms::read::<S>(layer, input.as_ptr().add(first * layer.input_map.row()), points.inputs.as_mut_ptr(), inputs_apart);
        for point in 0..POINTS {
            let a = points.inputs.as_ptr().add(point * inputs_apart);
            for from in (0..outputs).step_by(block) {
                let b = weights.as_ptr().add((point * outputs + from) * inputs);
                let c = points.outputs.as_mut_ptr().add(point * outputs_apart + from);
                macro_rules! tiles {
                    ($tiles:literal, $vectors:literal) => {
                        for tile in (0..BLOCK).step_by($tiles) {
                            let (a, c) = (a.add(tile * inputs), c.add(tile * outputs));
                            product::<S, $tiles, $vectors, false>(a, inputs, runs, b, block, c, outputs);
                        }
                    };
                }
                match (S::WIDTH == 16, block == S::WIDTH) {
                    (true, true) => tiles!(16, 1),
                    (true, false) => tiles!(8, 2),
                    (false, true) => tiles!(8, 1),
                    (false, false) => tiles!(4, 2),
                }
            }
        }
        transforms::write::<S>(layer, points.outputs.as_ptr(), outputs_apart, bias, sums.as_mut_ptr());
    }
}

/// `gradient[3][3][in][out]` += Σ input · d over whole images, for the `live` inputs; `input(i)` is image i's bordered map, `d(i)` the gradient of
/// its sums.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::bounds)).
///
/// # Panics
/// Unless the layer [`fits`], `points` are grown for it, every image has a whole bordered map and all gradients of its sums, `gradient` all
/// weights, and `live` are of the layer's input channels.
#[inline(always)]
pub(super) unsafe fn filter_gradient<'a, S: Simd>(
    layer: &Convolution,
    live: Live,
    images: usize,
    input: impl Fn(usize) -> &'a [f32],
    d: impl Fn(usize) -> &'a [f32],
    gradient: &mut [f32],
    points: &mut Points,
) {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let (inputs_apart, outputs_apart) = (apart(CHUNK, inputs), apart(CHUNK, outputs));
    let (rows, plane) = (rows(layer), inputs * outputs);
    let blocks = layer.output.height / rows;
    assert!(fits(layer) && gradient.len() == layer.weight_count());
    live.assert_of(inputs);
    points.assert_room(inputs_apart, outputs_apart);
    let sums = &mut points.gradient[..POINTS * plane];
    sums.fill(0.0);
    for chunk in (0..images * blocks).step_by(CHUNK / BLOCK) {
        let count = (CHUNK / BLOCK).min(images * blocks - chunk);
        for index in 0..count {
            let (image, first) = ((chunk + index) / blocks, (chunk + index) % blocks * rows);
            let (input, d) = (input(image), d(image));
            assert_reads(layer, input.len(), first, rows);
            assert!(d.len() == layer.output.len(), "gradients of all sums");
            // SAFETY: `input` and `d` are whole and have what the rows read; `points` have room for CHUNK tiles, of which this block is some;
            // channels are whole widest vectors (`fits` and the other asserts). No product of extents wraps, for which the caller vouches.
            unsafe {
                let from = input.as_ptr().add(first * layer.input_map.row());
                transforms::read::<S>(layer, from, points.inputs.as_mut_ptr().add(index * BLOCK * inputs), inputs_apart);
                let d = d.as_ptr().add(first * layer.output.row());
                transforms::read_gradient::<S>(layer, d, points.outputs.as_mut_ptr().add(index * BLOCK * outputs), outputs_apart);
            }
        }
        let positions = Positions { rows: 1, columns: count * BLOCK, x_row: 0, x_stride: inputs, d_stride: outputs };
        for point in 0..POINTS {
            macro_rules! tiles {
                ($inputs:literal, $vectors:literal) => {
                    for input in (0..live.count).step_by($inputs) {
                        for output in (0..outputs).step_by($vectors * S::WIDTH) {
                            // SAFETY: `points` have room for the count's tiles at every point, and `sums` for all pairs of channels. A group of 4,
                            // 8 or 16 inputs that begins below `live.count` ends within the layer's inputs, which are whole groups, as its outputs
                            // are.
                            unsafe {
                                let x = points.inputs.as_ptr().add(point * inputs_apart + input);
                                let d = points.outputs.as_ptr().add(point * outputs_apart + output);
                                let g = sums.as_mut_ptr().add(point * plane + input * outputs + output);
                                outer::<S, $inputs, $vectors>(x, d, positions, Start::Chain, g, outputs);
                            }
                        }
                    }
                };
            }
            match (S::WIDTH == 16, outputs.is_multiple_of(4 * S::WIDTH), outputs.is_multiple_of(2 * S::WIDTH)) {
                (true, true, _) => tiles!(4, 4),
                (true, _, true) => tiles!(8, 2),
                (true, _, _) => tiles!(16, 1),
                (false, ..) => tiles!(4, 2),
            }
        }
    }
    transforms::collect::<S>(sums, gradient);
}

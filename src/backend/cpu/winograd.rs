//! Winograd's F(2 × 2, 3 × 3) for convolutions of stride 1: 16 multiplications where the four outputs of a tile take 36 (Lavin and Gray,
//! "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.1). `pooled.rs` has F(2 × 4, 5 × 5) for convolutions with a pool;
//! the other files of the folder are for both.
//!
//! A tile of 4 × 4 inputs, one of 2 × 2 outputs and a kernel of 3 × 3 weights become 16 points each; at every point the convolution is a
//! product of matrices. Sums keep one order: a point's over channels (over tiles, for the filter gradient), and a tile's over points.

mod forms;
mod points;
pub(super) mod pooled;
mod transforms;

pub(super) use points::Points;

use self::forms::TwoOfThree;
use self::points::{BLOCK, CHANNELS, apart, multiply};
use self::transforms::POINTS;
use super::bounds::assert_reads;
use super::simd::Simd;
use super::tile::{Live, Positions, Start, outer};
use crate::network::{Convolution, Epilogue};

/// Tiles whose filter gradient is added up before it goes to memory.
const CHUNK: usize = 64;

impl Points {
    /// Makes room for a layer, and for its data gradient.
    pub(super) fn grow(&mut self, layer: &Convolution) {
        self.grow_to(lengths(layer));
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
    POINTS * apart(layer.input_map.channels, layer.output.channels)
}

/// The points of a layer's weights `[3][3][in][out]`, as [`forward_rows`] reads them.
///
/// # Panics
/// Unless both slices are whole, and `channels` whole blocks.
#[inline(always)]
pub(super) fn weights<S: Simd>(from: &[f32], channels: usize, to: &mut [f32]) {
    transforms::weights::<S, TwoOfThree, TwoOfThree, _, _, _, _, _>(from, channels, to);
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
    let (inputs_apart, outputs_apart) = (apart(BLOCK, inputs), apart(BLOCK, outputs));
    assert!(fits(layer) && sums.len() == rows(layer) * layer.output.width * outputs && weights.len() == weights_len(layer));
    assert!(bias.is_none_or(|bias| bias.len() == outputs), "a bias has all channels");
    live.assert_of(inputs);
    assert_reads(layer, input.len(), first, rows(layer));
    points.assert_room(POINTS, inputs_apart, outputs_apart);
    // SAFETY: `input` is a whole map that has what the rows read (`assert_reads`); weights and sums are whole, `points` have room for a block of
    // tiles, and channels are whole widest vectors (`fits` and the other asserts). No product of extents wraps, for which the caller vouches.
    unsafe {
        read_block::<S>(layer, input.as_ptr().add(first * layer.input_map.row()), points.inputs.as_mut_ptr(), inputs_apart);
        let weights = (weights.as_ptr(), apart(inputs, outputs));
        let (a, c) = ((points.inputs.as_ptr(), inputs_apart), (points.outputs.as_mut_ptr(), outputs_apart));
        multiply::<S>(POINTS, BLOCK, live, outputs, a, weights, c);
        transforms::write::<S>(layer, points.outputs.as_ptr(), outputs_apart, bias, sums.as_mut_ptr());
    }
}

/// The points of a block's inputs. `from` is the first float that its first tile reads.
///
/// # Safety
/// `from` is valid for reads of all that the block's tiles read of a map with the layer's rows, `to` for writes of [`POINTS`] points, `apart`
/// floats from one to the next, of [`BLOCK`] tiles; the layer [`fits`].
#[inline(always)]
unsafe fn read_block<S: Simd>(layer: &Convolution, from: *const f32, to: *mut f32, apart: usize) {
    let (row, channels, across) = (layer.input_map.row(), layer.input_map.channels, layer.output.width / 2);
    for down in 0..BLOCK / across {
        // SAFETY: the caller vouches for what the block's tiles read, and for their points.
        unsafe {
            let to = to.add(down * across * channels);
            transforms::read::<S, TwoOfThree, TwoOfThree, _, _, _, _, _>(from.add(2 * down * row), [row, channels], across, to, apart);
        }
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
    points.assert_room(POINTS, inputs_apart, outputs_apart);
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
                read_block::<S>(layer, from, points.inputs.as_mut_ptr().add(index * BLOCK * inputs), inputs_apart);
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

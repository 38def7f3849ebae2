//! Backward from rows of gradients: to the bias, the weights and the input.

use super::super::bounds::{assert_reads, assert_vectors};
use super::super::simd::{Kernel, Simd};
use super::super::tile::{Live, Positions, Runs, Start, block, outer};
use super::forward::row_product;
use super::shape::GROUP;
use crate::network::Convolution;

/// `sums[channel]` += Σ `d[position][channel]`.
///
/// # Panics
/// Unless the channels are whole vectors, and `d` whole positions.
#[inline(always)]
pub(in super::super) fn add_positions<S: Simd>(d: &[f32], sums: &mut [f32]) {
    assert!(sums.len().is_multiple_of(S::WIDTH) && d.len().is_multiple_of(sums.len()));
    for v in (0..sums.len()).step_by(S::WIDTH) {
        // SAFETY: `v` is a vector's place in `sums`, and `at` the same place in a whole position of `d`: the assert says so.
        unsafe {
            let mut sum = S::load(sums.as_ptr().add(v));
            for at in (v..d.len()).step_by(sums.len()) {
                sum = S::add(sum, S::load(d.as_ptr().add(at)));
            }
            S::store(sums.as_mut_ptr().add(v), sum);
        }
    }
}

/// `gradient[ky][kx][in][out]` = start + Σ input · d over `rows` output rows from row `first`, for the `live` inputs; d is `[rows][width][out]`.
/// The gradient of the weights of all other inputs stays as it is with [`Start::Chain`], and becomes zero with any other start.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::super::bounds)).
///
/// # Panics
/// Unless `input` is one image's bordered map in which all lies that the rows read, `d` has that many rows, `gradient` all weights, the output
/// channels are whole vectors, and a row has whole positions of `live`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(in super::super) unsafe fn filter_gradient_rows<S: Simd>(
    layer: &Convolution,
    live: Live,
    input: &[f32],
    d: &[f32],
    first: usize,
    rows: usize,
    start: Start,
    gradient: &mut [f32],
) {
    S::call(FilterGradientRows { layer, live, input, d, first, rows, start, gradient })
}

/// The arguments of [`filter_gradient_rows`], the only function that makes this kernel.
struct FilterGradientRows<'a> {
    layer: &'a Convolution,
    live: Live,
    input: &'a [f32],
    d: &'a [f32],
    first: usize,
    rows: usize,
    start: Start<'a>,
    gradient: &'a mut [f32],
}

impl Kernel for FilterGradientRows<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let FilterGradientRows { layer, live, input, d, first, rows, start, gradient } = self;
        let channels = layer.output.channels;
        let row = layer.input_map.row();
        let run = layer.run();
        assert!(d.len() >= rows * layer.output.width * channels && gradient.len() == layer.weight_count());
        assert_reads(layer, input.len(), first, rows);
        assert_vectors::<S>(channels);
        assert!(rows == 1 || !matches!(start, Start::Tree(_)), "images are positions of one row");
        start.assert_images(layer.output.width);
        let positions = Positions {
            rows,
            columns: layer.output.width,
            x_row: layer.stride * row,
            x_stride: layer.stride * layer.input_map.channels,
            d_stride: channels,
        };
        let widest = if S::WIDTH == 16 { 4 } else { 2 };
        let vectors = [4, 2, 1].into_iter().find(|&v| v <= widest && channels.is_multiple_of(v * S::WIDTH)).unwrap_or(1);
        // Where the gradients of all positions stay in the first-level cache, and the kernel has one place, a tile's blocks of channels come one
        // after the other, as its weights lie in memory. Else a block goes through the whole kernel. The order changes no bit.
        let blocks = channels / (vectors * S::WIDTH);
        let (groups, together) = if layer.kernel == 1 && d.len() <= GROUP { (1, blocks) } else { (blocks, 1) };
        let (runs, run_stride, live) = live.runs(run);
        if start != Start::Chain && live < run_stride {
            gradient.chunks_exact_mut(run_stride * channels).for_each(|position| position[live * channels..].fill(0.0));
        }
        // SAFETY: what `rows` output rows from `first` on read lies in `input` (`assert_reads`); `d` has these rows, `gradient` all weights,
        // channels are whole vectors, and `vectors` of them divide the channels; the leaves of a tree have as many images as there are positions
        // (the asserts). No product of extents wraps, for which the caller of `filter_gradient_rows` vouches.
        unsafe {
            for group in 0..groups {
                let from = group * vectors * S::WIDTH;
                for at in 0..layer.kernel * runs {
                    let (ky, first_input) = (at / runs, at % runs * run_stride);
                    let x = input.as_ptr().add((first * layer.stride + ky) * row + first_input);
                    let g = gradient.as_mut_ptr().add((ky * run + first_input) * channels + from);
                    let d = d.as_ptr().add(from);
                    match vectors {
                        4 => run_outer::<S, 4>(live, together, x, d, positions, start, g, channels),
                        2 => run_outer::<S, 2>(live, together, x, d, positions, start, g, channels),
                        _ => run_outer::<S, 1>(live, together, x, d, positions, start, g, channels),
                    }
                }
            }
        }
    }
}

/// A run of consecutive inputs, in the tallest tiles that fit the registers, each for so many blocks of V vectors.
///
/// # Safety
/// As [`outer`], for all inputs of the run and all blocks.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn run_outer<S: Simd, const V: usize>(
    run: usize,
    blocks: usize,
    x: *const f32,
    d: *const f32,
    positions: Positions,
    start: Start,
    g: *mut f32,
    g_stride: usize,
) {
    let mut t = 0;
    macro_rules! tiles {
        ($inputs:literal) => {
            while run - t >= $inputs {
                for block in 0..blocks {
                    let from = block * V * S::WIDTH;
                    // SAFETY: the caller vouches for the run's inputs and the blocks, of which these are some.
                    unsafe { outer::<S, $inputs, V>(x.add(t), d.add(from), positions, start, g.add(t * g_stride + from), g_stride) };
                }
                t += $inputs;
            }
        };
    }
    if S::WIDTH == 16 {
        match V {
            4 if run.is_multiple_of(6) => tiles!(6),
            4 => tiles!(5),
            2 if run.is_multiple_of(12) => tiles!(12),
            2 => tiles!(10),
            _ if run.is_multiple_of(16) => tiles!(16),
            _ => tiles!(9),
        }
    }
    if V < 4 {
        tiles!(5);
    }
    tiles!(4);
    tiles!(1);
}

/// Adds to the gradient of one image's bordered input map what `rows` output rows from row `first` send back; `transposed` holds the
/// weights as `[kernel][kernel][out][in]`.
///
/// Each of the `live` outputs sends to kernel × kernel positions, so nothing outside the map is ever multiplied, whatever the padding and stride.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::super::bounds)).
///
/// # Panics
/// Unless `input_gradient` has the shape of the input map, in which all lies that the rows read, `d` has that many rows, `transposed` all weights,
/// the input channels are whole vectors, and `live` are of the output channels.
#[inline(always)]
pub(in super::super) unsafe fn data_gradient_rows<S: Simd>(
    layer: &Convolution,
    live: Live,
    transposed: &[f32],
    d: &[f32],
    first: usize,
    rows: usize,
    input_gradient: &mut [f32],
) {
    S::call(DataGradientRows { layer, live, transposed, d, first, rows, input_gradient })
}

/// The arguments of [`data_gradient_rows`], the only function that makes this kernel.
struct DataGradientRows<'a> {
    layer: &'a Convolution,
    live: Live,
    transposed: &'a [f32],
    d: &'a [f32],
    first: usize,
    rows: usize,
    input_gradient: &'a mut [f32],
}

impl Kernel for DataGradientRows<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let DataGradientRows { layer, live, transposed, d, first, rows, input_gradient } = self;
        let (width, outputs, inputs) = (layer.output.width, layer.output.channels, layer.input_map.channels);
        let row = layer.input_map.row();
        assert!(d.len() >= rows * width * outputs && transposed.len() == layer.weight_count());
        assert_reads(layer, input_gradient.len(), first, rows);
        assert_vectors::<S>(inputs);
        let block = block::<S>(inputs);
        live.assert_of(outputs);
        let runs = Runs::one(live.count);
        let stride = layer.stride * inputs;
        // SAFETY: what `rows` output rows from `first` on read, and so send to, lies in `input_gradient` (`assert_reads`); `d` has these rows,
        // `transposed` all weights, input channels are whole vectors, and `live` are of the outputs (the asserts). No product of extents wraps, for
        // which the caller of `data_gradient_rows` vouches.
        unsafe {
            for from in (0..inputs).step_by(block) {
                for tap in 0..layer.kernel * layer.kernel {
                    let (ky, kx) = (tap / layer.kernel, tap % layer.kernel);
                    let b = transposed.as_ptr().add(tap * outputs * inputs + from);
                    for y in 0..rows {
                        let a = d.as_ptr().add(y * width * outputs);
                        let c = input_gradient.as_mut_ptr().add(((first + y) * layer.stride + ky) * row + kx * inputs + from);
                        if block == S::WIDTH {
                            row_product::<S, 1>(width, a, outputs, runs, b, inputs, c, stride);
                        } else {
                            row_product::<S, 2>(width, a, outputs, runs, b, inputs, c, stride);
                        }
                    }
                }
            }
        }
    }
}

//! Forward into rows of sums.

use super::super::bounds::{assert_reads, assert_vectors};
use super::super::simd::{Kernel, Simd};
use super::super::tile::{Live, Runs, block, product};
use super::super::winograd::{Points, Tiles};
use super::shape::RESIDENT_WEIGHTS;
use crate::network::Convolution;

/// `sums[y][x][out]` = bias, or zero, + Σ input · weights for output rows from row `first`, a group of `group_rows`, over the `live` inputs.
/// `weights` are as `lay_out` leaves them for the same `tiles`. With `tiles`, Winograd's formula computes the sums; without, a loop over rows does.
pub(in super::super) struct ForwardRows<'a> {
    layer: &'a Convolution,
    tiles: Option<Tiles>,
    live: Live,
    input: &'a [f32],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    first: usize,
    sums: &'a mut [f32],
    points: &'a mut Points,
}

impl<'a> ForwardRows<'a> {
    /// Makes the kernel. Running it panics unless `input` is one image's bordered map in which all lies that the rows read, `sums` has whole rows of
    /// the layer, a bias has all channels, these are whole vectors, a row has whole positions of `live`, and `points` are grown for the layer.
    ///
    /// # Safety
    /// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::super::bounds)).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub unsafe fn new(
        layer: &'a Convolution,
        tiles: Option<Tiles>,
        live: Live,
        input: &'a [f32],
        weights: &'a [f32],
        bias: Option<&'a [f32]>,
        first: usize,
        sums: &'a mut [f32],
        points: &'a mut Points,
    ) -> ForwardRows<'a> {
        ForwardRows { layer, tiles, live, input, weights, bias, first, sums, points }
    }
}

impl Kernel for ForwardRows<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let ForwardRows { layer, tiles, live, input, weights, bias, first, sums, points } = self;
        // Winograd's kernel has asserts of its own.
        if let Some(tiles) = tiles {
            // SAFETY: who made this kernel vouches for the layer's extents.
            return unsafe { tiles.forward_rows::<S>(layer, live, input, weights, bias, first, sums, points) };
        }
        let (width, channels) = (layer.output.width, layer.output.channels);
        let row = layer.input_map.row();
        let run = layer.run();
        let rows = sums.len() / (width * channels);
        assert!(sums.len() == rows * width * channels && weights.len() == layer.weight_count());
        assert!(bias.is_none_or(|bias| bias.len() == channels), "a bias has all channels");
        assert_reads(layer, input.len(), first, rows);
        assert_vectors::<S>(channels);
        let (runs, run_stride, live) = live.runs(run);
        match bias {
            Some(bias) => repeat::<S>(bias, sums),
            None => sums.fill(0.0),
        }
        let block = block::<S>(channels);
        let kernel_rows = if layer.kernel * run * block <= RESIDENT_WEIGHTS { layer.kernel } else { 1 };
        // SAFETY: rows `first` to `first + rows` of the output read `layer.kernel` rows of `input` each, which lie in it (`assert_reads`); the
        // weights and the sums are whole, and channels are whole vectors (the asserts), so that a block of them is whole. No product of extents
        // wraps, for which who made this kernel vouches.
        unsafe {
            for from in (0..channels).step_by(block) {
                for ky in (0..layer.kernel).step_by(kernel_rows) {
                    let runs = Runs { rows: kernel_rows, row_stride: row, runs, run_stride, run: live };
                    for y in 0..rows {
                        let a = input.as_ptr().add(((first + y) * layer.stride + ky) * row);
                        let b = weights.as_ptr().add(from * layer.kernel * run + ky * run * block);
                        let c = sums.as_mut_ptr().add(y * width * channels + from);
                        let a_stride = layer.stride * layer.input_map.channels;
                        if block == S::WIDTH {
                            row_product::<S, 1>(width, a, a_stride, runs, b, block, c, channels);
                        } else {
                            row_product::<S, 2>(width, a, a_stride, runs, b, block, c, channels);
                        }
                    }
                }
            }
        }
    }
}

/// Fills `to` with copies of `from`.
///
/// # Panics
/// Unless `from` has whole vectors of floats, and `to` whole copies.
#[inline(always)]
fn repeat<S: Simd>(from: &[f32], to: &mut [f32]) {
    assert!(from.len().is_multiple_of(S::WIDTH) && to.len().is_multiple_of(from.len()));
    for v in (0..from.len()).step_by(S::WIDTH) {
        // SAFETY: `v` is a vector's place in `from`, and `at` the same place in a whole copy.
        unsafe {
            let vector = S::load(from.as_ptr().add(v));
            for at in (v..to.len()).step_by(from.len()) {
                S::store(to.as_mut_ptr().add(at), vector);
            }
        }
    }
}

/// A row of `width` positions, in the widest tiles that fit the registers.
///
/// # Safety
/// As [`product`], for all positions.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn row_product<S: Simd, const V: usize>(
    width: usize,
    a: *const f32,
    a_stride: usize,
    runs: Runs,
    b: *const f32,
    b_stride: usize,
    c: *mut f32,
    c_stride: usize,
) {
    let mut x = 0;
    macro_rules! tiles {
        ($positions:literal) => {
            while width - x >= $positions {
                // SAFETY: the caller vouches for all positions of the row, of which these are some.
                unsafe {
                    product::<S, $positions, V, true>(a.add(x * a_stride), a_stride, runs, b, b_stride, c.add(x * c_stride), c_stride)
                };
                x += $positions;
            }
        };
    }
    if S::WIDTH == 16 {
        if V == 1 {
            tiles!(16);
        } else if width.is_multiple_of(12) {
            tiles!(12);
        }
        tiles!(8);
    }
    tiles!(4);
    tiles!(1);
}

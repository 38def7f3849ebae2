//! The forward pass of one image: sums of all positions, their ReLU, and the largest of each window.

use crate::backend::cpu::bounds::{assert_reads, assert_vectors};
use crate::backend::cpu::simd::Simd;
use crate::backend::cpu::tile::block;
use crate::network::{Convolution, Map};

/// Convolution, bias, ReLU and pool in one, for weights that fit the first-level cache: no sum ever reaches memory. An empty `choice` is
/// not written.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are (`bounds.rs`).
///
/// # Panics
/// Unless `input` is one image's bordered map in which all lies that the layer reads, `weights` and `bias` are whole, the channels are whole
/// vectors, `map` has half of the layer's rows and columns, `pooled` the shape of `map`, and `choice` that of its inside.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn forward_resident<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    map: Map,
    pooled: &mut [f32],
    choice: &mut [u8],
) {
    let channels = layer.output.channels;
    assert!(weights.len() == layer.weight_count() && bias.len() == channels);
    assert_pool::<S>(layer, map, pooled, choice);
    assert_reads(layer, input.len(), 0, layer.output.height);
    // A block has the channels that `pack` put side by side. Narrower vectors leave too few registers for two vectors at a time.
    let block = block::<S>(channels);
    let two = S::WIDTH == 16 && block == 2 * S::WIDTH;
    // SAFETY: all that the layer reads lies in `input` (`assert_reads`), weights and bias are whole, and `pooled` and a `choice` have half of the
    // rows and columns of whole vectors (`assert_pool`). No product of extents wraps, for which the caller vouches.
    unsafe {
        for py in 0..map.height {
            for from in (0..channels).step_by(if two { 2 * S::WIDTH } else { S::WIDTH }) {
                let row = WindowRow {
                    layer,
                    input: input.as_ptr().add(2 * py * layer.stride * layer.input_map.row()),
                    weights: weights.as_ptr().add(from / block * block * layer.kernel * layer.run() + from % block),
                    weights_stride: block,
                    bias: bias.as_ptr().add(from),
                    pooled: pooled.as_mut_ptr().add(map.at_row(py) + from),
                    choice: if choice.is_empty() {
                        std::ptr::null_mut()
                    } else {
                        choice.as_mut_ptr().add(py * map.width * channels + from)
                    },
                };
                let mut px = 0;
                macro_rules! tiles {
                    ($windows:literal) => {
                        while map.width - px >= $windows {
                            match (two, layer.input_map.channels * layer.stride == 1) {
                                (true, true) => row.tile::<S, $windows, 2, true>(px),
                                (true, false) => row.tile::<S, $windows, 2, false>(px),
                                (false, true) => row.tile::<S, $windows, 1, true>(px),
                                (false, false) => row.tile::<S, $windows, 1, false>(px),
                            }
                            px += $windows;
                        }
                    };
                }
                tiles!(3);
                tiles!(1);
            }
        }
    }
}

/// Panics unless `map` is what the pool makes of the layer's sums, and `pooled` and `choice` have room for it.
#[inline(always)]
pub(in crate::backend::cpu) fn assert_pool<S: Simd>(layer: &Convolution, map: Map, pooled: &[f32], choice: &[u8]) {
    let output = layer.output;
    assert!(
        (map.height, map.width, map.channels) == (output.height / 2, output.width / 2, output.channels),
        "half of the rows and columns"
    );
    assert!(pooled.len() == map.len() && (choice.is_empty() || choice.len() == map.inner_len()), "room for what a pool makes");
    assert_vectors::<S>(output.channels);
}

/// A row of pool windows and the output channels from some one on: addresses of what it reads and writes, where a `choice` may be null.
struct WindowRow<'a> {
    layer: &'a Convolution,
    input: *const f32,
    weights: *const f32,
    weights_stride: usize,
    bias: *const f32,
    pooled: *mut f32,
    choice: *mut u8,
}

impl WindowRow<'_> {
    /// W windows from `px` on, V vectors of channels; NEXT says that neighbouring positions read neighbouring floats.
    ///
    /// # Safety
    /// The row's addresses are valid for what these windows and vectors read and write, and NEXT holds.
    #[inline(always)]
    unsafe fn tile<S: Simd, const W: usize, const V: usize, const NEXT: bool>(&self, px: usize) {
        let layer = self.layer;
        let (row, channels) = (layer.input_map.row(), layer.output.channels);
        let step = if NEXT { 1 } else { layer.stride * layer.input_map.channels };
        let run = if NEXT { layer.kernel } else { layer.run() };
        let lower = if NEXT { row } else { layer.stride * row };
        // SAFETY: the caller vouches for the row's addresses, of which these windows' and vectors' are used. Behind the last row of weights the
        // pointer may lie beyond the buffer, which `wrapping_add` allows.
        unsafe {
            let mut sums = [[[S::splat(0.0); V]; 4]; W];
            for v in 0..V {
                let bias = S::load(self.bias.add(v * S::WIDTH));
                sums.iter_mut().flatten().for_each(|sums| sums[v] = bias);
            }
            let mut weights = self.weights;
            for ky in 0..layer.kernel {
                let input = self.input.add(ky * row + 2 * px * step);
                for k in 0..run {
                    let mut vectors = [S::splat(0.0); V];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = S::load(weights.add(v * S::WIDTH));
                    }
                    for (w, window) in sums.iter_mut().enumerate() {
                        for (candidate, sums) in window.iter_mut().enumerate() {
                            let value = S::splat(*input.add(k + (candidate >> 1) * lower + (2 * w + (candidate & 1)) * step));
                            for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                                *sum = S::multiply_add(value, vector, *sum);
                            }
                        }
                    }
                    weights = weights.wrapping_add(self.weights_stride);
                }
            }
            for (w, window) in sums.iter().enumerate() {
                #[allow(clippy::needless_range_loop)] // v goes through four arrays at once.
                for v in 0..V {
                    let (best, which) = S::largest(std::array::from_fn(|candidate| window[candidate][v]));
                    let at = (px + w) * channels + v * S::WIDTH;
                    S::store(self.pooled.add(at), best);
                    if !self.choice.is_null() {
                        S::store_bytes(self.choice.add(at), which);
                    }
                }
            }
        }
    }
}

/// ReLU, then the maximum over 2 × 2, of `rows` rows of sums from output row `first`. Ties go to the first position, as in PyTorch. An empty
/// `choice` is not written.
///
/// # Safety
/// The layer's extents are small enough for their products: those of a physical network's layers are (`bounds.rs`).
///
/// # Panics
/// Unless `sums` has that many rows and the layer has them, the channels are whole vectors, `map` has half of the layer's rows and columns,
/// `pooled` the shape of `map`, and `choice` that of its inside.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn pool_rows<S: Simd>(
    layer: &Convolution,
    sums: &[f32],
    first: usize,
    rows: usize,
    map: Map,
    pooled: &mut [f32],
    choice: &mut [u8],
) {
    let channels = layer.output.channels;
    let row = layer.output.width * channels;
    assert!(sums.len() >= rows * row && first <= layer.output.height && rows <= layer.output.height - first && first.is_multiple_of(2));
    assert_pool::<S>(layer, map, pooled, choice);
    for y in 0..rows / 2 {
        let py = first / 2 + y;
        for px in 0..map.width {
            for from in (0..channels).step_by(S::WIDTH) {
                // SAFETY: `sums` has two rows for each of `pooled`, which the layer has (the assert); `pooled` and a `choice` have half of the rows
                // and columns of whole vectors (`assert_pool`). No product of extents wraps, for which the caller vouches.
                unsafe {
                    let corner = sums.as_ptr().add(2 * y * row + 2 * px * channels + from);
                    let (best, which) = S::largest([0, channels, row, row + channels].map(|at| S::load(corner.add(at))));
                    S::store(pooled.as_mut_ptr().add(map.at_row(py) + px * channels + from), best);
                    if !choice.is_empty() {
                        S::store_bytes(choice.as_mut_ptr().add((py * map.width + px) * channels + from), which);
                    }
                }
            }
        }
    }
}

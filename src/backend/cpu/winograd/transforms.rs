//! Winograd's transforms: of weights, tiles and gradients to their points, and back. Each is the matrix of a form (`forms.rs`) down the columns, V,
//! then that of one along the rows, H.

use super::super::simd::Simd;
use super::super::tile::block;
use super::forms::{Backward, Form};
use super::points::{BLOCK, apart};
use crate::network::Convolution;

/// Vectors `stride` floats apart. No closures here and below: the compiler would not compile them for S.
///
/// # Safety
/// All N vectors are valid for reads.
#[inline(always)]
unsafe fn load_column<S: Simd, const N: usize>(from: *const f32, stride: usize) -> [S::Vector; N] {
    let mut vectors = [S::splat(0.0); N];
    for (y, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: the caller vouches for each of the N addresses.
        *vector = unsafe { S::load(from.add(y * stride)) };
    }
    vectors
}

/// Writes vectors `stride` floats apart.
///
/// # Safety
/// All N vectors are valid for writes.
#[inline(always)]
unsafe fn store_row<S: Simd, const N: usize>(row: [S::Vector; N], to: *mut f32, stride: usize) {
    for (x, value) in row.into_iter().enumerate() {
        // SAFETY: the caller vouches for each of the N addresses.
        unsafe { S::store(to.add(x * stride), value) };
    }
}

/// Columns as rows.
#[inline(always)]
fn rows_of<S: Simd, const X: usize, const Y: usize>(columns: [[S::Vector; Y]; X]) -> [[S::Vector; X]; Y] {
    let mut rows = [[S::splat(0.0); X]; Y];
    for (x, column) in columns.iter().enumerate() {
        for (row, &value) in rows.iter_mut().zip(column) {
            row[x] = value;
        }
    }
    rows
}

/// `to[point][block][row][channel]` = the points of `from[K][K][row][block][channel]`, for `channels` in blocks as the forward pass wants them,
/// points [`apart`] from each other.
///
/// # Panics
/// Unless both slices are whole, and `channels` whole blocks.
#[inline(always)]
pub(super) fn weights<
    S: Simd,
    V: Form<K, NV, MV>,
    H: Form<K, NH, MH>,
    const K: usize,
    const NV: usize,
    const MV: usize,
    const NH: usize,
    const MH: usize,
>(
    from: &[f32],
    channels: usize,
    to: &mut [f32],
) {
    let (plane, block) = (from.len() / (K * K), block::<S>(channels));
    assert!(channels > 0 && channels.is_multiple_of(block) && plane.is_multiple_of(channels) && from.len() == K * K * plane);
    let rows = plane / channels;
    let apart = apart(rows, channels);
    assert!(to.len() == NV * NH * apart);
    for first in (0..channels).step_by(block) {
        for row in 0..rows {
            for v in (0..block).step_by(S::WIDTH) {
                // SAFETY: the K · K planes of `from` and the NV · NH of `to` have `rows` rows of `channels` floats, whole vectors, and the place of
                // this vector lies in a plane of each.
                unsafe {
                    let from = from.as_ptr().add(row * channels + first + v);
                    let to = to.as_mut_ptr().add((first * rows) + row * block + v);
                    let mut columns = [[S::splat(0.0); NV]; K];
                    for (x, points) in columns.iter_mut().enumerate() {
                        *points = V::of_weights::<S>(load_column::<S, K>(from.add(x * plane), K * plane));
                    }
                    for (y, row) in rows_of::<S, K, NV>(columns).into_iter().enumerate() {
                        store_row::<S, NH>(H::of_weights::<S>(row), to.add(NH * y * apart), apart);
                    }
                }
            }
        }
    }
}

/// The points of the inputs of `across` tiles side by side. `from` is the first float that the first tile reads, of a map of so many channels whose
/// rows are `row` floats apart.
///
/// # Safety
/// `from` is valid for reads of all that the tiles read, in channels that are whole vectors, `to` for writes of NV · NH points, `apart` floats from
/// one to the next, of so many tiles.
#[inline(always)]
pub(super) unsafe fn read<
    S: Simd,
    V: Form<K, NV, MV>,
    H: Form<K, NH, MH>,
    const K: usize,
    const NV: usize,
    const MV: usize,
    const NH: usize,
    const MH: usize,
>(
    from: *const f32,
    [row, channels]: [usize; 2],
    across: usize,
    to: *mut f32,
    apart: usize,
) {
    for v in (0..channels).step_by(S::WIDTH) {
        // SAFETY: the caller vouches for what the tiles read, and for their points.
        unsafe {
            let from = from.add(v);
            // Tiles overlap by all columns but as many as they have outputs.
            let mut columns = [[S::splat(0.0); NV]; NH];
            for (x, points) in columns.iter_mut().enumerate().skip(MH) {
                *points = V::of_inputs::<S>(load_column::<S, NV>(from.add((x - MH) * channels), row));
            }
            for tile in 0..across {
                for x in MH..NH {
                    columns[x - MH] = columns[x];
                }
                for (x, points) in columns.iter_mut().enumerate().skip(NH - MH) {
                    *points = V::of_inputs::<S>(load_column::<S, NV>(from.add((MH * tile + x) * channels), row));
                }
                let to = to.add(tile * channels + v);
                for (y, points) in rows_of::<S, NH, NV>(columns).into_iter().enumerate() {
                    store_row::<S, NH>(H::of_inputs::<S>(points), to.add(NH * y * apart), apart);
                }
            }
        }
    }
}

/// A tile's outputs from its points, `apart` floats from one to the next.
///
/// # Safety
/// `from` is valid for reads of a vector of each point.
#[inline(always)]
pub(super) unsafe fn outputs<
    S: Simd,
    V: Form<K, NV, MV>,
    H: Form<K, NH, MH>,
    const K: usize,
    const NV: usize,
    const MV: usize,
    const NH: usize,
    const MH: usize,
>(
    from: *const f32,
    apart: usize,
) -> [[S::Vector; MH]; MV] {
    let mut columns = [[S::splat(0.0); MV]; NH];
    for (x, outputs) in columns.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the points, of which a column has every NH-th.
        *outputs = V::outputs::<S>(unsafe { load_column::<S, NV>(from.add(x * apart), NH * apart) });
    }
    let mut outputs = [[S::splat(0.0); MH]; MV];
    for (outputs, row) in outputs.iter_mut().zip(rows_of::<S, NH, MV>(columns)) {
        *outputs = H::outputs::<S>(row);
    }
    outputs
}

/// `sums[y][x][out]` = bias, or zero, + what a block's points make of its outputs.
///
/// # Safety
/// `from` is valid for reads of N · N points, `apart` floats from one to the next, of [`BLOCK`] tiles, `sums` for writes of the block's outputs; a
/// bias has all of the layer's output channels, which are whole vectors, and its rows are whole tiles.
#[inline(always)]
pub(super) unsafe fn write<S: Simd, F: Form<3, N, M>, const N: usize, const M: usize>(
    layer: &Convolution,
    from: *const f32,
    apart: usize,
    bias: Option<&[f32]>,
    sums: *mut f32,
) {
    let (channels, across) = (layer.output.channels, layer.output.width / M);
    let apart_rows = layer.output.width * channels;
    for v in (0..channels).step_by(S::WIDTH) {
        let bias = match bias {
            // SAFETY: the caller vouches for a bias of all channels, which are whole vectors.
            Some(bias) => unsafe { S::load(bias[v..].as_ptr()) },
            None => S::splat(0.0),
        };
        for tile in 0..BLOCK {
            // SAFETY: the caller vouches for the points of this tile, one of the block's, and for its outputs.
            unsafe {
                let from = from.add(tile * channels + v);
                let sums = sums.add(tile / across * M * apart_rows + tile % across * M * channels + v);
                for (y, row) in outputs::<S, F, F, _, _, _, _, _>(from, apart).into_iter().enumerate() {
                    for (x, value) in row.into_iter().enumerate() {
                        S::store(sums.add(y * apart_rows + x * channels), S::add(bias, value));
                    }
                }
            }
        }
    }
}

/// The points of a block's output gradients `d[y][x][out]`.
///
/// # Safety
/// `d` is valid for reads of the block's gradients, `to` for writes of N · N points, `apart` floats from one to the next, of [`BLOCK`] tiles; the
/// layer's output channels are whole vectors, and its rows whole tiles.
#[inline(always)]
pub(super) unsafe fn read_gradient<S: Simd, F: Backward<N, M>, const N: usize, const M: usize>(
    layer: &Convolution,
    d: *const f32,
    to: *mut f32,
    apart: usize,
) {
    let (channels, across) = (layer.output.channels, layer.output.width / M);
    let apart_rows = layer.output.width * channels;
    for tile in 0..BLOCK {
        for v in (0..channels).step_by(S::WIDTH) {
            // SAFETY: the caller vouches for the gradients of this tile, one of the block's, and for its points.
            unsafe {
                let d = d.add(tile / across * M * apart_rows + tile % across * M * channels + v);
                let to = to.add(tile * channels + v);
                let mut columns = [[S::splat(0.0); N]; M];
                for (x, points) in columns.iter_mut().enumerate() {
                    *points = F::of_gradients::<S>(load_column::<S, M>(d.add(x * channels), apart_rows));
                }
                for (y, row) in rows_of::<S, M, N>(columns).into_iter().enumerate() {
                    store_row::<S, N>(F::of_gradients::<S>(row), to.add(N * y * apart), apart);
                }
            }
        }
    }
}

/// Adds the gradient that `sums` at the points make of a layer's weights.
///
/// # Panics
/// Unless `sums` has N · N planes where `gradient` has nine, and a plane whole vectors.
#[inline(always)]
pub(super) fn collect<S: Simd, F: Backward<N, M>, const N: usize, const M: usize>(sums: &[f32], gradient: &mut [f32]) {
    let plane = gradient.len() / 9;
    assert!(sums.len() == N * N * plane && gradient.len() == 9 * plane && plane.is_multiple_of(S::WIDTH));
    for v in (0..plane).step_by(S::WIDTH) {
        // SAFETY: the planes of `sums` and the nine of `gradient` are whole, and whole vectors: the assert says so.
        unsafe {
            let (sums, gradient) = (sums.as_ptr().add(v), gradient.as_mut_ptr().add(v));
            let mut columns = [[S::splat(0.0); 3]; N];
            for (x, gradients) in columns.iter_mut().enumerate() {
                *gradients = F::weight_gradients::<S>(load_column::<S, N>(sums.add(x * plane), N * plane));
            }
            for (y, row) in rows_of::<S, N, 3>(columns).into_iter().enumerate() {
                for (x, value) in F::weight_gradients::<S>(row).into_iter().enumerate() {
                    let to = gradient.add((3 * y + x) * plane);
                    S::store(to, S::add(S::load(to), value));
                }
            }
        }
    }
}

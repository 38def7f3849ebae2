//! Convolutions on one image: forward into rows of sums, and backward from rows of gradients.
//!
//! Both work on groups of output rows small enough for the first-level cache; what follows the sum (bias, ReLU, pooling, shortcut) is
//! applied while the rows are there (`epilogue.rs`), so no sum ever travels through memory. Layers that fit are computed by `winograd.rs`.

use super::simd::{Kernel, Simd};
use super::tile::{Positions, Runs, block, outer, product};
use super::winograd::{self, Points};
use crate::network::{Convolution, Map};

/// Floats of sums or gradients that a group of rows may have: 16 KB.
const GROUP: usize = 4096;

/// Weights, in floats, that may stay in the first-level cache while a group of rows is computed.
pub(super) const RESIDENT_WEIGHTS: usize = 6144;

/// Output rows in a group: even, so that pooling's pairs stay together, and a function of the layer's shape alone, because the order in
/// which a data gradient is summed follows from it.
pub(super) fn group_rows(layer: &Convolution) -> usize {
    if winograd::fits(layer) {
        return winograd::rows(layer);
    }
    let row = layer.output.width * layer.output.channels;
    let rows = (GROUP / row).max(2) & !1;
    rows.min(layer.output.height)
}

/// `packed[block][row][channel]` = `from[row][block][channel]`: the weights as a forward pass wants them. Read in place, rows of other
/// blocks would lie between those of one, and crowd them out of a cache whose sets go by address.
#[inline(always)]
fn pack<S: Simd>(from: &[f32], channels: usize, packed: &mut [f32]) {
    let block = block::<S>(channels);
    for (index, packed) in packed.chunks_exact_mut(from.len() / channels * block).enumerate() {
        for (packed, from) in packed.chunks_exact_mut(block).zip(from.chunks_exact(channels)) {
            packed.copy_from_slice(&from[index * block..][..block]);
        }
    }
}

/// The floats of a layer's weights as [`lay_out`] leaves them.
pub(super) fn laid_out_len(layer: &Convolution) -> usize {
    if winograd::fits(layer) { winograd::weights_len(layer) } else { layer.weight_count() }
}

/// Lays weights `[kernel][kernel][in][out]` out for [`forward_rows`].
///
/// # Safety
/// The processor must have S.
#[inline(always)]
pub(super) unsafe fn lay_out<S: Simd>(layer: &Convolution, from: &[f32], to: &mut [f32]) {
    if winograd::fits(layer) {
        unsafe { winograd::weights::<S>(from, layer.output.channels, to) };
    } else {
        pack::<S>(from, layer.output.channels, to);
    }
}

/// `sums[y][x][out]` = bias, or zero, + Σ input · weights for output rows from row `first`, a group of [`group_rows`]; weights are as [`lay_out`]
/// leaves them.
///
/// # Safety
/// `input` is one image's bordered map, `sums` has whole rows, `points` are grown for the layer, and the processor has S.
#[inline(always)]
pub(super) unsafe fn forward_rows<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    weights: &[f32],
    bias: Option<&[f32]>,
    first: usize,
    sums: &mut [f32],
    points: &mut Points,
) {
    unsafe { S::call(ForwardRows { layer, input, weights, bias, first, sums, points }) }
}

/// What [`forward_rows`] computes from.
pub(super) struct ForwardRows<'a> {
    pub layer: &'a Convolution,
    pub input: &'a [f32],
    pub weights: &'a [f32],
    pub bias: Option<&'a [f32]>,
    pub first: usize,
    pub sums: &'a mut [f32],
    pub points: &'a mut Points,
}

impl Kernel for ForwardRows<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let ForwardRows { layer, input, weights, bias, first, sums, points } = self;
        if winograd::fits(layer) {
            return unsafe { winograd::forward_rows::<S>(layer, input, weights, bias, first, sums, points) };
        }
        let (width, channels) = (layer.output.width, layer.output.channels);
        let row = layer.input_map.row();
        let run = layer.run();
        let rows = sums.len() / (width * channels);
        assert!(sums.len() == rows * width * channels && weights.len() == layer.weight_count());
        match bias {
            Some(bias) => unsafe { repeat::<S>(bias, sums) },
            None => sums.fill(0.0),
        }
        let block = block::<S>(channels);
        let kernel_rows = if layer.kernel * run * block <= RESIDENT_WEIGHTS { layer.kernel } else { 1 };
        unsafe {
            for from in (0..channels).step_by(block) {
                for ky in (0..layer.kernel).step_by(kernel_rows) {
                    let runs = Runs { rows: kernel_rows, row_stride: row, run };
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
/// # Safety
/// `from` has whole vectors of floats, `to` whole copies, and the processor has S.
#[inline(always)]
unsafe fn repeat<S: Simd>(from: &[f32], to: &mut [f32]) {
    assert!(from.len().is_multiple_of(S::WIDTH) && to.len().is_multiple_of(from.len()));
    for v in (0..from.len()).step_by(S::WIDTH) {
        unsafe {
            let vector = S::load(from.as_ptr().add(v));
            for at in (v..to.len()).step_by(from.len()) {
                S::store(to.as_mut_ptr().add(at), vector);
            }
        }
    }
}

/// `sums[channel]` += Σ `d[position][channel]`.
///
/// # Safety
/// As [`repeat`].
#[inline(always)]
pub(super) unsafe fn add_positions<S: Simd>(d: &[f32], sums: &mut [f32]) {
    assert!(sums.len().is_multiple_of(S::WIDTH) && d.len().is_multiple_of(sums.len()));
    for v in (0..sums.len()).step_by(S::WIDTH) {
        unsafe {
            let mut sum = S::load(sums.as_ptr().add(v));
            for at in (v..d.len()).step_by(sums.len()) {
                sum = S::add(sum, S::load(d.as_ptr().add(at)));
            }
            S::store(sums.as_mut_ptr().add(v), sum);
        }
    }
}

/// A row of `width` positions, in the widest tiles that fit the registers.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn row_product<S: Simd, const V: usize>(
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

/// `gradient[ky][kx][in][out]` += Σ input · d over `rows` output rows from row `first`; d is `[rows][width][out]`.
///
/// # Safety
/// As [`forward_rows`].
#[inline(always)]
pub(super) unsafe fn filter_gradient_rows<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    d: &[f32],
    first: usize,
    rows: usize,
    gradient: &mut [f32],
) {
    unsafe { S::call(FilterGradientRows { layer, input, d, first, rows, gradient }) }
}

struct FilterGradientRows<'a> {
    layer: &'a Convolution,
    input: &'a [f32],
    d: &'a [f32],
    first: usize,
    rows: usize,
    gradient: &'a mut [f32],
}

impl Kernel for FilterGradientRows<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let FilterGradientRows { layer, input, d, first, rows, gradient } = self;
        let channels = layer.output.channels;
        let row = layer.input_map.row();
        let run = layer.run();
        assert!(d.len() >= rows * layer.output.width * channels && gradient.len() == layer.weight_count());
        let positions = Positions {
            rows,
            columns: layer.output.width,
            x_row: layer.stride * row,
            x_stride: layer.stride * layer.input_map.channels,
            d_stride: channels,
        };
        let widest = if S::WIDTH == 16 { 4 } else { 2 };
        let vectors = [4, 2, 1].into_iter().find(|&v| v <= widest && channels.is_multiple_of(v * S::WIDTH)).unwrap_or(1);
        unsafe {
            for from in (0..channels).step_by(vectors * S::WIDTH) {
                for ky in 0..layer.kernel {
                    let x = input.as_ptr().add((first * layer.stride + ky) * row);
                    let g = gradient.as_mut_ptr().add(ky * run * channels + from);
                    let d = d.as_ptr().add(from);
                    match vectors {
                        4 => run_outer::<S, 4>(run, x, d, positions, g, channels),
                        2 => run_outer::<S, 2>(run, x, d, positions, g, channels),
                        _ => run_outer::<S, 1>(run, x, d, positions, g, channels),
                    }
                }
            }
        }
    }
}

/// A run of consecutive inputs, in the tallest tiles that fit the registers.
#[inline(always)]
unsafe fn run_outer<S: Simd, const V: usize>(run: usize, x: *const f32, d: *const f32, positions: Positions, g: *mut f32, g_stride: usize) {
    let mut t = 0;
    macro_rules! tiles {
        ($inputs:literal) => {
            while run - t >= $inputs {
                unsafe { outer::<S, $inputs, V>(x.add(t), d, positions, g.add(t * g_stride), g_stride) };
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
/// Every output sends to kernel × kernel positions, so nothing outside the map is ever multiplied, whatever the padding and stride.
///
/// # Safety
/// As [`forward_rows`]; `input_gradient` has the shape of the input map.
#[inline(always)]
pub(super) unsafe fn data_gradient_rows<S: Simd>(
    layer: &Convolution,
    transposed: &[f32],
    d: &[f32],
    first: usize,
    rows: usize,
    input_gradient: &mut [f32],
) {
    unsafe { S::call(DataGradientRows { layer, transposed, d, first, rows, input_gradient }) }
}

struct DataGradientRows<'a> {
    layer: &'a Convolution,
    transposed: &'a [f32],
    d: &'a [f32],
    first: usize,
    rows: usize,
    input_gradient: &'a mut [f32],
}

impl Kernel for DataGradientRows<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let DataGradientRows { layer, transposed, d, first, rows, input_gradient } = self;
        let (width, outputs, inputs) = (layer.output.width, layer.output.channels, layer.input_map.channels);
        let row = layer.input_map.row();
        assert!(d.len() >= rows * width * outputs && transposed.len() == layer.weight_count());
        assert_eq!(input_gradient.len(), layer.input_map.len());
        let block = if inputs.is_multiple_of(2 * S::WIDTH) { 2 * S::WIDTH } else { S::WIDTH };
        let runs = Runs { rows: 1, row_stride: 0, run: outputs };
        let stride = layer.stride * inputs;
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

/// The convolution whose forward pass over the gradients of this one's sums, bordered with zeros, is this one's data gradient: that with the
/// weights turned around. None for a stride above 1.
///
/// Read that way every input's gradient is one sum in registers; [`data_gradient_rows`] adds to memory once for each place in the kernel.
pub(super) fn adjoint(layer: &Convolution) -> Option<Convolution> {
    let (map, side) = (layer.input_map, layer.kernel - 1);
    (layer.stride == 1 && map.before <= side && map.after <= side).then(|| Convolution {
        output: Map::plain(map.height, map.width, map.channels),
        input_map: Map { before: side - map.before, after: side - map.after, ..layer.output },
        producer: None,
        bypass: None,
        ..layer.clone()
    })
}

/// Weights for the data gradient: `[kernel][kernel][out][in]`; for an [`adjoint`], with the kernel turned around and laid out for it. `scratch` has
/// place for them once more.
///
/// # Safety
/// Both numbers of channels are multiples of the vector, which the processor must have.
#[inline(always)]
pub(super) unsafe fn transpose<S: Simd>(
    layer: &Convolution,
    adjoint: Option<&Convolution>,
    from: &[f32],
    scratch: &mut [f32],
    to: &mut [f32],
) {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let taps = layer.kernel * layer.kernel;
    let turn = adjoint.is_some();
    let transposed = if turn { &mut scratch[..from.len()] } else { &mut *to };
    for (tap, from) in from.chunks_exact(inputs * outputs).enumerate() {
        let place = if turn { taps - 1 - tap } else { tap };
        unsafe { transpose_matrix::<S>(from, inputs, outputs, &mut transposed[place * from.len()..][..from.len()]) };
    }
    if let Some(adjoint) = adjoint {
        unsafe { lay_out::<S>(adjoint, &scratch[..from.len()], to) };
    }
}

/// `to[column][row]` = `from[row][column]`.
///
/// # Safety
/// Both counts are multiples of the vector, which the processor must have.
#[inline(always)]
pub(super) unsafe fn transpose_matrix<S: Simd>(from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
    assert!(rows.is_multiple_of(S::WIDTH) && columns.is_multiple_of(S::WIDTH));
    assert!(from.len() == rows * columns && to.len() == from.len());
    for column in (0..columns).step_by(S::WIDTH) {
        for row in (0..rows).step_by(S::WIDTH) {
            unsafe {
                let corner = from.as_ptr().add(row * columns + column);
                S::transpose(|i| corner.add(i * columns), to.as_mut_ptr().add(column * rows + row), rows);
            }
        }
    }
}

//! The forward pass of a pruned convolution that ends in ReLU and 2 × 2 max-pooling, one image at a time: vectors run along pool windows, so
//! that each kept weight is multiplied with whole vectors and the others cost nothing.

use super::plan::Taps;
use super::pooled::Event;
use super::simd::Simd;
use crate::network::Convolution;

/// Pool windows of an image.
fn windows(layer: &Convolution) -> usize {
    layer.output.height / 2 * (layer.output.width / 2)
}

/// Floats of [`phases`].
pub(super) fn phases_len(layer: &Convolution) -> usize {
    (layer.kernel + 1).pow(2) * layer.input_map.channels * windows(layer)
}

/// `phases[y][x][channel][window]` = the input at (y, x) from the window's corner, for all places that its four positions read.
///
/// # Safety
/// `input` is one image's bordered map; the windows, and the channels unless there is one, are a multiple of the vector, which the
/// processor must have.
#[inline(always)]
pub(super) unsafe fn phases<S: Simd>(layer: &Convolution, input: &[f32], phases: &mut [f32]) {
    let (row, channels, side) = (layer.input_map.row(), layer.input_map.channels, layer.kernel + 1);
    let (high, wide) = (layer.output.height / 2, layer.output.width / 2);
    debug_assert!(phases.len() >= phases_len(layer) && input.len() == layer.input_map.len());
    for (place, to) in phases.chunks_exact_mut(channels * high * wide).take(side * side).enumerate() {
        let (y, x) = (place / side, place % side);
        if channels == 1 {
            for (py, to) in to.chunks_exact_mut(wide).enumerate() {
                let from = &input[(2 * py + y) * row + x..][..2 * wide - 1];
                for (to, from) in to.iter_mut().zip(from.iter().step_by(2)) {
                    *to = *from;
                }
            }
            continue;
        }
        for window in (0..high * wide).step_by(S::WIDTH) {
            for channel in (0..channels).step_by(S::WIDTH) {
                let corner = |i: usize| {
                    let (py, px) = ((window + i) / wide, (window + i) % wide);
                    unsafe { input.as_ptr().add((2 * py + y) * row + (2 * px + x) * channels + channel) }
                };
                unsafe { S::transpose(corner, to.as_mut_ptr().add(channel * high * wide + window), high * wide) };
            }
        }
    }
}

/// Room for what [`forward_taps`] makes of an image before it is put channel last: `[channel][window]` maxima, then choices.
pub(super) fn planar_len(layer: &Convolution) -> usize {
    2 * windows(layer) * layer.output.channels
}

/// Convolution, bias, ReLU and pool. `values` are the taps with their weights; an empty `choice` is not written.
///
/// # Safety
/// `phases` are those of the image; `pooled` and `choice` are `[window][channel]`; `planar` has [`planar_len`] floats; windows and channels
/// are multiples of the vector, which the processor must have.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn forward_taps<S: Simd>(
    layer: &Convolution,
    taps: &Taps,
    values: &[Event],
    phases: &[f32],
    bias: &[f32],
    planar: &mut [f32],
    pooled: &mut [f32],
    choice: &mut [u8],
) {
    let (windows, channels) = (windows(layer), layer.output.channels);
    debug_assert!(planar.len() >= planar_len(layer) && pooled.len() == windows * channels && values.len() == taps.taps.len());
    let (best, which) = planar.split_at_mut(windows * channels);
    for channel in 0..channels {
        let values = &values[taps.starts[channel] as usize..taps.starts[channel + 1] as usize];
        let mut window = 0;
        macro_rules! tiles {
            ($vectors:literal) => {
                while windows - window >= $vectors * S::WIDTH {
                    let at = channel * windows + window;
                    unsafe {
                        let (phases, best, which) = (phases.as_ptr().add(window), best.as_mut_ptr().add(at), which.as_mut_ptr().add(at));
                        tile::<S, $vectors>(layer, values, phases, bias[channel], best, which);
                    }
                    window += $vectors * S::WIDTH;
                }
            };
        }
        tiles!(3);
        tiles!(2);
        tiles!(1);
    }
    let mut integers = [0.0; 256];
    for window in (0..windows).step_by(S::WIDTH) {
        for channel in (0..channels).step_by(S::WIDTH) {
            let at = window * channels + channel;
            unsafe {
                let from = |i: usize| best.as_ptr().add((channel + i) * windows + window);
                S::transpose(from, pooled.as_mut_ptr().add(at), channels);
                if !choice.is_empty() {
                    let from = |i: usize| which.as_ptr().add((channel + i) * windows + window);
                    S::transpose(from, integers.as_mut_ptr(), S::WIDTH);
                    for i in 0..S::WIDTH {
                        S::store_bytes(choice.as_mut_ptr().add(at + i * channels), S::load(integers.as_ptr().add(i * S::WIDTH)));
                    }
                }
            }
        }
    }
}

/// One output channel, V vectors of windows, all four positions of each.
#[inline(always)]
unsafe fn tile<S: Simd, const V: usize>(
    layer: &Convolution,
    values: &[Event],
    phases: *const f32,
    bias: f32,
    best: *mut f32,
    which: *mut f32,
) {
    let right = layer.input_map.channels * windows(layer);
    let below = (layer.kernel + 1) * right;
    let positions = [0, right, below, below + right];
    unsafe {
        let mut sums = [[S::splat(bias); V]; 4];
        for tap in values {
            let (weight, phases) = (S::splat(tap.value), phases.add(tap.at as usize));
            for (sums, &from) in sums.iter_mut().zip(&positions) {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = S::multiply_add(S::load(phases.add(from + v * S::WIDTH)), weight, *sum);
                }
            }
        }
        #[allow(clippy::needless_range_loop)] // v goes through four arrays at once.
        for v in 0..V {
            let (largest, choice) = S::largest(std::array::from_fn(|position| sums[position][v]));
            S::store(best.add(v * S::WIDTH), largest);
            S::store(which.add(v * S::WIDTH), choice);
        }
    }
}

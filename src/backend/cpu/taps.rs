//! The forward pass of a pruned convolution that ends in ReLU and 2 × 2 max-pooling, one image at a time: vectors run along pool windows, so
//! that each kept weight is multiplied with whole vectors and the others cost nothing.

use super::pooled::Event;
use super::pruned::Taps;
use super::simd::Simd;
use crate::network::Convolution;

/// Pool windows of an image.
fn windows(layer: &Convolution) -> usize {
    layer.output.height / 2 * (layer.output.width / 2)
}

/// Rows and columns of each quarter that an image of one channel is taken apart into.
fn quarter(layer: &Convolution) -> (usize, usize) {
    let row = layer.input_map.row();
    ((layer.input_map.len() / row).div_ceil(2), row / 2)
}

/// Floats behind the phases, and behind the quarters, that a vector may reach beyond a row.
const SLACK: usize = 16;

/// Floats that [`phases`] writes: the phases, and for one channel the quarters that they are made of.
pub(super) fn phases_len(layer: &Convolution) -> usize {
    let (rows, columns) = quarter(layer);
    let phases = (layer.kernel + 1).pow(2) * layer.input_map.channels * windows(layer);
    phases + if layer.input_map.channels == 1 { 4 * rows * columns + 2 * SLACK } else { 0 }
}

/// `phases[y][x][channel][window]` = the input at (y, x) from the window's corner, for all places that its four positions read.
///
/// # Safety
/// `corners` are those of the layer's windows in its input map ([`Taps`]); they are a multiple of the vector, as are the channels unless there is
/// one; the rows of a map of one channel have an even number of floats.
#[inline(always)]
pub(super) unsafe fn phases<S: Simd>(layer: &Convolution, corners: &[u32], input: &[f32], phases: &mut [f32]) {
    let (row, channels, side) = (layer.input_map.row(), layer.input_map.channels, layer.kernel + 1);
    let windows = corners.len();
    assert!(phases.len() >= phases_len(layer) && input.len() == layer.input_map.len());
    if channels == 1 {
        // SAFETY: the caller vouches for windows and rows, and the assert for both lengths.
        return unsafe { phases_of_one::<S>(layer, input, phases) };
    }
    for (place, to) in phases.chunks_exact_mut(channels * windows).take(side * side).enumerate() {
        let from = input[place / side * row + place % side * channels..].as_ptr();
        for (index, corners) in corners.chunks_exact(S::WIDTH).enumerate() {
            for channel in (0..channels).step_by(S::WIDTH) {
                // SAFETY: a corner and the places of its window lie in the map, which `input` has whole, and channels are whole vectors: the caller
                // vouches.
                let corner = |i: usize| unsafe { from.add(corners[i] as usize + channel) };
                // SAFETY: `to` has `windows` floats for each channel, and both counts are whole vectors, for which the caller vouches.
                unsafe { S::transpose(corner, to.as_mut_ptr().add(channel * windows + index * S::WIDTH), windows) };
            }
        }
    }
}

/// [`phases`] of an image of one channel. Taken apart into even and odd rows and columns, it has every phase's rows as runs. Read float by float
/// instead, Simple-CNN is evaluated at 0.88 of its speed at sparsity 0.98 (one core of an AMD EPYC).
///
/// # Safety
/// As [`phases`], whose assert has passed.
#[inline(always)]
unsafe fn phases_of_one<S: Simd>(layer: &Convolution, input: &[f32], phases: &mut [f32]) {
    let (side, windows) = (layer.kernel + 1, windows(layer));
    let (high, wide) = (layer.output.height / 2, layer.output.width / 2);
    let (rows, columns) = quarter(layer);
    let (phases, quarters) = phases.split_at_mut(side * side * windows + SLACK);
    for (y, row) in input.chunks_exact(2 * columns).enumerate() {
        let (even, odd) = quarters[y % 2 * 2 * rows * columns..].split_at_mut(rows * columns);
        let (even, odd) = (&mut even[y / 2 * columns..][..columns], &mut odd[y / 2 * columns..][..columns]);
        for ((even, odd), pair) in even.iter_mut().zip(odd).zip(row.as_chunks::<2>().0) {
            (*even, *odd) = (pair[0], pair[1]);
        }
    }
    for place in 0..side * side {
        let (y, x) = (place / side, place % side);
        let from = &quarters[(y % 2 * 2 + x % 2) * rows * columns + y / 2 * columns + x / 2..];
        let to = &mut phases[place * windows..][..windows + SLACK];
        assert!(from.len() >= (high - 1) * columns + wide + SLACK);
        for py in 0..high {
            // Floats that a vector writes beyond its row are written again by the next row.
            for px in (0..wide).step_by(S::WIDTH) {
                // SAFETY: a row begins within `windows` floats of `to` and within what the assert says that `from` has; a vector that begins in a
                // row ends at most SLACK floats behind it, which both have.
                unsafe { S::store(to.as_mut_ptr().add(py * wide + px), S::load(from.as_ptr().add(py * columns + px))) };
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
/// `taps` are the layer's ([`Taps`]), `values` theirs, and `phases` has [`phases_len`] floats; `choice` is empty or `[window][channel]`; windows
/// and channels are multiples of the vector.
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
    assert!(planar.len() >= planar_len(layer) && pooled.len() == windows * channels && values.len() == taps.taps.len());
    assert!(choice.is_empty() || choice.len() == pooled.len());
    let (best, which) = planar.split_at_mut(windows * channels);
    for channel in 0..channels {
        let values = &values[taps.starts[channel] as usize..taps.starts[channel + 1] as usize];
        let mut window = 0;
        macro_rules! tiles {
            ($vectors:literal) => {
                while windows - window >= $vectors * S::WIDTH {
                    let at = channel * windows + window;
                    // SAFETY: these vectors of windows lie in the channel's windows, of which `best` and `which` have as many for each channel (the
                    // assert); the caller vouches for what the taps read of the phases.
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
            // SAFETY: `best`, `which`, `pooled` and a `choice` have all windows of all channels, which are whole vectors; `integers` has the square
            // of the widest one.
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
///
/// # Safety
/// `phases` is valid for reads of V vectors at each tap's offset from each of the four positions' phases; `best` and `which` for writes of V
/// vectors.
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
    // SAFETY: the caller vouches for what the taps read, and for V vectors of results.
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

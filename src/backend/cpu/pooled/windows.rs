//! The gradient that goes through all windows, of a filter that reads few channels.

use crate::backend::cpu::simd::{DEAD, Simd};
use crate::network::{Convolution, Map};

/// Sets a pooled map's gradient to zero where the pool chose nothing.
#[inline(always)]
pub(in crate::backend::cpu) fn cut_dead(gradient: &mut [f32], choice: &[u8]) {
    for (gradient, &choice) in gradient.iter_mut().zip(choice) {
        *gradient = if choice == DEAD { 0.0 } else { *gradient };
    }
}

/// Columns of [`patches`].
fn patch_columns(map: Map) -> usize {
    map.row() / map.channels - 1
}

/// Floats of [`patches`].
pub(in crate::backend::cpu) fn patches_len(map: Map) -> usize {
    (map.len() / map.row() - 1) * patch_columns(map) * map.channels * 4
}

/// `patches[y][x][channel]` = the input at (y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1): what the four positions of a window read.
#[inline(always)]
pub(in crate::backend::cpu) fn patches(map: Map, input: &[f32], patches: &mut [f32]) {
    let row = map.row();
    let run = patch_columns(map) * map.channels;
    for (patches, rows) in patches.chunks_exact_mut(4 * run).zip(input.windows(2 * row).step_by(row)) {
        let (upper, lower) = rows.split_at(row);
        for (i, patch) in patches.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *patch = [upper[i], upper[i + map.channels], lower[i], lower[i + map.channels]];
        }
    }
}

/// `gradient[ky][kx][in][out]` += Σ input · d over windows in reading order, each vector of channels picking what its pools chose.
///
/// # Safety
/// `patches` are those of the input map, in which all lies that the layer's windows read; the layer's output channels are whole vectors.
///
/// # Panics
/// Unless the layer's stride is 1, `gradient` has all weights, and `patches`, `d` and `choice` are whole.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn filter_gradient_selected<S: Simd>(
    layer: &Convolution,
    patches: &[f32],
    d: &[f32],
    choice: &[u8],
    gradient: &mut [f32],
) {
    let (channels, run) = (layer.output.channels, layer.run());
    let windows = layer.output.height / 2 * (layer.output.width / 2);
    assert!(d.len() == windows * channels && choice.len() == d.len(), "a gradient and a choice a window");
    assert!(layer.stride == 1 && gradient.len() == layer.weight_count() && patches.len() >= patches_len(layer.input_map));
    let two = channels.is_multiple_of(2 * S::WIDTH);
    for from in (0..channels).step_by(if two { 2 * S::WIDTH } else { S::WIDTH }) {
        for ky in 0..layer.kernel {
            let mut t = 0;
            macro_rules! tiles {
                ($taps:literal) => {
                    while run - t >= $taps {
                        // SAFETY: `t` up to `$taps` further are weights of a kernel row, `from` is a vector's place, or two's, in the channels;
                        // patches, gradients and choices of all windows are there (the asserts).
                        unsafe {
                            let patches = patches.as_ptr().add(4 * (ky * patch_columns(layer.input_map) * layer.input_map.channels + t));
                            let (d, choice) = (d.as_ptr().add(from), choice.as_ptr().add(from));
                            let gradient = gradient.as_mut_ptr().add((ky * run + t) * channels + from);
                            if two {
                                selected::<S, $taps, 2>(layer, patches, d, choice, gradient);
                            } else {
                                selected::<S, $taps, 1>(layer, patches, d, choice, gradient);
                            }
                        }
                        t += $taps;
                    }
                };
            }
            tiles!(5);
            tiles!(1);
        }
    }
}

/// T consecutive weights of a kernel row and V vectors of channels, over all windows.
///
/// # Safety
/// `patches` is valid for reads of T patches from each window's, `d` and `choice` for reads of V vectors of each window, `gradient` for reads and
/// writes of V vectors of each weight.
#[inline(always)]
unsafe fn selected<S: Simd, const T: usize, const V: usize>(
    layer: &Convolution,
    patches: *const f32,
    d: *const f32,
    choice: *const u8,
    gradient: *mut f32,
) {
    let (channels, inputs) = (layer.output.channels, layer.input_map.channels);
    let row = 4 * patch_columns(layer.input_map) * inputs;
    // SAFETY: the caller vouches for patches, gradients and choices of all windows, and for the weights' sums. Behind the last patch the pointer may
    // lie beyond the buffer, which `wrapping_add` allows.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; T];
        for (t, row) in sums.iter_mut().enumerate() {
            for (v, sum) in row.iter_mut().enumerate() {
                *sum = S::load(gradient.add(t * channels + v * S::WIDTH));
            }
        }
        let mut at = 0;
        for py in 0..layer.output.height / 2 {
            let mut patch = patches.add(2 * py * row);
            for _ in 0..layer.output.width / 2 {
                let (mut vectors, mut choices) = ([S::splat(0.0); V], [S::splat(0.0); V]);
                for v in 0..V {
                    vectors[v] = S::load(d.add(at + v * S::WIDTH));
                    choices[v] = S::load_bytes(choice.add(at + v * S::WIDTH));
                }
                for (t, row) in sums.iter_mut().enumerate() {
                    for v in 0..V {
                        row[v] = S::multiply_add(S::select(patch.add(4 * t), choices[v]), vectors[v], row[v]);
                    }
                }
                patch = patch.wrapping_add(8 * inputs);
                at += channels;
            }
        }
        for (t, row) in sums.iter().enumerate() {
            for (v, &sum) in row.iter().enumerate() {
                S::store(gradient.add(t * channels + v * S::WIDTH), sum);
            }
        }
    }
}

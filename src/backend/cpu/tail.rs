//! What follows a convolution's sum where that is no pool (`pooled.rs`), a group of rows at a time, forward and backward.

use crate::network::{Convolution, Map};

/// ReLU of `rows` rows of sums into the inside of a bordered map.
#[inline(always)]
pub(super) fn relu(layer: &Convolution, sums: &[f32], first: usize, rows: usize, map: Map, rectified: &mut [f32]) {
    let row = layer.output.width * layer.output.channels;
    for y in 0..rows {
        let to = &mut rectified[map.at_row(first + y)..][..row];
        for (to, &sum) in to.iter_mut().zip(&sums[y * row..][..row]) {
            *to = if sum <= 0.0 { 0.0 } else { sum };
        }
    }
}

/// Adds the shortcut to `rows` rows of sums: the block's input stream as it is, or averaged over 2 × 2 with zero channels appended.
#[inline(always)]
pub(super) fn add_shortcut(layer: &Convolution, from: Map, stream: &[f32], first: usize, rows: usize, sums: &mut [f32]) {
    let channels = layer.output.channels;
    let row = layer.output.width * channels;
    if from == layer.output {
        for (sum, &value) in sums[..rows * row].iter_mut().zip(&stream[first * row..]) {
            *sum += value;
        }
        return;
    }
    let wide = from.width * from.channels;
    for y in 0..rows {
        let (upper, lower) = stream[2 * (first + y) * wide..][..2 * wide].split_at(wide);
        for x in 0..layer.output.width {
            let sum = &mut sums[y * row + x * channels..][..from.channels];
            let (a, b) = upper[2 * x * from.channels..][..2 * from.channels].split_at(from.channels);
            let (c, d) = lower[2 * x * from.channels..][..2 * from.channels].split_at(from.channels);
            for i in 0..from.channels {
                sum[i] += 0.25 * ((a[i] + b[i]) + (c[i] + d[i]));
            }
        }
    }
}

/// to = gradient where the rectified map is positive, else 0; `gradient` has the shape of `gradient_map`, `to` has no border.
#[inline(always)]
pub(super) fn relu_backward(map: Map, rectified: &[f32], gradient_map: Map, gradient: &[f32], to: &mut [f32]) {
    let row = map.width * map.channels;
    for y in 0..map.height {
        let (rectified, gradient) = (&rectified[map.at_row(y)..][..row], &gradient[gradient_map.at_row(y)..][..row]);
        for ((to, &r), &g) in to[y * row..][..row].iter_mut().zip(rectified).zip(gradient) {
            *to = if r > 0.0 { g } else { 0.0 };
        }
    }
}

/// The shortcut's share of a block input's gradient: to += the gradient of the block's output, through [`add_shortcut`] backwards.
#[inline(always)]
pub(super) fn add_shortcut_backward(block: &Convolution, gradient: &[f32], from: Map, to: &mut [f32]) {
    let channels = block.output.channels;
    if from == block.output {
        for (to, &value) in to.iter_mut().zip(gradient) {
            *to += value;
        }
        return;
    }
    for y in 0..from.height {
        for x in 0..from.width {
            let gradient = &gradient[((y / 2) * block.output.width + x / 2) * channels..][..from.channels];
            for (to, &value) in to[(y * from.width + x) * from.channels..][..from.channels].iter_mut().zip(gradient) {
                *to += 0.25 * value;
            }
        }
    }
}

//! What follows a convolution's sum where that is no pool (`pooled.rs`), a group of rows at a time, forward and backward.

use crate::network::{Convolution, Map};

/// ReLU. A NaN stays a NaN, so that it is seen in the loss.
#[inline(always)]
pub(super) fn rectify(value: f32) -> f32 {
    if value <= 0.0 { 0.0 } else { value }
}

/// ReLU of `rows` rows of sums into the inside of a bordered map.
#[inline(always)]
pub(super) fn relu(layer: &Convolution, sums: &[f32], first: usize, rows: usize, map: Map, rectified: &mut [f32]) {
    let row = layer.output.width * layer.output.channels;
    for y in 0..rows {
        let to = &mut rectified[map.at_row(first + y)..][..row];
        for (to, &sum) in to.iter_mut().zip(&sums[y * row..][..row]) {
            *to = rectify(sum);
        }
    }
}

/// Adds the shortcut to `rows` rows of sums: the block's input stream as it is, or rectified and averaged over 2 × 2 with zero channels appended.
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
                sum[i] += 0.25 * ((rectify(a[i]) + rectify(b[i])) + (rectify(c[i]) + rectify(d[i])));
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

/// The shortcut's share of a block input's gradient: to += the gradient of the block's output, through [`add_shortcut`] backwards. `rectified`, of shape
/// `map`, is the ReLU of the block's input.
#[inline(always)]
pub(super) fn add_shortcut_backward(block: &Convolution, gradient: &[f32], from: Map, map: Map, rectified: &[f32], to: &mut [f32]) {
    let channels = block.output.channels;
    if from == block.output {
        for (to, &value) in to.iter_mut().zip(gradient) {
            *to += value;
        }
        return;
    }
    for y in 0..from.height {
        let rectified = &rectified[map.at_row(y)..][..from.width * from.channels];
        for (x, rectified) in rectified.chunks_exact(from.channels).enumerate() {
            let gradient = &gradient[((y / 2) * block.output.width + x / 2) * channels..][..from.channels];
            let to = &mut to[(y * from.width + x) * from.channels..][..from.channels];
            for ((to, &value), &r) in to.iter_mut().zip(gradient).zip(rectified) {
                *to += if r > 0.0 { 0.25 * value } else { 0.0 };
            }
        }
    }
}

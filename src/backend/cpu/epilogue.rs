//! Steps after a convolution's sum where these are no pool (`pooled.rs`): forward a group of rows at a time, backward an image at a time.

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

/// `rows` rows of sums into the inside of a bordered map, as they are.
#[inline(always)]
pub(super) fn copy(layer: &Convolution, sums: &[f32], first: usize, rows: usize, map: Map, to: &mut [f32]) {
    for (y, sums) in sums.chunks_exact(layer.output.row()).enumerate().take(rows) {
        to[map.at_row(first + y)..][..sums.len()].copy_from_slice(sums);
    }
}

/// Rows and columns of a block's input that a shortcut makes one of.
fn factor(from: Map, block: &Convolution) -> usize {
    from.height / block.output.height
}

/// Adds the shortcut to `rows` rows of sums: the block's input stream as it is, or, where the shapes differ, rectified and averaged over factor ×
/// factor with zero channels appended.
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
    if factor(from, layer) != 2 {
        return average_over(factor(from, layer), layer, from, stream, first, rows, sums);
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

/// [`add_shortcut`] for any factor.
fn average_over(factor: usize, layer: &Convolution, from: Map, stream: &[f32], first: usize, rows: usize, sums: &mut [f32]) {
    let channels = layer.output.channels;
    let parts = (factor * factor) as f32;
    for (position, sum) in sums.chunks_exact_mut(channels).enumerate().take(rows * layer.output.width) {
        let (y, x) = (first + position / layer.output.width, position % layer.output.width);
        for (channel, sum) in sum.iter_mut().enumerate().take(from.channels) {
            let at = |place: usize| ((factor * y + place / factor) * from.width + factor * x + place % factor) * from.channels + channel;
            *sum += (0..factor * factor).map(|place| rectify(stream[at(place)])).sum::<f32>() / parts;
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

/// The shortcut's share of a block input's gradient: to += the gradient of the block's output, through [`add_shortcut`] backwards. `rectified`, of
/// shape `map`, is the ReLU of the block's input.
#[inline(always)]
pub(super) fn add_shortcut_backward(block: &Convolution, gradient: &[f32], from: Map, map: Map, rectified: &[f32], to: &mut [f32]) {
    let channels = block.output.channels;
    if from == block.output {
        for (to, &value) in to.iter_mut().zip(gradient) {
            *to += value;
        }
        return;
    }
    let factor = factor(from, block);
    let parts = (factor * factor) as f32;
    for y in 0..from.height {
        let rectified = &rectified[map.at_row(y)..][..from.width * from.channels];
        for (x, rectified) in rectified.chunks_exact(from.channels).enumerate() {
            let gradient = &gradient[(y / factor * block.output.width + x / factor) * channels..][..from.channels];
            let to = &mut to[(y * from.width + x) * from.channels..][..from.channels];
            for ((to, &value), &r) in to.iter_mut().zip(gradient).zip(rectified) {
                *to += if r > 0.0 { value / parts } else { 0.0 };
            }
        }
    }
}

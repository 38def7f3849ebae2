//! What follows a convolution's sum, a group of rows at a time, forward and backward.

use crate::network::{Convolution, Map};

/// What the pool chose: 0 … 3 for the four positions in reading order, [`DEAD`] where the ReLU let nothing through.
pub(super) const DEAD: u8 = 4;

/// ReLU, then the maximum over 2 × 2, of `rows` rows of sums from output row `first`. Ties go to the first position, as in PyTorch.
#[inline(always)]
pub(super) fn relu_max_pool(layer: &Convolution, sums: &[f32], first: usize, rows: usize, map: Map, pooled: &mut [f32], choice: &mut [u8]) {
    let channels = layer.output.channels;
    let row = layer.output.width * channels;
    for y in 0..rows / 2 {
        let (upper, lower) = sums[2 * y * row..][..2 * row].split_at(row);
        let py = first / 2 + y;
        let pooled = &mut pooled[map.at_row(py)..][..map.width * channels];
        let choice = &mut choice[py * map.width * channels..][..map.width * channels];
        for x in 0..map.width {
            let (a, b) = upper[2 * x * channels..][..2 * channels].split_at(channels);
            let (c, d) = lower[2 * x * channels..][..2 * channels].split_at(channels);
            let pooled = &mut pooled[x * channels..][..channels];
            let choice = &mut choice[x * channels..][..channels];
            for i in 0..channels {
                let (mut best, mut which) = (0.0_f32, u32::from(DEAD));
                for (position, value) in [a[i], b[i], c[i], d[i]].into_iter().enumerate() {
                    // Written so that a NaN wins and is seen in the loss, instead of turning into a zero here.
                    #[allow(clippy::neg_cmp_op_on_partial_ord)]
                    let better = !(value <= best) & !best.is_nan();
                    best = if better { value } else { best };
                    which = if better { position as u32 } else { which };
                }
                pooled[i] = best;
                choice[i] = which as u8;
            }
        }
    }
}

/// Gradients of `rows` rows of sums from row `first`, from those of the pooled map (`[height][width][channels]`, no border).
#[inline(always)]
pub(super) fn relu_max_pool_backward(layer: &Convolution, first: usize, rows: usize, gradient: &[f32], choice: &[u8], d: &mut [f32]) {
    let channels = layer.output.channels;
    let row = layer.output.width * channels;
    let width = layer.output.width / 2;
    for y in 0..rows / 2 {
        let from = (first / 2 + y) * width * channels;
        let (upper, lower) = d[2 * y * row..][..2 * row].split_at_mut(row);
        for x in 0..width {
            let gradient = &gradient[from + x * channels..][..channels];
            let choice = &choice[from + x * channels..][..channels];
            for (half, line) in [&mut *upper, &mut *lower].into_iter().enumerate() {
                for side in 0..2 {
                    let line = &mut line[(2 * x + side) * channels..][..channels];
                    let position = (2 * half + side) as u32;
                    for i in 0..channels {
                        line[i] = if u32::from(choice[i]) == position { gradient[i] } else { 0.0 };
                    }
                }
            }
        }
    }
}

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

/// to = gradient where the rectified map is positive, else 0; `gradient` has the map's border, `to` has none.
#[inline(always)]
pub(super) fn relu_backward(map: Map, rectified: &[f32], gradient: &[f32], to: &mut [f32]) {
    let row = map.width * map.channels;
    for y in 0..map.height {
        let (rectified, gradient) = (&rectified[map.at_row(y)..][..row], &gradient[map.at_row(y)..][..row]);
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

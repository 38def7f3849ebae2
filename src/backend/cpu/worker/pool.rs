//! Layers without parameters that are no part of a convolution: pools, and the mean over all positions. Plain loops.

use super::super::epilogue::rectify;
use super::backward::keep;
use super::pass::{Pass, image_of};
use crate::network::{GlobalMean, Pool, PoolKind};

/// Offsets of a window's values in a map of `row` floats a row: rows, then columns.
fn window(layer: &Pool, row: usize, channels: usize) -> impl Iterator<Item = usize> + Clone {
    let size = layer.size;
    (0..size * size).map(move |place| place / size * row + place % size * channels)
}

/// The forward pass of a pool.
pub(super) fn forward(pass: &mut Pass, layer: &Pool) {
    let worker = &mut *pass.worker;
    let (from, to) = (worker.network.maps[layer.input], worker.network.maps[layer.output]);
    let mut output = std::mem::take(&mut worker.maps[layer.output]);
    let channels = from.channels;
    let parts = (layer.size * layer.size) as f32;
    for image in 0..pass.count {
        let input = image_of(&worker.maps[layer.input], from, image);
        let output = &mut output[image * to.len()..][..to.len()];
        for y in 0..to.height {
            for x in 0..to.width {
                let corner = layer.stride * (y * from.row() + x * channels);
                let output = &mut output[to.at_row(y) + x * channels..][..channels];
                for (channel, output) in output.iter_mut().enumerate() {
                    let values = window(layer, from.row(), channels).map(|at| input[corner + at + channel]);
                    let value = match layer.kind {
                        PoolKind::Max => {
                            values.reduce(|best, value| if value > best || value.is_nan() { value } else { best }).unwrap_or(0.0)
                        }
                        PoolKind::Average => values.sum::<f32>() / parts,
                    };
                    *output = if layer.relu { rectify(value) } else { value };
                }
            }
        }
    }
    worker.maps[layer.output] = output;
}

/// The backward pass of a pool.
pub(super) fn backward(pass: &mut Pass, index: usize, layer: &Pool) {
    let Some(producer) = layer.producer else { return };
    let worker = &mut *pass.worker;
    let (from, to) = (worker.network.maps[layer.input], worker.network.maps[layer.output]);
    let channels = from.channels;
    let parts = (layer.size * layer.size) as f32;
    let mut kept = std::mem::take(&mut worker.layers[producer].gradient);
    for image in 0..pass.count {
        let input = image_of(&worker.maps[layer.input], from, image);
        let received = &worker.layers[index].gradient[image * to.inner_len()..][..to.inner_len()];
        let sent = &mut worker.scratch.input_gradient[..from.len()];
        sent.fill(0.0);
        for (place, received) in received.chunks_exact(channels).enumerate() {
            let corner = layer.stride * (place / to.width * from.row() + place % to.width * channels);
            for (channel, &gradient) in received.iter().enumerate() {
                let mut places = window(layer, from.row(), channels).map(|at| corner + at + channel);
                match layer.kind {
                    PoolKind::Average => places.for_each(|at| sent[at] += gradient / parts),
                    PoolKind::Max => {
                        let first = places.next().unwrap_or(corner);
                        let largest = |best: usize, at: usize| if input[at] > input[best] || input[at].is_nan() { at } else { best };
                        sent[places.fold(first, largest)] += gradient;
                    }
                }
            }
        }
        let inner = from.inner_len();
        keep(
            &worker.network.layers[producer],
            &worker.layers[producer].choice,
            image,
            from,
            input,
            from,
            sent,
            &mut kept[image * inner..][..inner],
        );
    }
    worker.layers[producer].gradient = kept;
}

/// The forward pass of a mean over all positions.
pub(super) fn mean_forward(pass: &mut Pass, layer: &GlobalMean) {
    let worker = &mut *pass.worker;
    let (from, to) = (worker.network.maps[layer.input], worker.network.maps[layer.output]);
    let positions = from.height * from.width;
    let mut output = std::mem::take(&mut worker.maps[layer.output]);
    for (input, output) in worker.maps[layer.input].chunks_exact(from.len()).zip(output.chunks_exact_mut(to.len())).take(pass.count) {
        let output = &mut output[to.at_row(0)..][..to.channels];
        output.fill(0.0);
        for position in input.chunks_exact(from.channels) {
            for (sum, &value) in output.iter_mut().zip(position) {
                *sum += value;
            }
        }
        for sum in output.iter_mut() {
            *sum /= positions as f32;
        }
    }
    worker.maps[layer.output] = output;
}

/// The backward pass of a mean over all positions.
pub(super) fn mean_backward(pass: &mut Pass, index: usize, layer: &GlobalMean) {
    let Some(producer) = layer.producer else { return };
    let worker = &mut *pass.worker;
    let map = worker.network.maps[layer.input];
    let positions = (map.height * map.width) as f32;
    let mut kept = std::mem::take(&mut worker.layers[producer].gradient);
    for image in 0..pass.count {
        let received = &mut worker.layers[index].gradient[image * map.channels..][..map.channels];
        received.iter_mut().for_each(|gradient| *gradient /= positions);
        let sent = &mut worker.scratch.input_gradient[..map.len()];
        sent.chunks_exact_mut(map.channels).for_each(|position| position.copy_from_slice(received));
        let values = image_of(&worker.maps[layer.input], map, image);
        keep(
            &worker.network.layers[producer],
            &worker.layers[producer].choice,
            image,
            map,
            values,
            map,
            sent,
            &mut kept[image * map.len()..][..map.len()],
        );
    }
    worker.layers[producer].gradient = kept;
}

//! A pool that is no part of a convolution. Plain loops.

use super::super::epilogue::rectify;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, Passes, Place};
use super::workspace::{Pass, image_of};
use crate::network::{Network, Pool, PoolKind};

/// Offsets of a window's values in a map of `row` floats a row: rows, then columns.
fn window(layer: &Pool, row: usize, channels: usize) -> impl Iterator<Item = usize> + Clone {
    let size = layer.size;
    (0..size * size).map(move |place| place / size * row + place % size * channels)
}

impl CpuLayer for Pool {
    fn describe(&self) -> &'static str {
        "plain loops"
    }

    fn make_room(&self, network: &Network, _images: usize, _buffers: &mut Buffers, scratch: &mut Scratch) {
        scratch.input_gradient.grow(network.maps[self.input].len());
    }
}

impl Passes for Pool {
    fn forward(&self, _place: &Place, pass: &mut Pass) {
        let space = &mut *pass.space;
        let (from, to) = (space.network.maps[self.input], space.network.maps[self.output]);
        let mut output = std::mem::take(&mut space.maps[self.output]);
        let channels = from.channels;
        let parts = (self.size * self.size) as f32;
        for image in 0..pass.count {
            let input = image_of(&space.maps[self.input], from, image);
            let output = &mut output[image * to.len()..][..to.len()];
            for y in 0..to.height {
                for x in 0..to.width {
                    let corner = self.stride * (y * from.row() + x * channels);
                    let output = &mut output[to.at_row(y) + x * channels..][..channels];
                    for (channel, output) in output.iter_mut().enumerate() {
                        let values = window(self, from.row(), channels).map(|at| input[corner + at + channel]);
                        let value = match self.kind {
                            PoolKind::Max => {
                                values.reduce(|best, value| if value > best || value.is_nan() { value } else { best }).unwrap_or(0.0)
                            }
                            PoolKind::Average => values.sum::<f32>() / parts,
                        };
                        *output = if self.relu { rectify(value) } else { value };
                    }
                }
            }
        }
        space.maps[self.output] = output;
    }

    fn backward(&self, place: &Place, pass: &mut Pass) {
        let Some(producer) = self.producer else { return };
        let space = &mut *pass.space;
        let (from, to) = (space.network.maps[self.input], space.network.maps[self.output]);
        let channels = from.channels;
        let parts = (self.size * self.size) as f32;
        for image in 0..pass.count {
            let input = image_of(&space.maps[self.input], from, image);
            let received = &space.layers[place.index].gradient[image * to.inner_len()..][..to.inner_len()];
            let sent = &mut space.scratch.input_gradient[..from.len()];
            sent.fill(0.0);
            for (place, received) in received.chunks_exact(channels).enumerate() {
                let corner = self.stride * (place / to.width * from.row() + place % to.width * channels);
                for (channel, &gradient) in received.iter().enumerate() {
                    let mut places = window(self, from.row(), channels).map(|at| corner + at + channel);
                    match self.kind {
                        PoolKind::Average => places.for_each(|at| sent[at] += gradient / parts),
                        PoolKind::Max => {
                            let first = places.next().unwrap_or(corner);
                            let largest = |best: usize, at: usize| if input[at] > input[best] || input[at].is_nan() { at } else { best };
                            sent[places.fold(first, largest)] += gradient;
                        }
                    }
                }
            }
            space.keep(producer, self.input, image, from, 0);
        }
    }
}

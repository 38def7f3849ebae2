//! The mean over all positions. Plain loops.

use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, Passes, Place};
use super::workspace::Pass;
use crate::network::{GlobalMean, Network};

impl CpuLayer for GlobalMean {
    fn describe(&self) -> &'static str {
        "plain loops"
    }

    fn make_room(&self, network: &Network, _images: usize, _buffers: &mut Buffers, scratch: &mut Scratch) {
        scratch.input_gradient.grow(network.maps[self.input].len());
    }
}

impl Passes for GlobalMean {
    fn forward(&self, _place: &Place, pass: &mut Pass) {
        let space = &mut *pass.space;
        let (from, to) = (space.network.maps[self.input], space.network.maps[self.output]);
        let positions = from.height * from.width;
        let mut output = std::mem::take(&mut space.maps[self.output]);
        for (input, output) in space.maps[self.input].chunks_exact(from.len()).zip(output.chunks_exact_mut(to.len())).take(pass.count) {
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
        space.maps[self.output] = output;
    }

    fn backward(&self, place: &Place, pass: &mut Pass) {
        let Some(producer) = self.producer else { return };
        let space = &mut *pass.space;
        let map = space.network.maps[self.input];
        let positions = (map.height * map.width) as f32;
        for image in 0..pass.count {
            let received = &mut space.layers[place.index].gradient[image * map.channels..][..map.channels];
            received.iter_mut().for_each(|gradient| *gradient /= positions);
            let sent = &mut space.scratch.input_gradient[..map.len()];
            sent.chunks_exact_mut(map.channels).for_each(|position| position.copy_from_slice(received));
            space.keep(producer, self.input, image, map, 0);
        }
    }
}

//! A convolution without a pool, with all of its weights: groups of rows of sums, and what follows them while they are in the cache.

use super::super::convolution::{
    ForwardRows, add_positions, adjoint, data_gradient_rows, filter_gradient_rows, group_rows, laid_out_len, lay_out, transpose,
};
use super::super::epilogue;
use super::super::floats::Floats;
use super::super::simd::Simd;
use super::super::sparse::KeptWeights;
use super::super::tile::Start;
use super::super::winograd::Tiles;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, Place, Vectorised};
use super::workspace::{Pass, Workspace, image_of};
use crate::network::{Convolution, Epilogue, Map, Network};
use crate::settings::Convolutions;

pub(super) struct Rows {
    layer: Convolution,
    /// Winograd's tiles, if the layer is computed by these.
    tiles: Option<Tiles>,
    /// The convolution that is the data gradient, where that is how it is computed, and its tiles.
    adjoint: Option<(Convolution, Option<Tiles>)>,
}

impl Rows {
    pub(super) fn new(layer: &Convolution, convolutions: Convolutions) -> Rows {
        let with_tiles = |layer: Convolution| {
            let tiles = Tiles::of(&layer, convolutions);
            (layer, tiles)
        };
        let adjoint = layer.producer.and_then(|_| adjoint(layer)).map(with_tiles);
        Rows { layer: layer.clone(), tiles: Tiles::of(layer, convolutions), adjoint }
    }

    /// Floats of the weights laid out for the forward pass, and for the data gradient.
    fn laid_out(&self) -> [usize; 2] {
        let backward = self.adjoint.as_ref().map_or(self.layer.weight_count(), |(adjoint, tiles)| laid_out_len(adjoint, *tiles));
        [laid_out_len(&self.layer, self.tiles), backward]
    }

    /// Makes the buffers large enough.
    fn grow(&self, buffers: &mut Buffers, scratch: &mut Scratch) {
        let (Rows { layer, tiles, adjoint }, [forward, backward]) = (self, self.laid_out());
        scratch.rows.grow(group_rows(layer, *tiles) * layer.output.row());
        if let Some(tiles) = tiles {
            scratch.points.grow(tiles.lengths(layer));
        }
        scratch.input_gradient.grow(layer.input_map.len());
        buffers.forward.grow(forward);
        if layer.producer.is_some() {
            buffers.backward.grow(backward);
            buffers.bordered.grow(adjoint.as_ref().map_or(0, |(adjoint, _)| adjoint.input_map.len()));
            scratch.reordered.grow(layer.weight_count());
        }
    }
}

impl CpuLayer for Rows {
    fn describe(&self) -> &'static str {
        match self.tiles {
            Some(Tiles::Four) => "rows, Winograd in large tiles",
            Some(Tiles::Two) => "rows, Winograd",
            None => "rows",
        }
    }

    fn make_room(&self, _network: &Network, _images: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
        self.grow(buffers, scratch);
        // Scores are computed by direct convolutions, in the same room.
        Rows::new(&self.layer, Convolutions::Direct).grow(buffers, scratch);
    }

    fn most_bytes(&self) -> u64 {
        KeptWeights::most_bytes(&self.layer)
    }

    fn floats(&self) -> [usize; 2] {
        [self.laid_out()[0], self.tiles.map_or(0, |tiles| tiles.lengths(&self.layer).iter().sum())]
    }
}

impl Vectorised for Rows {
    #[inline(always)]
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        let (Rows { layer, tiles, adjoint }, buffers, scratch) = (self, &mut space.layers[place.index], &mut space.scratch);
        let (weights, [forward, backward_len]) = (&weights[layer.weights..layer.bias], self.laid_out());
        lay_out::<S>(layer, *tiles, weights, &mut buffers.forward[..forward]);
        if backward {
            let adjoint = adjoint.as_ref().map(|(adjoint, tiles)| (adjoint, *tiles));
            transpose::<S>(layer, adjoint, weights, &mut scratch.reordered, &mut buffers.backward[..backward_len]);
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let (space, layer) = (&mut *pass.space, &self.layer);
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let written = layer.epilogue.written();
        let map = space.network.maps[written];
        let mut output = std::mem::take(&mut space.maps[written]);
        let mut stream = match layer.epilogue {
            Epilogue::Stream { stream, .. } => std::mem::take(&mut space.maps[stream]),
            _ => Floats::default(),
        };
        let (group, live, [laid_out, _]) = (group_rows(layer, self.tiles), place.inputs, self.laid_out());
        for image in 0..pass.count {
            let input = image_of(&space.maps[layer.input], layer.input_map, image);
            let output = &mut output[image * map.len()..][..map.len()];
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let (sums, points) = (&mut space.scratch.rows[..rows * layer.output.row()], &mut space.scratch.points);
                let weights = &space.layers[place.index].forward[..laid_out];
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                S::call(unsafe { ForwardRows::new(layer, self.tiles, live, input, weights, Some(bias), first, sums, points) });
                match layer.epilogue {
                    Epilogue::Linear { .. } => epilogue::copy(layer, sums, first, rows, map, output),
                    Epilogue::Stream { shortcut, .. } => {
                        if let Some(shortcut) = shortcut {
                            let from = space.network.maps[shortcut];
                            epilogue::add_shortcut(layer, from, image_of(&space.maps[shortcut], from, image), first, rows, sums);
                        }
                        let offset = image * layer.output.len() + first * layer.output.row();
                        stream[offset..][..sums.len()].copy_from_slice(sums);
                        epilogue::relu(layer, sums, first, rows, map, output);
                    }
                    Epilogue::Relu { .. } | Epilogue::ReluMaxPool { .. } => epilogue::relu(layer, sums, first, rows, map, output),
                }
            }
        }
        space.maps[written] = output;
        if let Epilogue::Stream { stream: slot, .. } = layer.epilogue {
            space.maps[slot] = stream;
        }
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let Rows { layer, tiles, adjoint } = self;
        let space = &mut *pass.space;
        let (channels, row, group) = (layer.output.channels, layer.output.row(), group_rows(layer, *tiles));
        let (own, [_, laid_out]) = (layer.output.inner_len(), self.laid_out());
        let (weight_gradient, bias_gradient) = pass.gradient[place.weights..].split_at_mut(place.bias - place.weights);
        let bias_gradient = &mut bias_gradient[..channels];
        if let Some(tiles) = tiles {
            let input = |image: usize| image_of(&space.maps[layer.input], layer.input_map, image);
            let d = |image: usize| &space.layers[place.index].gradient[image * own..][..own];
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
            unsafe { tiles.filter_gradient::<S>(layer, place.inputs, pass.count, input, d, weight_gradient, &mut space.scratch.points) };
        }
        for image in 0..pass.count {
            let input = image_of(&space.maps[layer.input], layer.input_map, image);
            let buffers = &mut space.layers[place.index];
            let received = &buffers.gradient[image * own..][..own];
            let gradient_map = adjoint.as_ref().map_or(layer.input_map, |(adjoint, _)| adjoint.output);
            let sent = if layer.producer.is_some() { gradient_map.len() } else { 0 };
            let input_gradient = &mut space.scratch.input_gradient[..sent];
            let scattered = layer.producer.is_some() && adjoint.is_none();
            if scattered {
                input_gradient.fill(0.0);
            }
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let d = &received[first * row..][..rows * row];
                add_positions::<S>(d, bias_gradient);
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe {
                    if tiles.is_none() {
                        filter_gradient_rows::<S>(layer, place.inputs, input, d, first, rows, Start::Chain, weight_gradient);
                    }
                    if scattered {
                        data_gradient_rows::<S>(layer, place.outputs, &buffers.backward[..laid_out], d, first, rows, input_gradient);
                    }
                }
            }
            let Some(producer) = layer.producer else { continue };
            if let Some((adjoint, tiles)) = adjoint {
                for (y, from) in received.chunks_exact(row).enumerate() {
                    buffers.bordered[adjoint.input_map.at_row(y)..][..row].copy_from_slice(from);
                }
                let (row, group) = (adjoint.output.row(), group_rows(adjoint, *tiles));
                for (number, sums) in input_gradient.chunks_mut(group * row).enumerate() {
                    let (weights, points) = (&buffers.backward[..laid_out], &mut space.scratch.points);
                    let (d, first) = (&buffers.bordered, number * group);
                    // SAFETY: the adjoint has the extents of a physical network's layer, which `check` has bounded.
                    S::call(unsafe { ForwardRows::new(adjoint, *tiles, place.outputs, d, weights, None, first, sums, points) });
                }
            }
            space.keep(producer, layer.input, image, gradient_map, 0);
            if let Some(bypass) = layer.bypass {
                let block = space.network.convolution(bypass);
                let (size, inner) = (block.output.inner_len(), layer.input_map.inner_len());
                // The block's last convolution stands behind the layer, whose producer stands before it.
                let (before, behind) = space.layers.split_at_mut(bypass);
                let gradient = &behind[0].gradient[image * size..][..size];
                let to = &mut before[producer].gradient[image * inner..][..inner];
                let input = image_of(&space.maps[layer.input], layer.input_map, image);
                let stream = Map { before: 0, after: 0, ..layer.input_map };
                epilogue::add_shortcut_backward(block, gradient, stream, layer.input_map, input, to);
            }
        }
    }
}

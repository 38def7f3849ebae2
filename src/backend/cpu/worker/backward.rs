//! From the gradient of a map to the one that is kept for the layer that wrote it.

use super::super::epilogue::relu_backward;
use super::super::pooled::cut_dead;
use super::pass::Worker;
use crate::network::{Convolution, Epilogue, Layer, Map, Slot};

impl Worker {
    /// Writes the gradients that are kept for the layer `producer`, of the first `count` images: it wrote the map `written`, of which
    /// `scratch.input_gradient` has all gradients, without a border.
    #[inline(always)]
    pub(super) fn keep_all(&mut self, producer: usize, written: Slot, count: usize) {
        let map = self.network.maps[written];
        let (layer, buffers) = (&self.network.layers[producer], &mut self.layers[producer]);
        let images = self.scratch.input_gradient.chunks_exact(map.len()).zip(self.maps[written].chunks_exact(map.len()));
        for (image, ((gradient, values), to)) in images.zip(buffers.gradient.chunks_exact_mut(map.len())).take(count).enumerate() {
            keep(layer, &buffers.choice, image, map, values, map, gradient, to);
        }
    }
}

/// Writes the gradient that is kept for `producer`, of one image. It wrote `values` into a map of shape `map`, and if it is a maximum, `choices` for
/// all images; `gradient` is that of the map, of shape `gradient_map`, which may have another border. `to` has none.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn keep(
    producer: &Layer,
    choices: &[u8],
    image: usize,
    map: Map,
    values: &[f32],
    gradient_map: Map,
    gradient: &[f32],
    to: &mut [f32],
) {
    match producer {
        Layer::Convolution(Convolution { epilogue: Epilogue::ReluMaxPool { .. }, .. }) => {
            without_border(gradient_map, gradient, to);
            cut_dead(to, &choices[image * to.len()..][..to.len()]);
        }
        layer if layer.has_relu() => relu_backward(map, values, gradient_map, gradient, to),
        _ => without_border(gradient_map, gradient, to),
    }
}

#[inline(always)]
fn without_border(map: Map, values: &[f32], to: &mut [f32]) {
    let row = map.width * map.channels;
    for (y, to) in to.chunks_exact_mut(row).enumerate().take(map.height) {
        to.copy_from_slice(&values[map.at_row(y)..][..row]);
    }
}

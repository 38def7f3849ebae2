//! From the gradient of a map to the one that is kept for the layer that wrote it.

use super::super::epilogue::relu_backward;
use super::super::pooled::cut_dead;
use crate::network::{Convolution, Epilogue, Layer, Map};

/// Writes the gradient that is kept for `producer`, of one image. It wrote `values` into a map of shape `map`, and `choice` if it is a maximum;
/// `gradient` is that of the map, of shape `gradient_map`, which may have another border. `to` has none.
#[inline(always)]
pub(super) fn keep(producer: &Layer, choice: &[u8], map: Map, values: &[f32], gradient_map: Map, gradient: &[f32], to: &mut [f32]) {
    match producer {
        Layer::Convolution(Convolution { epilogue: Epilogue::ReluMaxPool { .. }, .. }) => {
            without_border(gradient_map, gradient, to);
            cut_dead(to, choice);
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

//! A fully connected layer, with all of its weights: a convolution of 1 × 1 whose positions are the images of the pass.

use std::ops::Range;

use super::super::convolution::{add_positions, filter_gradient_rows, forward_rows, laid_out_len, lay_out, transpose_matrix};
use super::super::dense::{adjoint_over_images, over_images};
use super::super::epilogue::rectify;
use super::super::simd::Simd;
use super::super::tile::Start;
use super::super::winograd::Points;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, DenseLayer, Place, Vectorised, VectorisedDense};
use super::workspace::{Pass, Workspace};
use crate::network::{Dense, DenseOutput, Network};

pub(super) struct Matrix(pub Dense);

impl CpuLayer for Matrix {
    fn describe(&self) -> &'static str {
        "images as positions"
    }

    fn make_room(&self, _network: &Network, images: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
        let over_images = over_images(&self.0, images);
        scratch.input_gradient.grow(self.0.inputs * images);
        buffers.forward.grow(laid_out_len(&over_images));
        scratch.rows.grow(over_images.output.len());
        if self.0.producer.is_some() {
            buffers.backward.grow(over_images.weight_count());
            scratch.reordered.grow(over_images.weight_count());
        }
    }

    fn most_bytes(&self) -> u64 {
        4 * self.0.inputs as u64
    }

    fn dense(&self) -> Option<&dyn DenseLayer> {
        Some(self)
    }
}

/// The gradient of the sums of some images.
#[inline(always)]
fn received<'a>(space: &'a Workspace, index: usize, layer: &Dense, images: Range<usize>) -> &'a [f32] {
    let range = images.start * layer.outputs..images.end * layer.outputs;
    match layer.output {
        DenseOutput::Logits => &space.logit_gradients[range],
        DenseOutput::Hidden { .. } => &space.layers[index].gradient[range],
    }
}

impl Vectorised for Matrix {
    #[inline(always)]
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        let (layer, buffers, scratch) = (&self.0, &mut space.layers[place.index], &mut space.scratch);
        let over_images = over_images(layer, 1);
        let weights = &weights[layer.weights..][..over_images.weight_count()];
        lay_out::<S>(&over_images, weights, &mut buffers.forward);
        if backward {
            transpose_matrix::<S>(weights, layer.inputs, layer.outputs, &mut scratch.reordered[..weights.len()]);
            let adjoint = adjoint_over_images(layer, 1);
            lay_out::<S>(&adjoint, &scratch.reordered[..weights.len()], &mut buffers.backward);
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let layer = &self.0;
        let space = &mut *pass.space;
        let over_images = over_images(layer, pass.count);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        let sums = &mut space.scratch.rows[..over_images.output.len()];
        let input = &space.maps[layer.input][..over_images.input_map.len()];
        let (live, weights, points) = (place.inputs, &space.layers[place.index].forward, &mut space.scratch.points);
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { forward_rows::<S>(&over_images, live, input, weights, Some(bias), 0, sums, points) };
        match layer.output {
            DenseOutput::Logits => space.logits[..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: false } => space.maps[written][..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: true } => {
                space.maps[written].iter_mut().zip(&*sums).for_each(|(to, &sum)| *to = rectify(sum));
            }
        }
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        // Before the first pass the gradient holds numbers of no use: `Plan::clear` leaves them as they were.
        let start = if pass.is_first { Start::First } else { Start::Chain };
        VectorisedDense::leaf_gradient::<S>(self, place, pass, 0..pass.count);
        VectorisedDense::weight_gradient::<S>(self, place, pass, start);
        VectorisedDense::send::<S>(self, place, pass);
    }
}

impl VectorisedDense for Matrix {
    const WRITES_WEIGHTS: bool = true;

    #[inline(always)]
    fn leaf_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, images: Range<usize>) {
        let layer = &self.0;
        let bias = &mut pass.gradient[place.bias..][..layer.outputs];
        add_positions::<S>(received(pass.space, place.index, layer, images), bias);
    }

    #[inline(always)]
    fn weight_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, start: Start) {
        let layer = &self.0;
        let count = pass.count;
        let (input, d) = (&pass.space.maps[layer.input][..count * layer.inputs], received(pass.space, place.index, layer, 0..count));
        let gradient = &mut pass.gradient[place.weights..place.bias];
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { filter_gradient_rows::<S>(&over_images(layer, count), place.inputs, input, d, 0, 1, start, gradient) };
    }

    #[inline(always)]
    fn send<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let layer = &self.0;
        let Some(producer) = layer.producer else { return };
        let (space, count, live) = (&mut *pass.space, pass.count, place.outputs);
        let adjoint = adjoint_over_images(layer, count);
        let mut sent = std::mem::take(&mut space.scratch.input_gradient);
        let mut points = Points::default();
        let d = received(space, place.index, layer, 0..count);
        let to = &mut sent[..count * layer.inputs];
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { forward_rows::<S>(&adjoint, live, d, &space.layers[place.index].backward, None, 0, to, &mut points) };
        space.scratch.input_gradient = sent;
        space.keep_all(producer, layer.input, count);
    }
}

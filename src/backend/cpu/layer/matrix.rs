//! A fully connected layer: with all of its weights a convolution of 1 × 1 whose positions are the images of the pass, with few of them sums over
//! kept weights (`kept_matrix.rs`).

use std::ops::Range;

use super::super::convolution::{ForwardRows, add_positions, filter_gradient_rows, laid_out_len, lay_out, transpose_matrix};
use super::super::dense::{adjoint_over_images, over_images};
use super::super::epilogue::rectify;
use super::super::kept_matrix::{KeptMatrix, gradients, images_last, row, sums};
use super::super::pooled::Event;
use super::super::simd::Simd;
use super::super::tile::Start;
use super::super::vector_unit::VectorUnit;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, DenseLayer, Place, Vectorised, VectorisedDense};
use super::workspace::{Pass, Workspace};
use crate::network::{Dense, DenseOutput, Network};

pub(super) struct Matrix {
    layer: Dense,
    /// The kept weights, where the layer's sums visit these alone.
    kept: Option<KeptMatrix>,
}

impl Matrix {
    /// The layer where `kept` flags the network's parameters.
    pub(super) fn new(layer: &Dense, kept: Option<&[bool]>) -> Matrix {
        Matrix { layer: layer.clone(), kept: kept.and_then(|kept| KeptMatrix::new(layer, kept)) }
    }

    /// The blocks of weights whose gradient is computed, where these are not all.
    fn blocks(&self) -> Option<&[u32]> {
        self.kept.as_ref().and_then(|kept| kept.blocks.as_deref())
    }
}

impl CpuLayer for Matrix {
    fn describe(&self) -> &'static str {
        match (&self.kept, self.blocks()) {
            (None, _) => "images as positions",
            (Some(_), None) => "images as positions, kept weights",
            (Some(_), Some(_)) => "images as positions, kept weights; gradients by kept blocks",
        }
    }

    fn make_room(&self, _network: &Network, images: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
        let Dense { inputs, outputs, .. } = self.layer;
        let over_images = over_images(&self.layer, images);
        scratch.input_gradient.grow(inputs * row(images));
        buffers.forward.grow(laid_out_len(&over_images, None));
        scratch.rows.grow(outputs * row(images));
        for floats in [&mut scratch.phases, &mut scratch.planar] {
            floats.grow(inputs.max(outputs) * row(images));
        }
        if self.layer.producer.is_some() {
            buffers.backward.grow(over_images.weight_count());
            scratch.reordered.grow(over_images.weight_count());
        }
    }

    fn lay_out(&self, places: &mut [u32]) -> usize {
        match self.blocks() {
            Some(blocks) => KeptMatrix::lay_out(blocks, places),
            None => {
                places.iter_mut().enumerate().for_each(|(weight, place)| *place = weight as u32);
                places.len()
            }
        }
    }

    fn collect(&self, _unit: VectorUnit, from: &[f32], to: &mut [f32]) {
        match self.blocks() {
            Some(blocks) => KeptMatrix::collect(blocks, from, to),
            None => to[..from.len()].copy_from_slice(from),
        }
    }

    fn work(&self, forward: f64) -> f64 {
        forward * (1.0 + 2.0 * self.kept.as_ref().map_or(1.0, |kept| kept.part(&self.layer)))
    }

    /// Room for the `starts` of both [`Taps`](crate::backend::cpu::pruned::Taps). Kept weights themselves are fewer than the bytes of a lane count
    /// for parameters.
    fn most_bytes(&self) -> u64 {
        4 * (self.layer.inputs + self.layer.outputs + 2) as u64
    }

    fn writes_weights(&self) -> bool {
        true
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
        let (layer, buffers, scratch) = (&self.layer, &mut space.layers[place.index], &mut space.scratch);
        let over_images = over_images(layer, 1);
        let weights = &weights[layer.weights..][..over_images.weight_count()];
        if let Some(KeptMatrix { forward, backward, .. }) = &self.kept {
            let taps = forward.taps.iter().chain(&backward.taps);
            buffers.taps.clear();
            buffers.taps.extend(taps.map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
            return;
        }
        lay_out::<S>(&over_images, None, weights, &mut buffers.forward);
        if backward {
            transpose_matrix::<S>(weights, layer.inputs, layer.outputs, &mut scratch.reordered[..weights.len()]);
            let adjoint = adjoint_over_images(layer, 1);
            lay_out::<S>(&adjoint, None, &scratch.reordered[..weights.len()], &mut buffers.backward);
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let layer = &self.layer;
        let space = &mut *pass.space;
        let over_images = over_images(layer, pass.count);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        let input = &space.maps[layer.input][..over_images.input_map.len()];
        let (buffers, scratch) = (&space.layers[place.index], &mut space.scratch);
        if let Some(KeptMatrix { forward, .. }) = &self.kept {
            let events = &buffers.taps[..forward.taps.len()];
            let [read, made] = [layer.inputs, layer.outputs].map(|channels| channels * row(pass.count));
            let (read, made) = (&mut scratch.phases[..read], &mut scratch.planar[..made]);
            images_last::<S>(input, pass.count, layer.inputs, read);
            sums::<S>(forward, events, bias, read, pass.count, made);
            transpose_matrix::<S>(made, layer.outputs, row(pass.count), &mut scratch.rows[..made.len()]);
        } else {
            let (live, weights, sums) = (place.inputs, &buffers.forward, &mut scratch.rows[..over_images.output.len()]);
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
            S::call(unsafe { ForwardRows::new(&over_images, None, live, input, weights, Some(bias), 0, sums, &mut scratch.points) });
        }
        let sums = &scratch.rows[..over_images.output.len()];
        match layer.output {
            DenseOutput::Logits => space.logits[..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: false } => space.maps[written][..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: true } => {
                space.maps[written].iter_mut().zip(sums).for_each(|(to, &sum)| *to = rectify(sum));
            }
        }
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        VectorisedDense::leaf_gradient::<S>(self, place, pass, 0..pass.count);
        VectorisedDense::weight_gradient::<S>(self, place, pass, pass.start());
        VectorisedDense::send::<S>(self, place, pass);
    }
}

impl VectorisedDense for Matrix {
    #[inline(always)]
    fn leaf_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, images: Range<usize>) {
        let layer = &self.layer;
        let bias = &mut pass.gradient[place.bias..][..layer.outputs];
        add_positions::<S>(received(pass.space, place.index, layer, images), bias);
    }

    #[inline(always)]
    fn weight_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, start: Start) {
        let layer = &self.layer;
        let count = pass.count;
        let (input, d) = (&pass.space.maps[layer.input][..count * layer.inputs], received(pass.space, place.index, layer, 0..count));
        let gradient = &mut pass.gradient[place.weights..place.bias];
        if let Some(blocks) = self.blocks() {
            return gradients::<S>(layer, blocks, input, d, start, gradient);
        }
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { filter_gradient_rows::<S>(&over_images(layer, count), place.inputs, input, d, 0, 1, start, gradient) };
    }

    #[inline(always)]
    fn send<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let layer = &self.layer;
        let Some(producer) = layer.producer else { return };
        let (space, count, live) = (&mut *pass.space, pass.count, place.outputs);
        let mut scratch = std::mem::take(&mut space.scratch);
        let d = received(space, place.index, layer, 0..count);
        let buffers = &space.layers[place.index];
        if let Some(KeptMatrix { forward, backward, .. }) = &self.kept {
            let events = &buffers.taps[forward.taps.len()..];
            let [read, made] = [layer.outputs, layer.inputs].map(|channels| channels * row(count));
            let (read, made) = (&mut scratch.phases[..read], &mut scratch.planar[..made]);
            images_last::<S>(d, count, layer.outputs, read);
            sums::<S>(backward, events, &[], read, count, made);
            transpose_matrix::<S>(made, layer.inputs, row(count), &mut scratch.input_gradient[..made.len()]);
        } else {
            let (adjoint, to) = (adjoint_over_images(layer, count), &mut scratch.input_gradient[..count * layer.inputs]);
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
            S::call(unsafe { ForwardRows::new(&adjoint, None, live, d, &buffers.backward, None, 0, to, &mut scratch.points) });
        }
        space.scratch = scratch;
        space.keep_all(producer, layer.input, count);
    }
}

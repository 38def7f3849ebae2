//! A fully connected layer, with all of its weights: a convolution of 1 × 1 whose positions are the images of the pass.

use std::ops::Range;

use super::super::convolution::{add_positions, filter_gradient_rows, forward_rows};
use super::super::dense::{adjoint_over_images, over_images};
use super::super::epilogue::rectify;
use super::super::simd::{Kernel, Simd};
use super::super::tile::Start;
use super::super::winograd::Points;
use super::pass::{Pass, Worker};
use crate::network::{Dense, DenseOutput};

/// The forward pass of a layer.
pub(super) struct Forward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
}

impl Kernel for Forward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let over_images = over_images(layer, pass.count);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        let sums = &mut worker.scratch.rows[..over_images.output.len()];
        let input = &worker.maps[layer.input][..over_images.input_map.len()];
        let (live, weights, points) = (pass.plan.layers[index].inputs, &worker.layers[index].forward, &mut worker.scratch.points);
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { forward_rows::<S>(&over_images, live, input, weights, Some(bias), 0, sums, points) };
        match layer.output {
            DenseOutput::Logits => worker.logits[..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: false } => worker.maps[written][..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: true } => {
                worker.maps[written].iter_mut().zip(&*sums).for_each(|(to, &sum)| *to = rectify(sum));
            }
        }
    }
}

/// The gradient of the sums of some images.
#[inline(always)]
fn received<'a>(worker: &'a Worker, index: usize, layer: &Dense, images: Range<usize>) -> &'a [f32] {
    let range = images.start * layer.outputs..images.end * layer.outputs;
    match layer.output {
        DenseOutput::Logits => &worker.logit_gradients[range],
        DenseOutput::Hidden { .. } => &worker.layers[index].gradient[range],
    }
}

/// Adds to the gradient of the bias, over some images.
pub(super) struct Bias<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
    pub images: Range<usize>,
}

impl Kernel for Bias<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Bias { pass, index, layer, images } = self;
        let bias = &mut pass.gradient[pass.plan.layers[index].bias..][..layer.outputs];
        add_positions::<S>(received(pass.worker, index, layer, images), bias);
    }
}

/// Makes the gradient of the weights, over all images.
pub(super) struct Weights<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
    pub start: Start<'a>,
}

impl Kernel for Weights<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Weights { pass, index, layer, start } = self;
        let (plan, count) = (&pass.plan.layers[index], pass.count);
        let (input, d) = (&pass.worker.maps[layer.input][..count * layer.inputs], received(pass.worker, index, layer, 0..count));
        let gradient = &mut pass.gradient[plan.weights..plan.bias];
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { filter_gradient_rows::<S>(&over_images(layer, count), plan.inputs, input, d, 0, 1, start, gradient) };
    }
}

/// Sends the gradient of all images to the producer, if there is one.
pub(super) struct Send<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
}

impl Kernel for Send<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Send { pass, index, layer } = self;
        let Some(producer) = layer.producer else { return };
        let (worker, count, live) = (&mut *pass.worker, pass.count, pass.plan.layers[index].outputs);
        let adjoint = adjoint_over_images(layer, count);
        let mut sent = std::mem::take(&mut worker.scratch.input_gradient);
        let mut points = Points::default();
        let d = received(worker, index, layer, 0..count);
        let to = &mut sent[..count * layer.inputs];
        // SAFETY: the layer is the physical network's, whose extents `check` has bounded, over the images of a pass.
        unsafe { forward_rows::<S>(&adjoint, live, d, &worker.layers[index].backward, None, 0, to, &mut points) };
        worker.scratch.input_gradient = sent;
        worker.keep_all(producer, layer.input, count);
    }
}

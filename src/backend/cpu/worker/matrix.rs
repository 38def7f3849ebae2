//! A fully connected layer, with all of its weights: a convolution of 1 × 1 whose positions are the images of the pass.

use super::super::convolution::{add_positions, filter_gradient_rows, forward_rows};
use super::super::dense::{adjoint_over_images, over_images};
use super::super::epilogue::rectify;
use super::super::simd::{Kernel, Simd};
use super::super::tile::Start;
use super::pass::Pass;
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
    unsafe fn run<S: Simd>(self) {
        let Forward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let over_images = over_images(layer, pass.count);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        let sums = &mut worker.scratch.rows[..over_images.output.len()];
        let input = &worker.maps[layer.input][..over_images.input_map.len()];
        unsafe { forward_rows::<S>(&over_images, input, &worker.layers[index].forward, Some(bias), 0, sums, &mut worker.scratch.points) };
        match layer.output {
            DenseOutput::Logits => worker.logits[..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: false } => worker.maps[written][..sums.len()].copy_from_slice(sums),
            DenseOutput::Hidden { written, relu: true } => {
                worker.maps[written].iter_mut().zip(&*sums).for_each(|(to, &sum)| *to = rectify(sum));
            }
        }
    }
}

/// The backward pass of a layer.
pub(super) struct Backward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
}

impl Kernel for Backward<'_, '_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Backward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let count = pass.count;
        let over = over_images(layer, count);
        let plan = &pass.plan.layers[index];
        let (weight_gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(plan.bias - plan.weights);
        let input = &worker.maps[layer.input][..count * layer.inputs];
        let d = match layer.output {
            DenseOutput::Logits => &worker.logit_gradients[..count * layer.outputs],
            DenseOutput::Hidden { .. } => &worker.layers[index].gradient[..count * layer.outputs],
        };
        // What is there is of no use: `Plan::clear` leaves it as it was.
        let start = if pass.first { Start::First } else { Start::Chain };
        unsafe {
            add_positions::<S>(d, &mut bias_gradient[..layer.outputs]);
            filter_gradient_rows::<S>(&over, input, d, 0, 1, start, weight_gradient);
        }
        let Some(producer) = layer.producer else { return };
        let adjoint = adjoint_over_images(layer, count);
        let sent = &mut worker.scratch.input_gradient[..count * layer.inputs];
        unsafe { forward_rows::<S>(&adjoint, d, &worker.layers[index].backward, None, 0, sent, &mut worker.scratch.points) };
        worker.keep_all(producer, layer.input, count);
    }
}

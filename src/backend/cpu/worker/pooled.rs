//! A convolution that ends in ReLU and 2 × 2 max-pooling, by the kernels that the plan chose.

use super::super::convolution::{RESIDENT_WEIGHTS, forward_rows, group_rows};
use super::super::plan::{Pooled, PooledGradient};
use super::super::pooled;
use super::super::simd::{Kernel, Simd};
use super::super::taps;
use super::backward::keep;
use super::pass::{Pass, image_of};
use crate::network::Convolution;

/// The forward pass of a layer.
pub(super) struct Forward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Convolution,
    pub pooled: &'a Pooled,
}

impl Kernel for Forward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { pass, index, layer, pooled } = self;
        let is_training = pass.is_training;
        let worker = &mut *pass.worker;
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let written = layer.epilogue.written();
        let map = worker.network.maps[written];
        let mut output = std::mem::take(&mut worker.maps[written]);
        let (group, live) = (group_rows(layer), pass.plan.layers[index].inputs);
        // Which of the two it is changes no bit.
        let resident = layer.kernel * layer.run() * S::WIDTH.min(layer.output.channels) * 2 <= RESIDENT_WEIGHTS;
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let (buffers, scratch) = (&mut worker.layers[index], &mut worker.scratch);
            let output = &mut output[image * map.len()..][..map.len()];
            let choice: &mut [u8] = if is_training { &mut buffers.choice[image * map.inner_len()..][..map.inner_len()] } else { &mut [] };
            if let Some(plan) = &pooled.taps {
                let (phases, planar) = (&mut scratch.phases, &mut scratch.planar);
                // SAFETY: the plan is of this network (`Task::check_lanes`), so its taps and corners are the layer's, and `prepare` has made
                // `buffers.taps` of them; `Taps::new` has made sure of whole vectors and even rows.
                unsafe {
                    taps::phases::<S>(layer, &plan.corners, input, phases);
                    taps::forward_taps::<S>(layer, plan, &buffers.taps, phases, bias, planar, output, choice);
                }
            } else if resident {
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe { pooled::forward_resident::<S>(layer, input, &buffers.forward, bias, map, output, choice) };
            } else {
                for first in (0..layer.output.height).step_by(group) {
                    let rows = group.min(layer.output.height - first);
                    let sums = &mut scratch.rows[..rows * layer.output.row()];
                    // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                    unsafe {
                        forward_rows::<S>(layer, live, input, &buffers.forward, Some(bias), first, sums, &mut scratch.points);
                        pooled::pool_rows::<S>(layer, sums, first, rows, map, output, choice);
                    }
                }
            }
        }
        worker.maps[written] = output;
    }
}

/// The backward pass of a layer.
pub(super) struct Backward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Convolution,
    pub pooled: &'a Pooled,
}

impl Kernel for Backward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Backward { pass, index, layer, pooled } = self;
        let worker = &mut *pass.worker;
        let network = &*worker.network;
        let own = network.maps[layer.epilogue.written()].inner_len();
        let plan = &pass.plan.layers[index];
        let (weight_gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(plan.bias - plan.weights);
        let bias_gradient = &mut bias_gradient[..layer.output.channels];
        let mut producer = layer.producer.map(|producer| (producer, std::mem::take(&mut worker.layers[producer].gradient)));
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let (buffers, scratch) = (&worker.layers[index], &mut worker.scratch);
            let received = &buffers.gradient[image * own..][..own];
            let choice = &buffers.choice[image * own..][..own];
            let sent = if producer.is_some() { layer.input_map.len() } else { 0 };
            scratch.input_gradient[..sent].fill(0.0);
            pooled::bias_gradient(received, bias_gradient);
            match &pooled.gradient {
                PooledGradient::Windows => {
                    pooled::patches(layer.input_map, input, &mut scratch.patches);
                    // SAFETY: `patches` has just been called with this map; channels of a physical network are whole vectors.
                    unsafe { pooled::filter_gradient_selected::<S>(layer, &scratch.patches, received, choice, weight_gradient) };
                }
                // SAFETY: the plan is of this network (`Task::check_lanes`), so its blocks are the layer's, whose events are listed first.
                PooledGradient::Events(blocks) => unsafe {
                    let few = blocks.sent.is_some();
                    if few {
                        scratch.events.list_few::<S>(layer, blocks, received, choice);
                    } else {
                        scratch.events.list(layer, blocks, received, choice);
                    }
                    pooled::filter_gradient_events::<S>(layer, input, &scratch.events, blocks, weight_gradient);
                    if producer.is_some() && few {
                        pooled::data_gradient_blocks::<S>(layer, blocks, &buffers.backward, &scratch.events, &mut scratch.input_gradient);
                    } else if producer.is_some() {
                        pooled::data_gradient_events::<S>(layer, &buffers.backward, &scratch.events, &mut scratch.input_gradient[..sent]);
                    }
                },
            }
            let Some((producer, gradients)) = &mut producer else { continue };
            let inner = layer.input_map.inner_len();
            let to = &mut gradients[image * inner..][..inner];
            let choices = &worker.layers[*producer].choice;
            let input_gradient = &worker.scratch.input_gradient[..sent];
            keep(&network.layers[*producer], choices, image, layer.input_map, input, layer.input_map, input_gradient, to);
        }
        if let Some((index, gradients)) = producer {
            worker.layers[index].gradient = gradients;
        }
    }
}

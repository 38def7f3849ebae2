//! A convolution without a pool, with all of its weights: groups of rows of sums, and what follows them while they are in the cache.

use super::super::convolution::{add_positions, data_gradient_rows, filter_gradient_rows, forward_rows, group_rows};
use super::super::epilogue;
use super::super::floats::Floats;
use super::super::simd::{Kernel, Simd};
use super::super::tile::Start;
use super::super::winograd;
use super::backward::keep;
use super::pass::{Pass, image_of};
use crate::network::{Convolution, Epilogue, Map};

/// The forward pass of a layer.
pub(super) struct Forward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Convolution,
}

impl Kernel for Forward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let written = layer.epilogue.written();
        let map = worker.network.maps[written];
        let mut output = std::mem::take(&mut worker.maps[written]);
        let mut stream = match layer.epilogue {
            Epilogue::Stream { stream, .. } => std::mem::take(&mut worker.maps[stream]),
            _ => Floats::default(),
        };
        let (group, live) = (group_rows(layer), pass.plan.layers[index].inputs);
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let output = &mut output[image * map.len()..][..map.len()];
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let sums = &mut worker.scratch.rows[..rows * layer.output.row()];
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe {
                    forward_rows::<S>(
                        layer,
                        live,
                        input,
                        &worker.layers[index].forward,
                        Some(bias),
                        first,
                        sums,
                        &mut worker.scratch.points,
                    )
                };
                match layer.epilogue {
                    Epilogue::Linear { .. } => epilogue::copy(layer, sums, first, rows, map, output),
                    Epilogue::Stream { shortcut, .. } => {
                        if let Some(shortcut) = shortcut {
                            let from = worker.network.maps[shortcut];
                            epilogue::add_shortcut(layer, from, image_of(&worker.maps[shortcut], from, image), first, rows, sums);
                        }
                        let offset = image * layer.output.len() + first * layer.output.row();
                        stream[offset..][..sums.len()].copy_from_slice(sums);
                        epilogue::relu(layer, sums, first, rows, map, output);
                    }
                    Epilogue::Relu { .. } | Epilogue::ReluMaxPool { .. } => epilogue::relu(layer, sums, first, rows, map, output),
                }
            }
        }
        worker.maps[written] = output;
        if let Epilogue::Stream { stream: slot, .. } = layer.epilogue {
            worker.maps[slot] = stream;
        }
    }
}

/// The backward pass of a layer.
pub(super) struct Backward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Convolution,
}

impl Kernel for Backward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Backward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let network = &*worker.network;
        let (channels, row, group) = (layer.output.channels, layer.output.row(), group_rows(layer));
        let own = layer.output.inner_len();
        let plan = &pass.plan.layers[index];
        let (weight_gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(plan.bias - plan.weights);
        let bias_gradient = &mut bias_gradient[..channels];
        let mut producer = layer.producer.map(|producer| (producer, std::mem::take(&mut worker.layers[producer].gradient)));
        let winograd = winograd::fits(layer);
        if winograd {
            let input = |image: usize| image_of(&worker.maps[layer.input], layer.input_map, image);
            let d = |image: usize| &worker.layers[index].gradient[image * own..][..own];
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
            unsafe {
                winograd::filter_gradient::<S>(layer, plan.inputs, pass.count, input, d, weight_gradient, &mut worker.scratch.points)
            };
        }
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let buffers = &mut worker.layers[index];
            let received = &buffers.gradient[image * own..][..own];
            let gradient_map = buffers.adjoint.as_ref().map_or(layer.input_map, |adjoint| adjoint.output);
            let sent = if producer.is_some() { gradient_map.len() } else { 0 };
            let input_gradient = &mut worker.scratch.input_gradient[..sent];
            let scattered = producer.is_some() && buffers.adjoint.is_none();
            if scattered {
                input_gradient.fill(0.0);
            }
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let d = &received[first * row..][..rows * row];
                add_positions::<S>(d, bias_gradient);
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe {
                    if !winograd {
                        filter_gradient_rows::<S>(layer, plan.inputs, input, d, first, rows, Start::Chain, weight_gradient);
                    }
                    if scattered {
                        data_gradient_rows::<S>(layer, plan.outputs, &buffers.backward, d, first, rows, input_gradient);
                    }
                }
            }
            let Some((producer, gradients)) = &mut producer else { continue };
            if let Some(adjoint) = &buffers.adjoint {
                for (y, from) in received.chunks_exact(row).enumerate() {
                    buffers.bordered[adjoint.input_map.at_row(y)..][..row].copy_from_slice(from);
                }
                let (row, group) = (adjoint.output.row(), group_rows(adjoint));
                for (number, sums) in input_gradient.chunks_mut(group * row).enumerate() {
                    let (weights, points) = (&buffers.backward, &mut worker.scratch.points);
                    // SAFETY: the adjoint has the extents of a physical network's layer, which `check` has bounded.
                    unsafe { forward_rows::<S>(adjoint, plan.outputs, &buffers.bordered, weights, None, number * group, sums, points) };
                }
            }
            let inner = layer.input_map.inner_len();
            let to = &mut gradients[image * inner..][..inner];
            let choices = &worker.layers[*producer].choice;
            keep(&network.layers[*producer], choices, image, layer.input_map, input, gradient_map, input_gradient, to);
            if let Some(bypass) = layer.bypass {
                let block = network.convolution(bypass);
                let size = block.output.inner_len();
                let gradient = &worker.layers[bypass].gradient[image * size..][..size];
                let stream = Map { before: 0, after: 0, ..layer.input_map };
                epilogue::add_shortcut_backward(block, gradient, stream, layer.input_map, input, to);
            }
        }
        if let Some((index, gradients)) = producer {
            worker.layers[index].gradient = gradients;
        }
    }
}

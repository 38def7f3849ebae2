//! Products of the loss's Hessian with a vector of parameters, by forward-over-reverse differentiation (Pearlmutter, "Fast Exact Multiplication by
//! the Hessian", 1994): each value of the forward and of the backward pass is carried with its derivative along the vector. ReLU and the maximum pass
//! the derivative of what they let through, as automatic differentiation does, so the product is exact but for rounding.
//!
//! GraSP asks for one such product a seed. Its convolutions are the ones that training uses; what follows them is plain loops.

use std::sync::Arc;

use super::convolution::{
    ForwardRows, adjoint, data_gradient_rows, filter_gradient_rows, forward_rows, group_rows, laid_out_len, lay_out, transpose,
};
use super::epilogue::rectify;
use super::floats::Floats;
use super::simd::{DEAD, Kernel, Simd};
use super::vector_unit::VectorUnit;
use super::winograd::{self, Points};
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, GlobalMean, Layer, Map, Network, Slot};

/// Images of a pass: few enough for their maps to stay in the second-level cache.
const PASS: usize = 4;

/// A value and its derivative along the vector.
type Pair<T> = [T; 2];

/// Where they are in a [`Pair`].
const VALUE: usize = 0;
const TANGENT: usize = 1;

fn pair(length: usize) -> Pair<Floats> {
    [Floats::zeros(length), Floats::zeros(length)]
}

/// One thread's buffers, for a pass.
pub(super) struct Tangents {
    unit: VectorUnit,
    network: Arc<Network>,
    /// One a map: `[image][map]`.
    maps: Vec<Pair<Floats>>,
    /// One a layer: `[image][gradient of a convolution's sums]`; empty for other layers.
    gradients: Vec<Pair<Floats>>,
    /// One a layer: `[image][what the pool chose]`; empty without a pool.
    choices: Vec<Vec<u8>>,
    /// One a layer: weights, and the vector's part in their place, for the forward pass and for the data gradient.
    forward: Vec<Pair<Floats>>,
    backward: Vec<Pair<Floats>>,
    /// One a layer: the convolution that is its data gradient, where that is how it is computed.
    adjoints: Vec<Option<Convolution>>,
    /// `[image][classes]`.
    logits: Pair<Floats>,
    /// `[image][inputs of the fully connected layer]`: their gradient.
    dense: Pair<Floats>,
    /// A group of rows of sums, and what is added to their derivative.
    rows: [Floats; 3],
    /// One image's gradient of a convolution's input, and what is added to its derivative.
    input: [Floats; 3],
    bordered: Floats,
    reordered: Floats,
    points: Points,
    /// The weights that were laid out last.
    prepared: Option<u64>,
}

/// What a product is of.
#[derive(Clone, Copy)]
pub(super) struct Along<'a> {
    /// The parameters.
    pub weights: &'a [f32],
    /// The vector, as long.
    pub vector: &'a [f32],
    /// What logits are divided by.
    pub temperature: f32,
}

impl<'a> Along<'a> {
    /// A run of the parameters, and of the vector.
    fn part(&self, from: usize, length: usize) -> Pair<&'a [f32]> {
        [&self.weights[from..from + length], &self.vector[from..from + length]]
    }
}

fn image(values: &[f32], length: usize, index: usize) -> &[f32] {
    &values[index * length..][..length]
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

impl Tangents {
    /// Whether it knows all layers of a network: convolutions with ReLU, a pool or a shortcut like the paper's networks', a global mean, logits.
    pub(super) fn fits(network: &Network) -> bool {
        let plain = |map: Map| map.before == 0 && map.after == 0;
        network.layers.iter().all(|layer| {
            let convolution = |index: usize| matches!(network.layers[index], Layer::Convolution(_));
            let known = match layer {
                Layer::Convolution(layer) => match layer.epilogue {
                    Epilogue::Linear { .. } => false,
                    Epilogue::ReluMaxPool { pooled } => {
                        plain(network.maps[pooled]) && layer.output.height.is_multiple_of(2) && layer.output.width.is_multiple_of(2)
                    }
                    Epilogue::Relu { .. } => true,
                    Epilogue::Stream { shortcut, .. } => {
                        let from = shortcut.map_or(layer.output, |slot| network.maps[slot]);
                        from == layer.output || from.height == 2 * layer.output.height
                    }
                },
                Layer::Pool(_) => false,
                Layer::GlobalMean(layer) => layer.producer.is_some(),
                Layer::Dense(layer) => layer.output == DenseOutput::Logits && layer.outputs == network.classes,
            };
            let mean = |index: usize| matches!((&network.layers[index], layer), (Layer::GlobalMean(_), Layer::Dense(_)));
            known && layer.producer().is_none_or(|producer| convolution(producer) || mean(producer))
        })
    }

    pub(super) fn new(network: Arc<Network>, unit: VectorUnit) -> Tangents {
        let mut tangents = Tangents {
            unit,
            maps: network.maps.iter().map(|map| pair(map.len() * PASS)).collect(),
            gradients: Vec::new(),
            choices: Vec::new(),
            forward: Vec::new(),
            backward: Vec::new(),
            adjoints: Vec::new(),
            logits: pair(network.classes * PASS),
            dense: pair(0),
            rows: Default::default(),
            input: Default::default(),
            bordered: Floats::default(),
            reordered: Floats::default(),
            points: Points::default(),
            prepared: None,
            network: network.clone(),
        };
        for layer in &network.layers {
            let (mut sums, mut chosen, mut forward, mut backward, mut back) = (0, 0, 0, 0, None);
            match layer {
                Layer::Convolution(layer) => {
                    sums = layer.output.len();
                    forward = laid_out_len(layer);
                    if let Epilogue::ReluMaxPool { pooled } = layer.epilogue {
                        chosen = network.maps[pooled].inner_len();
                    }
                    tangents.points.grow(layer);
                    let group = group_rows(layer) * layer.output.row();
                    tangents.rows.iter_mut().for_each(|rows| rows.grow(group));
                    if layer.producer.is_some() {
                        // Where a layer without padding is smaller than its input, the adjoint would mostly multiply its border.
                        back = adjoint(layer).filter(|_| layer.output.height == layer.input_map.height);
                        backward = back.as_ref().map_or(layer.weight_count(), laid_out_len);
                        tangents.reordered.grow(layer.weight_count());
                        tangents.bordered.grow(back.as_ref().map_or(0, |back| back.input_map.len()));
                        tangents.input.iter_mut().for_each(|input| input.grow(layer.input_map.len()));
                    }
                }
                Layer::Dense(layer) => tangents.dense = pair(layer.inputs * PASS),
                Layer::Pool(_) | Layer::GlobalMean(_) => {}
            }
            tangents.gradients.push(pair(sums * PASS));
            tangents.choices.push(vec![DEAD; chosen * PASS]);
            tangents.forward.push(pair(forward));
            tangents.backward.push(pair(backward));
            tangents.adjoints.push(back);
        }
        tangents
    }

    /// Lays weights and vector out for the kernels; `version` tells one set of them from another.
    pub(super) fn prepare(&mut self, along: &Along, version: u64) {
        if self.prepared == Some(version) {
            return;
        }
        self.prepared = Some(version);
        let network = self.network.clone();
        for (index, layer) in network.layers.iter().enumerate() {
            let Layer::Convolution(layer) = layer else { continue };
            for (kind, values) in along.part(layer.weights, layer.weight_count()).into_iter().enumerate() {
                let (forward, backward) = (&mut self.forward[index][kind], &mut self.backward[index][kind]);
                let room = &mut self.reordered;
                self.unit.run(LayOut { layer, adjoint: self.adjoints[index].as_ref(), values, forward, backward, room });
            }
        }
    }

    /// Adds H · vector, H the Hessian of the loss summed over these images, to `product`, in the parameters' order, and returns the summed loss.
    /// `images` are `[image][bordered map]`; [`Tangents::prepare`] must have seen the same weights and vector.
    pub(super) fn add_product(&mut self, images: &[f32], labels: &[u16], along: &Along, product: &mut [f32]) -> f32 {
        let network = self.network.clone();
        let length = network.maps[0].len();
        let mut loss = 0.0;
        for (images, labels) in images.chunks(PASS * length).zip(labels.chunks(PASS)) {
            let count = labels.len();
            self.maps[0][VALUE][..images.len()].copy_from_slice(images);
            for (index, layer) in network.layers.iter().enumerate() {
                match layer {
                    Layer::Convolution(layer) => self.convolution(index, layer, along, count),
                    Layer::Pool(_) => unreachable!("`fits` refuses it"),
                    Layer::GlobalMean(layer) => self.mean(layer, count),
                    Layer::Dense(layer) => self.fully_connected(layer, along, count),
                }
            }
            loss += self.softmax(labels, along.temperature);
            for (index, layer) in network.layers.iter().enumerate().rev() {
                match layer {
                    Layer::Convolution(layer) => self.convolution_backward(index, layer, count, product),
                    Layer::Pool(_) => unreachable!("`fits` refuses it"),
                    Layer::GlobalMean(layer) => self.mean_backward(layer, count),
                    Layer::Dense(layer) => self.fully_connected_backward(layer, along, count, product),
                }
            }
        }
        loss
    }

    fn convolution(&mut self, index: usize, layer: &Convolution, along: &Along, count: usize) {
        let bias = along.part(layer.bias, layer.output.channels);
        let (group, row) = (group_rows(layer), layer.output.row());
        for at in 0..count {
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let [sums, tangents, more] = &mut self.rows;
                let [sums, tangents, more] = [sums, tangents, more].map(|floats| &mut floats[..rows * row]);
                let [input, input_tangent] = &self.maps[layer.input];
                let [weights, vector] = &self.forward[index];
                let (unit, points, length) = (self.unit, &mut self.points, layer.input_map.len());
                let input = image(input, length, at);
                unit.run(ForwardRows { layer, input, weights, bias: Some(bias[VALUE]), first, sums, points });
                unit.run(ForwardRows { layer, input, weights: vector, bias: Some(bias[TANGENT]), first, sums: tangents, points });
                if layer.producer.is_some() {
                    let input = image(input_tangent, length, at);
                    unit.run(ForwardRows { layer, input, weights, bias: None, first, sums: more, points });
                    add(tangents, more);
                }
                self.epilogue(index, layer, at, first, rows);
            }
        }
    }

    /// What follows the sums of some rows.
    fn epilogue(&mut self, index: usize, layer: &Convolution, at: usize, first: usize, rows: usize) {
        let network = &self.network;
        let (width, channels, row) = (layer.output.width, layer.output.channels, layer.output.row());
        let [sums, tangents, _] = &mut self.rows;
        let rectified_slot = layer.epilogue.written();
        let map = network.maps[rectified_slot];
        match layer.epilogue {
            Epilogue::Linear { .. } => unreachable!("`fits` refuses it"),
            Epilogue::ReluMaxPool { .. } => {
                let chosen = &mut self.choices[index][at * map.inner_len()..][..map.inner_len()];
                let [values, derivatives] = &mut self.maps[rectified_slot];
                for window in 0..rows / 2 * (width / 2) {
                    let (y, x) = (window / (width / 2), window % (width / 2));
                    let to = at * map.len() + map.at_row(first / 2 + y) + x * channels;
                    let choice = ((first / 2 + y) * (width / 2) + x) * channels;
                    for o in 0..channels {
                        let place = |i: usize| (2 * y + i / 2) * row + (2 * x + i % 2) * channels + o;
                        let (mut best, mut which) = (0.0_f32, DEAD);
                        for i in 0..4 {
                            let value = sums[place(i)];
                            // A NaN wins over everything after it, and so is seen in the loss.
                            if !best.is_nan() && (value > best || value.is_nan()) {
                                (best, which) = (value, i as u8);
                            }
                        }
                        values[to + o] = best;
                        derivatives[to + o] = if which == DEAD { 0.0 } else { tangents[place(which.into())] };
                        chosen[choice + o] = which;
                    }
                }
                return;
            }
            Epilogue::Stream { stream, shortcut, .. } => {
                if let Some(shortcut) = shortcut {
                    let from = network.maps[shortcut];
                    let [values, derivatives] = self.maps[shortcut].each_ref().map(|floats| image(floats, from.len(), at));
                    add_shortcut(layer.output, from, values, derivatives, first, rows, sums, tangents);
                }
                let offset = at * layer.output.len() + first * row;
                self.maps[stream][VALUE][offset..][..rows * row].copy_from_slice(&sums[..rows * row]);
                self.maps[stream][TANGENT][offset..][..rows * row].copy_from_slice(&tangents[..rows * row]);
            }
            Epilogue::Relu { .. } => {}
        }
        let [values, derivatives] = &mut self.maps[rectified_slot];
        for y in 0..rows {
            let to = at * map.len() + map.at_row(first + y);
            let to = values[to..][..row].iter_mut().zip(&mut derivatives[to..][..row]);
            for ((value, derivative), (&sum, &tangent)) in to.zip(sums[y * row..].iter().zip(&tangents[y * row..])) {
                (*value, *derivative) = (rectify(sum), if sum <= 0.0 { 0.0 } else { tangent });
            }
        }
    }

    fn mean(&mut self, layer: &GlobalMean, count: usize) {
        let (from, channels) = (self.network.maps[layer.input], self.network.maps[layer.output].channels);
        let scale = 1.0 / (from.height * from.width) as f32;
        for kind in [VALUE, TANGENT] {
            let mut means = std::mem::take(&mut self.maps[layer.output][kind]);
            for (at, means) in means.chunks_exact_mut(channels).enumerate().take(count) {
                means.fill(0.0);
                let input = image(&self.maps[layer.input][kind], from.len(), at);
                for y in 0..from.height {
                    input[from.at_row(y)..][..from.width * channels].chunks_exact(channels).for_each(|position| add(means, position));
                }
                means.iter_mut().for_each(|mean| *mean *= scale);
            }
            self.maps[layer.output][kind] = means;
        }
    }

    fn mean_backward(&mut self, layer: &GlobalMean, count: usize) {
        let Some(producer) = layer.producer else { return };
        let (network, map) = (self.network.clone(), self.network.maps[layer.input]);
        let scale = 1.0 / (map.height * map.width) as f32;
        let plain = Map::plain(map.height, map.width, map.channels);
        let mut spread = pair(plain.len());
        for at in 0..count {
            for (spread, means) in spread.iter_mut().zip(&self.dense) {
                let mean = image(means, map.channels, at);
                for position in spread.chunks_exact_mut(map.channels) {
                    position.iter_mut().zip(mean).for_each(|(to, mean)| *to = mean * scale);
                }
            }
            self.send(&network, producer, layer.input, None, plain, at, spread.each_ref().map(|floats| &floats[..]));
        }
    }

    fn fully_connected(&mut self, layer: &Dense, along: &Along, count: usize) {
        let [weights, vector] = along.part(layer.weights, layer.inputs * layer.outputs);
        let [bias, bias_vector] = along.part(layer.bias, layer.outputs);
        let [input, input_tangent] = &self.maps[layer.input];
        let [logits, tangents] = &mut self.logits;
        for at in 0..count {
            let logits = &mut logits[at * layer.outputs..][..layer.outputs];
            let tangents = &mut tangents[at * layer.outputs..][..layer.outputs];
            logits.copy_from_slice(bias);
            tangents.copy_from_slice(bias_vector);
            let inputs = image(input, layer.inputs, at).iter().zip(image(input_tangent, layer.inputs, at));
            let rows = weights.chunks_exact(layer.outputs).zip(vector.chunks_exact(layer.outputs));
            for ((&x, &dx), (w, v)) in inputs.zip(rows) {
                for (o, (logit, tangent)) in logits.iter_mut().zip(&mut *tangents).enumerate() {
                    *logit += x * w[o];
                    *tangent += dx * w[o] + x * v[o];
                }
            }
        }
    }

    /// The summed loss; logits become its gradient with respect to them.
    fn softmax(&mut self, labels: &[u16], temperature: f32) -> f32 {
        let classes = self.network.classes;
        let [logits, tangents] = &mut self.logits;
        let mut loss = 0.0;
        for ((logits, tangents), &label) in logits.chunks_exact_mut(classes).zip(tangents.chunks_exact_mut(classes)).zip(labels) {
            logits.iter_mut().chain(&mut *tangents).for_each(|value| *value /= temperature);
            let label = usize::from(label);
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let own = logits[label];
            let mut sum = 0.0;
            for logit in logits.iter_mut() {
                *logit = libm::expf(*logit - largest);
                sum += *logit;
            }
            loss += libm::logf(sum) + largest - own;
            logits.iter_mut().for_each(|probability| *probability /= sum);
            let mean: f32 = logits.iter().zip(&*tangents).map(|(&probability, &tangent)| probability * tangent).sum();
            for (probability, tangent) in logits.iter_mut().zip(tangents) {
                *tangent = *probability * (*tangent - mean) / temperature;
            }
            logits[label] -= 1.0;
            logits.iter_mut().for_each(|gradient| *gradient /= temperature);
        }
        loss
    }

    fn fully_connected_backward(&mut self, layer: &Dense, along: &Along, count: usize, product: &mut [f32]) {
        let network = self.network.clone();
        let [weights, vector] = along.part(layer.weights, layer.inputs * layer.outputs);
        let [input, input_tangent] = &self.maps[layer.input];
        let [back, back_tangent] = &mut self.dense;
        for at in 0..count {
            let [d, dd] = self.logits.each_ref().map(|floats| image(floats, layer.outputs, at));
            add(&mut product[layer.bias..][..layer.outputs], dd);
            let inputs = image(input, layer.inputs, at).iter().zip(image(input_tangent, layer.inputs, at));
            let outputs = back[at * layer.inputs..].iter_mut().zip(&mut back_tangent[at * layer.inputs..]);
            let rows = weights.chunks_exact(layer.outputs).zip(vector.chunks_exact(layer.outputs));
            let products = product[layer.weights..].chunks_exact_mut(layer.outputs);
            for (((&x, &dx), (w, v)), ((to, to_tangent), product)) in inputs.zip(rows).zip(outputs.zip(products)) {
                (*to, *to_tangent) = (0.0, 0.0);
                for o in 0..layer.outputs {
                    product[o] += dx * d[o] + x * dd[o];
                    *to += w[o] * d[o];
                    *to_tangent += w[o] * dd[o] + v[o] * d[o];
                }
            }
        }
        // A mean takes what it needs from where it is.
        if let Some(producer) = layer.producer.filter(|&producer| matches!(network.layers[producer], Layer::Convolution(_))) {
            let map = network.maps[layer.input];
            let sent = std::mem::take(&mut self.dense);
            for at in 0..count {
                self.send(&network, producer, layer.input, None, map, at, sent.each_ref().map(|floats| image(floats, layer.inputs, at)));
            }
            self.dense = sent;
        }
    }

    fn convolution_backward(&mut self, index: usize, layer: &Convolution, count: usize, product: &mut [f32]) {
        let network = self.network.clone();
        let (unit, channels, length) = (self.unit, layer.output.channels, layer.output.len());
        let (weights, bias) = product[layer.weights..].split_at_mut(layer.bias - layer.weights);
        let [input, input_tangent] = &self.maps[layer.input];
        let [d, dd] = &self.gradients[index];
        unit.run(Filter { layer, count, input, d: dd, gradient: weights, points: &mut self.points });
        for position in dd[..count * length].chunks_exact(channels) {
            add(&mut bias[..channels], position);
        }
        let Some(producer) = layer.producer else { return };
        unit.run(Filter { layer, count, input: input_tangent, d, gradient: weights, points: &mut self.points });
        let map = self.adjoints[index].as_ref().map_or(layer.input_map, |adjoint| adjoint.output);
        for at in 0..count {
            let [d, dd] = self.gradients[index].each_ref().map(|floats| image(floats, length, at));
            let [weights, vector] = &self.backward[index];
            let [to, to_tangent, more] = &mut self.input;
            let (adjoint, bordered, points) = (self.adjoints[index].as_ref(), &mut self.bordered, &mut self.points);
            unit.run(Data { layer, adjoint, weights, d, to: &mut to[..map.len()], bordered, points });
            unit.run(Data { layer, adjoint, weights, d: dd, to: &mut to_tangent[..map.len()], bordered, points });
            unit.run(Data { layer, adjoint, weights: vector, d, to: &mut more[..map.len()], bordered, points });
            add(&mut to_tangent[..map.len()], &more[..map.len()]);
            let sent = std::mem::take(&mut self.input);
            self.send(&network, producer, layer.input, layer.bypass, map, at, [&sent[0], &sent[1]]);
            self.input = sent;
        }
    }

    /// Turns the gradient of the map `read`, of shape `map`, into that of the sums of the convolution that wrote it.
    #[allow(clippy::too_many_arguments)]
    fn send(&mut self, network: &Network, producer: usize, read: Slot, bypass: Option<usize>, map: Map, at: usize, from: Pair<&[f32]>) {
        let layer = network.convolution(producer);
        let (output, length) = (layer.output, layer.output.len());
        let mut to = std::mem::take(&mut self.gradients[producer]);
        let shape = network.maps[read];
        if let Epilogue::ReluMaxPool { .. } = layer.epilogue {
            let choices = &self.choices[producer][at * shape.inner_len()..][..shape.inner_len()];
            for (to, from) in to.iter_mut().zip(from) {
                let to = &mut to[at * length..][..length];
                to.fill(0.0);
                for (place, &choice) in choices.iter().enumerate().filter(|(_, choice)| **choice != DEAD) {
                    let (window, o) = (place / output.channels, place % output.channels);
                    let (y, x, i) = (window / shape.width, window % shape.width, usize::from(choice));
                    let value = from[map.at_row(y) + x * output.channels + o];
                    to[((2 * y + i / 2) * output.width + 2 * x + i % 2) * output.channels + o] = value;
                }
            }
        } else {
            let rectified = image(&self.maps[read][VALUE], shape.len(), at);
            let row = output.row();
            for (kind, (to, from)) in to.iter_mut().zip(from).enumerate() {
                let to = &mut to[at * length..][..length];
                for (y, to) in to.chunks_exact_mut(row).enumerate() {
                    let (from, rectified) = (&from[map.at_row(y)..][..row], &rectified[shape.at_row(y)..][..row]);
                    let mut received = from.to_vec();
                    // A pooled shortcut is of the rectified input, an identity of the input itself.
                    let block = bypass.map(|bypass| {
                        let block = network.convolution(bypass).output;
                        (block, image(&self.gradients[bypass][kind], block.len(), at))
                    });
                    if let Some((block, gradient)) = block.filter(|(block, _)| *block != output) {
                        for (x, received) in received.chunks_exact_mut(output.channels).enumerate() {
                            let gradient = &gradient[((y / 2) * block.width + x / 2) * block.channels..];
                            received.iter_mut().zip(gradient).for_each(|(received, gradient)| *received += 0.25 * gradient);
                        }
                    }
                    for ((to, &value), &r) in to.iter_mut().zip(&received).zip(rectified) {
                        *to = if r > 0.0 { value } else { 0.0 };
                    }
                    if let Some((_, gradient)) = block.filter(|(block, _)| *block == output) {
                        add(to, &gradient[y * row..]);
                    }
                }
            }
        }
        self.gradients[producer] = to;
    }
}

/// Adds a residual block's shortcut, and its derivative, to `rows` rows of sums: the stream as it is, or rectified and averaged over 2 × 2.
#[allow(clippy::too_many_arguments)]
fn add_shortcut(
    output: Map,
    from: Map,
    stream: &[f32],
    derivative: &[f32],
    first: usize,
    rows: usize,
    sums: &mut [f32],
    tangents: &mut [f32],
) {
    let row = output.row();
    if from == output {
        add(&mut sums[..rows * row], &stream[first * row..]);
        add(&mut tangents[..rows * row], &derivative[first * row..]);
        return;
    }
    for window in 0..rows * output.width {
        let (y, x) = (window / output.width, window % output.width);
        for c in 0..from.channels {
            for i in 0..4 {
                let at = (2 * (first + y) + i / 2) * from.row() + (2 * x + i % 2) * from.channels + c;
                if stream[at] > 0.0 {
                    sums[window * output.channels + c] += 0.25 * stream[at];
                    tangents[window * output.channels + c] += 0.25 * derivative[at];
                }
            }
        }
    }
}

struct LayOut<'a> {
    layer: &'a Convolution,
    adjoint: Option<&'a Convolution>,
    values: &'a [f32],
    forward: &'a mut [f32],
    backward: &'a mut [f32],
    room: &'a mut [f32],
}

impl Kernel for LayOut<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let LayOut { layer, adjoint, values, forward, backward, room } = self;
        unsafe {
            lay_out::<S>(layer, values, forward);
            if layer.producer.is_some() {
                transpose::<S>(layer, adjoint, values, room, backward);
            }
        }
    }
}

/// Adds Σ input · d over some images to the gradient of a layer's weights.
struct Filter<'a> {
    layer: &'a Convolution,
    count: usize,
    input: &'a [f32],
    d: &'a [f32],
    gradient: &'a mut [f32],
    points: &'a mut Points,
}

impl Kernel for Filter<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Filter { layer, count, input, d, gradient, points } = self;
        let (length, row, group) = (layer.output.len(), layer.output.row(), group_rows(layer));
        let input = |at: usize| image(input, layer.input_map.len(), at);
        let d = |at: usize| image(d, length, at);
        if winograd::fits(layer) {
            return unsafe { winograd::filter_gradient::<S>(layer, count, input, d, gradient, points) };
        }
        for at in 0..count {
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                unsafe { filter_gradient_rows::<S>(layer, input(at), &d(at)[first * row..], first, rows, gradient) };
            }
        }
    }
}

/// The gradient of one image's input.
struct Data<'a> {
    layer: &'a Convolution,
    adjoint: Option<&'a Convolution>,
    weights: &'a [f32],
    d: &'a [f32],
    to: &'a mut [f32],
    bordered: &'a mut [f32],
    points: &'a mut Points,
}

impl Kernel for Data<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Data { layer, adjoint, weights, d, to, bordered, points } = self;
        let row = layer.output.row();
        let Some(adjoint) = adjoint else {
            to.fill(0.0);
            let group = group_rows(layer);
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                unsafe { data_gradient_rows::<S>(layer, weights, &d[first * row..], first, rows, to) };
            }
            return;
        };
        let bordered = &mut bordered[..adjoint.input_map.len()];
        bordered.fill(0.0);
        for (y, from) in d.chunks_exact(row).enumerate() {
            bordered[adjoint.input_map.at_row(y)..][..row].copy_from_slice(from);
        }
        let group = group_rows(adjoint);
        for (index, sums) in to.chunks_mut(group * adjoint.output.row()).enumerate() {
            unsafe { forward_rows::<S>(adjoint, bordered, weights, None, index * group, sums, points) };
        }
    }
}

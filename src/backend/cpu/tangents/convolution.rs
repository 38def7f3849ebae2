//! Convolutions: forward with what follows their sums, and backward.

use super::kernels::{Data, Filter, tiles};
use super::pair::{TANGENT, VALUE, image};
use super::product::{Along, Tangents};
use crate::backend::cpu::convolution::{ForwardRows, group_rows};
use crate::backend::cpu::epilogue::rectify;
use crate::backend::cpu::simd::DEAD;
use crate::backend::cpu::tile::Live;
use crate::comm::add;
use crate::network::{Convolution, Epilogue, Map};

impl Tangents {
    pub(super) fn convolution(&mut self, index: usize, layer: &Convolution, along: &Along, count: usize) {
        let bias = along.part(layer.bias, layer.output.channels);
        let tiles = tiles(layer);
        let (group, row, live) = (group_rows(layer, tiles), layer.output.row(), Live::all(layer.input_map.channels));
        for at in 0..count {
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let [sums, tangents, more] = &mut self.rows;
                let [sums, tangents, more] = [sums, tangents, more].map(|floats| &mut floats[..rows * row]);
                let [input, input_tangent] = &self.maps[layer.input];
                let [weights, vector] = &self.forward[index];
                let (unit, points, length) = (self.unit, &mut self.points, layer.input_map.len());
                let input = image(input, length, at);
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unit.run(unsafe { ForwardRows::new(layer, tiles, live, input, weights, Some(bias[VALUE]), first, sums, points) });
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unit.run(unsafe { ForwardRows::new(layer, tiles, live, input, vector, Some(bias[TANGENT]), first, tangents, points) });
                if layer.producer.is_some() {
                    let input = image(input_tangent, length, at);
                    // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                    unit.run(unsafe { ForwardRows::new(layer, tiles, live, input, weights, None, first, more, points) });
                    add(tangents, more);
                }
                self.epilogue(index, layer, at, first, rows);
            }
        }
    }

    /// Applies the layer's epilogue to the sums of some rows, and to their derivatives.
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

    pub(super) fn convolution_backward(&mut self, index: usize, layer: &Convolution, count: usize, product: &mut [f32]) {
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

//! The layers behind the convolutions: a global mean, the fully connected layer, and the loss.

use super::pair::{TANGENT, VALUE, image, pair};
use super::product::{Along, Tangents};
use crate::comm::add;
use crate::network::{Dense, GlobalMean, Layer, Map};

impl Tangents {
    pub(super) fn mean(&mut self, layer: &GlobalMean, count: usize) {
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

    pub(super) fn mean_backward(&mut self, layer: &GlobalMean, count: usize) {
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

    pub(super) fn fully_connected(&mut self, layer: &Dense, along: &Along, count: usize) {
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
    pub(super) fn softmax(&mut self, labels: &[u16], temperature: f32) -> f32 {
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

    pub(super) fn fully_connected_backward(&mut self, layer: &Dense, along: &Along, count: usize, product: &mut [f32]) {
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
        // A global mean reads its gradient from `dense`; only a convolution has to be sent the gradient.
        if let Some(producer) = layer.producer.filter(|&producer| matches!(network.layers[producer], Layer::Convolution(_))) {
            let map = network.maps[layer.input];
            let sent = std::mem::take(&mut self.dense);
            for at in 0..count {
                self.send(&network, producer, layer.input, None, map, at, sent.each_ref().map(|floats| image(floats, layer.inputs, at)));
            }
            self.dense = sent;
        }
    }
}

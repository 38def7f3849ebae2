//! Gradients of maps, brought back to the convolutions that wrote them.

use super::pair::{Pair, VALUE, image};
use super::product::Tangents;
use crate::backend::cpu::simd::DEAD;
use crate::comm::add;
use crate::network::{Epilogue, Map, Network, Slot};

impl Tangents {
    /// Turns the gradient of the map `read`, of shape `map`, into that of the sums of the convolution that wrote it.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn send(
        &mut self,
        network: &Network,
        producer: usize,
        read: Slot,
        bypass: Option<usize>,
        map: Map,
        at: usize,
        from: Pair<&[f32]>,
    ) {
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
                    // A pooled shortcut reads the rectified input: its gradient is added before the ReLU's backward step. An identity shortcut
                    // reads the input before the ReLU: the gradient of an identity shortcut is added after the ReLU's backward step.
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

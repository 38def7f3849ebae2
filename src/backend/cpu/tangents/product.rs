//! The product itself: buffers, weights laid out, and the order of layers.

use std::sync::Arc;

use super::kernels::{LayOut, tiles};
use super::pair::{Pair, VALUE, pair};
use crate::backend::cpu::convolution::{adjoint, group_rows, laid_out_len};
use crate::backend::cpu::floats::Floats;
use crate::backend::cpu::simd::DEAD;
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::backend::cpu::winograd::Points;
use crate::network::{Convolution, DenseOutput, Epilogue, Layer, Map, Network};

/// Images of a pass: few enough for their maps to stay in the second-level cache.
const PASS: usize = 4;

/// One thread's buffers, for a pass.
pub(in crate::backend::cpu) struct Tangents {
    pub(super) unit: VectorUnit,
    pub(super) network: Arc<Network>,
    /// One a map: `[image][map]`.
    pub(super) maps: Vec<Pair<Floats>>,
    /// One a layer: `[image][gradient of a convolution's sums]`; empty for other layers.
    pub(super) gradients: Vec<Pair<Floats>>,
    /// One a layer: `[image][what the pool chose]`; empty without a pool.
    pub(super) choices: Vec<Vec<u8>>,
    /// One a layer: weights, and the vector's part in their place, for the forward pass and for the data gradient.
    pub(super) forward: Vec<Pair<Floats>>,
    pub(super) backward: Vec<Pair<Floats>>,
    /// One a layer: the convolution that is its data gradient, where that is how it is computed.
    pub(super) adjoints: Vec<Option<Convolution>>,
    /// `[image][classes]`.
    pub(super) logits: Pair<Floats>,
    /// `[image][inputs of the fully connected layer]`: their gradient.
    pub(super) dense: Pair<Floats>,
    /// A group of rows of sums, and what is added to their derivative.
    pub(super) rows: [Floats; 3],
    /// One image's gradient of a convolution's input, and what is added to its derivative.
    pub(super) input: [Floats; 3],
    pub(super) bordered: Floats,
    pub(super) reordered: Floats,
    pub(super) points: Points,
    /// The weights that were laid out last.
    pub(super) prepared: Option<u64>,
}

/// Factors of a product with the Hessian: the weights at which it is taken, and the vector.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Along<'a> {
    /// The parameters.
    pub weights: &'a [f32],
    /// The vector, as long.
    pub vector: &'a [f32],
    /// Temperature of the loss: logits are divided by it.
    pub temperature: f32,
}

impl<'a> Along<'a> {
    /// A run of the parameters, and of the vector.
    pub(super) fn part(&self, from: usize, length: usize) -> Pair<&'a [f32]> {
        [&self.weights[from..from + length], &self.vector[from..from + length]]
    }
}

impl Tangents {
    /// Whether products know all layers of a network: convolutions with ReLU, a pool or a shortcut like the paper's networks', a global mean, logits.
    pub(in crate::backend::cpu) fn fits(network: &Network) -> bool {
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
                Layer::GlobalMean(layer) => layer.producer.is_some(),
                Layer::Dense(layer) => layer.output == DenseOutput::Logits && layer.outputs == network.classes,
                // The reference has products with the Hessian of all other layers.
                _ => false,
            };
            let mean = |index: usize| matches!((&network.layers[index], layer), (Layer::GlobalMean(_), Layer::Dense(_)));
            known && layer.producer().is_none_or(|producer| convolution(producer) || mean(producer))
        })
    }

    pub(in crate::backend::cpu) fn new(network: Arc<Network>, unit: VectorUnit) -> Tangents {
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
                    forward = laid_out_len(layer, tiles(layer));
                    if let Epilogue::ReluMaxPool { pooled } = layer.epilogue {
                        chosen = network.maps[pooled].inner_len();
                    }
                    if let Some(tiles) = tiles(layer) {
                        tangents.points.grow(tiles.lengths(layer));
                    }
                    let group = group_rows(layer, tiles(layer)) * layer.output.row();
                    tangents.rows.iter_mut().for_each(|rows| rows.grow(group));
                    if layer.producer.is_some() {
                        // The adjoint of a layer without padding would multiply a wide border.
                        back = adjoint(layer).filter(|_| layer.output.height == layer.input_map.height);
                        backward = back.as_ref().map_or(layer.weight_count(), |back| laid_out_len(back, tiles(back)));
                        tangents.reordered.grow(layer.weight_count());
                        tangents.bordered.grow(back.as_ref().map_or(0, |back| back.input_map.len()));
                        tangents.input.iter_mut().for_each(|input| input.grow(layer.input_map.len()));
                    }
                }
                Layer::Dense(layer) => tangents.dense = pair(layer.inputs * PASS),
                // A mean over positions needs no space; `fits` refuses the other two.
                Layer::GlobalMean(_) | Layer::Pool(_) | Layer::GroupNorm(_) => {}
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
    pub(in crate::backend::cpu) fn prepare(&mut self, along: &Along, version: u64) {
        if self.prepared == Some(version) {
            return;
        }
        self.prepared = Some(version);
        let network = self.network.clone();
        for (index, layer) in network.layers.iter().enumerate() {
            let Layer::Convolution(layer) = layer else { continue };
            for (kind, values) in along.part(layer.weights, layer.weight_count()).into_iter().enumerate() {
                let (forward, backward) = (&mut self.forward[index][kind], &mut self.backward[index][kind]);
                let scratch = &mut self.reordered;
                self.unit.run(LayOut { layer, adjoint: self.adjoints[index].as_ref(), values, forward, backward, scratch });
            }
        }
    }

    /// Adds H · vector, H the Hessian of the loss summed over these images, to `product`, in the parameters' order, and returns the summed loss.
    /// `images` are `[image][bordered map]`; [`Tangents::prepare`] must have seen the same weights and vector.
    pub(in crate::backend::cpu) fn add_product(&mut self, images: &[f32], labels: &[u16], along: &Along, product: &mut [f32]) -> f32 {
        let network = self.network.clone();
        let length = network.maps[0].len();
        let mut loss = 0.0;
        for (images, labels) in images.chunks(PASS * length).zip(labels.chunks(PASS)) {
            let count = labels.len();
            self.maps[0][VALUE][..images.len()].copy_from_slice(images);
            for (index, layer) in network.layers.iter().enumerate() {
                match layer {
                    Layer::Convolution(layer) => self.convolution(index, layer, along, count),
                    Layer::GlobalMean(layer) => self.mean(layer, count),
                    Layer::Dense(layer) => self.fully_connected(layer, along, count),
                    other => unreachable!("`fits` refuses {other}"),
                }
            }
            loss += self.softmax(labels, along.temperature);
            for (index, layer) in network.layers.iter().enumerate().rev() {
                match layer {
                    Layer::Convolution(layer) => self.convolution_backward(index, layer, count, product),
                    Layer::GlobalMean(layer) => self.mean_backward(layer, count),
                    Layer::Dense(layer) => self.fully_connected_backward(layer, along, count, product),
                    other => unreachable!("`fits` refuses {other}"),
                }
            }
        }
        loss
    }
}

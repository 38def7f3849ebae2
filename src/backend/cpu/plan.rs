//! What a lane's mask leaves to be computed, found once for the lane: a mask never changes.
//!
//! Which kernels a layer gets follows from the mask alone, by the constants below and those of `planar/kept.rs`, so that a study's bits do not
//! depend on where it ran. A pruned layer leaves out products with removed weights. A layer with a pool keeps the order of the others: its
//! finite sums have the bits of the unpruned kernels', up to the sign of a zero; one without a pool has its own order, which
//! [`planar`](super::planar) states. What a removed weight would have made of an infinite or NaN activation, it no longer makes.

use super::planar::Kept;
use super::pruned::{BLOCK, Blocks, Taps, deep, most_bytes, reads};
use crate::network::{Convolution, Dense, Epilogue, Layer, Network};
use crate::pruning::Mask;

/// A fully connected layer with less than this part of its inputs computes with those alone that a kept weight reads.
const DENSE_ROWS: f64 = 0.6;

/// Inputs of a fully connected layer come in whole groups of that many: two of the widest vectors.
pub(super) const ROWS: usize = 32;

/// Floats that a row of logits takes, and one of a fully connected layer's weights: the classes, rounded up to the widest vector.
pub(super) const LOGITS: usize = 16;

/// Multiply-adds that an image is worth, in time, before any weight is: it is read, taken apart and pooled.
const FIXED_WORK: f64 = 0.7e6;

/// What is computed of each layer, and where its gradient stands.
///
/// The gradient of a leaf, and sums of them, hold nothing but what the kernels add to, in their order: zeroing and adding them costs as
/// little as they hold.
pub(super) struct Plan {
    /// One entry a layer.
    pub layers: Vec<LayerPlan>,
    /// Floats of a leaf's gradient.
    pub length: usize,
    /// Where, in a leaf's gradient, that of each kept parameter stands; none where most of a layer is computed.
    pub places: Option<Vec<u32>>,
    /// Multiply-adds that a step on one example is worth, estimated.
    pub work: f64,
}

/// A layer's share.
#[derive(Default)]
pub(super) struct LayerPlan {
    /// Where, in a leaf's gradient, that of the weights begins.
    pub weights: usize,
    /// Where that of the bias begins.
    pub bias: usize,
    /// For a convolution without a pool, forward and backward; none: all weights.
    pub kept: Option<Kept>,
    /// For the forward pass of a convolution with a pool; none: all weights.
    pub taps: Option<Taps>,
    /// For both gradients of a convolution with a pool that reads whole blocks of channels.
    pub blocks: Blocks,
    /// Inputs that a kept weight of a fully connected layer reads; none: all are computed.
    pub rows: Option<Vec<u32>>,
}

impl LayerPlan {
    /// Where each weight of a convolution stands in the layer's part of a leaf's gradient (0 for what is not there), and that part's floats.
    fn convolution_places(&self, layer: &Convolution, places: &mut [u32]) -> usize {
        let (count, outputs) = (layer.weight_count(), layer.output.channels);
        if self.blocks.is_partial {
            self.blocks.places.iter().for_each(|&(place, weight)| places[weight as usize] = place);
            return self.blocks.offsets.len() * BLOCK;
        }
        let by_output = !self.blocks.offsets.is_empty();
        for (weight, place) in places.iter_mut().enumerate() {
            *place = if by_output { weight % outputs * (count / outputs) + weight / outputs } else { weight } as u32;
        }
        count
    }

    /// The same for a fully connected layer, whose rows of weights have [`LOGITS`] floats there.
    fn dense_places(&self, layer: &Dense, places: &mut [u32]) -> usize {
        let mut fill = |row: usize, input: usize| {
            for (output, place) in places[input * layer.outputs..][..layer.outputs].iter_mut().enumerate() {
                *place = (row * LOGITS + output) as u32;
            }
        };
        match &self.rows {
            Some(rows) => rows.iter().enumerate().for_each(|(row, &input)| fill(row, input as usize)),
            None => (0..layer.inputs).for_each(|input| fill(input, input)),
        }
        self.computed_rows(layer) * LOGITS
    }

    /// Multiply-adds of an image's forward pass and both gradients.
    fn work(&self, layer: &Layer) -> f64 {
        let forward = layer.forward_flop() / 2.0;
        match layer {
            Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
                let all = layer.weight_count() as f64;
                let part = |count: usize| count as f64 / all;
                let taps = self.taps.as_ref().map_or(1.0, |taps| part(taps.taps.len()));
                // Of four positions a pool lets one's gradient through.
                let filter = if self.blocks.is_partial { part(self.blocks.offsets.len() * BLOCK) } else { 1.0 };
                let data = if self.blocks.sent.is_empty() { 1.0 } else { filter };
                forward * (taps + (filter + data) / 4.0)
            }
            Layer::Convolution(layer) => {
                let part = |kept: &Kept| kept.forward.taps.len() as f64 / layer.weight_count() as f64;
                3.0 * forward * self.kept.as_ref().map_or(1.0, part)
            }
            _ => 3.0 * forward,
        }
    }

    /// Rows that a fully connected layer computes with, in whole groups: at least one, of zeros, where no weight is kept.
    pub(super) fn computed_rows(&self, layer: &Dense) -> usize {
        self.rows.as_ref().map_or(layer.inputs, |rows| rows.len().max(1)).next_multiple_of(ROWS)
    }
}

/// The inputs that a kept weight reads; none where there are too many of them.
fn rows(layer: &Dense, kept: &[bool]) -> Option<Vec<u32>> {
    let read = kept.chunks_exact(layer.outputs).enumerate().filter(|(_, row)| row.contains(&true));
    let rows: Vec<u32> = read.map(|(input, _)| input as u32).collect();
    ((rows.len() as f64) < DENSE_ROWS * layer.inputs as f64).then_some(rows)
}

impl Plan {
    /// The plan for a mask; if not `pruned`, one whose kernels compute with removed weights as with any other.
    pub(super) fn new(network: &Network, mask: &Mask, pruned: bool) -> Plan {
        let kept = match mask {
            Mask::Dense(_) => None,
            Mask::Sparse { kept, parameters } => {
                let mut flags = vec![false; *parameters];
                kept.iter().for_each(|&index| flags[index as usize] = true);
                Some(flags)
            }
        };
        let layers = network.layers.iter().enumerate().map(|(index, layer)| match layer {
            Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
                let flags = kept.as_ref().filter(|_| pruned).map(|kept| &kept[layer.weights..][..layer.weight_count()]);
                let read = |channel: usize| kept.as_ref().is_none_or(|kept| reads(network, index, layer, kept, channel));
                LayerPlan {
                    taps: flags.and_then(|flags| Taps::new(network, layer, flags, read)),
                    blocks: if deep(layer) { Blocks::new(layer, flags) } else { Blocks::default() },
                    ..LayerPlan::default()
                }
            }
            Layer::Convolution(layer) => {
                let kept = kept.as_ref().filter(|kept| pruned && Kept::pays(network, index, kept));
                LayerPlan { kept: kept.map(|kept| Kept::new(network, index, layer, kept)), ..LayerPlan::default() }
            }
            Layer::Dense(layer) => {
                let flags = kept.as_ref().filter(|_| pruned).map(|kept| &kept[layer.weights..][..layer.inputs * layer.outputs]);
                LayerPlan { rows: flags.and_then(|flags| rows(layer, flags)), ..LayerPlan::default() }
            }
            _ => LayerPlan::default(),
        });
        let mut plan = Plan { layers: layers.collect(), length: 0, places: None, work: FIXED_WORK };
        plan.lay_out(network, mask);
        plan.work += network.layers.iter().zip(&plan.layers).map(|(layer, plan)| plan.work(layer)).sum::<f64>();
        plan
    }

    /// Gives every layer its place in a leaf's gradient, and finds those of the kept parameters.
    fn lay_out(&mut self, network: &Network, mask: &Mask) {
        let mut places = vec![0; network.parameters()];
        for (layer, plan) in network.layers.iter().zip(&mut self.layers) {
            (plan.weights, plan.bias) = (self.length, self.length);
            let (weights, bias, outputs) = match layer {
                Layer::Convolution(layer) => {
                    let places = &mut places[layer.weights..][..layer.weight_count()];
                    plan.bias = plan.weights + plan.convolution_places(layer, places);
                    (layer.weights, layer.bias, layer.output.channels)
                }
                Layer::Dense(layer) => {
                    let places = &mut places[layer.weights..][..layer.inputs * layer.outputs];
                    plan.bias = plan.weights + plan.dense_places(layer, places);
                    (layer.weights, layer.bias, layer.outputs)
                }
                Layer::GlobalMean(_) => continue,
            };
            places[weights..bias].iter_mut().for_each(|place| *place += plan.weights as u32);
            places[bias..][..outputs].iter_mut().enumerate().for_each(|(i, place)| *place = (plan.bias + i) as u32);
            self.length = plan.bias + outputs;
        }
        // Where a transposed layer is whole, single floats of it are far apart: it is better transposed first.
        let whole = self.layers.iter().any(|plan| !plan.blocks.offsets.is_empty() && !plan.blocks.is_partial);
        if let (Mask::Sparse { kept, .. }, false) = (mask, whole) {
            self.places = Some(kept.iter().map(|&index| places[index as usize]).collect());
        }
    }

    /// Whether a layer is computed in panes ([`planar`](super::planar)).
    pub(super) fn planar_at(&self, layer: Option<usize>) -> bool {
        layer.is_some_and(|layer| self.layers[layer].kept.is_some())
    }

    /// Whether any layer is.
    pub(super) fn planar(&self) -> bool {
        self.layers.iter().any(|layer| layer.kept.is_some())
    }

    /// Bytes of the largest plan there can be for a network.
    pub(super) fn most_bytes(network: &Network) -> u64 {
        let layer = |layer: &Layer| match layer {
            Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => most_bytes(layer),
            Layer::Convolution(layer) => Kept::most_bytes(layer),
            Layer::Dense(layer) => 4 * layer.inputs as u64,
            _ => 0,
        };
        4 * network.parameters() as u64 + network.layers.iter().map(layer).sum::<u64>()
    }
}

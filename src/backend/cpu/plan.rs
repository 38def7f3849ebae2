//! What a lane's mask leaves to be computed, found once for the lane: a mask never changes.
//!
//! Which kernels a layer gets follows from the mask alone, by the constants below and those of `sparse/weights.rs`, so that a study's bits do not
//! depend on where it ran. A pruned layer leaves out products with removed weights. A layer with a pool keeps the order of the others: its
//! finite sums have the bits of the unpruned kernels', up to the sign of a zero; one without a pool has its own order, which
//! [`sparse`](super::sparse) states. What a removed weight would have made of an infinite or NaN activation, it no longer makes.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dense::{LOGITS, ROWS, is_narrow};
use super::pruned::{BLOCK, Blocks, Taps, deep, most_bytes, reads};
use super::sparse::KeptWeights;
use super::tile::Live;
use crate::network::{Convolution, Dense, Epilogue, Layer, Network};
use crate::pruning::Mask;

/// A fully connected layer with less than this part of its inputs computes with those alone that a kept weight reads.
const DENSE_ROWS: f64 = 0.6;

/// Multiply-adds that an image is worth, in time, before any weight is: it is read, taken apart and pooled.
const FIXED_WORK: f64 = 0.7e6;

/// Plans that were made.
static PLANS: AtomicU64 = AtomicU64::new(0);

/// What is computed of each layer, and where its gradient stands.
///
/// The gradient of a leaf, and sums of them, hold nothing but what the kernels add to, in their order: zeroing and adding them costs as
/// little as they hold.
pub(super) struct Plan {
    /// Tells plans apart: no two have the same.
    pub id: u64,
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
pub(super) struct LayerPlan {
    /// Where, in a leaf's gradient, that of the weights begins.
    pub weights: usize,
    /// Where that of the bias begins.
    pub bias: usize,
    /// The inputs of a convolution or a fully connected layer that its products read: in a network that [`physical`](super::physical) widened, those
    /// that the logical one has.
    pub inputs: Live,
    /// The outputs whose gradients its products read.
    pub outputs: Live,
    /// What computes it.
    pub path: Path,
}

/// The kernels that compute a layer.
pub(super) enum Path {
    /// A layer without parameters (`worker/pool.rs`).
    Plain,
    /// A convolution without a pool, with all of its weights (`worker/rows.rs`).
    Rows,
    /// A convolution without a pool that visits kept weights alone ([`sparse`](super::sparse)).
    Sparse(KeptWeights),
    /// A convolution that ends in a pool (`worker/pooled.rs`).
    Pooled(Pooled),
    /// The logits of few classes (`worker/logits.rs`): the inputs that a kept weight reads, or none where all are computed.
    Logits(Option<Vec<u32>>),
    /// Any other fully connected layer, with all of its weights (`worker/matrix.rs`).
    Matrix,
}

/// What is computed of a convolution that ends in a pool.
pub(super) struct Pooled {
    /// The weights that the forward pass visits; none: all.
    pub taps: Option<Taps>,
    /// How the gradients go.
    pub gradient: PooledGradient,
}

/// How the gradients of a convolution that ends in a pool go.
pub(super) enum PooledGradient {
    /// From window to window, with all weights: for a layer that reads few channels of the image, whose own gradient nobody needs.
    Windows,
    /// From event to event, with these blocks of weights.
    Events(Blocks),
}

impl Path {
    /// The blocks of weights that the gradients go through.
    pub(super) fn blocks(&self) -> Option<&Blocks> {
        match self {
            Path::Pooled(Pooled { gradient: PooledGradient::Events(blocks), .. }) => Some(blocks),
            _ => None,
        }
    }

    /// The weights that the forward pass of a convolution with a pool visits; none: all.
    pub(super) fn taps(&self) -> Option<&Taps> {
        if let Path::Pooled(pooled) = self { pooled.taps.as_ref() } else { None }
    }

    /// The inputs of logits that are computed with; none: all.
    pub(super) fn rows(&self) -> Option<&[u32]> {
        if let Path::Logits(rows) = self { rows.as_deref() } else { None }
    }

    /// What a layer in sub-maps visits.
    pub(super) fn kept(&self) -> Option<&KeptWeights> {
        if let Path::Sparse(kept) = self { Some(kept) } else { None }
    }

    /// The path of the layer at `index` where `kept` flags the parameters of a mask that kernels are to make use of, and `flags` those that may be
    /// other than zero, between so many pairs of live channels.
    fn new(network: &Network, index: usize, kept: Option<&[bool]>, flags: Option<&[bool]>, live: usize) -> Path {
        match &network.layers[index] {
            Layer::Pool(_) | Layer::GlobalMean(_) => Path::Plain,
            Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
                let kept = kept.map(|kept| &kept[layer.weights..][..layer.weight_count()]);
                let read = |channel: usize| flags.is_none_or(|flags| reads(network, index, layer, flags, channel));
                let all = layer.kernel * layer.kernel * live;
                Path::Pooled(Pooled {
                    taps: kept.and_then(|kept| Taps::new(network, layer, kept, all, read)),
                    gradient: if deep(layer) {
                        PooledGradient::Events(Blocks::new(layer, kept))
                    } else {
                        assert!(layer.producer.is_none(), "gradients go from window to window where no layer needs them");
                        PooledGradient::Windows
                    },
                })
            }
            Layer::Convolution(layer) => match kept {
                Some(kept) if KeptWeights::pays(network, index, kept) => Path::Sparse(KeptWeights::new(network, index, layer, kept)),
                _ => Path::Rows,
            },
            Layer::Dense(layer) if is_narrow(layer.inputs, layer.outputs, layer.output) => {
                Path::Logits(kept.and_then(|kept| rows(layer, &kept[layer.weights..][..layer.inputs * layer.outputs])))
            }
            Layer::Dense(_) => Path::Matrix,
        }
    }

    /// Where each weight of a convolution stands in the layer's part of a leaf's gradient (0 for what is not there), and that part's floats.
    fn convolution_places(&self, layer: &Convolution, places: &mut [u32]) -> usize {
        let (count, outputs) = (layer.weight_count(), layer.output.channels);
        let blocks = self.blocks();
        if let Some(Blocks { places: Some(kept), offsets, .. }) = blocks {
            kept.iter().for_each(|&(place, weight)| places[weight as usize] = place);
            return offsets.len() * BLOCK;
        }
        for (weight, place) in places.iter_mut().enumerate() {
            *place = if blocks.is_some() { weight % outputs * (count / outputs) + weight / outputs } else { weight } as u32;
        }
        count
    }

    /// The same for a fully connected layer; rows of logits' weights have [`LOGITS`] floats there.
    fn dense_places(&self, layer: &Dense, places: &mut [u32]) -> usize {
        let Path::Logits(rows) = self else {
            places.iter_mut().enumerate().for_each(|(weight, place)| *place = weight as u32);
            return layer.inputs * layer.outputs;
        };
        let mut fill = |row: usize, input: usize| {
            for (output, place) in places[input * layer.outputs..][..layer.outputs].iter_mut().enumerate() {
                *place = (row * LOGITS + output) as u32;
            }
        };
        match rows {
            Some(rows) => rows.iter().enumerate().for_each(|(row, &input)| fill(row, input as usize)),
            None => (0..layer.inputs).for_each(|input| fill(input, input)),
        }
        self.computed_rows(layer) * LOGITS
    }

    /// Multiply-adds of an image's forward pass and both gradients.
    fn work(&self, layer: &Layer) -> f64 {
        let forward = layer.forward_flop() / 2.0;
        let part = |count: usize| if let Layer::Convolution(layer) = layer { count as f64 / layer.weight_count() as f64 } else { 1.0 };
        match self {
            Path::Pooled(Pooled { taps, gradient }) => {
                let taps = taps.as_ref().map_or(1.0, |taps| part(taps.taps.len()));
                // A pool lets the gradient of one of four positions through.
                let (filter, data) = match gradient {
                    PooledGradient::Events(Blocks { places: Some(_), offsets, sent, .. }) => {
                        let filter = part(offsets.len() * BLOCK);
                        (filter, if sent.is_some() { filter } else { 1.0 })
                    }
                    _ => (1.0, 1.0),
                };
                forward * (taps + (filter + data) / 4.0)
            }
            Path::Sparse(kept) => 3.0 * forward * part(kept.forward.taps.len()),
            _ => 3.0 * forward,
        }
    }

    /// Rows that logits are computed with, in whole groups: at least one, of zeros, where no weight is kept.
    pub(super) fn computed_rows(&self, layer: &Dense) -> usize {
        self.rows().map_or(layer.inputs, |rows| rows.len().max(1)).next_multiple_of(ROWS)
    }
}

/// The channels of a layer's input and output up to the last one with a kept weight; without flags all.
fn live(network: &Network, index: usize, kept: Option<&[bool]>) -> [Live; 2] {
    let (weights, inputs, outputs) = match &network.layers[index] {
        Layer::Convolution(layer) => (layer.weights..layer.bias, layer.input_map.channels, layer.output.channels),
        Layer::Dense(layer) => (layer.weights..layer.bias, network.maps[layer.input].channels, layer.outputs),
        Layer::Pool(_) | Layer::GlobalMean(_) => return [Live::default(); 2],
    };
    let [mut input, mut output] = [inputs, outputs].map(Live::all);
    if let Some(kept) = kept {
        (input.count, output.count) = (0, 0);
        for (row, kept) in kept[weights].chunks_exact(outputs).enumerate() {
            if let Some(last) = kept.iter().rposition(|&kept| kept) {
                (input.count, output.count) = (input.count.max(row % inputs + 1), output.count.max(last + 1));
            }
        }
    }
    [input, output]
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
        let id = PLANS.fetch_add(1, Ordering::Relaxed);
        let mut plan = Plan { id, layers: Plan::layers(network, mask, pruned), length: 0, places: None, work: FIXED_WORK };
        plan.lay_out(network, mask);
        plan.work += network.layers.iter().zip(&plan.layers).map(|(layer, plan)| plan.path.work(layer)).sum::<f64>();
        plan
    }

    /// The layers of a plan, before they have places.
    pub(super) fn layers(network: &Network, mask: &Mask, pruned: bool) -> Vec<LayerPlan> {
        let kept = match mask {
            Mask::Dense(_) => None,
            Mask::Sparse { kept, parameters } => {
                let mut flags = vec![false; *parameters];
                kept.iter().for_each(|&index| flags[index as usize] = true);
                Some(flags)
            }
        };
        let layer = |index| {
            let [inputs, outputs] = live(network, index, kept.as_deref());
            let path = Path::new(network, index, kept.as_deref().filter(|_| pruned), kept.as_deref(), inputs.count * outputs.count);
            LayerPlan { weights: 0, bias: 0, inputs, outputs, path }
        };
        (0..network.layers.len()).map(layer).collect()
    }

    /// Gives every layer its place in a leaf's gradient, and finds those of the kept parameters.
    fn lay_out(&mut self, network: &Network, mask: &Mask) {
        let mut places = vec![0; network.parameters()];
        for (layer, plan) in network.layers.iter().zip(&mut self.layers) {
            (plan.weights, plan.bias) = (self.length, self.length);
            let (weights, bias, outputs) = match layer {
                Layer::Convolution(layer) => {
                    let places = &mut places[layer.weights..][..layer.weight_count()];
                    plan.bias = plan.weights + plan.path.convolution_places(layer, places);
                    (layer.weights, layer.bias, layer.output.channels)
                }
                Layer::Dense(layer) => {
                    let places = &mut places[layer.weights..][..layer.inputs * layer.outputs];
                    plan.bias = plan.weights + plan.path.dense_places(layer, places);
                    (layer.weights, layer.bias, layer.outputs)
                }
                Layer::Pool(_) | Layer::GlobalMean(_) => continue,
            };
            places[weights..bias].iter_mut().for_each(|place| *place += plan.weights as u32);
            places[bias..][..outputs].iter_mut().enumerate().for_each(|(i, place)| *place = (plan.bias + i) as u32);
            self.length = plan.bias + outputs;
        }
        // Where a transposed layer is whole, single floats of it are far apart: it is better transposed first.
        let whole = self.layers.iter().any(|plan| plan.path.blocks().is_some_and(|blocks| blocks.places.is_none()));
        if let (Mask::Sparse { kept, .. }, false) = (mask, whole) {
            self.places = Some(kept.iter().map(|&index| places[index as usize]).collect());
        }
    }

    /// Clears a leaf's gradient for the kernels, which add to it: zeros everywhere but in the weights of the layers whose kernels write first
    /// ([`Path::Matrix`]).
    pub(super) fn clear(&self, gradient: &mut [f32]) {
        let end = gradient.len();
        self.outside_matrices(end).for_each(|range| gradient[range].fill(0.0));
    }

    /// The runs of a leaf's gradient, and of what stands behind it up to `end`, that hold all but the weights of [`Path::Matrix`].
    pub(super) fn outside_matrices(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let matrices = self.layers.iter().filter(|layer| matches!(layer.path, Path::Matrix)).map(|layer| layer.weights..layer.bias);
        matrices.chain(std::iter::once(end..end)).scan(0, |from, matrix| Some(std::mem::replace(from, matrix.end)..matrix.start))
    }

    /// Whether a layer is computed in sub-maps ([`sparse`](super::sparse)).
    pub(super) fn is_sparse(&self, layer: Option<usize>) -> bool {
        layer.is_some_and(|layer| self.layers[layer].path.kept().is_some())
    }

    /// Whether any layer is.
    pub(super) fn has_sparse(&self) -> bool {
        self.layers.iter().any(|layer| layer.path.kept().is_some())
    }

    /// Bytes of the largest plan there can be for a network.
    pub(super) fn most_bytes(network: &Network) -> u64 {
        let layer = |layer: &Layer| match layer {
            Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => most_bytes(layer),
            Layer::Convolution(layer) => KeptWeights::most_bytes(layer),
            Layer::Dense(layer) => 4 * layer.inputs as u64,
            _ => 0,
        };
        4 * network.parameters() as u64 + network.layers.iter().map(layer).sum::<u64>()
    }
}

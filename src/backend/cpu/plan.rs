//! What a lane's mask leaves to be computed, found once for the lane: a mask never changes.
//!
//! Which kernels a layer gets follows from the mask alone, by the two constants below and those of `planar/kept.rs`, so that a study's bits do not
//! depend on where it ran. A pruned layer leaves out products with removed weights. A layer with a pool keeps the order of the others: its
//! finite sums have the bits of the unpruned kernels', up to the sign of a zero; one without a pool has its own order for gradients, which
//! [`planar`](super::planar) states. What a removed weight would have made of an infinite or NaN activation, it no longer makes.

use super::planar::Kept;
use super::pooled::{BLOCK, deep};
use crate::network::{Convolution, Layer, Network, Tail};
use crate::pruning::Mask;

/// A pooled convolution with less than this part of its weights visits kept weights alone in its forward pass.
const FORWARD_KEPT: f64 = 0.6;

/// A pooled convolution with less than this part of its blocks visits kept blocks alone for its filter gradient.
const BACKWARD_BLOCKS: f64 = 0.7;

/// One entry a layer.
pub(super) struct Plan {
    pub layers: Vec<LayerPlan>,
}

/// A layer's share; all empty but for convolutions.
#[derive(Default)]
pub(super) struct LayerPlan {
    /// For a convolution without a pool, forward and backward; none: all weights.
    pub kept: Option<Kept>,
    /// For the forward pass of a convolution with a pool; none: all weights.
    pub taps: Option<Taps>,
    /// For the filter gradient of a layer that reads whole blocks of channels.
    pub blocks: Blocks,
}

/// The kept weights of a convolution, by output channel. Output channels that no kept weight reads have none.
pub(super) struct Taps {
    /// Output channel o has the taps from `starts[o]` up to `starts[o + 1]`.
    pub starts: Vec<u32>,
    /// In the order of the sum.
    pub taps: Vec<Tap>,
}

/// A kept weight.
pub(super) struct Tap {
    /// Offset of what it reads for a window's first position in [`phases`](super::taps::phases).
    pub at: u32,
    /// Offset in the layer's weights.
    pub weight: u32,
}

/// Blocks of [`BLOCK`] weights: one output channel, one place in the kernel, consecutive input channels. The gradient of all of them, one
/// after the other, stands in for the layer's while it is summed ([`Blocks::is_partial`] or not).
#[derive(Default)]
pub(super) struct Blocks {
    /// Output channel o has the blocks from `starts[o]` up to `starts[o + 1]`.
    pub starts: Vec<u32>,
    /// Offset, in the input map, of what a block reads for position 0.
    pub offsets: Vec<u32>,
    /// Where some blocks are left out: (place in the blocks, place in the layer's weights) of every kept weight.
    pub places: Vec<(u32, u32)>,
    /// Whether some are left out.
    pub is_partial: bool,
    /// 1 for an output channel with a kept weight, else 0.
    pub alive: Vec<u32>,
}

impl Plan {
    pub(super) fn new(network: &Network, mask: &Mask) -> Plan {
        let kept = match mask {
            Mask::Dense(_) => None,
            Mask::Sparse { kept, parameters } => {
                let mut flags = vec![false; *parameters];
                kept.iter().for_each(|&index| flags[index as usize] = true);
                Some(flags)
            }
        };
        let layers = network.layers.iter().enumerate().map(|(index, layer)| match layer {
            Layer::Convolution(layer) if matches!(layer.tail, Tail::ReluMaxPool { .. }) => {
                let flags = kept.as_ref().map(|kept| &kept[layer.weights..][..layer.weight_count()]);
                let read = |channel: usize| kept.as_ref().is_none_or(|kept| reads(network, index, layer, kept, channel));
                LayerPlan {
                    kept: None,
                    taps: flags.and_then(|flags| Taps::new(network, layer, flags, read)),
                    blocks: if deep(layer) { Blocks::new(layer, flags) } else { Blocks::default() },
                }
            }
            Layer::Convolution(layer) => {
                let kept = kept.as_ref().filter(|kept| Kept::pays(network, index, kept));
                LayerPlan { kept: kept.map(|kept| Kept::new(network, index, layer, kept)), ..LayerPlan::default() }
            }
            _ => LayerPlan::default(),
        });
        Plan { layers: layers.collect() }
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
            Layer::Convolution(layer) if matches!(layer.tail, Tail::ReluMaxPool { .. }) => {
                let taps = FORWARD_KEPT * layer.weight_count() as f64 * size_of::<Tap>() as f64;
                let places = layer.weight_count() as f64 * BACKWARD_BLOCKS * size_of::<(u32, u32)>() as f64;
                (taps + places) as u64 + 4 * (layer.weight_count() / BLOCK + 3 * layer.output.channels + 2) as u64
            }
            Layer::Convolution(layer) => Kept::most_bytes(layer),
            _ => 0,
        };
        network.layers.iter().map(layer).sum()
    }
}

/// Whether a kept weight of the next layer reads an output channel of the convolution at `index`; a stream has other readers, too.
pub(super) fn reads(network: &Network, index: usize, layer: &Convolution, kept: &[bool], channel: usize) -> bool {
    match network.layers.get(index + 1) {
        Some(Layer::Convolution(next)) => {
            let kept = &kept[next.weights..][..next.weight_count()];
            kept.chunks_exact(next.output.channels).skip(channel).step_by(next.input_map.channels).any(|row| row.contains(&true))
        }
        Some(Layer::Dense(next)) => {
            let kept = &kept[next.weights..][..next.inputs * next.outputs];
            kept.chunks_exact(next.outputs).skip(channel).step_by(layer.output.channels).any(|row| row.contains(&true))
        }
        _ => true,
    }
}

impl Taps {
    /// None where too much is kept, or the pooled map is not one run of whole blocks of windows.
    fn new(network: &Network, layer: &Convolution, kept: &[bool], read: impl Fn(usize) -> bool) -> Option<Taps> {
        let count = kept.iter().filter(|&&kept| kept).count();
        let map = network.maps[layer.tail.written()];
        let windows = map.height * map.width;
        let whole = windows.is_multiple_of(BLOCK) && map.len() == map.inner_len() && layer.stride == 1;
        if !whole || count as f64 >= FORWARD_KEPT * kept.len() as f64 {
            return None;
        }
        let (outputs, inputs) = (layer.output.channels, layer.input_map.channels);
        let (mut starts, mut taps) = (vec![0], Vec::with_capacity(count));
        for output in 0..outputs {
            for (tap, row) in kept.chunks_exact(outputs).enumerate() {
                if row[output] && read(output) {
                    let (place, input) = (tap / inputs, tap % inputs);
                    let (ky, kx) = (place / layer.kernel, place % layer.kernel);
                    let at = ((ky * (layer.kernel + 1) + kx) * inputs + input) * windows;
                    taps.push(Tap { at: at as u32, weight: (tap * outputs + output) as u32 });
                }
            }
            starts.push(taps.len() as u32);
        }
        Some(Taps { starts, taps })
    }
}

impl Blocks {
    fn new(layer: &Convolution, kept: Option<&[bool]>) -> Blocks {
        let (outputs, run) = (layer.output.channels, layer.run());
        let all = layer.weight_count() / BLOCK;
        let first = |output: usize, block: usize| block * BLOCK * outputs + output;
        let any = |kept: &[bool], output: usize, block: usize| (0..BLOCK).any(|i| kept[first(output, block) + i * outputs]);
        let blocks = all / outputs;
        let partial = kept.filter(|kept| {
            let left = (0..outputs).map(|output| (0..blocks).filter(|&block| any(kept, output, block)).count()).sum::<usize>();
            (left as f64) < BACKWARD_BLOCKS * all as f64
        });
        let mut found =
            Blocks { starts: vec![0], offsets: Vec::new(), places: Vec::new(), is_partial: partial.is_some(), alive: Vec::new() };
        for output in 0..outputs {
            found.alive.push(kept.is_none_or(|kept| kept.iter().skip(output).step_by(outputs).any(|&kept| kept)).into());
            for block in (0..blocks).filter(|&block| partial.is_none_or(|kept| any(kept, output, block))) {
                for i in (0..BLOCK).filter(|&i| partial.is_some_and(|kept| kept[first(output, block) + i * outputs])) {
                    let place = found.offsets.len() * BLOCK + i;
                    found.places.push((place as u32, (first(output, block) + i * outputs) as u32));
                }
                let (ky, within) = (block * BLOCK / run, block * BLOCK % run);
                found.offsets.push((ky * layer.input_map.row() + within) as u32);
            }
            found.starts.push(found.offsets.len() as u32);
        }
        found
    }
}

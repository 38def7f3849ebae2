//! Kept weights of a convolution: single weights (taps) for forward passes, blocks of weights for gradients.

use crate::network::{Convolution, Network};

/// A pooled convolution with less than this part of the weights between its live channels visits kept weights alone in its forward pass.
const FORWARD_KEPT: f64 = 0.6;

/// The limit in place of [`FORWARD_KEPT`] where Winograd's formula would multiply all weights. With three tenths of the weights, Simple-CNN evaluates
/// 1.3 times as fast by the formula as by kept weights; with two tenths, 0.94 times as fast (one core of an AMD EPYC).
const WINOGRAD_KEPT: f64 = 0.22;

/// A pooled convolution with less than this part of its blocks visits kept blocks alone for its filter gradient.
const BACKWARD_BLOCKS: f64 = 0.7;

/// With less than this part, for its data gradient too, which then goes through memory. Without that Simple-CNN trains at 0.84 of its speed at
/// sparsity 0.98 (batch size 64, one core of an AMD EPYC).
const SENT_BLOCKS: f64 = 0.35;

/// Floats of an image's phases at most, 256 MiB: a layer of more is computed as a dense one. Offsets in them are numbers of 32 bits.
const LONGEST_PHASES: usize = 1 << 26;

/// Channels that a block of weights holds. A layer that reads a multiple of them goes from event to event; one that reads fewer has too
/// short runs for that.
pub(super) const BLOCK: usize = 16;

/// Whether the layer reads whole blocks of channels.
pub(super) fn deep(layer: &Convolution) -> bool {
    layer.input_map.channels.is_multiple_of(BLOCK)
}

/// Kept weights in lines, one line a sum: by output channel for a pooled convolution, whose output channels that no kept weight reads have none;
/// otherwise as the owner says.
#[derive(Default)]
pub(super) struct Taps {
    /// Output channel o has the taps from `starts[o]` up to `starts[o + 1]`.
    pub starts: Vec<u32>,
    /// Taps in the order of the sum.
    pub taps: Vec<Tap>,
    /// Offset in the input map of what each pool window's first position reads.
    pub corners: Vec<u32>,
}

/// A kept weight.
pub(super) struct Tap {
    /// Offset of what it reads for a window's first position in [`phases`](super::taps::phases).
    pub at: u32,
    /// Offset in the layer's weights.
    pub weight: u32,
}

/// Blocks of [`BLOCK`] weights: one output channel, one place in the kernel, consecutive input channels. The gradient of all of them, one
/// after the other, is the layer's in a leaf.
#[derive(Default)]
pub(super) struct Blocks {
    /// Output channel o has the blocks from `starts[o]` up to `starts[o + 1]`.
    pub starts: Vec<u32>,
    /// Offset, in the input map, of what a block reads for position 0.
    pub offsets: Vec<u32>,
    /// Where some blocks are left out: (place in the blocks, place in the layer's weights) of every kept weight; none where all are there.
    pub places: Option<Vec<(u32, u32)>>,
    /// 1 for an output channel with a kept weight, else 0.
    pub alive: Vec<u32>,
    /// (block, output channel) in the order of the data gradient's sums: by place in the kernel, then output channel. None where all weights
    /// are sent.
    pub sent: Option<Vec<(u32, u32)>>,
}

/// The part of the weights below which a pooled convolution visits kept weights alone in its forward pass.
pub(super) fn forward_kept(winograd: bool) -> f64 {
    if winograd { WINOGRAD_KEPT } else { FORWARD_KEPT }
}

/// Bytes of the most [`Taps`] and [`Blocks`] that a convolution with a pool can have.
pub(super) fn most_bytes(layer: &Convolution) -> u64 {
    let taps = FORWARD_KEPT * layer.weight_count() as f64 * size_of::<Tap>() as f64;
    let places = layer.weight_count() as f64 * BACKWARD_BLOCKS * size_of::<(u32, u32)>() as f64;
    (taps + places) as u64 + 4 * (3 * layer.weight_count() / BLOCK + 3 * layer.output.channels + 2) as u64
}

/// Whether a kept weight of the next layer reads an output channel of the convolution at `index`; a stream has other readers, too.
pub(super) fn reads(network: &Network, index: usize, kept: &[bool], channel: usize) -> bool {
    // A layer without weights reads all channels.
    network.weights(index + 1).is_none_or(|([weights, _], [inputs, outputs])| {
        kept[weights].chunks_exact(outputs).skip(channel).step_by(inputs).any(|row| row.contains(&true))
    })
}

impl Taps {
    /// None where not less than `most` weights are kept, or the pooled map is not one run of whole blocks of windows.
    pub(super) fn new(network: &Network, layer: &Convolution, kept: &[bool], most: f64, read: impl Fn(usize) -> bool) -> Option<Taps> {
        let count = kept.iter().filter(|&&kept| kept).count();
        let map = network.maps[layer.epilogue.written()];
        let windows = map.height * map.width;
        // Images of one channel are taken apart into pairs of columns; others are read in whole vectors of channels.
        let channels = layer.input_map.channels;
        let pairs = channels.is_multiple_of(BLOCK) || channels == 1 && layer.input_map.row().is_multiple_of(2);
        let whole = windows.is_multiple_of(BLOCK) && map.len() == map.inner_len() && layer.stride == 1 && pairs;
        let phases = (layer.kernel + 1).pow(2) * channels * windows;
        if !whole || phases > LONGEST_PHASES || count as f64 >= most {
            return None;
        }
        let (outputs, inputs) = (layer.output.channels, channels);
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
        let corner = |window: usize| {
            let (y, x) = (window / map.width, window % map.width);
            (2 * (y * layer.input_map.row() + x * inputs)) as u32
        };
        Some(Taps { starts, taps, corners: (0..windows).map(corner).collect() })
    }
}

impl Blocks {
    pub(super) fn new(layer: &Convolution, kept: Option<&[bool]>) -> Blocks {
        let (outputs, run) = (layer.output.channels, layer.run());
        let all = layer.weight_count() / BLOCK;
        let first = |output: usize, block: usize| block * BLOCK * outputs + output;
        let any = |kept: &[bool], output: usize, block: usize| (0..BLOCK).any(|i| kept[first(output, block) + i * outputs]);
        let blocks = all / outputs;
        let partial = kept.filter(|kept| {
            let left = (0..outputs).map(|output| (0..blocks).filter(|&block| any(kept, output, block)).count()).sum::<usize>();
            (left as f64) < BACKWARD_BLOCKS * all as f64
        });
        let mut found = Blocks { starts: vec![0], ..Blocks::default() };
        let (mut places, mut sent) = (Vec::new(), Vec::new());
        for output in 0..outputs {
            found.alive.push(kept.is_none_or(|kept| kept.iter().skip(output).step_by(outputs).any(|&kept| kept)).into());
            for block in (0..blocks).filter(|&block| partial.is_none_or(|kept| any(kept, output, block))) {
                for i in (0..BLOCK).filter(|&i| partial.is_some_and(|kept| kept[first(output, block) + i * outputs])) {
                    let place = found.offsets.len() * BLOCK + i;
                    places.push((place as u32, (first(output, block) + i * outputs) as u32));
                }
                sent.push((found.offsets.len() as u32, output as u32));
                let (ky, within) = (block * BLOCK / run, block * BLOCK % run);
                found.offsets.push((ky * layer.input_map.row() + within) as u32);
            }
            found.starts.push(found.offsets.len() as u32);
        }
        found.places = partial.map(|_| places);
        if (found.offsets.len() as f64) < SENT_BLOCKS * all as f64 {
            // Stable: output channels stay in order.
            sent.sort_by_key(|&(block, _)| found.offsets[block as usize]);
            found.sent = Some(sent);
        }
        found
    }
}

//! The kept weights of a convolution, by what they add to and in the order of the sums.

use super::super::pruned::{Tap, Taps, reads};
use super::submaps;
use crate::network::{Convolution, Epilogue, Layer, Map, Network};

/// A convolution with less than this part of its weights visits kept weights alone: a little less than where both kernels take the same time, its
/// neighbours being in sub-maps. The part is larger on wide maps, where less of a sub-map is border, and smaller at stride 1, where all weights take
/// fewer multiplications ([`winograd`](super::super::winograd)).
fn worth(layer: &Convolution) -> f64 {
    match (layer.stride, layer.output.width) {
        (1, 32..) => 0.45,
        (1, 16..) => 0.4,
        (1, _) => 0.3,
        (_, 16..) => 0.5,
        _ => 0.38,
    }
}

/// Kept weights of a pruned convolution, and the channels that it computes.
pub(in super::super) struct KeptWeights {
    /// Kept weights by output channel: offsets in the input's channels.
    pub forward: Taps,
    /// By input channel, and place of the input between two strides: offsets in the channels of the gradient. Empty for a layer whose input's
    /// gradient nobody needs.
    pub backward: Taps,
    /// Output channels that need computing. Inside a block between two layers in sub-maps, nothing reads or writes two kinds of channels: channels
    /// without weights and bias, whose values are zero, and channels that no kept weight reads, whose gradients are zero.
    pub live: Vec<bool>,
    /// The input channels whose gradient is wanted: the live ones of the producer.
    pub sources: Vec<bool>,
}

/// The output of a convolution with the border that its data gradient reads.
pub(in super::super) fn received(layer: &Convolution) -> Map {
    match (layer.producer, layer.stride) {
        (None, _) => layer.output,
        (Some(_), 1) => layer.output.bordered(1, 1),
        (Some(_), _) => layer.output.bordered(1, 0),
    }
}

impl KeptWeights {
    /// Whether the convolution at `index` visits kept weights alone, where `kept` flags the network's parameters: it does where few are kept, and the
    /// kernels know the shape. The convolution that reads the image follows its reader: with three channels it takes as long either way, but the
    /// layouts of its output would differ.
    pub(in super::super) fn pays(network: &Network, index: usize, kept: &[bool]) -> bool {
        let Layer::Convolution(layer) = &network.layers[index] else { return false };
        let count = kept[layer.weights..][..layer.weight_count()].iter().filter(|&&kept| kept).count();
        let few = (count as f64) < worth(layer) * layer.weight_count() as f64;
        KeptWeights::fits(layer)
            && neighbours_fit(network, index, layer)
            && (few || layer.producer.is_none() && KeptWeights::pays(network, index + 1, kept))
    }

    pub(in super::super) fn new(network: &Network, index: usize, layer: &Convolution, kept: &[bool]) -> KeptWeights {
        let live = live(network, index, layer, kept);
        let sources = match layer.producer {
            Some(producer) => self::live(network, producer, network.convolution(producer), kept),
            None => vec![true; layer.input_map.channels],
        };
        let weights = &kept[layer.weights..][..layer.weight_count()];
        let visited = |input: usize, output: usize, weight: usize| weights[weight] && sources[input] && live[output];
        let backward = match layer.producer {
            Some(_) => backward(layer, visited),
            None => Taps { starts: vec![0], ..Taps::default() },
        };
        KeptWeights { forward: forward(layer, visited), backward, live, sources }
    }

    /// Bytes that a layer takes at most.
    pub(in super::super) fn most_bytes(layer: &Convolution) -> u64 {
        let taps = (if layer.producer.is_none() { 1.0 } else { worth(layer) } * layer.weight_count() as f64) as usize * size_of::<Tap>();
        let starts = 2 * layer.output.channels + layer.stride.pow(2) * layer.input_map.channels + 2;
        if KeptWeights::fits(layer) { (2 * taps + starts * size_of::<u32>()) as u64 } else { 0 }
    }

    /// Whether the layer is a 3 × 3 convolution with SAME padding on maps that sub-maps can hold.
    fn fits(layer: &Convolution) -> bool {
        let (input, output) = (layer.input_map, layer.output);
        let same = matches!((layer.stride, input.before, input.after), (1, 1, 1) | (2, 0, 1));
        same && layer.kernel == 3 && submaps::fit(input) && submaps::fit(output) && input.height == layer.stride * output.height
    }
}

/// Whether the layers around the convolution at `index` are those of residual blocks as [`SparseLayers`](super::SparseLayers) knows them:
/// convolutions one after the other, with ReLUs but no pools, and shortcuts that are the block's input or halve its sides.
fn neighbours_fit(network: &Network, index: usize, layer: &Convolution) -> bool {
    let rectifies = |layer: &Convolution| matches!(layer.epilogue, Epilogue::Relu { .. } | Epilogue::Stream { .. });
    let shortcut_fits = |block: &Convolution| match block.epilogue {
        Epilogue::Stream { shortcut: Some(slot), .. } => {
            let from = network.maps[slot];
            from == block.output || from.height == 2 * block.output.height
        }
        _ => true,
    };
    let producer_fits = layer.producer.is_none_or(|producer| {
        producer + 1 == index && matches!(&network.layers[producer], Layer::Convolution(producer) if rectifies(producer))
    });
    rectifies(layer)
        && submaps::fit(network.maps[layer.epilogue.written()])
        && producer_fits
        && shortcut_fits(layer)
        && layer.bypass.is_none_or(|bypass| shortcut_fits(network.convolution(bypass)))
}

/// [`KeptWeights::live`]
fn live(network: &Network, index: usize, layer: &Convolution, kept: &[bool]) -> Vec<bool> {
    let outputs = layer.output.channels;
    let inside =
        matches!(layer.epilogue, Epilogue::Relu { .. }) && [index, index + 1].iter().all(|&index| KeptWeights::pays(network, index, kept));
    let weights = &kept[layer.weights..][..layer.weight_count()];
    let is_written = |channel: usize| kept[layer.bias + channel] || weights.iter().skip(channel).step_by(outputs).any(|&kept| kept);
    (0..outputs).map(|channel| !inside || is_written(channel) && reads(network, index, kept, channel)).collect()
}

fn forward(layer: &Convolution, visited: impl Fn(usize, usize, usize) -> bool) -> Taps {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let channel_map = submaps::channel_map(layer.input_map);
    let mut found = Taps { starts: vec![0], ..Taps::default() };
    for output in 0..outputs {
        for place in 0..layer.kernel.pow(2) {
            let (ky, kx) = (place / layer.kernel, place % layer.kernel);
            for input in 0..inputs {
                let weight = (place * inputs + input) * outputs + output;
                if visited(input, output, weight) {
                    let at = input * channel_map.len() + ky * channel_map.row() + kx * submaps::SUBMAPS;
                    found.taps.push(Tap { at: at as u32, weight: weight as u32 });
                }
            }
        }
        found.starts.push(found.taps.len() as u32);
    }
    found
}

fn backward(layer: &Convolution, visited: impl Fn(usize, usize, usize) -> bool) -> Taps {
    let (inputs, outputs, stride) = (layer.input_map.channels, layer.output.channels, layer.stride);
    let (channel_map, side) = (submaps::channel_map(received(layer)), layer.kernel - 1);
    let mut found = Taps { starts: vec![0], ..Taps::default() };
    for group in 0..inputs * stride * stride {
        let (input, py, px) = (group / (stride * stride), group / stride % stride, group % stride);
        for place in (0..layer.kernel.pow(2)).rev() {
            let (ky, kx) = (place / layer.kernel, place % layer.kernel);
            if ky % stride != py || kx % stride != px {
                continue;
            }
            let (y, x) = ((side - (ky - py)) / stride, (side - (kx - px)) / stride);
            for output in 0..outputs {
                let weight = (place * inputs + input) * outputs + output;
                if visited(input, output, weight) {
                    let at = output * channel_map.len() + y * channel_map.row() + x * submaps::SUBMAPS;
                    found.taps.push(Tap { at: at as u32, weight: weight as u32 });
                }
            }
        }
        found.starts.push(found.taps.len() as u32);
    }
    found
}

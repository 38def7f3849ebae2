//! The kept weights of a convolution, by what they add to and in the order of the sums.

use super::super::plan::{Tap, Taps};
use super::panes;
use crate::network::{Convolution, Map};

/// A convolution with less than this part of its weights visits kept weights alone.
const KEPT: f64 = 0.5;

/// What a pruned convolution visits.
pub(in super::super) struct Kept {
    /// By output channel: offsets in the input's planes.
    pub forward: Taps,
    /// By input channel, and place of the input between two strides: offsets in the planes of the gradient. Empty for a layer whose input's
    /// gradient nobody needs.
    pub backward: Taps,
}

/// The output of a convolution with the border that its data gradient reads.
pub(super) fn received(layer: &Convolution) -> Map {
    match (layer.producer, layer.stride) {
        (None, _) => layer.output,
        (Some(_), 1) => layer.output.bordered(1, 1),
        (Some(_), _) => layer.output.bordered(1, 0),
    }
}

impl Kept {
    /// None where too much is kept, or where the kernels do not know the shape.
    pub(in super::super) fn new(layer: &Convolution, kept: &[bool]) -> Option<Kept> {
        let count = kept.iter().filter(|&&kept| kept).count();
        (Kept::fits(layer) && (count as f64) < KEPT * kept.len() as f64).then(|| Kept {
            forward: forward(layer, kept),
            backward: if layer.producer.is_some() { backward(layer, kept) } else { Taps { starts: vec![0], taps: Vec::new() } },
        })
    }

    /// Bytes that a layer takes at most.
    pub(in super::super) fn most_bytes(layer: &Convolution) -> u64 {
        let taps = (KEPT * layer.weight_count() as f64) as usize * size_of::<Tap>();
        let starts = layer.output.channels + layer.stride.pow(2) * layer.input_map.channels + 2;
        if Kept::fits(layer) { (2 * taps + starts * size_of::<u32>()) as u64 } else { 0 }
    }

    /// Whether the layer is a 3 × 3 convolution with SAME padding on maps that panes can hold.
    fn fits(layer: &Convolution) -> bool {
        let (input, output) = (layer.input_map, layer.output);
        let same = matches!((layer.stride, input.before, input.after), (1, 1, 1) | (2, 0, 1));
        same && layer.kernel == 3 && panes::fit(input) && panes::fit(output) && input.height == layer.stride * output.height
    }
}

fn forward(layer: &Convolution, kept: &[bool]) -> Taps {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let plane = panes::plane(layer.input_map);
    let mut found = Taps { starts: vec![0], taps: Vec::new() };
    for output in 0..outputs {
        for place in 0..layer.kernel.pow(2) {
            let (ky, kx) = (place / layer.kernel, place % layer.kernel);
            for input in 0..inputs {
                let weight = (place * inputs + input) * outputs + output;
                if kept[weight] {
                    let at = input * plane.len() + ky * plane.row() + kx * panes::PANES;
                    found.taps.push(Tap { at: at as u32, weight: weight as u32 });
                }
            }
        }
        found.starts.push(found.taps.len() as u32);
    }
    found
}

fn backward(layer: &Convolution, kept: &[bool]) -> Taps {
    let (inputs, outputs, stride) = (layer.input_map.channels, layer.output.channels, layer.stride);
    let (plane, side) = (panes::plane(received(layer)), layer.kernel - 1);
    let mut found = Taps { starts: vec![0], taps: Vec::new() };
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
                if kept[weight] {
                    let at = output * plane.len() + y * plane.row() + x * panes::PANES;
                    found.taps.push(Tap { at: at as u32, weight: weight as u32 });
                }
            }
        }
        found.starts.push(found.taps.len() as u32);
    }
    found
}

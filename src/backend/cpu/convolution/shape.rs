//! Consequences of a convolution's shape alone: its groups of rows, and the convolution that is its data gradient.

use super::super::winograd::Tiles;
use crate::network::{Convolution, Map};

/// Floats of sums or gradients that a group of rows may have: 16 KB.
pub(super) const GROUP: usize = 4096;

/// Weights, in floats, that may stay in the first-level cache while a group of rows is computed.
pub(in super::super) const RESIDENT_WEIGHTS: usize = 6144;

/// Output rows in a group, of Winograd's tiles or else even, so that pooling's pairs stay together: a function of the layer's shape and its tiles
/// alone, because the order in which a data gradient is summed follows from it.
pub(in super::super) fn group_rows(layer: &Convolution, tiles: Option<Tiles>) -> usize {
    if let Some(tiles) = tiles {
        return tiles.rows(layer);
    }
    let row = layer.output.width * layer.output.channels;
    let rows = (GROUP / row).max(2) & !1;
    rows.min(layer.output.height)
}

/// The convolution that computes the data gradient of `layer` as a forward pass, by the weights turned around, over the gradients of the layer's
/// sums, bordered with zeros. None for a stride above 1, or for a border of more than kernel − 1 zeros.
///
/// In such a forward pass every input's gradient is one sum in registers; `data_gradient_rows` adds to memory once for each place in the kernel.
pub(in super::super) fn adjoint(layer: &Convolution) -> Option<Convolution> {
    let (map, side) = (layer.input_map, layer.kernel - 1);
    (layer.stride == 1 && map.before <= side && map.after <= side).then(|| Convolution {
        output: Map::plain(map.height, map.width, map.channels),
        input_map: Map { before: side - map.before, after: side - map.after, ..layer.output },
        producer: None,
        bypass: None,
        ..layer.clone()
    })
}

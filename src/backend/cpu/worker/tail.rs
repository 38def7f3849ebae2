//! The fully connected layers at the end of a network, and what up to eight leaves leave for them in the layers before (`together.rs`).

use super::super::dense::is_narrow;
use super::super::floats::Floats;
use super::super::tile::TOGETHER;
use super::buffers::gradient_floats;
use crate::comm::Leaves;
use crate::network::{Epilogue, Layer, Network};

/// The layers, and the leaves that wait for them.
pub(super) struct Tail {
    /// The first of the layers.
    pub(super) first: usize,
    /// One a leaf.
    pub(super) banks: Vec<Bank>,
    /// Images of each leaf so far.
    pub(super) counts: Vec<usize>,
    /// Each leaf's summed loss.
    pub(super) losses: Vec<f32>,
}

/// What one leaf's images leave in the layers before, in place of the worker's own buffers.
pub(super) struct Bank {
    pub(super) maps: Vec<Floats>,
    pub(super) gradients: Vec<Floats>,
    pub(super) choices: Vec<Vec<u8>>,
    pub(super) labels: Vec<u16>,
}

impl Bank {
    pub(super) fn new(network: &Network, first: usize, pass: usize) -> Bank {
        let (before, behind) = network.layers.split_at(first);
        let map = |slot: usize| if behind.iter().any(|layer| layer.written() == Some(slot)) { 0 } else { network.maps[slot].len() };
        let choices = before.iter().map(|layer| if has_choice(layer) { gradient_floats(network, layer) } else { 0 });
        Bank {
            maps: (0..network.maps.len()).map(|slot| Floats::zeros(map(slot) * pass)).collect(),
            gradients: before.iter().map(|layer| Floats::zeros(gradient_floats(network, layer) * pass)).collect(),
            choices: choices.map(|choices| vec![0; choices * pass]).collect(),
            labels: vec![0; pass],
        }
    }
}

/// Whether the layer keeps what its pool chose.
pub(super) fn has_choice(layer: &Layer) -> bool {
    matches!(layer, Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }))
}

impl Tail {
    /// None where a pass does not hold a leaf, or fully connected layers with many outputs are not all that the network ends with.
    pub(super) fn new(network: &Network, pass: usize) -> Option<Tail> {
        let is_dense = |layer: &Layer| matches!(layer, Layer::Dense(_));
        let is_wide = |layer: &Layer| matches!(layer, Layer::Dense(layer) if !is_narrow(layer.inputs, layer.outputs, layer.output));
        let first = network.layers.iter().position(is_dense)?;
        let layers = &network.layers[first..];
        let fits = pass >= Leaves::LONGEST && layers.iter().all(is_dense) && layers.iter().any(is_wide);
        fits.then(|| Tail { first, banks: Vec::new(), counts: Vec::new(), losses: Vec::new() })
    }
}

/// Images of a worker's buffers, of `pass` images a pass.
pub(in super::super) fn images_at_once(network: &Network, pass: usize) -> usize {
    if Tail::new(network, pass).is_some() { (1 + TOGETHER) * pass } else { pass }
}

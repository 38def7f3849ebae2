//! The fully connected layers at the end of a network, and what up to eight leaves leave for them in the layers before (`together.rs`).

use super::super::floats::Floats;
use super::super::layer::{Buffers, LayerPlan};
use super::super::tile::TOGETHER;
use crate::comm::Leaves;
use crate::network::{Layer, Network, Slot};

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

/// Maps, gradients, choices and labels of one leaf's images in the layers before, in place of the worker's own buffers.
pub(super) struct Bank {
    pub(super) maps: Vec<Floats>,
    pub(super) gradients: Vec<Floats>,
    pub(super) choices: Vec<Vec<u8>>,
    pub(super) labels: Vec<u16>,
}

impl Bank {
    /// The bank of a worker whose buffers of the layers before are these, of `pass` images each.
    pub(super) fn new(network: &Network, buffers: &[Buffers], first: usize, pass: usize) -> Bank {
        let (before, behind) = network.layers.split_at(first);
        let gradients = || before.iter().map(|layer| gradient_floats(network, layer) * pass);
        let map = |slot: usize| if behind.iter().any(|layer| layer.written() == Some(slot)) { 0 } else { network.maps[slot].len() };
        Bank {
            maps: (0..network.maps.len()).map(|slot| Floats::zeros(map(slot) * pass)).collect(),
            gradients: gradients().map(Floats::zeros).collect(),
            choices: gradients().zip(buffers).map(|(floats, own)| vec![0; if own.choice.is_empty() { 0 } else { floats }]).collect(),
            labels: vec![0; pass],
        }
    }
}

impl Tail {
    /// None where a pass does not hold a leaf, another kind of layer follows a fully connected one, or no fully connected layer writes the gradient
    /// of its weights.
    pub(super) fn new(layers: &[LayerPlan], pass: usize) -> Option<Tail> {
        let first = layers.iter().position(|plan| plan.layer.dense().is_some())?;
        let layers = &layers[first..];
        let all_dense = layers.iter().all(|plan| plan.layer.dense().is_some());
        let fits = pass >= Leaves::LONGEST && all_dense && layers.iter().any(|plan| plan.layer.writes_weights());
        fits.then(|| Tail { first, banks: Vec::new(), counts: Vec::new(), losses: Vec::new() })
    }
}

/// Floats of an image's gradient that is kept for a layer. The logits' gradient is the workspace's.
pub(super) fn gradient_floats(network: &Network, layer: &Layer) -> usize {
    layer.written().map_or(0, |slot| network.maps[slot].inner_len())
}

/// Images of a worker's buffers, of `pass` images a pass.
pub(in super::super) fn images_at_once(layers: &[LayerPlan], pass: usize) -> usize {
    if Tail::new(layers, pass).is_some() { (1 + TOGETHER) * pass } else { pass }
}

/// Images that there is room for.
#[derive(Clone, Copy)]
pub(super) struct Images {
    /// Images of a pass.
    pub pass: usize,
    /// The first of the layers that are computed over several leaves at once, if there are such.
    pub tail: Option<usize>,
}

impl Images {
    /// Images of a buffer of layers that are computed over several leaves at once.
    pub(super) fn most(self) -> usize {
        if self.tail.is_some() { self.pass * TOGETHER } else { self.pass }
    }

    /// Images that a map has room for.
    pub(super) fn of_map(self, network: &Network, slot: Slot) -> usize {
        if self.tail.is_some_and(|tail| network.layers[tail..].iter().any(|layer| layer.input() == slot)) { self.most() } else { self.pass }
    }

    /// Images that the buffers kept for a layer have room for.
    pub(super) fn of_layer(self, network: &Network, index: usize) -> usize {
        let sends = |tail: usize| index >= tail || network.layers[tail].producer() == Some(index);
        if self.tail.is_some_and(sends) { self.most() } else { self.pass }
    }
}

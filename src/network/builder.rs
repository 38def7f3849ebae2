//! Adds layers, and the tensors of their parameters, to a network in forward order.

use super::description::Network;
use super::layer::Layer;
use super::specification::Initialisation;
use super::tensor::{Tensor, TensorKind};

/// The parameters of a layer.
pub(super) struct Learnt {
    /// The layer's name.
    pub name: String,
    /// How weights begin.
    pub initialisation: Initialisation,
    /// Whether there is a bias.
    pub has_bias: bool,
}

impl Network {
    /// Adds a layer and returns its index.
    pub(super) fn add_layer(&mut self, layer: Layer) -> usize {
        self.layers.push(layer);
        self.layers.len() - 1
    }

    /// Weights and bias of a layer with `fan_in` inputs for each of `outputs`.
    pub(super) fn add_parameters(&mut self, learnt: &Learnt, fan_in: usize, outputs: usize) -> (usize, usize) {
        let weights = self.add_tensor(learnt, TensorKind::Weights, fan_in, fan_in * outputs);
        let bias = if learnt.has_bias { self.add_tensor(learnt, TensorKind::Bias, fan_in, outputs) } else { weights + fan_in * outputs };
        (weights, bias)
    }

    /// Adds a tensor behind the others, and returns its offset.
    pub(super) fn add_tensor(&mut self, learnt: &Learnt, kind: TensorKind, fan_in: usize, len: usize) -> usize {
        let suffix = match kind {
            TensorKind::Weights => "weights",
            TensorKind::Scale => "scale",
            TensorKind::Bias => "bias",
        };
        let offset = self.parameters();
        let name = format!("{}.{suffix}", learnt.name);
        self.tensors.push(Tensor { name, kind, offset, len, fan_in, initialisation: learnt.initialisation });
        offset
    }
}

//! A network as data.

use std::ops::Range;

use super::layer::{Convolution, Layer, Map};
use super::tensor::Tensor;

/// A network: its feature maps, its layers in forward order and its parameters in one flat vector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Network {
    /// Classes told apart.
    pub classes: usize,
    /// Feature maps that layers read and write, one buffer each for every example; slot 0 is the normalised image.
    pub maps: Vec<Map>,
    /// Layers in forward order.
    pub layers: Vec<Layer>,
    /// The parameter tensors in the order of the flat vector: each layer's weights, or the scales of a normalisation, then its bias, if it has one.
    pub tensors: Vec<Tensor>,
}

impl Network {
    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range().end)
    }

    /// Multiplications and additions of one image's forward pass (2 for each multiply-add), padding included.
    pub fn forward_flop(&self) -> f64 {
        self.layers.iter().map(Layer::forward_flop).sum()
    }

    /// FLOP of one image's forward and backward pass. A layer that reads no map of a layer with parameters has no data gradient.
    pub fn training_flop(&self) -> f64 {
        self.layers.iter().map(|layer| layer.forward_flop() * if layer.producer().is_some() { 3.0 } else { 2.0 }).sum()
    }

    /// Where the weights `[place][in][out]` and the biases `[out]` of the layer at `index` are among the parameters, and the channels in and out: the
    /// channels of the map read, and the outputs. None where there is no such layer, or its outputs do not each have a weight for every channel read.
    pub fn weights(&self, index: usize) -> Option<([Range<usize>; 2], [usize; 2])> {
        let layer = self.layers.get(index).filter(|layer| !matches!(layer, Layer::GroupNorm(_)))?;
        Some((layer.parameters()?, [self.maps[layer.input()].channels, layer.outputs()?]))
    }

    /// The convolution at `index` in [`Network::layers`], for example that of [`Convolution::bypass`].
    ///
    /// # Panics
    /// If the layer there is no convolution.
    pub fn convolution(&self, index: usize) -> &Convolution {
        match &self.layers[index] {
            Layer::Convolution(convolution) => convolution,
            other => unreachable!("layer {index} is {other:?}, not a convolution"),
        }
    }
}

//! A network as data, and the operations that a back end implements for its layers.

use std::ops::Range;

use super::layer::{Convolution, Dense, GlobalMean, Layer, Map, Pool};
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
    /// The parameter tensors in the order of the flat vector: each layer's weights, then its bias.
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

    /// FLOP of one image's forward and backward pass: the first layer has no data gradient.
    pub fn training_flop(&self) -> f64 {
        let first = self.layers.first().map_or(0.0, Layer::forward_flop);
        3.0 * self.forward_flop() - first
    }

    /// Runs the forward pass on whatever images the back end holds.
    pub fn forward(&self, operations: &mut impl Operations) {
        self.forward_of(0..self.layers.len(), operations);
    }

    /// The forward pass of some layers, after that of those before.
    pub fn forward_of(&self, layers: Range<usize>, operations: &mut impl Operations) {
        for (index, layer) in layers.clone().zip(&self.layers[layers]) {
            match layer {
                Layer::Convolution(convolution) => operations.convolution_forward(index, convolution),
                Layer::Pool(pool) => operations.pool_forward(index, pool),
                Layer::GlobalMean(mean) => operations.global_mean_forward(index, mean),
                Layer::Dense(dense) => operations.dense_forward(index, dense),
            }
        }
    }

    /// Runs the backward pass after [`Operations::softmax_cross_entropy`]; gradients are summed over examples.
    pub fn backward(&self, operations: &mut impl Operations) {
        self.backward_of(0..self.layers.len(), operations);
    }

    /// The backward pass of some layers, after that of those behind.
    pub fn backward_of(&self, layers: Range<usize>, operations: &mut impl Operations) {
        for (index, layer) in layers.clone().zip(&self.layers[layers]).rev() {
            match layer {
                Layer::Convolution(convolution) => operations.convolution_backward(index, convolution, self),
                Layer::Pool(pool) => operations.pool_backward(index, pool),
                Layer::GlobalMean(mean) => operations.global_mean_backward(index, mean),
                Layer::Dense(dense) => operations.dense_backward(index, dense),
            }
        }
    }

    /// The convolution at `index` in [`Network::layers`]; a layer refers only to layers that are convolutions.
    pub fn convolution(&self, index: usize) -> &Convolution {
        match &self.layers[index] {
            Layer::Convolution(convolution) => convolution,
            other => unreachable!("layer {index} is {other:?}, not a convolution"),
        }
    }
}

/// What a back end does for a network, on the images and the weights it holds; `index` is the layer's in [`Network::layers`]. Gradients of parameters
/// are summed over examples. A backward operation adds the gradients of the layer's parameters and, if the layer has a producer, writes the gradient
/// that is kept for it.
pub trait Operations {
    /// Convolution, bias and epilogue.
    fn convolution_forward(&mut self, index: usize, layer: &Convolution);
    /// Backward.
    fn convolution_backward(&mut self, index: usize, layer: &Convolution, network: &Network);
    /// Maximum or mean over windows.
    fn pool_forward(&mut self, index: usize, layer: &Pool);
    /// Backward.
    fn pool_backward(&mut self, index: usize, layer: &Pool);
    /// Mean over positions.
    fn global_mean_forward(&mut self, index: usize, layer: &GlobalMean);
    /// Backward.
    fn global_mean_backward(&mut self, index: usize, layer: &GlobalMean);
    /// Sums, bias and ReLU, or logits.
    fn dense_forward(&mut self, index: usize, layer: &Dense);
    /// Backward.
    fn dense_backward(&mut self, index: usize, layer: &Dense);
    /// Loss summed over examples, and the gradient of the logits.
    fn softmax_cross_entropy(&mut self);
}

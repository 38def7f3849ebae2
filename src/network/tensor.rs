//! One tensor of a network's parameters.

use std::ops::Range;

use super::specification::Initialisation;

/// Purpose of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorKind {
    /// Factors of a layer's inputs.
    Weights,
    /// Factors of normalised channels: for pruning they are what biases are.
    Scale,
    /// Terms added to a layer's outputs.
    Bias,
}

/// A run of the flat parameter vector. Convolution weights are `[height][width][in][out]`, dense weights `[in][out]`, both with
/// `out` contiguous, so that one input value meets a contiguous row of weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Layer and kind, as in "block2.conv1.weights".
    pub name: String,
    /// Purpose of the elements.
    pub kind: TensorKind,
    /// First element in the flat vector.
    pub offset: usize,
    /// Elements.
    pub len: usize,
    /// Inputs of one output.
    pub fan_in: usize,
    /// How weights begin; a scale begins at one, a bias at zero.
    pub initialisation: Initialisation,
}

impl Tensor {
    /// The tensor's elements in the flat vector.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.len
    }
}

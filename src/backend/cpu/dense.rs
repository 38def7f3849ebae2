//! Fully connected layers: which kernels compute one, by its shape alone.

use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Map};

/// Inputs of a fully connected layer come in whole groups of that many: two of the widest vectors.
pub(super) const ROWS: usize = 32;

/// Floats that a row of logits takes, and one of their weights, where there are at most so many classes: the widest vector.
pub(super) const LOGITS: usize = 16;

/// Whether a fully connected layer makes the logits of so few classes that one row of its weights is a vector or two: `layer/logits.rs` computes
/// it, any other one `layer/matrix.rs`.
pub(super) fn is_narrow(inputs: usize, outputs: usize, output: DenseOutput) -> bool {
    // A row is read as LOGITS floats: into the next row, or into the bias.
    output == DenseOutput::Logits && (LOGITS / 2..=LOGITS).contains(&outputs) && inputs.is_multiple_of(ROWS)
}

/// A fully connected layer over `count` images as a convolution of 1 × 1 whose positions are the images.
pub(super) fn over_images(layer: &Dense, count: usize) -> Convolution {
    Convolution {
        kernel: 1,
        stride: 1,
        output: Map::plain(1, count, layer.outputs),
        weights: layer.weights,
        bias: layer.bias,
        has_bias: layer.has_bias,
        input: layer.input,
        input_map: Map::plain(1, count, layer.inputs),
        epilogue: Epilogue::Linear { written: layer.input },
        producer: layer.producer,
        bypass: None,
    }
}

/// The data gradient of the layer over `count` images, as a convolution of 1 × 1 that reads the gradient of its sums.
pub(super) fn adjoint_over_images(layer: &Dense, count: usize) -> Convolution {
    over_images(&Dense { inputs: layer.outputs, outputs: layer.inputs, ..layer.clone() }, count)
}

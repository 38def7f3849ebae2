//! Fully connected layers: which kernels compute one, by its shape alone.

use crate::network::{Convolution, Dense, DenseOutput, Epilogue};

/// Inputs of a narrow layer ([`is_narrow`]) come in whole groups of this many: two of the widest vectors.
pub(super) const ROWS: usize = 32;

/// Floats of a row of logits, and of a row of the logits' weights, where there are at most this many classes: one of the widest vector.
pub(super) const LOGITS: usize = 16;

/// Whether a fully connected layer makes the logits of so few classes that a row of the layer's weights is one or two vectors. `layer/logits.rs`
/// computes such a layer, `layer/matrix.rs` every other fully connected layer.
pub(super) fn is_narrow(inputs: usize, outputs: usize, output: DenseOutput) -> bool {
    // Kernels read LOGITS floats from where a row begins: beyond the end of a shorter row, they read the next row, or after the last row the bias.
    output == DenseOutput::Logits && (LOGITS / 2..=LOGITS).contains(&outputs) && inputs.is_multiple_of(ROWS)
}

/// A fully connected layer over `count` images as a convolution of 1 × 1 whose positions are the images.
pub(super) fn over_images(layer: &Dense, count: usize) -> Convolution {
    layer.over_positions(count, Epilogue::Linear { written: layer.input })
}

/// The data gradient of the layer over `count` images, as a convolution of 1 × 1 that reads the gradient of its sums.
pub(super) fn adjoint_over_images(layer: &Dense, count: usize) -> Convolution {
    over_images(&Dense { inputs: layer.outputs, outputs: layer.inputs, ..layer.clone() }, count)
}

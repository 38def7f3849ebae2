//! A room for each kind of layer: all that the CPU knows of it.
//!
//! `kind.rs` says what a kind of layer is asked ([`CpuLayer`]), [`layers`] which kind computes a layer; a file for each kind answers: convolutions
//! row by row (`rows.rs`), those that visit kept weights alone (`sparse.rs`) and those that end in a pool (`pooled.rs`), fully connected layers
//! (`matrix.rs`) and logits (`logits.rs`), pools (`pool.rs`), means (`mean.rs`) and group normalisation (`norm.rs`). `workspace.rs` and
//! `buffers.rs` have what a thread computes in. Nothing here knows of batches, ranks or trials; kernels'
//! arithmetic is in the folders beside this one.

mod buffers;
mod kind;
mod logits;
mod matrix;
mod mean;
mod norm;
mod pool;
mod pooled;
mod rows;
mod sparse;
mod workspace;

pub(super) use buffers::{Buffers, Scratch};
pub(super) use kind::{CpuLayer, DenseLayer, Place};
pub(super) use workspace::{Pass, Workspace};

use super::dense::is_narrow;
use super::sparse::KeptWeights;
use super::tile::Live;
use crate::network::{Epilogue, Layer, Network};
use crate::settings::Convolutions;
use logits::Logits;
use matrix::Matrix;
use pooled::Pooled;
use rows::Rows;
use sparse::Sparse;

/// A layer's share of a plan.
pub(super) struct LayerPlan {
    pub place: Place,
    pub layer: Box<dyn CpuLayer>,
}

/// The layers of a network. The study's configuration, a layer's shape and the mask alone choose its kind, so that a study's bits do not depend on
/// where it ran. `kept` flags the parameters that a mask keeps; none: all. If not `pruned`, kernels compute with removed weights as with any other.
/// The places in a leaf's gradient are not known yet.
pub(super) fn layers(network: &Network, kept: Option<&[bool]>, pruned: bool, convolutions: Convolutions) -> Vec<LayerPlan> {
    let plan = |index| {
        let [inputs, outputs] = live(network, index, kept);
        let layer = choose(network, index, [kept.filter(|_| pruned), kept], inputs.count * outputs.count, convolutions);
        LayerPlan { place: Place { index, weights: 0, bias: 0, inputs, outputs }, layer }
    };
    (0..network.layers.len()).map(plan).collect()
}

/// Chooses the kernels of the layer at `index`, between so many pairs of live channels, where `kept` flags the parameters that kernels are to make
/// use of, and `flags` those that may be other than zero.
fn choose(
    network: &Network,
    index: usize,
    [kept, flags]: [Option<&[bool]>; 2],
    live: usize,
    convolutions: Convolutions,
) -> Box<dyn CpuLayer> {
    match &network.layers[index] {
        Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
            Box::new(Pooled::new(network, index, layer, [kept, flags], live, convolutions))
        }
        Layer::Convolution(layer) => match kept {
            Some(kept) if KeptWeights::pays(network, index, kept) => Box::new(Sparse::new(network, index, layer, kept)),
            _ => Box::new(Rows::new(layer, convolutions)),
        },
        Layer::Dense(layer) if is_narrow(layer.inputs, layer.outputs, layer.output) => Box::new(Logits::new(layer, kept)),
        Layer::Dense(layer) => Box::new(Matrix::new(layer, kept)),
        Layer::Pool(layer) => Box::new(layer.clone()),
        Layer::GlobalMean(layer) => Box::new(layer.clone()),
        Layer::GroupNorm(layer) => Box::new(layer.clone()),
    }
}

/// The channels of a layer's input and output up to the last one with a kept weight; without flags all.
fn live(network: &Network, index: usize, kept: Option<&[bool]>) -> [Live; 2] {
    let Some(([weights, _], [inputs, outputs])) = network.weights(index) else { return [Live::default(); 2] };
    let [mut input, mut output] = [inputs, outputs].map(Live::all);
    if let Some(kept) = kept {
        (input.count, output.count) = (0, 0);
        for (row, kept) in kept[weights].chunks_exact(outputs).enumerate() {
            if let Some(last) = kept.iter().rposition(|&kept| kept) {
                (input.count, output.count) = (input.count.max(row % inputs + 1), output.count.max(last + 1));
            }
        }
    }
    [input, output]
}

//! Which kind of layer computes a layer: by the study's configuration, the layer's shape and the mask alone, so that a study's bits do not depend on
//! where it ran.

use super::super::dense::is_narrow;
use super::super::sparse::KeptWeights;
use super::super::tile::Live;
use super::kind::{CpuLayer, Place};
use super::logits::Logits;
use super::matrix::Matrix;
use super::pooled::Pooled;
use super::rows::Rows;
use super::sparse::Sparse;
use crate::config::Convolutions;
use crate::network::{Epilogue, Layer, Network};

/// A layer's share of a plan.
pub(in super::super) struct LayerPlan {
    pub place: Place,
    pub layer: Box<dyn CpuLayer>,
}

/// The layers of a network where `kept` flags the parameters that a mask keeps; none: all. If not `pruned`, kernels compute with removed weights as
/// with any other. The places in a leaf's gradient are not known yet.
pub(in super::super) fn layers(network: &Network, kept: Option<&[bool]>, pruned: bool, convolutions: Convolutions) -> Vec<LayerPlan> {
    let plan = |index| {
        let [inputs, outputs] = live(network, index, kept);
        let layer = choose(network, index, [kept.filter(|_| pruned), kept], inputs.count * outputs.count, convolutions);
        LayerPlan { place: Place { index, weights: 0, bias: 0, inputs, outputs }, layer }
    };
    (0..network.layers.len()).map(plan).collect()
}

/// What computes the layer at `index`, between so many pairs of live channels, where `kept` flags the parameters that kernels are to make use of, and
/// `flags` those that may be other than zero.
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
            _ => Box::new(Rows::new(layer)),
        },
        Layer::Dense(layer) if is_narrow(layer.inputs, layer.outputs, layer.output) => Box::new(Logits::new(layer, kept)),
        Layer::Dense(layer) => Box::new(Matrix(layer.clone())),
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

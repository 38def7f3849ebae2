//! Which kernels compute a network, for people to read.

use std::sync::Arc;

use super::physical::Physical;
use super::plan::{LayerPlan, Path, Plan};
use super::winograd;
use crate::network::{Layer, Network};
use crate::pruning::Mask;

/// Which kernels compute each layer of a network without a mask, in words. Kernels of a general kind compute channels in whole vectors of 16.
pub fn kernels(network: &Network) -> Vec<&'static str> {
    let physical = Physical::new(&Arc::new(network.clone()));
    let plan = Plan::new(physical.network(), &Mask::Dense(physical.network().parameters()), true);
    let words = |(layer, plan): (&Layer, &LayerPlan)| match (&plan.path, layer) {
        (Path::Plain, _) => "plain loops",
        (Path::Sparse(_), _) => "kept weights, in sub-maps",
        (Path::Pooled(_), _) => "rows, pooled in registers",
        (Path::Logits(_), _) => "logits of few classes",
        (Path::Matrix, _) => "images as positions",
        (Path::Rows, Layer::Convolution(layer)) if winograd::fits(layer) => "rows, Winograd",
        (Path::Rows, _) => "rows",
    };
    physical.network().layers.iter().zip(&plan.layers).map(words).collect()
}

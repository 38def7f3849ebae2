//! Which kernels compute a network, for people to read.

use std::sync::Arc;

use super::physical::Physical;
use super::plan::{Path, Plan, Pooled, PooledGradient};
use super::winograd;
use crate::network::{Layer, Network};
use crate::pruning::Mask;

/// Which kernels compute each layer of a network with a mask, in words; without one, those of the dense network, which takes no memory for each
/// parameter. Kernels of a general kind compute channels in whole vectors of 16.
pub fn kernels(network: &Network, mask: Option<&Mask>) -> Vec<&'static str> {
    let network = Arc::new(network.clone());
    let physical = Physical::network_of(&network);
    let mask = mask.map_or(Mask::Dense(physical.parameters()), |mask| Physical::new(&network).mask(mask));
    let plans = Plan::layers(&physical, &mask, true);
    physical.layers.iter().zip(&plans).map(|(layer, plan)| words(layer, &plan.path)).collect()
}

fn words(layer: &Layer, path: &Path) -> &'static str {
    match (path, layer) {
        (Path::Plain, _) => "plain loops",
        (Path::Sparse(_), _) => "kept weights, in sub-maps",
        (Path::Pooled(Pooled { taps, gradient }), _) => {
            let kept_blocks = matches!(gradient, PooledGradient::Events(blocks) if blocks.places.is_some());
            match (taps.is_some(), kept_blocks) {
                (false, false) => "rows, pooled in registers",
                (true, false) => "kept weights, pooled in registers",
                (false, true) => "rows, pooled in registers; gradients by kept blocks",
                (true, true) => "kept weights, pooled in registers; gradients by kept blocks",
            }
        }
        (Path::Logits(Some(_)), _) => "logits of few classes, from kept inputs",
        (Path::Logits(None), _) => "logits of few classes",
        (Path::Matrix, _) => "images as positions",
        (Path::Rows, Layer::Convolution(layer)) if winograd::fits(layer) => "rows, Winograd",
        (Path::Rows, _) => "rows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BiasPruning, NetworkName};
    use crate::pruning::{keep_highest, random_scores};

    #[test]
    fn the_kernels_of_a_pruned_network_are_named() {
        let network = Network::new(NetworkName::SimpleCnn);
        let dense = kernels(&network, None);
        assert_eq!(dense, ["rows, pooled in registers", "rows, pooled in registers", "logits of few classes"]);
        let mask = keep_highest(&network, &random_scores(&network, 0), 0.95, BiasPruning::Prunable);
        let pruned = [
            "kept weights, pooled in registers",
            "kept weights, pooled in registers; gradients by kept blocks",
            "logits of few classes, from kept inputs",
        ];
        assert_eq!(kernels(&network, Some(&mask)), pruned);
    }
}

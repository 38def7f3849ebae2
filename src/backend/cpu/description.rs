//! Which kernels compute a network, for people to read.

use std::sync::Arc;

use super::physical::Physical;
use super::plan::Plan;
use crate::network::Network;
use crate::pruning::Mask;
use crate::settings::Convolutions;

/// Which kernels compute each layer of a network with a mask, in words. Without a mask the words are of kernels that multiply all weights, and take
/// no memory for each parameter; dense lanes of a network that was widened leave out the weights that were added, and may run others.
pub fn kernels(network: &Network, mask: Option<&Mask>, convolutions: Convolutions) -> Vec<&'static str> {
    let network = Arc::new(network.clone());
    let physical = Physical::network_of(&network);
    let mask = mask.map_or(Mask::Dense(physical.parameters()), |mask| Physical::new(&network).mask(mask));
    Plan::layers(&physical, &mask, true, convolutions).iter().map(|plan| plan.layer.describe()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkName;
    use crate::pruning::{BiasPruning, keep_highest, random_scores};

    #[test]
    fn the_kernels_of_a_pruned_network_are_named() {
        let network = Network::new(NetworkName::SimpleCnn);
        let dense = kernels(&network, None, Convolutions::Direct);
        assert_eq!(dense, ["rows, pooled in registers", "rows, pooled in registers", "logits of few classes"]);
        let mask = keep_highest(&network, &random_scores(&network, 0), 0.95, BiasPruning::Prunable);
        let pruned = [
            "kept weights, pooled in registers",
            "kept weights, pooled in registers; gradients by kept blocks",
            "logits of few classes, from kept inputs",
        ];
        assert_eq!(kernels(&network, Some(&mask), Convolutions::Direct), pruned);
        assert_eq!(kernels(&network, None, Convolutions::Winograd), [dense[0], "Winograd, pooled in registers", dense[2]]);
        assert_eq!(kernels(&network, Some(&mask), Convolutions::Winograd), pruned, "few weights are visited by themselves");
    }
}

//! The shuffled control: masks with the layer densities of a criterion, and nothing else of it.

use super::mask::Mask;
use crate::network::Network;
use crate::random::{Numbers, Permutation, Purpose};

/// The mask with its kept positions permuted at random within each tensor (the weights of a layer, its biases), as in a control of Frankle et al.,
/// "Pruning neural networks at initialization: why are we missing the mark?", ICLR 2021. The permutation depends on the seed and the tensor's number
/// alone, so of two masks the one that holds the other still does.
pub fn shuffled(network: &Network, mask: &Mask, seed: u64) -> Mask {
    let Mask::Sparse { kept, parameters } = mask else { return mask.clone() };
    let numbers = Numbers::new(seed, Purpose::ShuffledMask);
    let (mut rest, mut moved) = (&kept[..], Vec::with_capacity(kept.len()));
    for (number, tensor) in network.tensors.iter().enumerate() {
        let (of_tensor, others) = rest.split_at(rest.partition_point(|&index| (index as usize) < tensor.range().end));
        let permutation = Permutation::keyed(&numbers, number as u64, tensor.len as u32);
        let first = tensor.offset as u32;
        moved.extend(of_tensor.iter().map(|&index| first + permutation.at(index - first)));
        rest = others;
    }
    moved.sort_unstable();
    Mask::Sparse { kept: moved, parameters: *parameters }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::NetworkName;
    use crate::pruning::{BiasPruning, keep_highest, random_scores};

    fn kept(mask: &Mask) -> &[u32] {
        let Mask::Sparse { kept, .. } = mask else { panic!("a sparse mask") };
        kept
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn every_tensor_keeps_as_many_as_before(sparsity in 0.01..0.999_f64, seed in 0..50_u64) {
            let network = Network::new(NetworkName::Resnet8);
            for biases in [BiasPruning::Prunable, BiasPruning::Exempt] {
                let before = keep_highest(&network, &random_scores(&network, seed), sparsity, biases);
                let after = shuffled(&network, &before, seed);
                prop_assert!(kept(&after).is_sorted_by(|a, b| a < b));
                for tensor in &network.tensors {
                    let below = |mask: &Mask, end: usize| kept(mask).partition_point(|&index| (index as usize) < end);
                    let count = |mask: &Mask| below(mask, tensor.range().end) - below(mask, tensor.range().start);
                    prop_assert_eq!(count(&before), count(&after), "{}", tensor.name);
                }
                prop_assert_eq!(after.dead_layers(&network), before.dead_layers(&network));
            }
        }
    }

    /// Positions stay as chance leaves them: half of the half that is kept.
    #[test]
    fn positions_are_left_to_chance_and_to_the_seed() {
        let network = Network::new(NetworkName::SimpleCnn);
        // The lower half of each tensor.
        let halves = network.tensors.iter().flat_map(|tensor| tensor.offset as u32..(tensor.offset + tensor.len / 2) as u32);
        let before = Mask::Sparse { kept: halves.collect(), parameters: network.parameters() };
        let [one, two] = [1, 2].map(|seed| shuffled(&network, &before, seed));
        assert_eq!(shuffled(&network, &before, 1), one);
        for (a, b) in [(&before, &one), (&before, &two), (&one, &two)] {
            let both = kept(a).iter().filter(|index| kept(b).binary_search(index).is_ok()).count() as f64;
            let share = both / before.kept() as f64;
            assert!((share - 0.5).abs() < 0.02, "{share}");
        }
        assert_eq!(shuffled(&network, &Mask::Dense(7), 1), Mask::Dense(7));
    }

    #[test]
    fn a_sparser_mask_stays_within_the_denser_one() {
        let network = Network::new(NetworkName::SimpleCnn);
        let scores = random_scores(&network, 3);
        let [dense, sparse] =
            [0.5, 0.9].map(|sparsity| shuffled(&network, &keep_highest(&network, &scores, sparsity, BiasPruning::Prunable), 3));
        assert!(kept(&sparse).iter().all(|index| kept(&dense).binary_search(index).is_ok()));
    }
}

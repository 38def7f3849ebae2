//! ERK: random masks with the layer densities of an Erdős–Rényi kernel.

use super::random::uniform_scores;
use crate::network::Network;
use crate::pruning::criterion::{Criterion, Given, Untrained};
use crate::pruning::mask::{Mask, candidates, highest, rounded};
use crate::pruning::section::BiasPruning;
use crate::random::Purpose;

/// Random subsets of layers whose densities are those of an Erdős–Rényi kernel (Evci et al., "Rigging the Lottery", ICML 2020, section 3): a layer's
/// is ε (inputs + outputs + rows + columns) / (inputs · outputs · rows · columns) of its kernel, that of a fully connected layer ε (inputs + outputs)
/// / (inputs · outputs), and 1 where that would exceed 1. Each scale of a normalisation counts as a layer of one input and one output. ε is such that
/// the network keeps as many parameters as by any other criterion.
///
/// Biases that are prunable are parameters of their layer as its weights are. With exempt biases scales are kept, too.
pub struct Erk;

impl Criterion for Erk {
    fn given(&self) -> Given {
        Given::Nothing
    }

    fn scores(&self, start: &Untrained, _: &[f32]) -> Vec<f32> {
        uniform_scores(start.network, start.seed, Purpose::ErkMask)
    }

    fn cut(&self, network: &Network, scores: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
        let parameters = network.parameters();
        if sparsity == 0.0 {
            return Mask::Dense(parameters);
        }
        let (all, mut kept) = candidates(network, biases);
        let (mut layers, mut candidates) = (Vec::new(), Vec::new());
        for layer in &network.layers {
            let Some(([weights, bias], extents)) = layer.parameters().zip(layer.weight_extents()) else { continue };
            let [first, last] = [weights.start, bias.end].map(|end| all.partition_point(|&index| (index as usize) < end));
            layers.push((relative_density(&extents), last - first));
            candidates.push(all[first..last].to_vec());
        }
        let keep = rounded(layers.iter().map(|(_, size)| size).sum(), sparsity);
        for (of_layer, count) in candidates.iter_mut().zip(counts(&layers, keep)) {
            highest(of_layer, count, |index| scores[index].into());
            kept.append(of_layer);
        }
        kept.sort_unstable();
        Mask::Sparse { kept, parameters }
    }
}

/// Density of a layer by ε, from [`Layer::weight_extents`](crate::network::Layer::weight_extents).
fn relative_density(extents: &[usize]) -> f64 {
    extents.iter().sum::<usize>() as f64 / extents.iter().map(|&extent| extent as f64).product::<f64>()
}

/// How many parameters each layer keeps, `keep` in all, given its density by ε and its number of parameters. The counts are whole by the rule of the
/// largest remainder; of equal remainders the earlier layer's counts.
fn counts(layers: &[(f64, usize)], keep: usize) -> Vec<usize> {
    let mut is_full = vec![false; layers.len()];
    let epsilon = loop {
        let (mut left, mut sum) = (keep as f64, 0.0);
        for (&(density, size), &is_full) in layers.iter().zip(&is_full) {
            if is_full { left -= size as f64 } else { sum += density * size as f64 }
        }
        let epsilon = if sum > 0.0 { left.max(0.0) / sum } else { 0.0 };
        let exceeds = |place: usize| !is_full[place] && epsilon * layers[place].0 > 1.0;
        let exceeding: Vec<usize> = (0..layers.len()).filter(|&place| exceeds(place)).collect();
        if exceeding.is_empty() {
            break epsilon;
        }
        exceeding.into_iter().for_each(|place| is_full[place] = true);
    };
    let quota = |(&(density, size), &is_full): (&(f64, usize), &bool)| if is_full { 1.0 } else { epsilon * density } * size as f64;
    let quotas: Vec<f64> = layers.iter().zip(&is_full).map(quota).collect();
    let mut counts: Vec<usize> = quotas.iter().zip(layers).map(|(quota, &(_, size))| (quota.floor() as usize).min(size)).collect();
    let mut order: Vec<usize> = (0..layers.len()).collect();
    order.sort_by(|&a, &b| quotas[b].fract().total_cmp(&quotas[a].fract()));
    let mut missing = keep.saturating_sub(counts.iter().sum());
    while missing > 0 {
        for &place in &order {
            let more = usize::from(missing > 0 && counts[place] < layers[place].1);
            counts[place] += more;
            missing -= more;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::{NetworkName, TensorKind};
    use crate::pruning::kept_parameters;

    fn mask(network: &Network, sparsity: f64, biases: BiasPruning) -> Vec<u32> {
        let scores = Erk.scores(&Untrained { network, seed: 5, weights: &[] }, &[]);
        let Mask::Sparse { kept, .. } = Erk.cut(network, &scores, sparsity, biases) else { panic!("a sparse mask") };
        kept
    }

    fn within(kept: &[u32], range: std::ops::Range<usize>) -> usize {
        kept.iter().filter(|&&index| range.contains(&(index as usize))).count()
    }

    #[test]
    fn densities_are_those_of_the_kernel_and_none_exceeds_one() {
        let network = Network::new(NetworkName::SimpleCnn);
        // Weights of 5·5·1·32, 5·5·32·64 and 1024·10: the densities are as (1 + 32 + 5 + 5)/800, (32 + 64 + 5 + 5)/51200, (1024 + 10)/10240.
        let sizes = [800.0, 51_200.0, 10_240.0];
        let density = [43.0 / 800.0, 106.0 / 51_200.0, 1_034.0 / 10_240.0];
        let of_layers = |sparsity: f64| {
            let kept = mask(&network, sparsity, BiasPruning::Exempt);
            let weights = network.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Weights);
            weights.map(|tensor| within(&kept, tensor.range()) as f64).collect::<Vec<f64>>()
        };
        let epsilon = 62_240.0 * 0.01 / (43.0 + 106.0 + 1_034.0);
        for ((found, size), density) in of_layers(0.99).into_iter().zip(sizes).zip(density) {
            assert!((found - epsilon * density * size).abs() < 1.0, "{found} of {size}");
        }
        // Half of the network: ε alone would give the first layer a density of 1.4 and the last one 2.7. Both stay whole, and the second gives the
        // rest.
        assert_eq!(of_layers(0.5), [800.0, 31_120.0 - 800.0 - 10_240.0, 10_240.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn every_mask_keeps_as_many_as_a_global_criterion(sparsity in 0.001..0.9999_f64, name in 0..NetworkName::NAMES.len() - 1) {
            let network = Network::new(NetworkName::NAMES[name].parse().unwrap());
            for biases in [BiasPruning::Prunable, BiasPruning::Exempt] {
                let kept = mask(&network, sparsity, biases);
                prop_assert_eq!(kept.len(), kept_parameters(&network, sparsity, biases));
                prop_assert!(kept.is_sorted_by(|a, b| a < b));
            }
        }
    }

    proptest! {
        #[test]
        fn counts_are_exact_and_within_one_of_the_quotas(layers in prop::collection::vec((0.0001..10.0_f64, 1..2_000_usize), 1..20), share in 0.0..1.0_f64) {
            let all: usize = layers.iter().map(|(_, size)| size).sum();
            let keep = (share * all as f64).round() as usize;
            let counts = counts(&layers, keep);
            prop_assert_eq!(counts.iter().sum::<usize>(), keep);
            prop_assert!(counts.iter().zip(&layers).all(|(count, (_, size))| count <= size));
            // Of two layers that lose parameters, the one of higher density keeps a larger part, but for rounding.
            for (a, b) in (0..layers.len()).flat_map(|a| (0..layers.len()).map(move |b| (a, b))) {
                let ratio = |place: usize, more: f64| (counts[place] as f64 + more) / layers[place].1 as f64 / layers[place].0;
                let is_whole = |place: usize| counts[place] + 1 >= layers[place].1;
                prop_assert!(is_whole(a) || is_whole(b) || ratio(a, -1.0) <= ratio(b, 1.0), "{:?} {:?}", layers, counts);
            }
        }
    }
}

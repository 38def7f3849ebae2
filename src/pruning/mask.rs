//! Masks: which parameters a trial trains.

use super::section::BiasPruning;
use crate::network::{Network, TensorKind};

/// The kept parameters of a network, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// All parameters, of which there are that many.
    Dense(usize),
    /// Some of the parameters.
    Sparse {
        /// Indices into the flat parameter vector.
        kept: Vec<u32>,
        /// Parameters in all.
        parameters: usize,
    },
}

impl Mask {
    /// Number of parameters kept.
    pub fn kept(&self) -> usize {
        match self {
            Mask::Dense(parameters) => *parameters,
            Mask::Sparse { kept, .. } => kept.len(),
        }
    }

    /// Parameters kept and removed.
    pub fn parameters(&self) -> usize {
        match self {
            Mask::Dense(parameters) | Mask::Sparse { parameters, .. } => *parameters,
        }
    }

    /// Whether this is a mask of so many parameters, whose kept ones are listed in ascending order.
    pub fn is_of(&self, parameters: usize) -> bool {
        let ascend = match self {
            Mask::Dense(_) => true,
            Mask::Sparse { kept, .. } => {
                kept.is_sorted_by(|before, index| before < index) && kept.last().is_none_or(|&last| (last as usize) < parameters)
            }
        };
        ascend && self.parameters() == parameters
    }

    /// FNV-1a over the kept indices and the parameter count: what ranks compare and results record.
    pub fn hash(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |word: u32| {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        add(self.parameters() as u32);
        match self {
            Mask::Dense(parameters) => (0..*parameters as u32).for_each(&mut add),
            Mask::Sparse { kept, .. } => kept.iter().copied().for_each(&mut add),
        }
        hash
    }

    /// How many layers the mask leaves no weight; of normalisations, no scale.
    pub fn dead_layers(&self, network: &Network) -> usize {
        let Mask::Sparse { kept, .. } = self else { return 0 };
        let weights = network.tensors.iter().filter(|tensor| tensor.kind != TensorKind::Bias);
        let begins = |place: usize| kept.partition_point(|&index| (index as usize) < place);
        weights.filter(|tensor| begins(tensor.range().start) == begins(tensor.range().end)).count()
    }

    /// Sets the removed parameters to zero.
    pub fn apply(&self, weights: &mut [f32]) {
        if let Mask::Sparse { kept, .. } = self {
            let mut next = 0;
            for &index in kept {
                weights[next..index as usize].fill(0.0);
                next = index as usize + 1;
            }
            weights[next..].fill(0.0);
        }
    }
}

/// Keeps the κ = round(m·(1 − sparsity)) parameters of highest score over all layers together, ties to the lower index (section 2.2 of
/// Lee et al., ICLR 2019, and the public code). Exempt biases, and with them the scales of normalisations, are kept and not counted in m.
///
/// A NaN score sorts below every number.
pub fn keep_highest(network: &Network, scores: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
    let parameters = network.parameters();
    if sparsity == 0.0 {
        return Mask::Dense(parameters);
    }
    let (mut candidates, mut kept) = candidates(network, biases);
    let keep = rounded(candidates.len(), sparsity);
    highest(&mut candidates, keep, |index| scores[index].into());
    kept.extend_from_slice(&candidates);
    kept.sort_unstable();
    Mask::Sparse { kept, parameters }
}

/// The parameters that can be removed, and those that are kept at any sparsity, in ascending order.
pub(super) fn candidates(network: &Network, biases: BiasPruning) -> (Vec<u32>, Vec<u32>) {
    let (mut candidates, mut kept) = (Vec::with_capacity(network.parameters()), Vec::new());
    for tensor in &network.tensors {
        let range = tensor.range().start as u32..tensor.range().end as u32;
        if tensor.kind != TensorKind::Weights && biases == BiasPruning::Exempt { kept.extend(range) } else { candidates.extend(range) }
    }
    (candidates, kept)
}

/// Leaves those `keep` of the parameters that score highest, and returns the others, both in any order. Ties go to the lower index; a NaN score sorts
/// below every number.
pub(super) fn highest(parameters: &mut Vec<u32>, keep: usize, score: impl Fn(usize) -> f64) -> Vec<u32> {
    let score = |index: u32| {
        let score = score(index as usize);
        // −0 is the same score as 0.
        if score.is_nan() { f64::NEG_INFINITY } else { score + 0.0 }
    };
    if keep < parameters.len() {
        parameters.select_nth_unstable_by(keep, |&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
    }
    parameters.split_off(keep.min(parameters.len()))
}

/// κ: how many of m candidates are kept.
pub(super) fn rounded(candidates: usize, sparsity: f64) -> usize {
    (candidates as f64 * (1.0 - sparsity)).round() as usize
}

/// How many parameters a mask of that sparsity keeps.
pub fn kept_parameters(network: &Network, sparsity: f64, biases: BiasPruning) -> usize {
    let all = network.parameters();
    let weights = network.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Weights).map(|tensor| tensor.len).sum();
    match biases {
        BiasPruning::Exempt => all - weights + rounded(weights, sparsity),
        BiasPruning::Prunable => rounded(all, sparsity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LayerSpec, NetworkName, Padding};

    #[test]
    fn ties_go_to_the_lower_index_and_counts_are_exact() {
        let network = Network::new(NetworkName::SimpleCnn);
        let scores = vec![1.0; network.parameters()];
        for sparsity in [0.5, 0.7, 0.9, 0.99] {
            let mask = keep_highest(&network, &scores, sparsity, BiasPruning::Prunable);
            let expected = (62_346.0 * (1.0 - sparsity)).round() as u32;
            assert_eq!(mask, Mask::Sparse { kept: (0..expected).collect(), parameters: 62_346 });
        }
        assert_eq!(keep_highest(&network, &scores, 0.0, BiasPruning::Prunable), Mask::Dense(62_346));
        let zeros: Vec<f32> = (0..network.parameters()).map(|index| if index % 2 == 0 { -0.0 } else { 0.0 }).collect();
        let mask = keep_highest(&network, &zeros, 0.5, BiasPruning::Prunable);
        assert_eq!(mask, Mask::Sparse { kept: (0..31_173).collect(), parameters: 62_346 });
    }

    #[test]
    fn exempt_biases_are_kept_and_not_counted() {
        let network = Network::new(NetworkName::SimpleCnn);
        let scores = vec![0.0; network.parameters()];
        let mask = keep_highest(&network, &scores, 0.9, BiasPruning::Exempt);
        let biases = 32 + 64 + 10;
        assert_eq!(mask.kept(), biases + ((62_346 - biases) as f64 * 0.1).round() as usize);
        let Mask::Sparse { kept, .. } = mask else { panic!("a sparse mask") };
        let bias_indices = network.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Bias).flat_map(|tensor| tensor.range());
        assert!(bias_indices.into_iter().all(|index| kept.binary_search(&(index as u32)).is_ok()));
    }

    #[test]
    fn scales_of_normalisations_are_exempt_as_biases_are() {
        let convolution = LayerSpec::convolution(4, 3, 1, Padding::Same);
        let layers = [convolution, LayerSpec::GroupNorm { groups: 2 }, LayerSpec::GlobalMean, LayerSpec::dense(10)];
        let network = Network::listed(&layers, [8, 8, 1], 10).unwrap();
        let (weights, others) = (4 * 9 + 4 * 10, 4 + 2 * 4 + 10);
        for (biases, expected) in [(BiasPruning::Exempt, others + weights / 2), (BiasPruning::Prunable, (others + weights) / 2)] {
            let mask = keep_highest(&network, &vec![0.0; network.parameters()], 0.5, biases);
            assert_eq!([mask.kept(), kept_parameters(&network, 0.5, biases)], [expected; 2], "{biases:?}");
        }
        // Convolution and normalisation without a weight and a scale, with every bias.
        let firsts: Vec<u32> = network.tensors.iter().map(|tensor| tensor.offset as u32).collect();
        let kept = vec![firsts[1], firsts[3], firsts[4], firsts[5]];
        assert_eq!(Mask::Sparse { kept, parameters: network.parameters() }.dead_layers(&network), 2);
    }

    #[test]
    fn a_layer_without_weights_is_dead_though_it_has_biases() {
        let network = Network::new(NetworkName::SimpleCnn);
        let parameters = network.parameters();
        let mask = |kept: Vec<u32>| Mask::Sparse { kept, parameters };
        let firsts: Vec<u32> = network.tensors.iter().map(|tensor| tensor.offset as u32).collect();
        assert_eq!(mask(firsts.clone()).dead_layers(&network), 0);
        // Weights of the first layer, and every bias.
        let biases = [vec![firsts[0]], firsts.iter().copied().skip(1).step_by(2).collect()].concat();
        assert_eq!(mask(biases).dead_layers(&network), 2);
        assert_eq!(mask(vec![parameters as u32 - 1]).dead_layers(&network), 3);
        assert_eq!(Mask::Dense(parameters).dead_layers(&network), 0);
    }

    #[test]
    fn applying_a_mask_zeroes_the_rest_and_hashes_tell_masks_apart() {
        let one = Mask::Sparse { kept: vec![1, 3], parameters: 5 };
        let mut weights = [1.0, 2.0, 3.0, 4.0, 5.0];
        one.apply(&mut weights);
        assert_eq!(weights, [0.0, 2.0, 0.0, 4.0, 0.0]);
        let other = Mask::Sparse { kept: vec![1, 4], parameters: 5 };
        assert_ne!(one.hash(), other.hash());
        assert_ne!(one.hash(), Mask::Dense(5).hash());
    }
}

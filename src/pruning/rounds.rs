//! Masks that are made in rounds.

use super::criterion::{Iterated, Untrained};
use super::mask::{Mask, candidates, highest, rounded};
use super::section::BiasPruning;

/// The mask of an iterated criterion at a sparsity above 0. `flow` is asked for the gradient of the network's flow at the magnitudes of the
/// parameters, those that are removed being zero. What a round removes never comes back. Ties go to the lower index.
///
/// # Errors
/// The errors of `flow`.
pub fn in_rounds<E>(
    criterion: &dyn Iterated,
    start: &Untrained,
    sparsity: f64,
    biases: BiasPruning,
    mut flow: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Mask, E> {
    let (mut left, mut kept) = candidates(start.network, biases);
    let all = left.len();
    let mut magnitudes: Vec<f64> = start.weights.iter().map(|weight| f64::from(weight.abs())).collect();
    for round in 1..=criterion.rounds() {
        let keep = rounded(all, 1.0 - criterion.left(round, sparsity));
        if keep >= left.len() {
            continue;
        }
        let scores = criterion.scores(&magnitudes, &flow(&magnitudes)?);
        let removed = highest(&mut left, keep, |index| scores[index]);
        removed.into_iter().for_each(|index| magnitudes[index as usize] = 0.0);
    }
    kept.append(&mut left);
    kept.sort_unstable();
    Ok(Mask::Sparse { kept, parameters: magnitudes.len() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::network::{Network, NetworkName, initial_weights};
    use crate::pruning::{Synflow, kept_parameters};

    /// Masks of a flow whose gradient is 1 everywhere: the magnitudes alone decide, in one round or in many.
    fn by_magnitude(network: &Network, sparsity: f64, biases: BiasPruning) -> (Mask, usize) {
        let (weights, mut rounds) = (initial_weights(network, 4), 0);
        let start = Untrained { network, seed: 4, weights: &weights };
        let mask = in_rounds(&Synflow, &start, sparsity, biases, |magnitudes| {
            rounds += 1;
            Ok::<_, Infallible>(vec![1.0; magnitudes.len()])
        });
        let Ok(mask) = mask;
        (mask, rounds)
    }

    #[test]
    fn rounds_end_at_the_sparsity_with_exact_counts() {
        let network = Network::new(NetworkName::SimpleCnn);
        let magnitudes: Vec<f32> = initial_weights(&network, 4).iter().map(|weight| weight.abs()).collect();
        for biases in [BiasPruning::Prunable, BiasPruning::Exempt] {
            for sparsity in [1e-5, 0.3, 0.9, 0.99, 0.9999] {
                let (mask, rounds) = by_magnitude(&network, sparsity, biases);
                assert_eq!(mask.kept(), kept_parameters(&network, sparsity, biases));
                assert_eq!(mask, crate::pruning::keep_highest(&network, &magnitudes, sparsity, biases));
                // A round that would remove less than one parameter asks for no flow.
                assert!(if sparsity < 1e-4 { rounds == 1 } else { rounds > 80 && rounds <= 100 }, "{rounds} rounds");
            }
        }
    }

    /// The flow is asked at what is left, which becomes less in each round.
    #[test]
    fn what_is_removed_stays_removed() {
        let network = Network::new(NetworkName::Lenet300x100);
        let weights = initial_weights(&network, 4);
        let start = Untrained { network: &network, seed: 4, weights: &weights };
        let mut before: Option<Vec<f64>> = None;
        let mask = in_rounds(&Synflow, &start, 0.8, BiasPruning::Prunable, |magnitudes| {
            if let Some(before) = &before {
                assert!(before.iter().zip(magnitudes).all(|(&before, &now)| now == before || now == 0.0));
                assert!(before.as_slice() != magnitudes);
            }
            before = Some(magnitudes.to_vec());
            // The order of the scores is another one in each round.
            let turn = magnitudes.iter().filter(|magnitude| **magnitude > 0.0).count();
            Ok::<_, Infallible>((0..magnitudes.len()).map(|index| 1.0 + ((index * turn) % 101) as f64).collect())
        });
        let Ok(Mask::Sparse { kept, .. }) = mask else { panic!("a sparse mask") };
        let last = before.unwrap();
        assert!(kept.iter().all(|&index| last[index as usize] > 0.0 || weights[index as usize] == 0.0));
        assert_eq!(kept.len(), kept_parameters(&network, 0.8, BiasPruning::Prunable));
    }
}

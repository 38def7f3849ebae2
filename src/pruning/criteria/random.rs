//! Random scores.

use crate::network::Network;
use crate::pruning::criterion::{Criterion, Given, Untrained};
use crate::random::{Numbers, Purpose};

/// A uniformly random subset.
pub struct Random;

impl Criterion for Random {
    fn given(&self) -> Given {
        Given::Nothing
    }

    fn scores(&self, start: &Untrained, _: &[f32]) -> Vec<f32> {
        random_scores(start.network, start.seed)
    }
}

/// Uniform random scores. The weights kept at a high sparsity are among those kept at a lower one.
pub fn random_scores(network: &Network, seed: u64) -> Vec<f32> {
    uniform_scores(network, seed, Purpose::RandomMask)
}

pub(super) fn uniform_scores(network: &Network, seed: u64, purpose: Purpose) -> Vec<f32> {
    let numbers = Numbers::new(seed, purpose);
    (0..network.parameters() as u64).map(|index| numbers.uniform(index) as f32).collect()
}

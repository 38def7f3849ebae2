//! The initial weights and the mask of each trial: scored once a seed, cut for every sparsity.

use std::collections::HashMap;

use crate::Result;
use crate::backend::Backend;
use crate::config::{Criterion, Pruning};
use crate::network::{Network, initial_weights};
use crate::pruning::{Mask, connection_sensitivity, keep_highest, magnitude, random};

/// Scores by seed. They depend on nothing else (a cell's batch size, sparsity and metaparameters play no part), so a study scores each
/// seed once.
pub struct Masks<'a> {
    network: &'a Network,
    pruning: &'a Pruning,
    scores: HashMap<u64, Vec<f32>>,
}

impl<'a> Masks<'a> {
    /// No scores yet.
    pub fn new(network: &'a Network, pruning: &'a Pruning) -> Masks<'a> {
        Masks { network, pruning, scores: HashMap::new() }
    }

    /// Scores the seeds below `seeds` that have no scores yet. All ranks of the back end's group must ask alike, and their group must be the
    /// whole world: were seeds shared out among groups, ranks would later differ in which they know, and wait for each other.
    pub fn score(&mut self, backend: &mut impl Backend, seeds: u64, training_examples: usize) -> Result<()> {
        for seed in 0..seeds {
            if self.scores.contains_key(&seed) {
                continue;
            }
            let weights = initial_weights(self.network, seed);
            let scores = match self.pruning.criterion {
                Criterion::Snip => {
                    let examples = match self.pruning.examples as usize {
                        0 => training_examples,
                        some => some.min(training_examples),
                    };
                    let (gradient, _) = backend.gradient(&weights, examples)?;
                    connection_sensitivity(&weights, &gradient)
                }
                Criterion::Random => random(self.network, seed),
                Criterion::Magnitude => magnitude(&weights),
            };
            self.scores.insert(seed, scores);
        }
        Ok(())
    }

    /// Initial weights and mask of the trial with that seed, which for a sparse network [`Masks::score`] must have seen.
    pub fn start(&self, seed: u64, sparsity: f64) -> (Vec<f32>, Mask) {
        let weights = initial_weights(self.network, seed);
        let mask = match self.scores.get(&seed) {
            Some(scores) if sparsity > 0.0 => keep_highest(self.network, scores, sparsity, self.pruning.biases),
            _ => Mask::Dense(weights.len()),
        };
        (weights, mask)
    }
}

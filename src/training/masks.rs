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

    /// Initial weights and mask of the trial with that seed. All ranks of the back end's group must ask alike.
    pub fn start(&mut self, backend: &mut impl Backend, seed: u64, sparsity: f64, training_examples: usize) -> Result<(Vec<f32>, Mask)> {
        let weights = initial_weights(self.network, seed);
        if sparsity == 0.0 {
            let parameters = weights.len();
            return Ok((weights, Mask::Dense(parameters)));
        }
        if !self.scores.contains_key(&seed) {
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
        let mask = keep_highest(self.network, &self.scores[&seed], sparsity, self.pruning.biases);
        Ok((weights, mask))
    }
}

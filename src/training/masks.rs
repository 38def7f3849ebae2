//! The initial weights and the mask of each trial: scored once a seed, cut for every sparsity.

use std::collections::BTreeMap;

use super::words::MaskFacts;
use crate::Result;
use crate::backend::Backend;
use crate::config::{Pruning, first_of};
use crate::network::{Network, initial_weights};
use crate::pruning::{Criterion, Given, HessianGradient, LossGradient, Mask, Nothing, Scoring, Start, shuffled};

/// Scores by seed. They depend on nothing else (a cell's batch size, sparsity and metaparameters play no part), so a study scores each
/// seed once.
pub struct Masks<'a> {
    network: &'a Network,
    pruning: &'a Pruning,
    scoring: Scoring,
    scores: BTreeMap<u64, Vec<f32>>,
}

impl<'a> Masks<'a> {
    /// With the scores of an earlier run.
    pub fn new(network: &'a Network, pruning: &'a Pruning, scores: BTreeMap<u64, Vec<f32>>) -> Masks<'a> {
        Masks { network, pruning, scoring: Scoring::of(pruning), scores }
    }

    /// Scores the connections of a seed's network, unless they are scored, and returns the scores if the study is to keep them. All
    /// ranks of the back end's group must ask alike, and their group must be the whole world: were seeds shared out among groups, ranks
    /// would later differ in which they know, and wait for each other.
    pub fn score(&mut self, backend: &mut impl Backend, seed: u64, training_examples: usize) -> Result<Option<&[f32]>> {
        if self.scores.contains_key(&seed) {
            return Ok(None);
        }
        let weights = initial_weights(self.network, seed);
        let start = Start { network: self.network, seed, weights: &weights };
        let examples = first_of(self.pruning.examples, training_examples as u64) as usize;
        let (scores, is_journalled) = match self.scoring {
            Scoring::Weights(criterion) => scored(criterion, &start, &Nothing),
            Scoring::Gradient(criterion) => scored(criterion, &start, &LossGradient(backend.gradient(&weights, examples)?.0)),
            Scoring::HessianGradient(criterion, temperature) => {
                scored(criterion, &start, &HessianGradient(backend.hessian_gradient(&weights, temperature, examples)?))
            }
        };
        let scores = self.scores.entry(seed).or_insert(scores);
        Ok(is_journalled.then_some(scores))
    }

    /// What is recorded of a mask.
    pub(super) fn facts(&self, mask: &Mask) -> MaskFacts {
        MaskFacts { kept: mask.kept() as u32, hash: mask.hash(), dead_layers: mask.dead_layers(self.network) as u32 }
    }

    /// Initial weights and mask of the trial with that seed, which for a sparse network [`Masks::score`] must have seen.
    pub fn start(&self, seed: u64, sparsity: f64) -> (Vec<f32>, Mask) {
        let weights = initial_weights(self.network, seed);
        let mask = match self.scores.get(&seed) {
            Some(scores) if sparsity > 0.0 => self.scoring.cut(self.network, scores, sparsity, self.pruning.biases),
            _ => Mask::Dense(weights.len()),
        };
        (weights, if self.pruning.shuffle { shuffled(self.network, &mask, seed) } else { mask })
    }
}

/// The scores of a criterion, and whether the study is to keep them in its journal.
fn scored<G: Given>(criterion: &dyn Criterion<Given = G>, start: &Start, given: &G) -> (Vec<f32>, bool) {
    (criterion.scores(start, given), G::JOURNALLED)
}

//! The initial weights and the mask of each trial.

use std::collections::BTreeMap;

use super::facts::MaskFacts;
use super::rounds::Workers;
use crate::backend::Backend;
use crate::network::{Network, initial_weights, weights_drawn_anew};
use crate::pruning::{Criterion, Given, Iterated, Mask, Pruning, Scoring, Untrained, shuffled};
use crate::records::MaskRecord;
use crate::settings::first_of;
use crate::{Error, Result};

/// The trials' masks, or the scores that they are cut from, by seed.
pub struct Masks<'a> {
    network: &'a Network,
    pruning: &'a Pruning,
    workers: Workers<'a>,
    known: Known,
}

/// Source of masks: scores, or masks that were made.
enum Known {
    /// Scores by seed, from which the masks of every sparsity are cut. They depend on nothing else (a cell's batch size, sparsity and metaparameters
    /// play no part), so a study scores each seed once.
    Scores(Box<dyn Criterion>, BTreeMap<u64, Vec<f32>>),
    /// Masks by seed and sparsity.
    Masks(&'static dyn Iterated, BTreeMap<(u64, u64), Mask>),
}

/// Scores or a mask of a seed's network, which a study is to keep because they took seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Scored {
    /// The scores of its connections.
    Scores {
        /// The seed.
        seed: u64,
        /// `[parameters]`.
        values: Vec<f32>,
    },
    /// A mask at one sparsity.
    Mask(MaskRecord),
}

impl<'a> Masks<'a> {
    /// Masks that begin with the scores and masks of an earlier run.
    pub fn new(
        network: &'a Network,
        pruning: &'a Pruning,
        workers: Workers<'a>,
        scores: BTreeMap<u64, Vec<f32>>,
        masks: Vec<MaskRecord>,
    ) -> Masks<'a> {
        let parameters = network.parameters();
        let mask = |MaskRecord { seed, sparsity, kept }| ((seed, sparsity.to_bits()), Mask::Sparse { kept, parameters });
        let known = match Scoring::of(pruning) {
            Scoring::Once(criterion) => Known::Scores(criterion, scores),
            Scoring::Rounds(criterion) => Known::Masks(criterion, masks.into_iter().map(mask).collect()),
        };
        Masks { network, pruning, workers, known }
    }

    /// The seeds of `seeds` that [`Masks::score`] has not seen for that sparsity.
    pub fn missing(&self, seeds: impl IntoIterator<Item = u64>, sparsity: f64) -> Vec<u64> {
        let is_known = |seed: &u64| match &self.known {
            Known::Scores(_, scores) => scores.contains_key(seed),
            Known::Masks(_, masks) => masks.contains_key(&(*seed, sparsity.to_bits())),
        };
        seeds.into_iter().filter(|seed| !is_known(seed)).collect()
    }

    /// How many seeds to score at a time, so that there is work for all that can share it.
    pub fn at_once(&self) -> usize {
        if let Known::Masks(..) = self.known { self.workers.all() } else { 1 }
    }

    /// Scores the connections of some seeds' networks, and returns what the study is to keep of them. All ranks of the back end's group must ask
    /// alike, and their group must be the whole world: were seeds shared out among groups, ranks would later differ in which they know, and wait for
    /// each other.
    ///
    /// # Errors
    /// [`Error::Configuration`]: scores that are infinite or no numbers, which decide no mask. The device's.
    pub fn score(&mut self, backend: &mut impl Backend, seeds: &[u64], sparsity: f64, training_examples: usize) -> Result<Vec<Scored>> {
        let (network, pruning) = (self.network, self.pruning);
        let examples = first_of(pruning.examples, training_examples as u64) as usize;
        let mut fresh = Vec::new();
        match &mut self.known {
            Known::Scores(criterion, known) => {
                for &seed in seeds {
                    let weights = initial_weights(network, seed);
                    let given = match criterion.given() {
                        Given::Nothing => Vec::new(),
                        Given::LossGradient => backend.gradient(&weights, examples)?.0,
                        Given::HessianGradient { temperature } => backend.hessian_gradient(&weights, temperature, examples)?,
                    };
                    let values = criterion.scores(&Untrained { network, seed, weights: &weights }, &given);
                    check(seed, &values)?;
                    // A later run computes scores anew that took no pass over examples.
                    if criterion.given() != Given::Nothing {
                        fresh.push(Scored::Scores { seed, values: values.clone() });
                    }
                    known.insert(seed, values);
                }
            }
            Known::Masks(criterion, known) => {
                for mask in self.workers.masks(*criterion, network, seeds, sparsity, pruning.biases)? {
                    let kept = Mask::Sparse { kept: mask.kept.clone(), parameters: network.parameters() };
                    known.insert((mask.seed, sparsity.to_bits()), kept);
                    fresh.push(Scored::Mask(mask));
                }
            }
        }
        Ok(fresh)
    }

    /// Record of a mask.
    pub(super) fn facts(&self, mask: &Mask) -> MaskFacts {
        MaskFacts { kept: mask.kept() as u32, hash: mask.hash(), dead_layers: mask.dead_layers(self.network) as u32 }
    }

    /// The weights that training begins with and the mask of the trial with that seed.
    ///
    /// # Panics
    /// For a sparse network, unless [`Masks::score`] has seen the seed.
    pub fn start(&self, seed: u64, sparsity: f64) -> (Vec<f32>, Mask) {
        let weights = initial_weights(self.network, seed);
        let mask = match &self.known {
            _ if sparsity == 0.0 => Mask::Dense(weights.len()),
            Known::Scores(criterion, scores) => criterion.cut(self.network, &scores[&seed], sparsity, self.pruning.biases),
            Known::Masks(_, masks) => masks[&(seed, sparsity.to_bits())].clone(),
        };
        let is_redrawn = self.pruning.reinitialise && sparsity > 0.0;
        let weights = if is_redrawn { weights_drawn_anew(self.network, seed) } else { weights };
        (weights, if self.pruning.shuffle { shuffled(self.network, &mask, seed) } else { mask })
    }
}

/// Checks that scores are numbers.
fn check(seed: u64, scores: &[f32]) -> Result<()> {
    if scores.iter().all(|score| score.is_finite()) {
        return Ok(());
    }
    let problem = format!(
        "expected scores of connections that are numbers, found others in the network of seed {seed}: its gradient before training is beyond 32 bits; \
         use fewer layers, another initialisation or another criterion"
    );
    Err(Error::Configuration { path: "pruning.criterion".into(), problems: vec![problem] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_that_are_no_numbers_are_refused() {
        check(0, &[1.0, -0.0, f32::MIN]).unwrap();
        for wrong in [f32::NAN, f32::INFINITY] {
            let said = check(7, &[1.0, wrong]).unwrap_err().to_string();
            assert!(said.contains("pruning.criterion") && said.contains("the network of seed 7"), "{said}");
        }
    }
}

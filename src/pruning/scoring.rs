//! The criterion of a study, by what it is given.

use super::criteria::{Erk, Grasp, Magnitude, Random, Snip, Synflow};
use super::criterion::{Criterion, Given, HessianGradient, Iterated, LossGradient, Nothing};
use super::mask::Mask;
use super::section::{BiasPruning, CriterionName, Pruning};
use crate::network::Network;

/// The criterion of a study, by what its masks depend on.
pub enum Scoring {
    /// The criterion scores each seed's network once: the scores serve every sparsity.
    Once(Once),
    /// The criterion scores in rounds: each sparsity has masks of its own.
    Rounds(&'static dyn Iterated),
}

/// A criterion that scores once, by what it is given: whoever computes that, keeps the scores or counts their cost, matches on this.
pub enum Once {
    /// Given nothing.
    Weights(&'static dyn Criterion<Given = Nothing>),
    /// Given the gradient of the loss.
    Gradient(&'static dyn Criterion<Given = LossGradient>),
    /// Given the product of Hessian and gradient of the loss, with logits divided by a temperature.
    HessianGradient(&'static dyn Criterion<Given = HessianGradient>, f32),
}

impl Scoring {
    /// The criterion that a configuration names.
    pub fn of(pruning: &Pruning) -> Scoring {
        Scoring::Once(match pruning.criterion {
            CriterionName::Snip => Once::Gradient(&Snip),
            CriterionName::Random => Once::Weights(&Random),
            CriterionName::Magnitude => Once::Weights(&Magnitude),
            CriterionName::Grasp => Once::HessianGradient(&Grasp, pruning.temperature.unwrap_or(1.0) as f32),
            CriterionName::Erk => Once::Weights(&Erk),
            CriterionName::Synflow => return Scoring::Rounds(&Synflow),
        })
    }

    /// How many images pass forward and backward through each seed's network, where `examples` are scored and there are so many sparsities above 0.
    pub fn images(&self, examples: u64, sparsities: usize) -> f64 {
        match self {
            _ if sparsities == 0 => 0.0,
            Scoring::Once(once) => once.passes() * examples as f64,
            // One image a round.
            Scoring::Rounds(criterion) => f64::from(criterion.rounds()) * sparsities as f64,
        }
    }
}

impl Once {
    fn passes(&self) -> f64 {
        match self {
            Once::Weights(criterion) => passes(*criterion),
            Once::Gradient(criterion) => passes(*criterion),
            Once::HessianGradient(criterion, _) => passes(*criterion),
        }
    }

    /// The mask that the criterion cuts from its scores.
    pub fn cut(&self, network: &Network, scores: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
        match self {
            Once::Weights(criterion) => criterion.cut(network, scores, sparsity, biases),
            Once::Gradient(criterion) => criterion.cut(network, scores, sparsity, biases),
            Once::HessianGradient(criterion, _) => criterion.cut(network, scores, sparsity, biases),
        }
    }
}

fn passes<G: Given>(_: &dyn Criterion<Given = G>) -> f64 {
    G::PASSES
}

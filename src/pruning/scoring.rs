//! The criterion of a study, by what it is given.

use super::criteria::{Erk, Grasp, Magnitude, Random, Snip};
use super::criterion::{Criterion, Given, HessianGradient, LossGradient, Nothing};
use super::mask::Mask;
use crate::config::{BiasPruning, CriterionName, Pruning};
use crate::network::Network;

/// The criterion of a study, by what it is given: whoever computes that, keeps the scores or counts their cost, matches on this.
pub enum Scoring {
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
        match pruning.criterion {
            CriterionName::Snip => Scoring::Gradient(&Snip),
            CriterionName::Random => Scoring::Weights(&Random),
            CriterionName::Magnitude => Scoring::Weights(&Magnitude),
            CriterionName::Erk => Scoring::Weights(&Erk),
            CriterionName::Grasp => Scoring::HessianGradient(&Grasp, pruning.temperature.unwrap_or(1.0) as f32),
        }
    }

    /// What the scores of a seed cost, in passes forward and backward over the scoring examples.
    pub fn passes(&self) -> f64 {
        match self {
            Scoring::Weights(criterion) => passes(*criterion),
            Scoring::Gradient(criterion) => passes(*criterion),
            Scoring::HessianGradient(criterion, _) => passes(*criterion),
        }
    }

    /// The mask that the criterion cuts from its scores.
    pub fn cut(&self, network: &Network, scores: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
        match self {
            Scoring::Weights(criterion) => criterion.cut(network, scores, sparsity, biases),
            Scoring::Gradient(criterion) => criterion.cut(network, scores, sparsity, biases),
            Scoring::HessianGradient(criterion, _) => criterion.cut(network, scores, sparsity, biases),
        }
    }
}

fn passes<G: Given>(_: &dyn Criterion<Given = G>) -> f64 {
    G::PASSES
}

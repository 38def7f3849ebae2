//! Criteria: the numbers that they are given, and the scores that they make of these.

use super::mask::{Mask, keep_highest};
use super::section::BiasPruning;
use crate::network::Network;

/// A criterion: scores the connections of a network before it is trained. The highest scores are kept.
pub trait Criterion {
    /// The numbers that the criterion needs besides the initial weights.
    fn given(&self) -> Given;

    /// One score for each parameter, from the numbers that [`Criterion::given`] names.
    fn scores(&self, start: &Untrained, given: &[f32]) -> Vec<f32>;

    /// The mask of that sparsity. Scores serve every sparsity.
    fn cut(&self, network: &Network, scores: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
        keep_highest(network, scores, sparsity, biases)
    }
}

/// A criterion that removes connections in rounds, and in each scores those that are left anew. Its masks depend on the sparsity, so one is made for
/// each; it takes seconds, so a study keeps it in its journal.
///
/// Scores are of the network's flow: the sum R of the logits of an image whose values are all 1, the network's parameters replaced by their
/// magnitudes. No data take part. ReLU, pools, means and shortcuts are those of the network: no value is negative, so ReLU changes none, and a
/// maximum takes the first of equal values.
pub trait Iterated: Sync {
    /// Rounds of a mask.
    fn rounds(&self) -> u32;

    /// Share of the parameters that is left after a round, from 1 to [`Iterated::rounds`]; after the last one it is 1 − sparsity.
    fn left(&self, round: u32, sparsity: f64) -> f64;

    /// One score for each parameter, given their magnitudes and the gradient of the flow with respect to these: `[parameters]`.
    fn scores(&self, magnitudes: &[f64], flow: &[f64]) -> Vec<f64>;
}

/// The network of a trial before it is trained.
#[derive(Debug, Clone, Copy)]
pub struct Untrained<'a> {
    /// Layers of the network.
    pub network: &'a Network,
    /// The trial's seed.
    pub seed: u64,
    /// Initial weights of the network, `[parameters]`.
    pub weights: &'a [f32],
}

/// Numbers that a back end computes for a criterion, at the initial weights: `[parameters]`, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// No number: the initial weights and the seed are enough.
    Nothing,
    /// The gradient of the loss summed over the scoring examples.
    LossGradient,
    /// The product H g of the Hessian and the gradient of the loss summed over the scoring examples.
    HessianGradient {
        /// The divisor of the examples' logits.
        temperature: f32,
    },
}

impl Given {
    /// Cost of the numbers, in passes forward and backward over the scoring examples.
    pub(super) fn passes(self) -> f64 {
        match self {
            Given::Nothing => 0.0,
            Given::LossGradient => 1.0,
            // The gradient, of three convolutions a layer, and its product with the Hessian, of eight.
            Given::HessianGradient { .. } => 1.0 + 8.0 / 3.0,
        }
    }
}

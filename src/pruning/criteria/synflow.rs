//! SynFlow: synaptic flow.

use crate::pruning::criterion::Iterated;

/// Synaptic flow (Tanaka et al., "Pruning neural networks without any data by iteratively conserving synaptic flow", NeurIPS 2020, algorithm 1): 100
/// rounds, after the t-th of which (1 − sparsity)^(t / 100) of the parameters are left.
///
/// A bias is a parameter as any other: |b| takes part in the flow. At initialisation it is zero, and so is its score.
pub struct Synflow;

const ROUNDS: u32 = 100;

impl Iterated for Synflow {
    fn rounds(&self) -> u32 {
        ROUNDS
    }

    fn left(&self, round: u32, sparsity: f64) -> f64 {
        // libm gives the same bits on every machine.
        if round == ROUNDS { 1.0 - sparsity } else { libm::pow(1.0 - sparsity, f64::from(round) / f64::from(ROUNDS)) }
    }

    /// ∂R/∂|w| · |w|, which is the flow that goes through a parameter.
    fn scores(&self, magnitudes: &[f64], flow: &[f64]) -> Vec<f64> {
        magnitudes.iter().zip(flow).map(|(magnitude, flow)| magnitude * flow).collect()
    }
}

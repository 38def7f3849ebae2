//! SNIP: connection sensitivity.

use crate::pruning::criterion::{Criterion, Given, Untrained};

/// Connection sensitivity (Lee et al., ICLR 2019).
pub struct Snip;

impl Criterion for Snip {
    fn given(&self) -> Given {
        Given::LossGradient
    }

    fn scores(&self, start: &Untrained, gradient: &[f32]) -> Vec<f32> {
        connection_sensitivity(start.weights, gradient)
    }
}

/// Connection sensitivity |w · ∂L/∂w| / Σ|w · ∂L/∂w| (Lee et al., ICLR 2019, equation 6), from the loss gradient summed over the scoring
/// examples: the signed sum comes first, as in the public code.
pub fn connection_sensitivity(weights: &[f32], gradient: &[f32]) -> Vec<f32> {
    let products: Vec<f64> = weights.iter().zip(gradient).map(|(&w, &g)| (f64::from(w) * f64::from(g)).abs()).collect();
    let total: f64 = products.iter().sum();
    // All products are 0: a total of 1 makes every score 0 in place of 0 / 0.
    let total = if total == 0.0 { 1.0 } else { total };
    products.iter().map(|product| (product / total) as f32).collect()
}

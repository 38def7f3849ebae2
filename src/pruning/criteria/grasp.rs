//! GraSP: gradient signal preservation.

use crate::pruning::criterion::{Criterion, Given, Untrained};

/// Gradient signal preservation (Wang et al., ICLR 2020).
pub struct Grasp {
    /// The divisor of logits, before the loss is taken of them.
    pub temperature: f32,
}

impl Criterion for Grasp {
    fn given(&self) -> Given {
        Given::HessianGradient { temperature: self.temperature }
    }

    fn scores(&self, start: &Untrained, product: &[f32]) -> Vec<f32> {
        gradient_signal(start.weights, product)
    }
}

/// Gradient signal preservation w · (H g) (Wang et al., ICLR 2020, section 4). To first order, removing a weight changes ‖g‖² by −2 times its
/// score, so the weights of highest score are kept. (The paper scores −w · (H g) and removes the highest.) `product` is H g of the loss summed over
/// the scoring examples, their logits divided by a temperature.
pub fn gradient_signal(weights: &[f32], product: &[f32]) -> Vec<f32> {
    weights.iter().zip(product).map(|(&w, &p)| (f64::from(w) * f64::from(p)) as f32).collect()
}

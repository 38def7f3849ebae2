//! Scores of connections: higher is kept.

use crate::network::Network;
use crate::random::{Numbers, Purpose};

/// Connection sensitivity |w · ∂L/∂w| / Σ|w · ∂L/∂w| (Lee et al., ICLR 2019, equation 6), from the loss gradient summed over the scoring
/// examples: the signed sum comes first, as in the public code.
pub fn connection_sensitivity(weights: &[f32], gradient: &[f32]) -> Vec<f32> {
    let products: Vec<f64> = weights.iter().zip(gradient).map(|(&w, &g)| (f64::from(w) * f64::from(g)).abs()).collect();
    let total: f64 = products.iter().sum();
    products.iter().map(|product| (product / total) as f32).collect()
}

/// Two points on the line through the weights along the gradient, between which the gradient's change is the Hessian–gradient product.
pub struct Probe {
    /// The weights moved along the gradient.
    pub ahead: Vec<f32>,
    /// The weights moved against it.
    pub behind: Vec<f32>,
}

impl Probe {
    /// How far the weights move each way, as a part of their norm. The loss is piecewise smooth: a shorter step meets too few of the kinks of ReLU
    /// and of the maximum to average over them, a longer one bends. Of 1e-1, 3e-2 … 1e-5 this one came nearest to the product by
    /// automatic differentiation in both networks (tests/fixtures/README.md).
    pub const STEP: f64 = 3e-3;

    /// The two points. A gradient that is zero or not finite moves nothing, or to points whose gradients are not finite.
    pub fn new(weights: &[f32], gradient: &[f32]) -> Probe {
        let step = Self::STEP * norm(weights) / norm(gradient).max(f64::MIN_POSITIVE);
        let moved = |step: f64| weights.iter().zip(gradient).map(|(&w, &g)| (f64::from(w) + step * f64::from(g)) as f32).collect();
        Probe { ahead: moved(step), behind: moved(-step) }
    }
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt()
}

/// Gradient signal preservation w · (H g) (Wang et al., ICLR 2020, section 4), up to a positive factor: to first order, removing a weight
/// changes ‖g‖² by −2 times it, so the highest, whose loss would weaken the gradient most, are kept. (The paper scores −w · (H g) and removes the
/// highest.) H g is a central difference of the gradients at the two points of a [`Probe`], summed over the scoring examples. Unlike the
/// authors' code, which divides logits by 200 and draws 25 examples of each class, it is of the loss that is trained.
pub fn gradient_signal(weights: &[f32], ahead: &[f32], behind: &[f32]) -> Vec<f32> {
    let score = |((&w, &a), &b): ((&f32, &f32), &f32)| (f64::from(w) * (f64::from(a) - f64::from(b))) as f32;
    weights.iter().zip(ahead).zip(behind).map(score).collect()
}

/// The magnitude of each initial weight.
pub fn magnitude(weights: &[f32]) -> Vec<f32> {
    weights.iter().map(|weight| weight.abs()).collect()
}

/// Uniform random scores: a random subset of every size, nested.
pub fn random(network: &Network, seed: u64) -> Vec<f32> {
    let numbers = Numbers::new(seed, Purpose::RandomMask);
    (0..network.parameters() as u64).map(|index| numbers.uniform(index) as f32).collect()
}

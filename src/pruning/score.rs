//! Scores of connections: higher is kept.

use crate::config::Criterion;
use crate::network::{Network, initial_weights};
use crate::random::{Numbers, Purpose};

/// Connection sensitivity |w · ∂L/∂w| / Σ|w · ∂L/∂w| (Lee et al., ICLR 2019, equation 6), from the loss gradient summed over the scoring
/// examples: the signed sum comes first, as in the public code.
pub fn connection_sensitivity(weights: &[f32], gradient: &[f32]) -> Vec<f32> {
    let products: Vec<f64> = weights.iter().zip(gradient).map(|(&w, &g)| (f64::from(w) * f64::from(g)).abs()).collect();
    let total: f64 = products.iter().sum();
    products.iter().map(|product| (product / total) as f32).collect()
}

/// Gradient signal preservation w · (H g) (Wang et al., ICLR 2020, section 4). To first order, removing a weight changes ‖g‖² by −2 times its
/// score, so the weights of highest score are kept. (The paper scores −w · (H g) and removes the highest.) `product` is H g of the loss summed over
/// the scoring examples, their logits divided by a temperature.
pub fn gradient_signal(weights: &[f32], product: &[f32]) -> Vec<f32> {
    weights.iter().zip(product).map(|(&w, &p)| (f64::from(w) * f64::from(p)) as f32).collect()
}

/// The scores of a seed's network by a criterion that needs no data; none for the other criteria.
pub fn without_data(criterion: Criterion, network: &Network, seed: u64) -> Option<Vec<f32>> {
    match criterion {
        Criterion::Random => Some(random(network, seed)),
        Criterion::Magnitude => Some(magnitude(&initial_weights(network, seed))),
        Criterion::Snip | Criterion::Grasp => None,
    }
}

/// The magnitude of each initial weight.
fn magnitude(weights: &[f32]) -> Vec<f32> {
    weights.iter().map(|weight| weight.abs()).collect()
}

/// Uniform random scores. The weights kept at a high sparsity are among those kept at a lower one.
fn random(network: &Network, seed: u64) -> Vec<f32> {
    let numbers = Numbers::new(seed, Purpose::RandomMask);
    (0..network.parameters() as u64).map(|index| numbers.uniform(index) as f32).collect()
}

//! Initial weights: TensorFlow 1's `variance_scaling` defaults, as the public code of the paper uses.

use super::{Kind, Network};
use crate::random::{Numbers, Purpose};

/// The standard deviation of a standard normal truncated at ±2.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

/// The initial parameters of a trial, flat as [`Network::tensors`] lays them out: weights normal with variance 1 / fan_in, truncated at
/// two deviations of the untruncated normal; biases zero. A pure function of the seed and the parameter's index.
pub fn initial_weights(network: &Network, seed: u64) -> Vec<f32> {
    let numbers = Numbers::new(seed, Purpose::Initialisation);
    let mut weights = vec![0.0; network.parameters()];
    for tensor in network.tensors.iter().filter(|tensor| tensor.kind == Kind::Weights) {
        let deviation = (1.0 / tensor.fan_in as f64).sqrt() / TRUNCATED_DEVIATION;
        let mut normals = vec![0.0; tensor.len];
        numbers.truncated_normals(tensor.offset as u64, &mut normals);
        for (weight, normal) in weights[tensor.range()].iter_mut().zip(normals) {
            *weight = (normal * deviation) as f32;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NetworkName;

    #[test]
    fn initial_weights_have_the_variance_and_the_truncation_of_the_paper() {
        for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
            let network = Network::new(name);
            let weights = initial_weights(&network, 3);
            for tensor in &network.tensors {
                let values = &weights[tensor.range()];
                if tensor.kind == Kind::Bias {
                    assert!(values.iter().all(|&value| value == 0.0));
                    continue;
                }
                let limit = 2.0 * (1.0 / tensor.fan_in as f64).sqrt() / TRUNCATED_DEVIATION;
                assert!(values.iter().all(|&value| f64::from(value).abs() <= limit * 1.000_001), "{}", tensor.name);
                let variance = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / tensor.len as f64;
                // The variance of a sample variance is about (kurtosis − 1)/n, with a kurtosis below 3: five deviations.
                let tolerance = 5.0 * (2.0 / tensor.len as f64).sqrt();
                assert!((variance * tensor.fan_in as f64 - 1.0).abs() < tolerance, "{}: {variance}", tensor.name);
            }
        }
    }
}

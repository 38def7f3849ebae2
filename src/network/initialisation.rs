//! Initial weights: TensorFlow 1's `variance_scaling` defaults, as the public code of the paper uses, or He's.

use super::description::Network;
use super::specification::Initialisation;
use super::tensor::TensorKind;
use crate::random::{Numbers, Purpose};

/// The standard deviation of a standard normal truncated at ±2.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

/// The initial parameters of a trial, flat as [`Network::tensors`] lays them out: weights normal with variance 1 / fan_in, truncated at two
/// deviations of the untruncated normal, or as their layer says ([`Initialisation`]); scales one, biases zero. A pure function of the seed and the
/// parameter's index.
pub fn initial_weights(network: &Network, seed: u64) -> Vec<f32> {
    drawn(network, &Numbers::new(seed, Purpose::Initialisation))
}

/// Parameters of the distribution of [`initial_weights`], from other random numbers of the seed.
pub fn weights_drawn_anew(network: &Network, seed: u64) -> Vec<f32> {
    drawn(network, &Numbers::new(seed, Purpose::Reinitialisation))
}

fn drawn(network: &Network, numbers: &Numbers) -> Vec<f32> {
    let mut weights = vec![0.0; network.parameters()];
    for tensor in &network.tensors {
        match tensor.kind {
            TensorKind::Weights => {}
            TensorKind::Scale => {
                weights[tensor.range()].fill(1.0);
                continue;
            }
            TensorKind::Bias => continue,
        }
        let mut normals = vec![0.0; tensor.len];
        let deviation = match tensor.initialisation {
            Initialisation::VarianceScaling => {
                numbers.truncated_normals(tensor.offset as u64, &mut normals);
                (1.0 / tensor.fan_in as f64).sqrt() / TRUNCATED_DEVIATION
            }
            Initialisation::He => {
                numbers.normals(tensor.offset as u64, &mut normals);
                (2.0 / tensor.fan_in as f64).sqrt()
            }
        };
        for (weight, normal) in weights[tensor.range()].iter_mut().zip(normals) {
            *weight = (normal * deviation) as f32;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LayerSpec, NetworkName, Padding};

    #[test]
    fn initial_weights_have_the_variance_and_the_truncation_of_the_paper() {
        for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
            let network = Network::new(name);
            let weights = initial_weights(&network, 3);
            for tensor in &network.tensors {
                let values = &weights[tensor.range()];
                if tensor.kind == TensorKind::Bias {
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

    #[test]
    fn scales_begin_at_one_and_biases_at_zero() {
        let layers =
            [LayerSpec::convolution(4, 3, 1, Padding::Same), LayerSpec::GroupNorm { groups: 2 }, LayerSpec::Flatten, LayerSpec::dense(10)];
        let network = Network::listed(&layers, [8, 8, 1], 10).unwrap();
        let weights = initial_weights(&network, 3);
        let [scales, biases] = [2, 3].map(|tensor| &weights[network.tensors[tensor].range()]);
        assert_eq!([scales, biases], [[1.0; 4], [0.0; 4]]);
    }

    #[test]
    fn weights_by_he_are_a_whole_normal_and_change_no_other_layer() {
        let usual =
            [LayerSpec::Flatten, LayerSpec::dense(300), LayerSpec::Relu, LayerSpec::dense(200), LayerSpec::Relu, LayerSpec::dense(10)];
        let mut he = usual.clone();
        he[3] = LayerSpec::Dense { outputs: 200, initialisation: Initialisation::He, bias: true };
        let [usual, he] = [usual, he].map(|layers| Network::listed(&layers, [8, 8, 3], 10).unwrap());
        let [before, after] = [&usual, &he].map(|network| initial_weights(network, 3));
        let weights = he.tensors[2].range();
        assert_eq!((&before[..weights.start], &before[weights.end..]), (&after[..weights.start], &after[weights.end..]));
        let values: Vec<f64> = after[weights.clone()].iter().map(|&value| f64::from(value) / (2.0_f64 / 300.0).sqrt()).collect();
        let count = values.len() as f64;
        let mean = |value: &dyn Fn(f64) -> f64| values.iter().map(|&x| value(x)).sum::<f64>() / count;
        // Five deviations of a mean of 60,000: of normal numbers, of their squares, and of how many lie beyond 2 (4.55 %) and 3 (0.27 %).
        assert!(mean(&|x| x).abs() < 5.0 / count.sqrt());
        assert!((mean(&|x| x * x) - 1.0).abs() < 5.0 * (2.0 / count).sqrt());
        for (limit, share) in [(2.0, 0.045_500), (3.0, 0.002_700)] {
            let found = mean(&|x| f64::from(u8::from(x.abs() > limit)));
            assert!((found - share).abs() < 5.0 * (share / count).sqrt(), "{found} beyond {limit}");
        }
    }
}

//! Images, labels, parameters and the mask of the fixtures, from a 32-bit integer hash: the twin of the formulas in
//! `tests/fixtures/make_fixtures.py`, so that no data need be stored.

use super::fixture::TensorLayout;

const WEIGHTS: u32 = 1;
const BIASES: u32 = 2;
const MASK: u32 = 3;
/// Added to a batch's image seed for its labels.
const LABELS: u32 = 1000;

/// The finaliser of MurmurHash3 over an index and a seed.
pub fn hash(seed: u32, i: u32) -> u32 {
    let mut z = i.wrapping_mul(0x9E37_79B9).wrapping_add(seed.wrapping_mul(0x85EB_CA6B));
    z ^= z >> 16;
    z = z.wrapping_mul(0x85EB_CA6B);
    z ^= z >> 13;
    z = z.wrapping_mul(0xC2B2_AE35);
    z ^ (z >> 16)
}

/// Uniform in [-0.5, 0.5).
pub fn noise(seed: u32, i: u32) -> f64 {
    f64::from(hash(seed, i)) / 4_294_967_296.0 - 0.5
}

/// The first `length` bytes of the batch with this image seed: [image][height][width][channel].
pub fn image_bytes(image_seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (hash(image_seed, i) >> 24) as u8).collect()
}

/// The first `count` labels, 0 to 9, of the batch with this image seed.
pub fn labels(image_seed: u32, count: usize) -> Vec<u16> {
    (0..count as u32).map(|i| (hash(image_seed.wrapping_add(LABELS), i) % 10) as u16).collect()
}

/// (byte/255 − mean)/std, the channel running fastest.
pub fn normalise(bytes: &[u8], mean: &[f64], std: &[f64]) -> Vec<f64> {
    bytes.iter().enumerate().map(|(i, &b)| (f64::from(b) / 255.0 - mean[i % mean.len()]) / std[i % std.len()]).collect()
}

/// The flat parameter vector of the fixtures: weights within ±sqrt(3/fan_in), biases within ±0.1 (not zero, so that they are tested).
pub fn parameters(tensors: &[TensorLayout]) -> Vec<f32> {
    let mut flat = Vec::new();
    for tensor in tensors {
        for j in tensor.offset as u32..(tensor.offset + tensor.length) as u32 {
            flat.push(match tensor.fan_in {
                Some(fan_in) => noise(WEIGHTS, j) * 2.0 * (3.0 / fan_in as f64).sqrt(),
                None => noise(BIASES, j) * 0.2,
            } as f32);
        }
    }
    flat
}

/// Which parameters the fixtures' masked networks keep: about one in ten.
pub fn mask(length: usize) -> Vec<bool> {
    (0..length as u32).map(|j| f64::from(hash(MASK, j)) < 0.1 * 4_294_967_296.0).collect()
}

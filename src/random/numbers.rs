//! Uniform and truncated normal numbers from ChaCha8.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Words of one ChaCha block: what belongs to one index.
const BLOCK: usize = 16;

/// Purpose of a random number, so that two uses of one seed never share numbers.
///
/// The values are part of every recorded result: they must never be renumbered or given to another use; new purposes take new numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Initial weights.
    Initialisation = 1,
    /// Which examples of the training file are held out for validation.
    Split = 2,
    /// The order of the training examples in an epoch.
    Order = 3,
    /// Scores of the random pruning criterion.
    RandomMask = 4,
    /// Scores of the pruning criterion that has the layer densities of an Erdős–Rényi kernel.
    ErkMask = 5,
    /// Where a mask's positions go within their layer.
    ShuffledMask = 6,
    /// How far the cells of a forecast may be from it. No recorded result depends on it.
    Forecast = 7,
    /// Weights that are drawn anew after pruning.
    Reinitialisation = 8,
}

/// The random numbers of one (seed, purpose): index i owns ChaCha8 block i, 16 words of 32 bits.
///
/// The ChaCha key is the seed (8 bytes, little endian), the purpose (4 bytes, little endian) and 20 zero bytes; the stream is 0.
#[derive(Debug, Clone)]
pub struct Numbers {
    generator: ChaCha8Rng,
}

impl Numbers {
    /// The numbers that belong to `seed` and `purpose`.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&(purpose as u32).to_le_bytes());
        Numbers { generator: ChaCha8Rng::from_seed(key) }
    }

    /// The 16 words of `index`.
    pub fn block(&self, index: u64) -> [u32; BLOCK] {
        next_block(&mut self.seek(index))
    }

    /// Uniform in the open interval (0, 1): the upper 52 bits of the first two words of `index`
    /// (the first is the lower half), plus one half, over 2⁵².
    pub fn uniform(&self, index: u64) -> f64 {
        let [low, high, ..] = self.block(index);
        let bits = (u64::from(high) << 32 | u64::from(low)) >> 12;
        (bits as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Writes standard normal numbers truncated to [−2, 2], each from the words of its index alone, of `first`, `first + 1`, … to `values`.
    ///
    /// The 16 words of an index are 8 Box–Muller pairs, so 16 tries; the first within the limits is taken. All fail with probability 3e-22; the
    /// last is then clamped. The functions are `libm`'s, so every machine gives the same bits.
    pub fn truncated_normals(&self, first: u64, values: &mut [f64]) {
        let mut generator = self.seek(first);
        values.fill_with(|| truncated_normal(&next_block(&mut generator)));
    }

    /// Writes standard normal numbers that belong to `first`, `first + 1`, … to `values`: each is the cosine of the Box–Muller pair of its index's
    /// first two words, so at most 6.8 in magnitude.
    pub fn normals(&self, first: u64, values: &mut [f64]) {
        let mut generator = self.seek(first);
        values.fill_with(|| {
            let [first, second, ..] = next_block(&mut generator);
            let (radius, angle) = polar([first, second]);
            radius * libm::cos(angle)
        });
    }

    /// The generator at the beginning of `index`'s block.
    fn seek(&self, index: u64) -> ChaCha8Rng {
        let mut generator = self.generator.clone();
        generator.set_word_pos(u128::from(index) * BLOCK as u128);
        generator
    }
}

fn next_block(generator: &mut ChaCha8Rng) -> [u32; BLOCK] {
    std::array::from_fn(|_| generator.next_u32())
}

/// The first of 16 standard normal numbers that lies in [−2, 2] (see [`Numbers::truncated_normals`]).
fn truncated_normal(words: &[u32; BLOCK]) -> f64 {
    let mut last = 0.0;
    for &pair in words.as_chunks::<2>().0 {
        let (radius, angle) = polar(pair);
        let cosine = radius * libm::cos(angle);
        if cosine.abs() <= 2.0 {
            return cosine;
        }
        last = radius * libm::sin(angle);
        if last.abs() <= 2.0 {
            return last;
        }
    }
    last.clamp(-2.0, 2.0)
}

/// A radius and an angle whose x and y are independent standard normal numbers (Box and Muller).
fn polar(words: [u32; 2]) -> (f64, f64) {
    let [first, second] = words.map(|word| (f64::from(word) + 0.5) / (1u64 << 32) as f64);
    (libm::sqrt(-2.0 * libm::log(first)), 2.0 * std::f64::consts::PI * second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fixes the definition (values of an independent implementation in Python): a change here changes every recorded result.
    #[test]
    fn golden_values() {
        let numbers = Numbers::new(7, Purpose::Initialisation);
        assert_eq!(numbers.block(0)[..4], [171_183_541, 3_736_010_134, 258_160_029, 231_674_004]);
        assert_eq!(numbers.block(1 << 40)[..4], [2_494_864_562, 2_342_389_649, 572_215_116, 1_915_482_064]);
        assert_eq!(numbers.uniform(3).to_bits(), 4_603_174_954_785_369_693);
        let normals = [0, 1, 2, 62_345].map(|i| truncated_normal(&numbers.block(i)).to_bits());
        let expected = [4_610_497_942_120_222_139, 13_832_030_259_663_922_179, 13_825_163_750_886_324_089, 4_594_527_637_324_557_462];
        assert_eq!(normals, expected);
    }

    /// The block function is ChaCha's as published: with 8 rounds and an all-zero key, block 0 begins 3e00ef2f (eSTREAM test vectors).
    #[test]
    fn the_zero_key_gives_the_published_block() {
        let mut generator = ChaCha8Rng::from_seed([0; 32]);
        assert_eq!(next_block(&mut generator)[0], u32::from_le_bytes([0x3e, 0x00, 0xef, 0x2f]));
    }

    #[test]
    fn blocks_depend_on_seed_purpose_and_index_and_not_on_the_order_of_asking() {
        let numbers = Numbers::new(1, Purpose::Split);
        let forwards: Vec<_> = (0..9).map(|i| numbers.block(i)).collect();
        let mut backwards: Vec<_> = (0..9).rev().map(|i| numbers.block(i)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        let mut all = forwards;
        all.extend((0..9).map(|i| Numbers::new(2, Purpose::Split).block(i)));
        all.extend((0..9).map(|i| Numbers::new(1, Purpose::Order).block(i)));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 27);
    }

    #[test]
    fn many_truncated_normals_are_the_single_ones() {
        let numbers = Numbers::new(3, Purpose::Initialisation);
        let mut many = [0.0; 21];
        numbers.truncated_normals(5, &mut many);
        for (i, value) in many.iter().enumerate() {
            assert_eq!(value.to_bits(), truncated_normal(&numbers.block(5 + i as u64)).to_bits());
        }
    }

    /// Mean 0 and the standard deviation 0.8796 of a normal truncated at two, within five standard errors; never outside the limits.
    #[test]
    fn truncated_normals_have_their_moments_and_limits() {
        let n = 200_000;
        let mut values = vec![0.0; n];
        Numbers::new(11, Purpose::Initialisation).truncated_normals(0, &mut values);
        assert!(values.iter().all(|value| value.abs() <= 2.0));
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / n as f64;
        assert!(mean.abs() < 5.0 * 0.8796 / (n as f64).sqrt(), "mean {mean}");
        assert!((variance.sqrt() - 0.879_625_661_034_239_8).abs() < 0.006, "std {}", variance.sqrt());
        let beyond_one = values.iter().filter(|value| value.abs() > 1.0).count() as f64 / n as f64;
        assert!((beyond_one - (0.317_310_5 - 0.045_500_3) / 0.954_499_7).abs() < 0.005, "beyond one {beyond_one}");
    }

    #[test]
    fn uniform_numbers_fill_the_open_interval() {
        let numbers = Numbers::new(5, Purpose::RandomMask);
        let mut cells = [0u32; 16];
        for i in 0..16_000 {
            let value = numbers.uniform(i);
            assert!(value > 0.0 && value < 1.0);
            cells[(value * 16.0) as usize] += 1;
        }
        let chi: f64 = cells.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 44.3, "chi-square of 15 degrees of freedom: {chi}"); // exceeded with probability 1e-4
    }
}

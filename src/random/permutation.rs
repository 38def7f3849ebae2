//! A keyed bijection with random access.

use super::{Numbers, Purpose};

const ROUNDS: usize = 8;
/// Least width b. With fewer bits a tiny set would have too few different permutations; cycle walking skips the values that are too large.
const LEAST_BITS: u32 = 6;

/// A permutation of 0..n, keyed by (seed, purpose, epoch), whose elements are computed one by one: no table, no state.
///
/// # Algorithm
/// All arithmetic is on unsigned 32-bit integers, modulo 2³², so a GPU kernel can repeat it bit for bit.
///
/// - Width: b = max(6, ⌈log₂ n⌉) bits, of which h = ⌊b/2⌋ are the high half and l = b − h the low half.
/// - Keys: k₀ … k₇ are words 0 … 7 of ChaCha8 block `epoch` of (seed, purpose) ([`Numbers::block`]).
/// - mix(x): x ^= x >> 16; x *= 0x85ebca6b; x ^= x >> 13; x *= 0xc2b2ae35; x ^= x >> 16 (the finaliser of MurmurHash3).
/// - f(x, k) = mix(x·0x9e3779b9 ^ k) >> 8.
/// - One pass: high = x >> l, low = x & (2ˡ − 1); for rounds r = 0, 2, 4, 6: high ^= f(low, k_r) & (2ʰ − 1), then
///   low ^= f(high, k_{r+1}) & (2ˡ − 1); the result is (high << l) | low. An alternating Feistel network: a bijection of 0..2ᵇ.
/// - Cycle walking: passes are repeated until the result is below n; as 2ᵇ < 2n for n > 32, fewer than two on average.
///
/// The definition is part of every recorded result and must not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    n: u32,
    low_bits: u32,
    high_mask: u32,
    low_mask: u32,
    keys: [u32; ROUNDS],
}

impl Permutation {
    /// The permutation of 0..`n` that belongs to `seed`, `purpose` and `epoch`.
    pub fn new(seed: u64, purpose: Purpose, epoch: u64, n: u32) -> Self {
        Self::keyed(&Numbers::new(seed, purpose), epoch, n)
    }

    /// The permutation of 0..`n` that belongs to `epoch` and the seed and purpose of `numbers`.
    pub(crate) fn keyed(numbers: &Numbers, epoch: u64, n: u32) -> Self {
        let bits = (u32::BITS - n.saturating_sub(1).leading_zeros()).max(LEAST_BITS);
        let high_bits = bits / 2;
        let low_bits = bits - high_bits;
        let block = numbers.block(epoch);
        Permutation {
            n,
            low_bits,
            high_mask: (1 << high_bits) - 1,
            low_mask: (1 << low_bits) - 1,
            keys: std::array::from_fn(|round| block[round]),
        }
    }

    /// Element `i`, in 0..n.
    ///
    /// # Panics
    /// If `i` is not in 0..n: such an `i` may lie on a cycle that never enters 0..n.
    pub fn at(&self, i: u32) -> u32 {
        assert!(i < self.n, "element {i} of a permutation of {}", self.n);
        let mut x = i;
        loop {
            x = self.pass(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn pass(&self, x: u32) -> u32 {
        let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
        for pair in self.keys.chunks_exact(2) {
            high ^= scramble(low, pair[0]) & self.high_mask;
            low ^= scramble(high, pair[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

/// f of the algorithm. The multiplication spreads x over the word, so that two keys that differ in their low bits alone are unrelated.
fn scramble(x: u32, key: u32) -> u32 {
    let mut x = x.wrapping_mul(0x9e37_79b9) ^ key;
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^= x >> 16;
    x >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(seed: u64, epoch: u64, n: u32) -> Vec<u32> {
        let permutation = Permutation::new(seed, Purpose::Order, epoch, n);
        (0..n).map(|i| permutation.at(i)).collect()
    }

    /// Pearson's statistic as a number of standard deviations from its mean (its distribution is close to normal for many cells).
    fn chi_square_deviation(counts: &[u32], expected: f64) -> f64 {
        let freedom = (counts.len() - 1) as f64;
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    /// Fixes the definition (values of an independent implementation in Python): a change here changes every recorded result.
    #[test]
    fn golden_values() {
        let at = |seed, purpose, epoch, n, i: u32| Permutation::new(seed, purpose, epoch, n).at(i);
        assert_eq!([0, 1, 2, 53_999].map(|i| at(0, Purpose::Order, 0, 54_000, i)), [29_342, 1_342, 49_821, 47_512]);
        assert_eq!([0, 1, 2, 53_999].map(|i| at(42, Purpose::Order, 1 << 33, 54_000, i)), [24_820, 29_195, 49_020, 24_441]);
        assert_eq!([0, 1, 2, 59_999].map(|i| at(0, Purpose::Split, 0, 60_000, i)), [11_990, 10_099, 23_774, 10_217]);
        assert_eq!(all(1, 0, 7), [5, 1, 0, 3, 6, 4, 2]);
    }

    #[test]
    fn is_a_bijection() {
        let sizes = (1..=130).chain([255, 256, 257, 1000, 4095, 4096, 4097, 45_000, 54_000, 60_000, 65_536, 65_537, 262_144]);
        for n in sizes {
            for (seed, epoch) in [(0, 0), (1, 5), (u64::MAX, u64::MAX)] {
                let mut seen = vec![false; n as usize];
                all(seed, epoch, n).into_iter().for_each(|value| seen[value as usize] = true);
                assert!(seen.into_iter().all(|seen| seen), "n {n}, seed {seed}, epoch {epoch}");
            }
        }
    }

    #[test]
    fn the_largest_set_has_no_value_twice_and_none_outside() {
        let permutation = Permutation::new(9, Purpose::Order, 0, u32::MAX);
        let values: std::collections::HashSet<u32> = (0..1000).chain(u32::MAX - 1000..u32::MAX).map(|i| permutation.at(i)).collect();
        assert_eq!(values.len(), 2000);
        assert!(values.iter().all(|&value| value < u32::MAX));
    }

    /// Every permutation of 2 to 5 elements is equally likely over epochs and over seeds.
    #[test]
    fn tiny_permutations_are_equally_likely() {
        for (n, count) in [(2u32, 2usize), (3, 6), (4, 24), (5, 120)] {
            for over_seeds in [false, true] {
                let draws = 1000 * count as u64;
                let mut counts = std::collections::BTreeMap::<Vec<u32>, u32>::new();
                for i in 0..draws {
                    *counts.entry(if over_seeds { all(i, 0, n) } else { all(0, i, n) }).or_default() += 1;
                }
                assert_eq!(counts.len(), count);
                let counts: Vec<u32> = counts.into_values().collect();
                let deviation = chi_square_deviation(&counts, draws as f64 / count as f64);
                assert!(deviation < 5.0, "n {n}, over seeds {over_seeds}: {deviation}");
            }
        }
    }

    /// Position → value, in 32 × 32 cells, over epochs and over seeds: where an element comes from says nothing of where it goes.
    #[test]
    fn positions_and_values_are_independent() {
        for n in [54_000u32, 45_000, 1000, 100] {
            for over_seeds in [false, true] {
                let repeats = (2_000_000 / n).min(2000);
                let cells = if n > 1000 { 32 } else { 10 };
                let mut counts = vec![0u32; cells * cells];
                let cell = |x: u32| (u64::from(x) * cells as u64 / u64::from(n)) as usize;
                for i in 0..u64::from(repeats) {
                    let values = if over_seeds { all(i, 0, n) } else { all(3, i, n) };
                    values.iter().enumerate().for_each(|(position, &value)| counts[cell(position as u32) * cells + cell(value)] += 1);
                }
                // A bijection fixes the sums of rows and columns: (cells − 1)² degrees of freedom, slightly fewer than assumed.
                let deviation = chi_square_deviation(&counts, f64::from(n) * f64::from(repeats) / (cells * cells) as f64);
                assert!(deviation < 4.5, "n {n}, over seeds {over_seeds}: {deviation}");
                assert!(deviation > -8.0, "n {n}, over seeds {over_seeds}: too even, {deviation}");
            }
        }
    }

    /// (value at i + stride − value at i) mod n is uniform over 1..n, for neighbours and for power-of-two strides.
    #[test]
    fn neighbours_are_unrelated() {
        let n = 54_000u32;
        for stride in [1usize, 2, 128, 256, 512, 4096] {
            let mut counts = [0u32; 100];
            for epoch in 0..20 {
                let values = all(8, epoch, n);
                for i in 0..values.len() - stride {
                    let difference = (values[i + stride] + n - values[i]) % n;
                    assert_ne!(difference, 0);
                    counts[(difference as usize * 100) / n as usize] += 1;
                }
            }
            let deviation = chi_square_deviation(&counts, 20.0 * (n as usize - stride) as f64 / 100.0);
            assert!(deviation.abs() < 4.5, "stride {stride}: {deviation}");
        }
    }

    /// The difference of the same position's values under two neighbouring keys is uniform, and few positions keep their value.
    #[test]
    fn epochs_and_seeds_are_unrelated() {
        let n = 54_000u32;
        let pairs = [((0, 0), (0, 1)), ((0, 1), (0, 2)), ((0, 0), (1, 0)), ((5, 7), (7, 5)), ((1 << 32, 0), (0, 1 << 32))];
        for (one, other) in pairs {
            let (a, b) = (all(one.0, one.1, n), all(other.0, other.1, n));
            let mut counts = [0u32; 100];
            a.iter().zip(&b).for_each(|(&x, &y)| counts[((x + n - y) % n) as usize * 100 / n as usize] += 1);
            let deviation = chi_square_deviation(&counts, f64::from(n) / 100.0);
            assert!(deviation.abs() < 4.5, "{one:?} {other:?}: {deviation}");
            let fixed = a.iter().zip(&b).filter(|(x, y)| x == y).count();
            assert!(fixed < 10, "{one:?} {other:?}: {fixed} positions keep their value (1 expected)");
        }
    }

    /// The first places of many epochs, as tiny batches see them, are uniform over the set.
    #[test]
    fn first_places_are_uniform_over_epochs() {
        for place in [0, 1, 53_999] {
            let mut counts = [0u32; 54];
            for epoch in 0..54_000 {
                counts[(Permutation::new(2, Purpose::Order, epoch, 54_000).at(place) / 1000) as usize] += 1;
            }
            let deviation = chi_square_deviation(&counts, 1000.0);
            assert!(deviation.abs() < 4.5, "place {place}: {deviation}");
        }
    }
}

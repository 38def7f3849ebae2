//! The choices of a history, all from its seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub struct Random(ChaCha8Rng);

impl Default for Random {
    fn default() -> Random {
        Random::new(0)
    }
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Choices that are made apart from those of the same seed: more or fewer of them leave the others as they are.
    pub fn apart(seed: u64) -> Random {
        Random::new(seed ^ 0x6c61_7465_7220_6f6e)
    }

    /// A whole number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end.max(1) as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        self.0.next_u64() as f64 / u64::MAX as f64
    }

    /// The seed of choices that are made apart from these.
    pub fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }
}

//! The order in which a trial sees the training examples.

use crate::random::{Numbers, Permutation, Purpose};

/// An endless stream of shuffled epochs over n training examples, as a pure function of the position.
///
/// Example i of step k (both from 0) at global batch size B has position k·B + i. Position p lies in epoch p / n, and its element is
/// [`Permutation`] (seed, [`Purpose::Order`], epoch) at p mod n. Batches straddle epochs, and none is dropped; the stream of examples
/// is the same at every batch size.
#[derive(Debug, Clone)]
pub struct Sampler {
    numbers: Numbers,
    n: u32,
}

impl Sampler {
    /// The stream over `n` examples of `seed`, a training's seed of the order.
    ///
    /// # Panics
    /// If `n` is 0; [`super::Dataset::new`] promises at least one training example.
    pub fn new(seed: u64, n: u32) -> Self {
        assert!(n > 0, "a stream of examples needs at least one");
        Sampler { numbers: Numbers::new(seed, Purpose::Order), n }
    }

    /// The example at `position`, in 0..n.
    pub fn index(&self, position: u64) -> u32 {
        let (epoch, place) = self.locate(position);
        self.epoch(epoch).at(place)
    }

    /// The examples at `position`, `position + 1`, …; sets up each epoch's key once.
    pub fn fill(&self, position: u64, examples: &mut [u32]) {
        let (mut epoch, mut place) = self.locate(position);
        let mut rest = examples;
        while !rest.is_empty() {
            let in_epoch = rest.len().min((self.n - place) as usize);
            let (now, later) = rest.split_at_mut(in_epoch);
            let permutation = self.epoch(epoch);
            now.iter_mut().zip(place..).for_each(|(example, i)| *example = permutation.at(i));
            (epoch, place, rest) = (epoch + 1, 0, later);
        }
    }

    /// The order of `epoch`, for a kernel that gathers its own examples.
    pub fn epoch(&self, epoch: u64) -> Permutation {
        Permutation::keyed(&self.numbers, epoch, self.n)
    }

    fn locate(&self, position: u64) -> (u64, u32) {
        let n = u64::from(self.n);
        (position / n, (position % n) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_example_once_and_epochs_differ() {
        let sampler = Sampler::new(4, 101);
        let mut orders = Vec::new();
        for epoch in 0..5u64 {
            let order: Vec<u32> = (0..101).map(|i| sampler.index(epoch * 101 + i)).collect();
            let mut sorted = order.clone();
            sorted.sort();
            assert_eq!(sorted, (0..101).collect::<Vec<_>>());
            orders.push(order);
        }
        orders.dedup();
        assert_eq!(orders.len(), 5);
    }

    #[test]
    fn fill_is_index_at_every_start_and_length_over_epochs() {
        for sampler in [7, 1].map(|n| Sampler::new(u64::MAX, n)) {
            for start in (0..30).chain([7 * (1 << 40) + 5]) {
                for length in [0, 1, 2, 7, 8, 40] {
                    let mut batch = vec![u32::MAX; length];
                    sampler.fill(start, &mut batch);
                    let expected: Vec<u32> = (start..start + length as u64).map(|position| sampler.index(position)).collect();
                    assert_eq!(batch, expected, "start {start}, length {length} of {}", sampler.n);
                }
            }
        }
    }

    #[test]
    fn the_stream_belongs_to_the_seed_and_not_to_the_batch_size() {
        let stream = |seed, batch: usize| {
            let sampler = Sampler::new(seed, 54_000);
            let mut examples = vec![0; 120_000];
            examples.chunks_mut(batch).enumerate().for_each(|(k, chunk)| sampler.fill((k * batch) as u64, chunk));
            examples
        };
        assert_eq!(stream(1, 3), stream(1, 16_384));
        assert_ne!(stream(1, 64), stream(2, 64));
    }
}

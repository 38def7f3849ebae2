//! How the ranks of the world share a cell: groups of ranks share each batch, and groups share the lanes.

use super::words::Words;
use crate::comm::Communicator;
use crate::{Error, Result};

/// G groups of D ranks, G·D = W. Lane i belongs to group i mod G.
pub struct Groups<'a> {
    world: &'a dyn Communicator,
    /// This rank's group.
    local: Box<dyn Communicator + 'a>,
    /// G.
    count: usize,
    /// The number of this rank's group.
    mine: usize,
}

/// Examples that a rank must get of a batch for sharing it to be worth while: gradients are exchanged, added up and stepped by whole, however few
/// examples they are of. With less, ranks that take a trial each are faster.
const SHARED_EXAMPLES: usize = 16;

impl<'a> Groups<'a> {
    /// Ranks D that share a batch of `batch` examples in a world of `ranks`: `wanted`, or where that is 0, as many as get 16 examples each.
    /// The number of groups must be whole, so D is the largest divisor of the number of ranks that is no more.
    pub fn ranks_a_batch(ranks: usize, batch: usize, wanted: usize) -> usize {
        let most = if wanted == 0 { batch / SHARED_EXAMPLES } else { wanted };
        (1..=ranks).rev().find(|&size| ranks.is_multiple_of(size) && size <= most).unwrap_or(1)
    }

    /// Splits the world into groups of `size` consecutive ranks; `size` divides the number of ranks.
    pub fn new(world: &'a dyn Communicator, size: usize) -> Groups<'a> {
        let mine = world.rank() / size;
        Groups { world, local: world.split(mine), count: world.size() / size, mine }
    }

    /// The ranks that share this rank's batches.
    pub fn local(&self) -> &dyn Communicator {
        &*self.local
    }

    /// Whether this rank's group trains lane `lane`.
    pub fn trains(&self, lane: usize) -> bool {
        lane % self.count == self.mine
    }

    /// The most of those lanes that one group trains.
    pub fn most_of_one(&self, lanes: &[usize]) -> usize {
        let mut counts = vec![0; self.count];
        lanes.iter().for_each(|lane| counts[lane % self.count] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// Lets every rank know a record of each of `lanes`. All ranks name the same lanes; `mine` has the records of those that this rank's group
    /// trains, in their order, and the answer has all.
    ///
    /// # Errors
    /// Where two ranks of a group disagree: their lanes are no longer the same.
    pub fn share<R: Words<COUNT>, const COUNT: usize>(&self, lanes: &[usize], mine: &[R]) -> Result<Vec<R>> {
        let mut words: Vec<u64> = mine.iter().flat_map(Words::words).collect();
        words.resize(self.most_of_one(lanes) * COUNT, 0);
        let all = self.world.all_gather_words(&words);
        let of_rank = |rank: usize| &all[rank * words.len()..][..words.len()];
        let size = self.world.size() / self.count;
        for rank in 0..self.world.size() {
            let leader = rank / size * size;
            if of_rank(rank) != of_rank(leader) {
                return Err(Error::Communication {
                    rank,
                    problem: format!(
                        "expected the same lanes as rank {leader}, with which it shares every batch, found others; run the same program on the \
                         same data on all ranks"
                    ),
                });
            }
        }
        let records = |group: usize| of_rank(group * size).as_chunks().0.iter().copied().map(R::from_words);
        let mut groups: Vec<_> = (0..self.count).map(records).collect();
        Ok(lanes.iter().filter_map(|lane| groups[lane % self.count].next()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_a_batch_divide_the_world_and_get_examples_enough_unless_told_otherwise() {
        assert_eq!(Groups::ranks_a_batch(8, 128, 0), 8);
        assert_eq!(Groups::ranks_a_batch(8, 127, 0), 4);
        assert_eq!(Groups::ranks_a_batch(8, 16, 0), 1);
        assert_eq!(Groups::ranks_a_batch(8, 2, 0), 1);
        assert_eq!(Groups::ranks_a_batch(6, 80, 0), 3);
        assert_eq!(Groups::ranks_a_batch(3, 37, 0), 1);
        assert_eq!(Groups::ranks_a_batch(8, 64, 2), 2);
        assert_eq!(Groups::ranks_a_batch(4, 2, 4), 4);
    }
}

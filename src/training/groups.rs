//! How the ranks of the world share a cell: groups of ranks share each batch, and groups share the trials.

use super::words::Words;
use crate::comm::Communicator;
use crate::{Error, Result};

/// G groups of D ranks, G·D = W. Trial i belongs to group i mod G.
pub struct Groups<'a> {
    world: &'a dyn Communicator,
    /// This rank's group.
    local: Box<dyn Communicator + 'a>,
    /// G.
    count: usize,
    /// The number of this rank's group.
    mine: usize,
}

impl<'a> Groups<'a> {
    /// Splits the world into groups of `size` consecutive ranks; `size` divides the number of ranks.
    pub fn new(world: &'a dyn Communicator, size: usize) -> Groups<'a> {
        let mine = world.rank() / size;
        Groups { world, local: world.split(mine), count: world.size() / size, mine }
    }

    /// The ranks that share this rank's batches.
    pub fn local(&self) -> &dyn Communicator {
        &*self.local
    }

    /// Whether this rank's group trains trial `trial`.
    pub fn trains(&self, trial: usize) -> bool {
        trial % self.count == self.mine
    }

    /// The most of those trials that one group trains.
    pub fn most_of_one(&self, trials: &[usize]) -> usize {
        let mut counts = vec![0; self.count];
        trials.iter().for_each(|trial| counts[trial % self.count] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// Lets every rank know a record of each of `trials`. All ranks name the same trials; `mine` has the records of those that this rank's group
    /// trains, in their order, and the answer has all.
    ///
    /// # Errors
    /// Where two ranks of a group disagree: their lanes are no longer the same.
    pub fn share<R: Words<COUNT>, const COUNT: usize>(&self, trials: &[usize], mine: &[R]) -> Result<Vec<R>> {
        let mut words: Vec<u64> = mine.iter().flat_map(Words::words).collect();
        words.resize(self.most_of_one(trials) * COUNT, 0);
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
        Ok(trials.iter().filter_map(|trial| groups[trial % self.count].next()).collect())
    }
}

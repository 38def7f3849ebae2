//! How the ranks of the world share a cell: groups of ranks share each batch, and groups share the trials.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comm::Communicator;
use crate::{Error, Result};

/// Words in which a record travels: as postcard writes it, then zeros. The longest, an `Option<Measurement>`, has at most 39 bytes.
const WORDS: usize = 5;

fn words<R: Serialize>(record: &R) -> [u64; WORDS] {
    let mut bytes = [0; 8 * WORDS];
    postcard::to_slice(record, &mut bytes).expect("a record of at most 40 bytes");
    std::array::from_fn(|word| u64::from_le_bytes(bytes.as_chunks().0[word]))
}

/// The record of such words; none where they are no such record.
fn record<R: DeserializeOwned>(words: &[u64; WORDS]) -> Option<R> {
    let bytes = words.map(u64::to_le_bytes);
    let (record, rest) = postcard::take_from_bytes(bytes.as_flattened()).ok()?;
    rest.iter().all(|&byte| byte == 0).then_some(record)
}

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
    /// Where two ranks of a group disagree, as their lanes are no longer the same, or a rank runs another program.
    pub fn share<R: Serialize + DeserializeOwned>(&self, trials: &[usize], mine: &[R]) -> Result<Vec<R>> {
        let mut own: Vec<u64> = mine.iter().flat_map(words).collect();
        own.resize(self.most_of_one(trials) * WORDS, 0);
        let all = self.world.all_gather_words(&own);
        let of_rank = |rank: usize| &all[rank * own.len()..][..own.len()];
        let size = self.world.size() / self.count;
        let differs = |rank: usize, expected: &str| Error::Communication {
            rank,
            problem: format!("expected {expected}, found others; run the same program on the same data on all ranks"),
        };
        for rank in 0..self.world.size() {
            let leader = rank / size * size;
            if of_rank(rank) != of_rank(leader) {
                return Err(differs(rank, &format!("the same lanes as rank {leader}, with which it shares every batch")));
            }
        }
        let mut groups: Vec<_> = (0..self.count).map(|group| of_rank(group * size).as_chunks().0.iter()).collect();
        let of_trial = |trial: &usize| {
            let group = trial % self.count;
            groups[group].next().map(|words| record(words).ok_or_else(|| differs(group * size, "records of this program's lanes")))
        };
        trials.iter().filter_map(of_trial).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::super::facts::{MaskFacts, Outcome};
    use super::*;
    use crate::records::Measurement;

    fn is_received<R: Serialize + DeserializeOwned + PartialEq + Debug>(sent: R) {
        assert_eq!(record(&words(&sent)), Some(sent));
    }

    #[test]
    fn every_record_is_received_as_it_was_sent() {
        is_received(MaskFacts { kept: u32::MAX, hash: u64::MAX - 3, dead_layers: 2 });
        is_received(Outcome::Broken { step: u32::MAX });
        is_received(Outcome::Evaluated { loss: f32::MIN_POSITIVE / 2.0, errors: 0, examples: u32::MAX });
        is_received(None::<Measurement>);
        for lipschitz in [None, Some(f64::MAX)] {
            is_received(Some(Measurement { step: u32::MAX, loss: f64::INFINITY, gradient_norm: 0.1, squared_norms: -0.0, lipschitz }));
        }
        is_received(u32::MAX);
        assert_eq!(record::<Outcome>(&[u64::MAX; WORDS]), None);
        assert_eq!(record::<u32>(&[1, 0, 0, 0, 1]), None);
    }
}

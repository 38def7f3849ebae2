//! The world of ranks, and the order in which their gradients are summed.
//!
//! A [`Communicator`] moves bytes between ranks; [`Leaves`] fixes the order of the sum so that it is the same on any number of them.
//! Nothing here may know what the floats mean.

#[cfg(feature = "mpi")]
mod mpi;
mod single;
mod tree;

#[cfg(feature = "mpi")]
pub use self::mpi::MpiWorld;
pub use single::Single;
pub use tree::{Leaves, Node, additions};

/// Collective operations among ranks; every rank must call the same ones in the same order.
pub trait Communicator {
    /// This process's number, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Concatenates every rank's `send`, in rank order; `counts` are their lengths, known to all.
    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>);

    /// Concatenates every rank's words, in rank order; all send the same number.
    fn all_gather_words(&self, send: &[u64]) -> Vec<u64>;

    /// Ends every rank of the world at once with this exit code.
    fn abort(&self, code: i32) -> !;

    /// Whether all ranks passed the same words.
    fn agree(&self, words: &[u64]) -> bool {
        let all = self.all_gather_words(words);
        all.chunks_exact(words.len().max(1)).all(|theirs| theirs == words)
    }
}

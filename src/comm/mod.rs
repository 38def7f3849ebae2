//! The world of ranks, and the order in which their gradients are summed.
//!
//! A [`Communicator`] moves bytes between ranks; [`Leaves`] fixes the order of the sum so that it is the same on any number of them.
//! Nothing here may know what the floats mean.

mod abandon;
mod agreement;
mod cgroup;
pub mod launcher;
mod limits;
#[cfg(feature = "mpi")]
mod mpi;
mod placement;
mod single;
mod sum;
mod tree;
#[cfg(feature = "mpi")]
mod watch;

#[cfg(feature = "mpi")]
pub use self::mpi::{MpiWorld, mpi_library};
#[cfg(any(feature = "mpi", feature = "cuda"))]
pub(crate) use abandon::abandon;
pub use abandon::on_abandon;
pub use agreement::{agree, together};
pub use limits::MemoryLimit;
pub use placement::{host_hash, host_name, processor_model, threads};
pub use single::Single;
pub use sum::{Exchanged, NodeSums, Rows, add, sum_of_blocks};
pub(crate) use tree::add_blocks;
pub use tree::{Leaves, Node, additions};

/// Collective operations among ranks; every rank must call the same ones in the same order.
pub trait Communicator {
    /// This process's number, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Concatenates every rank's `send`, in rank order; `counts` are their lengths, known to all.
    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>);

    /// Sends `sent[rank]` floats of `send`, one run after the other, to each rank; concatenates what this rank receives, in rank order:
    /// `received[rank]` floats, as many as that rank sends.
    fn all_to_all(&self, send: &[f32], sent: &[usize], received: &[usize], receive: &mut Vec<f32>);

    /// Concatenates every rank's words, in rank order; every rank sends equally many.
    fn all_gather_words(&self, send: &[u64]) -> Vec<u64>;

    /// Rank 0's bytes, on every rank.
    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8>;

    /// Every rank's bytes, on rank 0, in rank order; nothing on the others.
    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;

    /// The ranks that pass the same `color`, in the order of this communicator; every rank must call it.
    fn split(&self, color: usize) -> Box<dyn Communicator>;

    /// Limits every later wait for other ranks to `seconds`; 0 sets no limit. A longer wait is an error for the action of [`on_abandon`].
    fn limit_waits(&self, seconds: u32);

    /// Ends the other ranks of the world at once with this exit code. MPI ends the calling one with them; where there are no others, nothing happens.
    fn abort(&self, code: i32);
}

//! Counter-based random numbers: pure functions of (seed, purpose, index).
//!
//! Nothing here keeps a position in a stream, so a number does not depend on which rank, thread or device asks for it, in what
//! order, or after how many interruptions. What lives here knows nothing of networks, data sets or trials: callers bring the seed and
//! the index, and say what the number is for.

mod numbers;
mod permutation;

pub use numbers::{Numbers, Purpose};
pub use permutation::Permutation;

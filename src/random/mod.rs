//! Counter-based random numbers: pure functions of (seed, purpose, index).
//!
//! Nothing here keeps a position in a stream, so a number does not depend on which rank, thread or device asks for it, in what
//! order, or after how many interruptions. Nothing here may know of networks, data sets or trials: callers give the seed, the
//! index and the number's purpose.

mod numbers;
mod permutation;

pub use numbers::{Numbers, Purpose};
pub use permutation::Permutation;

//! The criteria, one a file.

mod erk;
mod grasp;
mod magnitude;
mod random;
mod snip;
mod synflow;

pub use erk::Erk;
pub use grasp::{Grasp, gradient_signal};
pub use magnitude::Magnitude;
pub use random::{Random, random_scores};
pub use snip::{Snip, connection_sensitivity};
pub use synflow::Synflow;

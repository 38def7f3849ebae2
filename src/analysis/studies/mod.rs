//! Studies as they were measured: result files put together, their cells as a grid, and what a file says and does not say.
//!
//! Nothing here computes: fits, figures and claims are above it.

mod grid;
mod known;
mod study;

pub use grid::{Curve, Grid, batch};
pub use known::{has_curves, has_trials, is_of_dps};
pub use study::{CLOSE, StudyResults, gather, joined, pruning_name, results_name};

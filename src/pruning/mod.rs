//! Pruning at initialisation: scores of connections, and the masks cut from them.
//!
//! The section `[pruning]` is declared here, with the names of criteria.
//!
//! A criterion is a file of `criteria/` that implements [`Criterion`] and says what it needs. Whoever trains computes that and keeps the
//! scores. Scores depend on the trial's seed alone, so one scoring serves every sparsity and batch size; those of an iterated criterion depend on the
//! sparsity too, so that one mask is made for each. Nothing here may train or know of ranks.

mod criteria;
mod criterion;
mod mask;
mod rounds;
mod scoring;
pub(crate) mod section;
mod shuffle;

pub use criteria::{Grasp, Random, Snip, Synflow, connection_sensitivity, gradient_signal, random_scores};
pub use criterion::{Criterion, Given, Iterated, Untrained};
pub use mask::{Mask, keep_highest, kept_parameters};
pub use rounds::in_rounds;
pub use scoring::Scoring;
pub use section::{BiasPruning, CriterionName, Pruning};
pub use shuffle::shuffled;

//! The metaparameter search: Sobol points and the scales that turn them into metaparameters.
//!
//! Everything here is a function of the configuration and a trial's index. Nothing here may know how a trial went.

mod sobol;
mod space;

pub use sobol::Points;

use crate::config::ByMetaparameter;

/// The values that a trial trains with.
pub type Metaparameters = ByMetaparameter<f64>;

//! The metaparameter search: Sobol points and the scales that turn them into metaparameters.
//!
//! The section `[search]` is declared here. All else is a function of it and a trial's index. Nothing here may know how a trial went.

pub(crate) mod section;
mod sobol;
mod space;

pub use section::{Search, SobolNumbers};
pub use sobol::Points;

//! The metaparameter search: Sobol points and the scales that turn them into metaparameters.
//!
//! Everything here is a function of the configuration and a trial's index. Nothing here may know how a trial went.

mod metaparameters;
mod sobol;
mod space;

pub use metaparameters::Metaparameters;
pub use sobol::Points;

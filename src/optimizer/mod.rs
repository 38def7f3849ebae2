//! Optimizers and learning-rate schedules: what one step does to one parameter, and at what rate.
//!
//! The names of both are declared here, and the metaparameters with the values or ranges that a configuration may give these. The rest is pure
//! arithmetic, the same for every back end. Nothing here may hold weights or know where a gradient came from.

mod by_metaparameter;
mod metaparameter;
mod names;
mod range;
mod rule;
mod schedule;

pub use by_metaparameter::{ByMetaparameter, Metaparameters};
pub use metaparameter::Metaparameter;
pub use names::{OptimizerName, ScheduleName};
pub use range::{Range, Scale, Setting, range_as_toml};
pub use rule::{Adam, Rule};
pub use schedule::{Decay, Schedule};

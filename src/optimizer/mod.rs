//! Optimizers and learning-rate schedules: what one step does to one parameter, and at what rate.
//!
//! Pure arithmetic, the same for every back end. Nothing here may hold weights or know where a gradient came from.

mod rule;
mod schedule;

pub use rule::{Adam, Rule};
pub use schedule::{Decay, Schedule};

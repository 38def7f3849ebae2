//! The parts of the page on a study, each a document.
//!
//! A part words what was computed; it neither computes nor knows how it is shown.

mod claims;
mod confirmed;
mod control;
mod critical;
mod fits;
mod goals;
mod run;
mod steps;
mod theory;
mod timing;
mod trials;

pub use claims::{claims, rules, verdicts};
pub use confirmed::{confirmed, confirmed_steps, fitted, shaped};
pub use control::control;
pub use critical::critical;
pub use fits::{fits, laws};
pub use goals::goals;
pub use run::{provenance, run, to_come};
pub use steps::{steps, steps_to_result};
pub use theory::theory;
pub use timing::timing;
pub use trials::trials;

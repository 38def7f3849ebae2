//! `dps-train pilot`: a few whole curves at the corners of a study's grid, and the goal, steps, interval and ranges that they propose.
//!
//! - `design`: which studies a pilot measures;
//! - `corner`: their curves;
//! - `choice`: the rules of what is proposed, which docs/pilot.md states;
//! - `document`: the proposal as a configuration with comments;
//! - `proposal`: all of it together, with the picture.
//!
//! The module may not train or know of ranks: a pilot is measured as every study is.

mod choice;
mod corner;
mod design;
mod document;
mod proposal;

pub use design::{Asked, Part, parts};
pub use proposal::{PICTURE_TITLE, Proposal, propose};

//! The records of a study: cells, trials, confirmations, evaluations and measurements of the loss surface; and its starts, which decide none of them.
//!
//! Plain data that training fills, the journal and the result files keep, and the analysis reads; nothing here computes or opens a file. The
//! journal stores the fields in their order: whoever changes a field raises the journal's version.

mod cell;
mod confirmation;
mod mask;
mod start;
mod trial;

pub use cell::{Cell, CellKey, all_finished, best, cells, is_finished};
pub use confirmation::{Confirmation, Seeds};
pub use mask::MaskRecord;
pub use start::{Ending, Start};
pub use trial::{CurvePoint, Measurement, Status, Trial};

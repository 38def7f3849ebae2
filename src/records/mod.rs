//! The records of a study: cells, trials, confirmations, evaluations and measurements of the loss surface; and its starts, which decide none of them.
//!
//! Plain data that training fills, the journal and the result files keep, and the analysis reads; nothing here trains or opens a file. The
//! journal stores the fields in their order: whoever changes a field raises the journal's version.

mod cell;
mod confirmation;
mod start;
mod trial;
mod wanted;

pub use cell::{Cell, CellKey, best, cells};
pub use confirmation::{Confirmation, Seeds, Training, median_steps};
pub use start::{Ending, Start, counted};
pub use trial::{CurvePoint, MaskRecord, Measurement, Status, Trial};
pub use wanted::{Wanted, add_whole_rounds, all_finished, confirmations_of, is_confirmed, is_finished, is_searched, keep_wanted};

//! What a run begins with.

use std::path::Path;

/// What a run begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning<'a> {
    /// What an earlier run left, if there was one.
    Journal,
    /// Nothing: the files of an earlier run are moved aside.
    Fresh,
    /// The cells of a result file, where no earlier run left a journal. No other cells are measured.
    Results(&'a Path),
}

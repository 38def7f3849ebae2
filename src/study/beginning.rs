//! What a run begins with.

use std::path::Path;

/// What a run begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning<'a> {
    /// What an earlier run left, if there was one.
    Journal,
    /// Nothing: the files of an earlier run are moved aside.
    Fresh,
    /// The cells of a result file, where no earlier run left a journal.
    Results(&'a Path),
    /// The cells of a result file, where no earlier run left a journal. They are confirmed, and no other cells are measured.
    Confirmed(&'a Path),
}

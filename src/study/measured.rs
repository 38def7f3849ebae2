//! What a forecast takes of a study's measured cells.

use crate::config::Study;
use crate::forecast::Measured;
use crate::records::{Cell, is_confirmed};

/// The cells that a forecast learns from: those that are confirmed, where the study confirms them and any is; else all that are measured.
pub(super) fn measured(cells: &[Cell], study: &Study) -> Vec<Measured> {
    let confirmed: Vec<Measured> = cells.iter().filter(|cell| is_confirmed(cell, study)).map(Measured::of).collect();
    if confirmed.is_empty() { cells.iter().map(Measured::of).collect() } else { confirmed }
}

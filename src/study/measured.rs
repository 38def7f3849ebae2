//! Seconds of a study's cells, measured and left, of which a forecast is made.

use crate::forecast::Measured;
use crate::records::{Cell, CellKey, is_confirmed, is_finished};
use crate::settings::{Confirm, Study};

/// Steps of a training with a fresh seed over those of the cell's best trial, assumed until a cell is confirmed: fresh seeds take a quarter to a half
/// more steps.
pub(super) const AGAIN: f64 = 1.4;

/// A cell's points with those of its neighbours over its own, assumed until it is confirmed: cells next to each other share some of their best
/// points.
const WITH_NEIGHBOURS: f64 = 2.5;

/// The cells that a forecast learns from: those that are confirmed, where the study confirms them and any is; else all that are measured, with what
/// their confirmations are assumed to take.
pub(super) fn measured(cells: &[Cell], study: &Study) -> Vec<Measured> {
    let confirmed: Vec<&Cell> = cells.iter().filter(|cell| is_confirmed(cell, cells, study)).collect();
    // Cells that have nothing to confirm say nothing of how long confirmations take.
    if confirmed.iter().any(|cell| !cell.confirmations.is_empty()) {
        return confirmed.into_iter().map(Measured::of).collect();
    }
    let whole = 1.0 + confirmation(study);
    cells.iter().map(|cell| Measured { seconds: (cell.seconds * whole).max(Measured::of(cell).seconds), ..Measured::of(cell) }).collect()
}

/// The steps of a cell's confirmations over those of its trials, before any is known.
pub(super) fn confirmation(study: &Study) -> f64 {
    let Some(Confirm { points, neighbours, seeds, limit, mean_error, .. }) = study.confirm else { return 0.0 };
    let factor = study.execution.race.factor();
    // A race that ends at the first trial leaves one point.
    let points = f64::from(if factor == Some(1.0) { 1 } else { points.min(study.grid.trials) });
    let trials = f64::from(study.grid.trials) * factor.unwrap_or(limit);
    let of_others = if neighbours { WITH_NEIGHBOURS } else { 1.0 };
    points * of_others * f64::from(seeds) * if mean_error { limit } else { AGAIN.min(limit) } / trials
}

/// Seconds that a cell has taken, of which its confirmation under way has taken `more`: these count trainings that have ended, whose seconds the
/// cell's confirmations have too.
pub(super) fn spent(cell: &Cell, more: f64) -> f64 {
    Measured::of(cell).seconds.max(cell.seconds + more)
}

/// Cells of `keys` that are without some of their trials or confirmations, each with the seconds that it has taken. The cell `begun` goes on: it
/// comes first, and has taken so many seconds more.
pub(super) fn left(cells: &[Cell], keys: &[CellKey], study: &Study, begun: Option<(CellKey, f64)>) -> Vec<(CellKey, f64)> {
    let missing = keys.iter().copied().filter(|&key| !is_finished(cells, key, study));
    let of_cell = |key: CellKey| {
        let more = begun.filter(|begun| begun.0 == key).map_or(0.0, |begun| begun.1);
        cells.iter().find(|cell| cell.key == key).map_or(more, |cell| spent(cell, more))
    };
    let mut left: Vec<(CellKey, f64)> = missing.map(|key| (key, of_cell(key))).collect();
    left.sort_by_key(|(key, _)| Some(*key) != begun.map(|begun| begun.0));
    left
}

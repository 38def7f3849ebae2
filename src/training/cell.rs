//! One cell: its trials in waves, until each has ended.

use std::collections::HashSet;

use super::conductor::Conductor;
use super::groups::Groups;
use super::masks::Masks;
use super::state::CellState;
use super::wave::Wave;
use super::work::CellWork;
use crate::Result;
use crate::backend::Backend;
use crate::records::Cell;

/// Measures a cell, whose trials `masks` has scored; every rank of the world must call it alike, and all get the same trials. `from` is
/// where it was left, and has the trials that had ended. None where the conductor stopped it.
///
/// Evaluations come every `evaluate_every` steps; steps after the last of them could not be evaluated and are not taken. When one lane reaches
/// the goal, all lanes have been evaluated at that step: nothing later can lower the cell's steps-to-result. In a race the others end there, or
/// at a multiple of it, as censored. Where the lanes are too many for one wave, later waves race against the best of the earlier ones, and all
/// records end up as if there had been one wave.
pub fn measure<B: Backend>(
    work: &CellWork,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    from: CellState,
    conductor: &mut dyn Conductor,
) -> Result<Option<Cell>> {
    let mut state = from;
    let mut trials = next_wave(work, &state);
    while !trials.is_empty() {
        let wave = Wave::begin(work, backend, groups, masks, state, &trials, conductor)?;
        let Some(after) = wave.run()? else { return Ok(None) };
        state = after;
        trials = next_wave(work, &state);
        if !trials.is_empty() {
            conductor.checkpoint(state.clone())?;
        }
    }
    Ok(Some(finish(work, state)))
}

/// The trials to train next, in ascending order: those that were under way, or else the first that have not begun.
fn next_wave(work: &CellWork, state: &CellState) -> Vec<usize> {
    let mut begun: Vec<usize> = state.lanes.iter().map(|lane| lane.trial.index as usize).collect();
    begun.sort_unstable();
    if !begun.is_empty() {
        return begun;
    }
    let ended: HashSet<usize> = state.ended.iter().map(|trial| trial.index as usize).collect();
    (work.first..work.first + work.trials.len()).filter(|trial| !ended.contains(trial)).take(work.lanes.max(1)).collect()
}

/// The cell, once all trials have ended.
fn finish(work: &CellWork, state: CellState) -> Cell {
    let CellState { ended: mut trials, test_errors, seconds, .. } = state;
    trials.sort_by_key(|trial| trial.index);
    let mut cell = Cell { key: work.key, trials, test_errors, seconds, confirmations: Vec::new() };
    // An earlier wave did not know yet where the race ends.
    cell.end_race(work.workload, work.race, cell.steps_to_result());
    cell
}

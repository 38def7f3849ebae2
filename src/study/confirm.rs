//! Confirmation of a cell: its best points trained again with fresh seeds, in lockstep as its trials were, without a race.

use super::driver::Driver;
use crate::Result;
use crate::backend::Backend;
use crate::journal::Checkpoint;
use crate::progress::Event;
use crate::records::{Cell, Confirmation, Status, Training, Trial, Wanted};
use crate::settings::{Race, Workload};
use crate::training::{CellState, CellWork, Groups, LaneRecord, Masks, Run, measure};

/// The confirmations of a cell.
pub(super) struct Confirmations<'a> {
    /// Way in which the trials were trained.
    pub work: &'a CellWork<'a>,
    /// Cell whose trials are measured.
    pub cell: &'a Cell,
    pub wanted: &'a Wanted,
    /// Wanted confirmations that have ended before.
    pub known: Vec<Confirmation>,
    /// Where an earlier run left it.
    pub left: Option<&'a Checkpoint>,
}

/// The trainings that confirm the points of a cell, by point from the best one on, then number. None where a signal stopped the study.
pub(super) fn confirm<B: Backend>(
    Confirmations { work, cell, wanted, known, left }: &Confirmations,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    driver: &mut Driver,
) -> Result<Option<Vec<Confirmation>>> {
    let Wanted { evaluate_every, last_step, goes_on, trainings } = wanted;
    let point = |training: &Training| cell.trials.iter().find(|trial| trial.index == training.point);
    let run = |training: &Training| Some(Run { metaparameters: point(training)?.metaparameters, seeds: training.seeds });
    let trials: Vec<Run> = trainings.iter().filter_map(run).collect();
    let workload = Workload { evaluate_every: *evaluate_every, max_steps: *last_step, ..work.workload.clone() };
    let work = CellWork {
        workload: &workload,
        trials: &trials,
        first: 0,
        race: Race::Off,
        full_evaluation: work.full_evaluation || *goes_on,
        goes_on: *goes_on,
        tested: false,
        extended: false,
        probe: None,
        ..**work
    };

    let mut state = left.map_or_else(CellState::default, |left| renumbered(left, trainings));
    for Confirmation { training, run } in known {
        let Some(index) = place_of(trainings, training) else { continue };
        state.lanes.retain(|lane| lane.trial.index != index);
        state.ended.retain(|trial| trial.index != index);
        state.ended.push(Trial { index, ..run.clone() });
    }
    if state.lanes.is_empty() {
        state.step = 0;
    }
    driver.observer.event(&Event::Confirming {
        key: cell.key,
        points: wanted.points().count(),
        trainings: trainings.len(),
        done: state.ended.len(),
        step: state.step,
        last_step: *last_step,
    });
    driver.confirming = Some(trainings.clone());
    let confirmed = measure(&work, backend, groups, masks, state, driver)?;
    driver.confirming = None;
    let Some(Cell { trials, .. }) = confirmed else { return Ok(None) };
    let confirmations: Vec<Confirmation> = trials.into_iter().filter_map(|run| Confirmation::numbered(trainings, run)).collect();
    // Confirmations that ended by themselves were journaled then.
    let at_limit = |one: &Confirmation| one.run.status == Status::Incomplete || *goes_on && one.run.status == Status::Complete;
    let is_fresh = |one: &&Confirmation| at_limit(one) && known.iter().all(|other| other.training != one.training);
    let spent: Vec<Confirmation> = confirmations.iter().filter(is_fresh).cloned().collect();
    driver.keep(|files| files.confirmed(cell.key, spent))?;
    Ok(Some(confirmations))
}

/// The place of a training among `trainings`, which is its trial's index while the cell is confirmed.
fn place_of(trainings: &[Training], training: &Training) -> Option<u32> {
    trainings.iter().position(|other| other == training).map(|place| place as u32)
}

/// A checkpoint's state with the places that `trainings` give. Trainings that are no longer wanted are left out.
fn renumbered(left: &Checkpoint, trainings: &[Training]) -> CellState {
    let Checkpoint { confirming, state, .. } = left;
    let now = |before: u32| place_of(trainings, confirming.as_ref()?.get(before as usize)?);
    let mut state = state.clone();
    let renamed = |trial: Trial| Some(Trial { index: now(trial.index)?, ..trial });
    state.lanes = state.lanes.into_iter().filter_map(|lane| Some(LaneRecord { trial: renamed(lane.trial)?, ..lane })).collect();
    state.ended = state.ended.into_iter().filter_map(renamed).collect();
    state
}

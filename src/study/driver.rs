//! What accompanies the cells of a run.

use std::time::{Duration, Instant};

use super::files::Files;
use super::surroundings::Surroundings;
use crate::backend::Backend;
use crate::comm::{Communicator, together};
use crate::config::Study;
use crate::forecast::{Forecast, Measured};
use crate::progress::{Event, Observer};
use crate::records::{Cell, CellKey, Trial, is_finished};
use crate::results::Results;
use crate::training::{CellState, Conductor, Decision, Masks, Moment};
use crate::{Error, Result};

/// Accompanies the cells: tells the observer and writes the journal on rank 0, and agrees with all ranks on when to checkpoint and stop.
pub(super) struct Driver<'a> {
    pub study: &'a Study,
    pub world: &'a dyn Communicator,
    pub surroundings: Surroundings,
    /// On rank 0.
    pub files: &'a mut Option<Files>,
    pub observer: &'a mut dyn Observer,
    pub key: CellKey,
    /// Trials a cell.
    pub trials: u32,
    /// When the last checkpoint was taken.
    pub saved: Instant,
    /// When the one that is being taken was asked for, and for how long the last one stopped the training.
    pub asked: Instant,
    pub cost: Duration,
}

/// Longest time, in seconds, between two looks for a signal. A step or an evaluation that takes longer looks between its parts.
const LISTEN_EVERY: f64 = 0.25;

/// Part of the time that checkpoints may stop the training.
const CHECKPOINT_SHARE: u32 = 50;

impl Driver<'_> {
    /// Lets rank 0 do something with its files. Where it fails, all ranks fail.
    pub(super) fn keep(&mut self, act: impl FnOnce(&mut Files) -> Result<()>) -> Result<()> {
        let result = self.files.as_mut().map_or(Ok(()), act);
        together(self.world, result)
    }

    /// Scores the connections of every trial's network that no earlier run has scored for that sparsity. False: a signal wants the study to stop.
    pub(super) fn masks(&mut self, masks: &mut Masks, scorer: &mut impl Backend, sparsity: f64, training_examples: usize) -> Result<bool> {
        let trials = self.trials;
        for seeds in masks.missing(trials, sparsity).chunks(masks.at_once()) {
            let fresh = match masks.score(scorer, seeds, sparsity, training_examples) {
                Err(Error::Interrupted) => return Ok(false),
                fresh => fresh?,
            };
            let (Some(&seed), false) = (seeds.last(), fresh.is_empty()) else { continue };
            self.keep(|files| files.scored(&fresh))?;
            self.observer.event(&Event::Scored { seed, trials });
            if self.stop() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells the observer a detail.
    pub(super) fn detail(&mut self, line: impl FnOnce() -> String) {
        self.observer.event(&Event::Detail { line: &line() });
    }

    /// Journals the last of the measured cells, and tells when the rest of the study's is probably done.
    pub(super) fn finished(&mut self, measured: &[Cell], keys: &[CellKey]) -> Result<()> {
        let Some(cell) = measured.last() else { return Ok(()) };
        self.keep(|files| files.finished(cell))?;
        let left: Vec<CellKey> = keys.iter().copied().filter(|key| !is_finished(measured, *key, self.trials)).collect();
        let measured: Vec<Measured> = measured.iter().map(Measured::of).collect();
        let left = Forecast::new(&measured, &left, self.trials as usize, 0.0, None);
        self.observer.event(&Event::CellFinished { cell, left });
        Ok(())
    }

    pub(super) fn publish(&mut self, results: &Results) -> Result<()> {
        self.keep(|files| files.publish(results))
    }

    pub(super) fn since(&self, moment: Instant) -> Duration {
        (self.surroundings.now)().saturating_duration_since(moment)
    }
}

impl Conductor for Driver<'_> {
    fn ended(&mut self, trial: &Trial) -> Result<()> {
        let key = self.key;
        self.keep(|files| files.ended(key, trial))
    }

    fn moment(&mut self, moment: &Moment) -> Result<Decision> {
        self.observer.event(&Event::Moment { key: self.key, moment });
        // Rank 0's clock decides for all ranks. A signal may reach any rank.
        let every = Duration::from_secs(self.study.execution.checkpoint_seconds.into());
        let since = self.since(self.saved);
        let idle = self.files.as_ref().is_some_and(|files| files.is_idle(since));
        let due = idle && ((self.surroundings.urgent)() || !every.is_zero() && since >= every.max(self.cost * CHECKPOINT_SHARE));
        let steps = (LISTEN_EVERY / moment.step_seconds.max(1e-9)).clamp(1.0, 1e9) as u64;
        let interruptible = moment.step_seconds.max(moment.evaluation_seconds) > LISTEN_EVERY;
        let words = self.world.all_gather_words(&[(self.surroundings.stop)().into(), due.into(), steps, interruptible.into()]);
        let stop = words.chunks_exact(4).any(|theirs| theirs[0] == 1);
        self.asked = (self.surroundings.now)();
        Ok(Decision { checkpoint: words[1] == 1, stop, steps: words[2] as u32, interruptible: words[3] == 1 })
    }

    fn stop(&mut self) -> bool {
        self.world.all_gather_words(&[(self.surroundings.stop)().into()]).contains(&1)
    }

    fn checkpoint(&mut self, mut state: CellState) -> Result<()> {
        // Lanes may take most of the memory, so each copy of them is dropped as soon as the next one is made.
        let lanes = postcard::to_stdvec(&std::mem::take(&mut state.lanes)).unwrap_or_default();
        let all = self.world.gather(&lanes);
        drop(lanes);
        let (key, step, stop) = (self.key, state.step, self.surroundings.stop);
        self.keep(|files| {
            state.lanes = all.into_iter().filter_map(|bytes| postcard::from_bytes::<Vec<_>>(&bytes).ok()).flatten().collect();
            state.lanes.sort_by_key(|lane| lane.trial);
            files.checkpoint(key, state, stop())
        })?;
        self.saved = (self.surroundings.now)();
        self.cost = self.saved - self.asked;
        let cost = self.cost.as_secs_f64() * 1e3;
        self.detail(|| format!("checkpoint of step {step}: the training stood still for {cost:.1} ms"));
        Ok(())
    }
}

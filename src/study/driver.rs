//! Driver of a run: it accompanies the run's cells.

use std::time::{Duration, Instant};

use super::files::{Files, now};
use super::measured;
use super::place::Surroundings;
use crate::backend::Backend;
use crate::comm::{Communicator, together};
use crate::forecast::{Forecast, Measured, Trainings};
use crate::journal::Record;
use crate::progress::{Event, Observer};
use crate::records::{Cell, CellKey, Confirmation, Training, Trial, Wanted, all_finished};
use crate::results::Results;
use crate::settings::Study;
use crate::training::{CellState, Conductor, Decision, Masks, Moment};
use crate::{Error, Result};

/// Accompanies the cells: tells the observer and writes the journal on rank 0, and agrees with all ranks on when to checkpoint and stop.
pub(super) struct Driver<'a> {
    /// `study` is what this run asks for; `whole` joins `study` with the cells, trials and confirmations that earlier runs asked for.
    pub study: &'a Study,
    pub whole: &'a Study,
    pub world: &'a dyn Communicator,
    pub surroundings: Surroundings,
    /// Files of the study, on rank 0.
    pub files: &'a mut Option<Files>,
    pub observer: &'a mut dyn Observer,
    pub key: CellKey,
    /// The cell's trials that the journal has.
    pub journaled: Vec<Trial>,
    /// Trainings of the cell's confirmation, while it is under way; a trial's index is the place of one of them.
    pub confirming: Option<Vec<Training>>,
    /// Cells that were measured or confirmed since the result file was written.
    pub unpublished: usize,
    /// Time of the last checkpoint.
    pub saved: Instant,
    /// `asked` is when the checkpoint under way was asked for; `cost` is for how long the last checkpoint stopped the training.
    pub asked: Instant,
    pub cost: Duration,
    pub forecast: Forecasting,
}

/// Numbers that a forecast is made of while a cell is trained, and the last forecast.
#[derive(Default)]
pub(super) struct Forecasting {
    measured: Vec<Measured>,
    left: Vec<(CellKey, f64)>,
    /// When the cell under way, or its confirmation, began or went on, and the seconds that the cell had taken before.
    began: Option<Instant>,
    before: f64,
    said: Option<(Instant, Option<Forecast>)>,
}

impl Forecasting {
    /// The forecast after `now`, which is made anew every few seconds, for cells of so many trials. `under_way` is what the confirmation under
    /// way, if there is one, will take by its own steps, in seconds.
    fn after(&mut self, now: Instant, trials: u32, under_way: Option<f64>) -> Option<Forecast> {
        match self.said {
            Some((at, said)) if now.saturating_duration_since(at) < FORECAST_EVERY => said,
            _ => {
                let elapsed = self.before + self.began.map_or(0.0, |began| now.saturating_duration_since(began).as_secs_f64());
                if let Some((_, spent)) = self.left.first_mut() {
                    *spent = elapsed;
                }
                let said = match under_way {
                    Some(seconds) => Some(Forecast::with_first(&self.measured, &self.left, trials as usize, seconds)),
                    None => Forecast::new(&self.measured, &self.left, trials as usize, None),
                };
                self.said = Some((now, said));
                said
            }
        }
    }
}

/// Time between two forecasts while a cell is measured.
const FORECAST_EVERY: Duration = Duration::from_secs(5);

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

    /// Scores the connections of the networks of `seeds`, those that no earlier run has scored for that sparsity. False: a signal wants the study to
    /// stop.
    pub(super) fn masks(
        &mut self,
        masks: &mut Masks,
        scorer: &mut impl Backend,
        seeds: &[u64],
        sparsity: f64,
        training_examples: usize,
    ) -> Result<bool> {
        if sparsity == 0.0 {
            return Ok(true);
        }
        let missing = masks.missing(seeds.iter().copied(), sparsity);
        let (mut done, all) = (seeds.len() - missing.len(), seeds.len());
        for seeds in missing.chunks(masks.at_once()) {
            let fresh = match masks.score(scorer, seeds, sparsity, training_examples) {
                Err(Error::Interrupted) => return Ok(false),
                fresh => fresh?,
            };
            done += seeds.len();
            let (Some(&seed), false) = (seeds.last(), fresh.is_empty()) else { continue };
            self.keep(|files| files.scored(&fresh))?;
            self.observer.event(&Event::Scored { seed, done, all });
            if self.stop() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells the observer a detail.
    pub(super) fn detail(&mut self, line: impl FnOnce() -> String) {
        self.observer.event(&Event::Detail(&line()));
    }

    /// A cell, or its confirmation, begins or goes on, after the measured cells and so many seconds of its own.
    pub(super) fn begins(&mut self, key: CellKey, before: f64, measured: &[Cell], keys: &[CellKey]) {
        self.key = key;
        let (left, began) = (self.unfinished(measured, keys), Some((self.surroundings.now)()));
        self.forecast = Forecasting { measured: measured::measured(measured, self.whole), left, began, before, said: None };
    }

    /// Journals the last of the measured cells, and tells when the rest of the study's is probably done.
    pub(super) fn finished(&mut self, measured: &[Cell], keys: &[CellKey]) -> Result<()> {
        let Some(cell) = measured.last() else { return Ok(()) };
        let journaled = std::mem::take(&mut self.journaled);
        self.keep(|files| files.finished(cell, &journaled))?;
        let left = self.left(measured, keys);
        self.observer.event(&Event::CellFinished { cell, left });
        Ok(())
    }

    /// Tells of the confirmation of one of the measured cells, and when the rest of the study's is probably done.
    pub(super) fn confirmed(&mut self, cell: &Cell, measured: &[Cell], keys: &[CellKey], wanted: &Wanted) {
        let left = self.left(measured, keys);
        self.observer.event(&Event::Confirmed { cell, last_step: wanted.last_step, left });
    }

    /// When the rest of the cells is probably done; the one under way, which may be without its confirmations, is the first of them.
    fn left(&self, measured: &[Cell], keys: &[CellKey]) -> Option<Forecast> {
        let left = self.unfinished(measured, keys);
        Forecast::new(&measured::measured(measured, self.whole), &left, self.whole.grid.trials as usize, None)
    }

    /// Cells without all their trials and confirmations, the one under way first, each with the seconds that it has taken.
    fn unfinished(&self, measured: &[Cell], keys: &[CellKey]) -> Vec<(CellKey, f64)> {
        measured::left(measured, keys, self.whole, Some((self.key, 0.0)))
    }

    /// The seconds that the trainings of the confirmation under way will take, by how long their steps and evaluations have taken; none while there
    /// is no confirmation, or no step was taken.
    fn confirmed_after(&self, moment: &Moment) -> Option<f64> {
        let (trainings, confirm) = (self.confirming.as_ref()?, self.whole.confirm.as_ref()?);
        let last_step = f64::from(moment.last_step);
        let left = Trainings {
            median: if confirm.mean_error { f64::INFINITY } else { measured::AGAIN / confirm.limit * last_step },
            last_step,
            step: moment.step.into(),
            alive: moment.alive,
            waiting: trainings.len().saturating_sub(moment.alive + moment.ended),
        };
        let trained = moment.examples as f64 / f64::from(self.key.batch_size);
        (trained > 0.0).then(|| moment.seconds / trained * left.steps())
    }

    /// Writes the result file.
    pub(super) fn publish(&mut self, results: &Results) -> Result<()> {
        self.unpublished = 0;
        self.keep(|files| files.publish(results))
    }

    /// One more cell is measured or confirmed: writes the result file once such cells are a hundredth of all, because it is written whole.
    pub(super) fn grown(&mut self, results: &mut Results) -> Result<()> {
        results.complete = all_finished(&results.cells, self.whole);
        results.environment.finished = now();
        self.unpublished += 1;
        if self.unpublished * 100 < results.cells.len() { Ok(()) } else { self.publish(results) }
    }

    /// The study ends here for this run: checkpoint and result file get what they lack.
    pub(super) fn ends(&mut self, results: &Results) -> Result<()> {
        self.keep(Files::wait)?;
        if self.unpublished == 0 { Ok(()) } else { self.publish(results) }
    }
}

impl Conductor for Driver<'_> {
    fn ended(&mut self, trial: &Trial) -> Result<()> {
        let key = self.key;
        let Some(trainings) = &self.confirming else {
            // Rank 0 alone has the journal.
            if self.files.is_some() {
                self.journaled.push(trial.clone());
            }
            return self.keep(|files| files.record(Record::Trial { key, trial: trial.clone() }));
        };
        let Some(confirmation) = Confirmation::numbered(trainings, trial.clone()) else { return Ok(()) };
        self.keep(|files| files.record(Record::Confirmation { key, confirmation }))
    }

    fn moment(&mut self, moment: &Moment) -> Result<Decision> {
        if self.files.is_some() {
            let left = self.forecast.after((self.surroundings.now)(), self.whole.grid.trials, self.confirmed_after(moment));
            self.observer.event(&Event::Moment { key: self.key, moment, left });
        }
        // Rank 0's clock decides for all ranks. A signal may reach any rank.
        let every = Duration::from_secs(self.study.execution.checkpoint_seconds.into());
        let since = (self.surroundings.now)().saturating_duration_since(self.saved);
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
        let confirming = self.confirming.clone();
        self.keep(|files| {
            for (rank, bytes) in all.into_iter().enumerate() {
                let theirs: Vec<_> = postcard::from_bytes(&bytes).map_err(|cause| Error::Communication {
                    rank,
                    problem: format!(
                        "expected the states of its trials, found something else ({cause}); run the same program on all ranks"
                    ),
                })?;
                state.lanes.extend(theirs);
            }
            state.lanes.sort_by_key(|lane| lane.trial.index);
            files.checkpoint(key, confirming, state, stop())
        })?;
        self.saved = (self.surroundings.now)();
        self.cost = self.saved - self.asked;
        let cost = self.cost.as_secs_f64() * 1e3;
        self.detail(|| format!("checkpoint of step {step}: the training stood still for {cost:.1} ms"));
        Ok(())
    }
}

//! One cell: its trials as lanes, in lockstep, until each has ended or the cell is decided.

use std::ops::Range;
use std::time::Instant;

use super::state::{CellState, LaneRecord};
use super::{Groups, Masks};
use crate::Result;
use crate::backend::{Backend, LaneStart, LaneState, Set};
use crate::config::Workload;
use crate::optimizer::Rule;
use crate::search::Metaparameters;
use crate::study::{Cell, CellKey, CurvePoint, Status, Trial};

/// What a cell is to measure.
#[derive(Debug, Clone, Copy)]
pub struct CellWork<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Batch size and sparsity.
    pub key: CellKey,
    /// Metaparameters of every trial; its index is the trial's number and seed.
    pub trials: &'a [Metaparameters],
    /// T: a trial is complete at the first evaluation with no more errors than this.
    pub threshold: u32,
    /// End all trials once one is complete.
    pub race: bool,
    /// Count every evaluation to its end, though it is decided.
    pub full_evaluation: bool,
}

/// Where a cell is; the same on every rank, but for the times.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Steps taken.
    pub step: u32,
    /// Whether all lanes have just been evaluated.
    pub evaluated: bool,
    /// Lanes still training.
    pub alive: usize,
    /// Fewest errors of a whole evaluation since the cell began or went on.
    pub best_errors: Option<u32>,
    /// Training examples gone through by all lanes since then.
    pub examples: u64,
    /// This rank's seconds since then.
    pub seconds: f64,
    /// Seconds a step, lately.
    pub step_seconds: f64,
}

/// What to do after a [`Moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Hand the cell's state to [`Conductor::checkpoint`].
    pub checkpoint: bool,
    /// Leave the cell as it is.
    pub stop: bool,
    /// Steps to take before asking again; an evaluation comes before, if it is due.
    pub steps: u32,
}

/// Who a cell reports to, and who may interrupt it. Every rank has one; all must decide alike.
pub trait Conductor {
    /// A trial has ended before its cell.
    fn ended(&mut self, trial: &Trial) -> Result<()>;
    /// Some steps were taken.
    fn moment(&mut self, moment: &Moment) -> Result<Decision>;
    /// What is needed to go on from here: this rank's lanes, where it leads its group, else none; the rest is the same on all ranks.
    fn checkpoint(&mut self, state: CellState) -> Result<()>;
}

/// Measures a cell, whose trials `masks` has scored; every rank of the world must call it alike, and all get the same trials. `from` is
/// where it was left, and has the trials that had ended. None where the conductor stopped it.
///
/// Evaluations come every `evaluate_every` steps; steps after the last of them could not be evaluated and are not taken. When one lane reaches
/// the goal in a race, all lanes have been evaluated at that step: nothing later can lower the cell's steps-to-result, so the others end
/// there as censored.
pub fn measure<B: Backend>(
    work: &CellWork,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    from: CellState,
    conductor: &mut dyn Conductor,
) -> Result<Option<Cell>> {
    let clock = Instant::now();
    let before = from.seconds;
    let mut race = Race::begin(work, backend, groups, masks, from)?;
    let every = work.workload.evaluate_every;
    let last = work.workload.max_steps / every * every;
    let (mut seconds, mut stretch) = (0.0, 1);
    while race.step < last && race.alive.contains(&true) {
        let due = (race.step / every + 1) * every;
        let steps = race.step..due.min(race.step + stretch);
        let taken = steps.len() as f64;
        let evaluated = steps.end == due;
        let began = clock.elapsed().as_secs_f64();
        race.train(steps)?;
        let trained = clock.elapsed().as_secs_f64();
        let over = evaluated && race.evaluate(conductor)?;
        race.share_out(clock.elapsed().as_secs_f64() - seconds);
        seconds = clock.elapsed().as_secs_f64();
        let decision = conductor.moment(&Moment {
            step: race.step,
            evaluated,
            alive: race.alive.iter().filter(|&&alive| alive).count(),
            best_errors: race.best_errors,
            examples: race.examples,
            seconds,
            step_seconds: (trained - began) / taken,
        })?;
        stretch = decision.steps.max(1);
        if over {
            break;
        }
        if decision.checkpoint || decision.stop {
            conductor.checkpoint(race.state(before + seconds)?)?;
        }
        if decision.stop {
            return Ok(None);
        }
    }
    Ok(Some(race.finish(before + clock.elapsed().as_secs_f64())))
}

/// A cell under way.
struct Race<'a, 'g, B: Backend> {
    work: &'a CellWork<'a>,
    backend: &'a mut B,
    groups: &'a Groups<'g>,
    /// Every trial's record so far.
    trials: Vec<Trial>,
    /// Which trials still train.
    alive: Vec<bool>,
    /// This group's living lanes, and which trial each is.
    lanes: B::Lanes,
    mine: Vec<usize>,
    step: u32,
    test_errors: Option<u32>,
    best_errors: Option<u32>,
    examples: u64,
    /// What the last stretch of steps did to each lane.
    progress: Vec<crate::backend::Progress>,
}

impl<'a, 'g, B: Backend> Race<'a, 'g, B> {
    /// The trials' records as they were left, and this group's lanes.
    fn begin(work: &'a CellWork<'a>, backend: &'a mut B, groups: &'a Groups<'g>, masks: &Masks, from: CellState) -> Result<Self> {
        let mut alive = vec![true; work.trials.len()];
        from.ended.iter().for_each(|trial| alive[trial.index as usize] = false);
        let mut states: Vec<Option<LaneState>> = vec![None; work.trials.len()];
        let mut records: Vec<(Vec<CurvePoint>, f64)> = vec![Default::default(); work.trials.len()];
        for LaneRecord { trial, state, curve, seconds } in from.lanes {
            states[trial as usize] = Some(state);
            records[trial as usize] = (curve, seconds);
        }
        let mine: Vec<usize> = (0..alive.len()).filter(|&trial| alive[trial] && groups.trains(trial)).collect();
        let (mut starts, mut words) = (Vec::new(), Vec::new());
        for &trial in &mine {
            let (weights, mask) = masks.start(trial as u64, work.key.sparsity);
            words.push([mask.kept() as u64, mask.hash()]);
            let rule = Rule::new(work.workload, &work.trials[trial]);
            starts.push(LaneStart { seed: trial as u64, weights, mask, rule, state: states[trial].take() });
        }
        let mut trials: Vec<Trial> = work.trials.iter().zip(records).enumerate().map(begun).collect();
        for (trial, [kept, hash]) in share(groups, &alive, &words)? {
            trials[trial].parameters_kept = kept as u32;
            trials[trial].mask_hash = hash;
        }
        for trial in from.ended {
            let index = trial.index as usize;
            trials[index] = trial;
        }
        Ok(Race {
            lanes: backend.lanes(starts)?,
            work,
            backend,
            groups,
            trials,
            alive,
            mine,
            step: from.step,
            test_errors: from.test_errors,
            best_errors: None,
            examples: 0,
            progress: Vec::new(),
        })
    }

    fn train(&mut self, steps: Range<u32>) -> Result<()> {
        self.step = steps.end;
        self.examples +=
            steps.len() as u64 * u64::from(self.work.key.batch_size) * self.alive.iter().filter(|&&alive| alive).count() as u64;
        self.progress = self.backend.train(&mut self.lanes, steps, self.work.key.batch_size as usize)?;
        Ok(())
    }

    /// Evaluates all lanes, ends those that have ended, and says whether the cell is decided.
    fn evaluate(&mut self, conductor: &mut dyn Conductor) -> Result<bool> {
        let work = self.work;
        let limit = if work.full_evaluation { None } else { Some(work.threshold) };
        let sound: Vec<usize> = (0..self.mine.len()).filter(|&lane| self.progress[lane].broken.is_none()).collect();
        let mut evaluations = self.backend.evaluate(&self.lanes, &sound, Set::Validation, limit)?.into_iter();
        let report = |progress: &crate::backend::Progress| match progress.broken {
            Some(step) => [1 + u64::from(step), 0, 0, 0],
            None => evaluations.next().map_or([0; 4], |seen| [0, progress.loss.to_bits().into(), seen.errors.into(), seen.examples.into()]),
        };
        let words: Vec<[u64; 4]> = self.progress.iter().map(report).collect();

        let mut winner = None;
        let mut ended = Vec::new();
        for (trial, [broken, loss, errors, seen]) in share(self.groups, &self.alive, &words)? {
            let record = &mut self.trials[trial];
            let (errors, seen) = (errors as u32, seen as u32);
            if broken > 0 {
                record.status = Status::Infeasible;
                record.steps_run = (broken - 1) as u32;
                ended.push(trial);
                continue;
            }
            record.steps_run = self.step;
            record.curve.push(CurvePoint { step: self.step, loss: f32::from_bits(loss as u32), errors, examples: seen });
            let complete = errors <= work.threshold;
            if complete {
                record.status = Status::Complete;
                record.steps = Some(self.step);
                ended.push(trial);
                winner = winner.or(Some(trial));
            }
            if complete || work.full_evaluation {
                self.best_errors = Some(self.best_errors.map_or(errors, |best| best.min(errors)));
            }
        }
        // The first to reach the goal, lowest number first, decides the cell.
        if let (Some(winner), None) = (winner, self.test_errors) {
            self.test_errors = Some(self.test(winner)?);
        }
        for &trial in &ended {
            self.alive[trial] = false;
            conductor.ended(&self.trials[trial])?;
        }
        if work.race && winner.is_some() {
            return Ok(true);
        }
        let keep: Vec<bool> = self.mine.iter().map(|&trial| self.alive[trial]).collect();
        self.backend.retain(&mut self.lanes, &keep)?;
        self.mine.retain(|&trial| self.alive[trial]);
        Ok(false)
    }

    /// The winner's errors on the whole test set, known to all ranks.
    fn test(&mut self, winner: usize) -> Result<u32> {
        let which: Vec<usize> = (0..self.mine.len()).filter(|&lane| self.mine[lane] == winner).collect();
        let found = self.backend.evaluate(&self.lanes, &which, Set::Test, None)?;
        let mut alone = vec![false; self.trials.len()];
        alone[winner] = true;
        let words: Vec<[u64; 1]> = found.iter().map(|found| [found.errors.into()]).collect();
        Ok(share(self.groups, &alone, &words)?.first().map_or(0, |(_, [errors])| *errors as u32))
    }

    /// Divides seconds among the lanes alive.
    fn share_out(&mut self, seconds: f64) {
        let count = self.alive.iter().filter(|&&alive| alive).count().max(1) as f64;
        for (record, _) in self.trials.iter_mut().zip(&self.alive).filter(|(_, alive)| **alive) {
            record.seconds += seconds / count;
        }
    }

    /// What is needed to go on from here.
    fn state(&self, seconds: f64) -> Result<CellState> {
        let mut lanes = Vec::new();
        if self.groups.local().rank() == 0 {
            for (lane, &trial) in self.mine.iter().enumerate() {
                let record = &self.trials[trial];
                let state = self.backend.state(&self.lanes, lane)?;
                lanes.push(LaneRecord { trial: trial as u32, state, curve: record.curve.clone(), seconds: record.seconds });
            }
        }
        let ended = self.trials.iter().zip(&self.alive).filter(|(_, alive)| !**alive).map(|(record, _)| record.clone()).collect();
        Ok(CellState { step: self.step, lanes, ended, test_errors: self.test_errors, seconds })
    }

    fn finish(mut self, seconds: f64) -> Cell {
        let decided = self.work.race && self.trials.iter().any(|trial| trial.status == Status::Complete);
        for (record, _) in self.trials.iter_mut().zip(&self.alive).filter(|(_, alive)| **alive) {
            record.status = if decided { Status::Censored } else { Status::Incomplete };
        }
        Cell { key: self.work.key, trials: self.trials, test_errors: self.test_errors, seconds }
    }
}

/// The record of a trial that trains.
fn begun((index, (&metaparameters, (curve, seconds))): (usize, (&Metaparameters, (Vec<CurvePoint>, f64)))) -> Trial {
    Trial {
        index: index as u32,
        metaparameters,
        status: Status::Incomplete,
        steps: None,
        steps_run: curve.last().map_or(0, |point| point.step),
        parameters_kept: 0,
        mask_hash: 0,
        curve,
        seconds,
    }
}

/// Every living trial's words, by trial; `mine` has those of this group's living lanes, in order.
fn share<const N: usize>(groups: &Groups, alive: &[bool], mine: &[[u64; N]]) -> Result<Vec<(usize, [u64; N])>> {
    let mut words = mine.iter();
    let rows: Vec<[u64; N]> = (0..alive.len())
        .filter(|&trial| groups.trains(trial))
        .map(|trial| if alive[trial] { words.next().copied().unwrap_or([0; N]) } else { [0; N] })
        .collect();
    let all = groups.share(alive.len(), &rows)?;
    Ok(all.into_iter().enumerate().filter(|&(trial, _)| alive[trial]).collect())
}

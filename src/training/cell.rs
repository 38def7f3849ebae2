//! One cell: its trials as lanes, in lockstep, until each has ended or the cell is decided.

use std::ops::Range;
use std::time::Instant;

use super::evaluation::{Evaluation, decide};
use super::probe::Probe;
use super::state::{CellState, LaneRecord};
use super::{Groups, Masks};
use crate::backend::{Backend, Interrupt, LaneStart, LaneState, Progress, Set};
use crate::config::Workload;
use crate::optimizer::Rule;
use crate::pruning::Mask;
use crate::records::{Cell, CellKey, CurvePoint, Measurement, Status, Trial};
use crate::search::Metaparameters;
use crate::{Error, Result};

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
    /// Whether all trials see the training set in the order of trial 0; else each in the order of its number.
    pub shared_order: bool,
    /// Lanes that all groups together may train at once; trials beyond that wait for the next wave.
    pub lanes: usize,
    /// Whether some trials ended in an earlier run that had no others: like those of an earlier wave they may yet be cut short.
    pub extended: bool,
    /// Asked in the middle of what takes long; true once on a rank, [`Conductor::stop`] says so on all.
    pub interrupt: Interrupt,
    /// What is measured of the loss surface, where anything is. Trials that complete or spend their steps are measured at their end too, censored
    /// ones are not.
    pub probe: Option<Probe>,
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
    /// Seconds of the evaluation that was just made, if one was.
    pub evaluation_seconds: f64,
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
    /// Ask whether to stop in the middle of steps and evaluations, too, which costs a copy of the lanes.
    pub guard: bool,
}

/// Who a cell reports to, and who may interrupt it. Every rank has one; all must decide alike.
pub trait Conductor {
    /// A trial has ended before its cell.
    fn ended(&mut self, trial: &Trial) -> Result<()>;
    /// Some steps were taken.
    fn moment(&mut self, moment: &Moment) -> Result<Decision>;
    /// Whether to stop at once, in the middle of something long. Every rank must ask alike, and all get the same answer.
    fn stop(&mut self) -> bool;
    /// What is needed to go on from here: this rank's lanes, where it leads its group, else none; the rest is the same on all ranks.
    fn checkpoint(&mut self, state: CellState) -> Result<()>;
}

/// Measures a cell, whose trials `masks` has scored; every rank of the world must call it alike, and all get the same trials. `from` is
/// where it was left, and has the trials that had ended. None where the conductor stopped it.
///
/// Evaluations come every `evaluate_every` steps; steps after the last of them could not be evaluated and are not taken. When one lane reaches
/// the goal in a race, all lanes have been evaluated at that step: nothing later can lower the cell's steps-to-result, so the others end
/// there as censored. Where the lanes are too many for one wave, later waves race against the best of the earlier ones, and all records end up
/// as if there had been one wave.
pub fn measure<B: Backend>(
    work: &CellWork,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    from: CellState,
    conductor: &mut dyn Conductor,
) -> Result<Option<Cell>> {
    let mut state = from;
    loop {
        let wave = next_wave(work, &state);
        if wave.is_empty() {
            return Ok(Some(finish(work, state)));
        }
        let Some(after) = run_wave(work, backend, groups, masks, state, &wave, conductor)? else { return Ok(None) };
        state = after;
        if !next_wave(work, &state).is_empty() {
            let lead = groups.local().rank() == 0;
            conductor.checkpoint(if lead { state.clone() } else { CellState { lanes: Vec::new(), ..state.clone() } })?;
        }
    }
}

/// The trials to train next: those that were under way, or else the first that have not begun.
fn next_wave(work: &CellWork, state: &CellState) -> Vec<usize> {
    let mut begun: Vec<usize> = state.lanes.iter().map(|lane| lane.trial as usize).collect();
    begun.sort_unstable();
    if !begun.is_empty() {
        return begun;
    }
    let ended = |trial: usize| state.ended.iter().any(|record| record.index as usize == trial);
    (0..work.trials.len()).filter(|&trial| !ended(trial)).take(work.lanes.max(1)).collect()
}

/// Trains the trials of a wave until each has ended or the wave is decided; the state afterwards has no lanes.
fn run_wave<B: Backend>(
    work: &CellWork,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    from: CellState,
    wave: &[usize],
    conductor: &mut dyn Conductor,
) -> Result<Option<CellState>> {
    let clock = Instant::now();
    let before = from.seconds;
    // The records of an earlier wave may yet be cut short by a later one, so a race of several waves journals none of them before its end.
    let early = !work.extended && (!work.race || work.trials.len() <= work.lanes);
    let mut race = Race::begin(work, backend, groups, masks, from, wave)?;
    let every = work.workload.evaluate_every;
    let budget = work.workload.max_steps / every * every;
    let last = race.best.filter(|_| work.race).map_or(budget, |best| best.min(budget));
    let (mut seconds, mut stretch, mut evaluation_seconds) = (0.0, 1, 0.0);
    while race.step < last && race.alive.contains(&true) {
        let due = (race.step / every + 1) * every;
        let end = due.min(race.step.saturating_add(stretch));
        let steps = race.step..work.probe.map_or(end, |probe| probe.pause(race.step, end));
        let taken = steps.len() as f64;
        let evaluated = steps.end == due;
        // What takes long may be stopped in the middle: the study then goes on from before the step.
        let measures = work.probe.is_some_and(|probe| evaluated || probe.is_due(steps.start));
        let saved = if measures || race.guard { Some(race.state(before + seconds)?) } else { None };
        let began = clock.elapsed().as_secs_f64();
        let mut verdict = race.train(steps, conductor)?;
        let trained = clock.elapsed().as_secs_f64();
        if evaluated && verdict == Verdict::Open {
            verdict = race.evaluate(conductor, early)?;
            evaluation_seconds = clock.elapsed().as_secs_f64() - trained;
        }
        if let (Verdict::Stopped, Some(saved)) = (verdict, saved) {
            conductor.checkpoint(saved)?;
            return Ok(None);
        }
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
            evaluation_seconds,
        })?;
        stretch = decision.steps.max(1);
        race.guard(decision.guard);
        if verdict == Verdict::Decided {
            break;
        }
        if decision.checkpoint || decision.stop {
            conductor.checkpoint(race.state(before + seconds)?)?;
        }
        if decision.stop {
            return Ok(None);
        }
    }
    // Who has spent its budget is incomplete, also where another trial reached the goal at that very step.
    let spent = race.step >= budget;
    if spent && !race.measure(&race.alive.clone(), None, conductor)? {
        conductor.checkpoint(race.state(before + clock.elapsed().as_secs_f64())?)?;
        return Ok(None);
    }
    for trial in 0..race.trials.len() {
        if std::mem::take(&mut race.alive[trial]) {
            race.trials[trial].status = if spent { Status::Incomplete } else { Status::Censored };
            race.ended[trial] = true;
        }
    }
    let seconds = before + clock.elapsed().as_secs_f64();
    Ok(Some(CellState { step: 0, ..race.state(seconds)? }))
}

/// The cell, once all trials have ended. In a race, what a trial did after the cell's steps-to-result is no part of it: an earlier wave did
/// not know of it yet.
fn finish(work: &CellWork, state: CellState) -> Cell {
    let CellState { ended: mut trials, test_errors, seconds, .. } = state;
    trials.sort_by_key(|trial| trial.index);
    let best = trials.iter().filter_map(|trial| trial.steps).min();
    if let (true, Some(best)) = (work.race, best) {
        for trial in
            trials.iter_mut().filter(|trial| trial.steps_run > best || trial.status == Status::Infeasible && trial.steps_run >= best)
        {
            trial.steps_run = best;
            trial.steps = None;
            trial.status = Status::Censored;
            trial.curve.retain(|point| point.step <= best);
            trial.measurements.retain(|measurement| measurement.step < best);
        }
    }
    Cell { key: work.key, trials, test_errors, seconds }
}

/// What a cell's steps or evaluations came to.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    /// It goes on.
    Open,
    /// A trial has reached the goal, and it is a race.
    Decided,
    /// The conductor stopped it in the middle of something.
    Stopped,
}

/// A cell under way.
struct Race<'a, 'g, B: Backend> {
    work: &'a CellWork<'a>,
    backend: &'a mut B,
    groups: &'a Groups<'g>,
    /// Every trial's record so far.
    trials: Vec<Trial>,
    /// Which trials train, and which have ended; the others wait for a later wave.
    alive: Vec<bool>,
    ended: Vec<bool>,
    /// Fewest steps in which a trial has reached the goal.
    best: Option<u32>,
    /// This group's living lanes, and which trial each is.
    lanes: B::Lanes,
    mine: Vec<usize>,
    /// Masks of this group's measured trials, by trial.
    masks: Vec<Option<Mask>>,
    /// Last margins of this group's trials, by trial.
    margins: Vec<Vec<f32>>,
    step: u32,
    test_errors: Option<u32>,
    best_errors: Option<u32>,
    examples: u64,
    /// What the last stretch of steps did to each lane.
    progress: Vec<Progress>,
    /// [`Decision::guard`].
    guard: bool,
}

impl<'a, 'g, B: Backend> Race<'a, 'g, B> {
    /// The trials' records as they were left, and this group's lanes of the wave.
    fn begin(
        work: &'a CellWork<'a>,
        backend: &'a mut B,
        groups: &'a Groups<'g>,
        masks: &Masks,
        from: CellState,
        wave: &[usize],
    ) -> Result<Self> {
        let (mut alive, mut ended) = (vec![false; work.trials.len()], vec![false; work.trials.len()]);
        wave.iter().for_each(|&trial| alive[trial] = true);
        from.ended.iter().for_each(|trial| ended[trial.index as usize] = true);
        let best = from.ended.iter().filter_map(|trial| trial.steps).min();
        let mut states: Vec<Option<LaneState>> = vec![None; work.trials.len()];
        let mut records: Vec<Past> = vec![Default::default(); work.trials.len()];
        let mut last: Vec<Vec<f32>> = vec![Vec::new(); work.trials.len()];
        for LaneRecord { trial, state, curve, measurements, margins, seconds } in from.lanes {
            states[trial as usize] = Some(state);
            last[trial as usize] = margins;
            records[trial as usize] = (curve, measurements, seconds);
        }
        let mut kept: Vec<Option<Mask>> = vec![None; work.trials.len()];
        let mine: Vec<usize> = (0..alive.len()).filter(|&trial| alive[trial] && groups.trains(trial)).collect();
        let (mut starts, mut words) = (Vec::new(), Vec::new());
        for &trial in &mine {
            let (weights, mask) = masks.start(trial as u64, work.key.sparsity);
            words.push([mask.kept() as u64, mask.hash(), masks.dead_layers(&mask) as u64]);
            kept[trial] = work.probe.filter(|probe| probe.measures(trial)).map(|_| mask.clone());
            let rule = Rule::new(work.workload, &work.trials[trial]);
            let seed = if work.shared_order { 0 } else { trial as u64 };
            starts.push(LaneStart { seed, weights, mask, rule, state: states[trial].take() });
        }
        let mut trials: Vec<Trial> = work.trials.iter().zip(records).enumerate().map(begun).collect();
        for (trial, [kept, hash, dead]) in share(groups, &alive, &words)? {
            trials[trial].parameters_kept = kept as u32;
            trials[trial].mask_hash = hash;
            trials[trial].dead_layers = dead as u32;
        }
        for trial in from.ended {
            let index = trial.index as usize;
            trials[index] = trial;
        }
        let lanes = backend.lanes(starts)?;
        // Nobody knows yet how long a step takes.
        backend.listen(Some(work.interrupt));
        Ok(Race {
            lanes,
            work,
            backend,
            groups,
            trials,
            alive,
            ended,
            best,
            mine,
            masks: kept,
            margins: last,
            step: from.step,
            test_errors: from.test_errors,
            best_errors: None,
            examples: 0,
            progress: Vec::new(),
            guard: true,
        })
    }

    fn guard(&mut self, guard: bool) {
        self.guard = guard;
        self.backend.listen(guard.then_some(self.work.interrupt));
    }

    /// What came of something that may have been interrupted on some ranks; none where the study is to stop, on all of them.
    fn unless_stopped<T>(&self, result: Result<T>, conductor: &mut dyn Conductor) -> Result<Option<T>> {
        match result {
            Ok(_) | Err(Error::Interrupted) if self.guard && conductor.stop() => Ok(None),
            other => other.map(Some),
        }
    }

    fn train(&mut self, steps: Range<u32>, conductor: &mut dyn Conductor) -> Result<Verdict> {
        let due = self.work.probe.is_some_and(|probe| probe.is_due(steps.start));
        let before = if due { Some(self.weights()?) } else { None };
        self.examples +=
            steps.len() as u64 * u64::from(self.work.key.batch_size) * self.alive.iter().filter(|&&alive| alive).count() as u64;
        let trained = self.backend.train(&mut self.lanes, steps.clone(), self.work.key.batch_size as usize);
        let Some(progress) = self.unless_stopped(trained, conductor)? else { return Ok(Verdict::Stopped) };
        self.progress = progress;
        if let Some(before) = before
            && !self.measure(&self.alive.clone(), Some(before), conductor)?
        {
            return Ok(Verdict::Stopped);
        }
        self.step = steps.end;
        Ok(Verdict::Open)
    }

    /// The weights of this group's measured lanes; none of a lane that is not measured, or is broken.
    fn weights(&self) -> Result<Vec<Option<Vec<f32>>>> {
        let weights = |(lane, &trial): (usize, &usize)| match self.masks[trial] {
            Some(_) => self.backend.state(&self.lanes, lane).map(|state| state.broken.is_none().then_some(state.weights)),
            None => Ok(None),
        };
        self.mine.iter().enumerate().map(weights).collect()
    }

    /// Measures the living trials flagged: where they are, or, with their weights `before` the step just taken, where they were. Every rank must
    /// call it. False where the conductor stopped it: nothing is recorded then.
    fn measure(&mut self, flagged: &[bool], before: Option<Vec<Option<Vec<f32>>>>, conductor: &mut dyn Conductor) -> Result<bool> {
        let Some(probe) = self.work.probe else { return Ok(true) };
        let measured = flagged.iter().enumerate().filter(|&(trial, &flag)| flag && probe.measures(trial)).map(|(trial, _)| trial);
        let most = self.groups.most_of_one(measured);
        if most == 0 {
            return Ok(true);
        }
        // All ranks ask as often as those of the group that measures most, and once more: a pass may be interrupted after its last question.
        let mut questions = Questions { left: most * probe.questions() + 1, conductor };
        self.backend.listen(Some(self.work.interrupt));
        let now = self.weights()?;
        let followed = before.is_some();
        let mut before = before.unwrap_or_default().into_iter();
        let mut words = Vec::new();
        for (&trial, now) in self.mine.iter().zip(now) {
            let before = before.next().flatten();
            if !flagged[trial] {
                continue;
            }
            let (here, next) = if followed { (before, now) } else { (now, None) };
            let measured = match (&self.masks[trial], &here) {
                (Some(mask), Some(here)) if next.is_some() == followed => {
                    match probe.measure(self.backend, self.step, here, next.as_deref(), mask, &mut || questions.ask()) {
                        Ok(None) => return Ok(false),
                        // The others hear of it when they next ask.
                        Err(Error::Interrupted) => break,
                        measured => measured?,
                    }
                }
                _ => None,
            };
            words.push(measured.map_or([0; 5], |measurement| measurement.words()));
        }
        while questions.left > 0 {
            if questions.ask() {
                return Ok(false);
            }
        }
        self.guard(self.guard);
        for (trial, words) in share(self.groups, flagged, &words)? {
            self.trials[trial].measurements.extend(Measurement::from_words(words));
        }
        Ok(true)
    }

    /// Evaluates all lanes and ends those that have ended; where `early`, the conductor hears of them.
    fn evaluate(&mut self, conductor: &mut dyn Conductor, early: bool) -> Result<Verdict> {
        let work = self.work;
        let sound: Vec<usize> = (0..self.mine.len()).filter(|&lane| self.progress[lane].broken.is_none()).collect();
        let evaluations = self.errors(&sound);
        let Some(evaluations) = self.unless_stopped(evaluations, conductor)? else { return Ok(Verdict::Stopped) };
        let mut evaluations = evaluations.into_iter();
        let report = |progress: &Progress| match progress.broken {
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
        // The first to reach the goal, lowest number first, decides the cell, unless an earlier wave did.
        if let Some(winner) = winner.filter(|_| self.best.is_none_or(|best| self.step < best) || self.test_errors.is_none()) {
            let tested = self.test(winner);
            let Some(found) = self.unless_stopped(tested, conductor)? else { return Ok(Verdict::Stopped) };
            self.best = Some(self.step);
            self.test_errors = Some(self.everyone(winner, &found)?);
        }
        let mut complete = vec![false; self.trials.len()];
        ended.iter().for_each(|&trial| complete[trial] = self.trials[trial].status == Status::Complete);
        if !self.measure(&complete, None, conductor)? {
            return Ok(Verdict::Stopped);
        }
        for &trial in &ended {
            (self.alive[trial], self.ended[trial]) = (false, true);
            if early {
                conductor.ended(&self.trials[trial])?;
            }
        }
        if work.race && winner.is_some() {
            return Ok(Verdict::Decided);
        }
        let keep: Vec<bool> = self.mine.iter().map(|&trial| self.alive[trial]).collect();
        self.backend.retain(&mut self.lanes, &keep)?;
        self.mine.retain(|&trial| self.alive[trial]);
        Ok(Verdict::Open)
    }

    /// Evaluates those lanes, to the end or until they are decided.
    fn errors(&mut self, lanes: &[usize]) -> Result<Vec<Evaluation>> {
        if self.work.full_evaluation {
            let examples = self.backend.examples(Set::Validation) as u32;
            let errors = self.backend.evaluate(&self.lanes, lanes, Set::Validation)?;
            return Ok(errors.into_iter().map(|errors| Evaluation { errors, examples }).collect());
        }
        let mut margins: Vec<Vec<f32>> = lanes.iter().map(|&lane| std::mem::take(&mut self.margins[self.mine[lane]])).collect();
        let outcome = decide(self.backend, &self.lanes, lanes, self.work.threshold, &mut margins);
        lanes.iter().zip(margins).for_each(|(&lane, margins)| self.margins[self.mine[lane]] = margins);
        outcome
    }

    /// The winner's errors on the whole test set, on the ranks that train it.
    fn test(&mut self, winner: usize) -> Result<Vec<u32>> {
        let which: Vec<usize> = (0..self.mine.len()).filter(|&lane| self.mine[lane] == winner).collect();
        self.backend.evaluate(&self.lanes, &which, Set::Test)
    }

    /// What the ranks that train `winner` found, on all ranks.
    fn everyone(&self, winner: usize, found: &[u32]) -> Result<u32> {
        let mut alone = vec![false; self.trials.len()];
        alone[winner] = true;
        let words: Vec<[u64; 1]> = found.iter().map(|&errors| [errors.into()]).collect();
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
            for (lane, &trial) in self.mine.iter().enumerate().filter(|(_, trial)| self.alive[**trial]) {
                let record = &self.trials[trial];
                let state = self.backend.state(&self.lanes, lane)?;
                let (curve, measurements) = (record.curve.clone(), record.measurements.clone());
                let margins = self.margins[trial].clone();
                lanes.push(LaneRecord { trial: trial as u32, state, curve, measurements, margins, seconds: record.seconds });
            }
        }
        let ended = self.trials.iter().zip(&self.ended).filter(|(_, ended)| **ended).map(|(record, _)| record.clone()).collect();
        Ok(CellState { step: self.step, lanes, ended, test_errors: self.test_errors, seconds })
    }
}

/// How often all ranks still ask the conductor whether to stop.
struct Questions<'a> {
    left: usize,
    conductor: &'a mut dyn Conductor,
}

impl Questions<'_> {
    fn ask(&mut self) -> bool {
        self.left -= 1;
        self.conductor.stop()
    }
}

/// What a trial under way has recorded: its curve, its measurements and its seconds.
type Past = (Vec<CurvePoint>, Vec<Measurement>, f64);

/// The record of a trial that trains.
fn begun((index, (&metaparameters, (curve, measurements, seconds))): (usize, (&Metaparameters, Past))) -> Trial {
    Trial {
        index: index as u32,
        metaparameters,
        status: Status::Incomplete,
        steps: None,
        steps_run: curve.last().map_or(0, |point| point.step),
        parameters_kept: 0,
        mask_hash: 0,
        dead_layers: 0,
        curve,
        measurements,
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

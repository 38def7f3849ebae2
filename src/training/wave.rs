//! A wave: trials of a cell that train at the same time, a lane each, until each has ended or the race between them has.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use super::conductor::{Conductor, Moment};
use super::facts::{MaskFacts, Outcome};
use super::groups::Groups;
use super::lanes::{Lane, Lanes};
use super::masks::Masks;
use super::smoothness::{self, Site};
use super::state::{CellState, LaneRecord};
use super::trials::Trials;
use super::votes::Votes;
use super::work::CellWork;
use crate::backend::{Backend, Progress};
use crate::records::{Status, Trial};
use crate::{Error, Result};

/// A wave under way. All ranks know the records of all its trials; a rank holds the lanes of its group.
pub struct Wave<'a, 'g, B: Backend> {
    work: &'a CellWork<'a>,
    groups: &'a Groups<'g>,
    conductor: &'a mut dyn Conductor,
    lanes: Lanes<'a, B>,
    trials: Trials,
    /// The test errors of the cell's best trial, once there is one.
    test_errors: Option<u32>,
    /// Whether what takes long may be stopped in the middle.
    interruptible: bool,
    /// Moment that the conductor is told next.
    moment: Moment,
    began: Instant,
    /// Seconds of the cell before the wave.
    earlier_seconds: f64,
}

/// Steps that are taken in one go.
struct Stretch {
    steps: Range<u32>,
    /// Whether an evaluation follows.
    is_evaluated: bool,
    /// Whether smoothness is measured, at its first step or after the evaluation.
    is_measured: bool,
}

impl<'a, 'g, B: Backend> Wave<'a, 'g, B> {
    /// The wave of those trials, in ascending order, where `from` left them.
    pub fn begin(
        work: &'a CellWork<'a>,
        backend: &'a mut B,
        groups: &'a Groups<'g>,
        masks: &Masks,
        from: CellState,
        wave: &[usize],
        conductor: &'a mut dyn Conductor,
    ) -> Result<Self> {
        let began = (work.now)();
        let mut left: BTreeMap<usize, LaneRecord> = from.lanes.into_iter().map(|lane| (lane.trial.index as usize, lane)).collect();
        let mut training = BTreeMap::new();
        let (mut lanes, mut starts, mut facts) = (Vec::new(), Vec::new(), Vec::new());
        for &trial in wave {
            let new = || Trial::new(trial as u32, work.run(trial).metaparameters);
            training.insert(trial, left.get(&trial).map_or_else(new, |left| left.trial.clone()));
            if groups.trains(trial) {
                let (lane, start) = Lane::begin(work, masks, trial, left.remove(&trial));
                facts.push(masks.facts(&start.mask));
                lanes.push(lane);
                starts.push(start);
            }
        }
        for (record, MaskFacts { kept, hash, dead_layers }) in training.values_mut().zip(groups.share(wave, &facts)?) {
            (record.parameters_kept, record.mask_hash, record.dead_layers) = (kept, hash, dead_layers);
        }
        let ended = from.ended.into_iter().map(|trial| (trial.index as usize, trial)).collect();
        let mut wave = Wave {
            work,
            groups,
            conductor,
            lanes: Lanes::new(backend, lanes, starts)?,
            trials: Trials { training, ended },
            test_errors: from.test_errors,
            interruptible: true,
            moment: Moment { step: from.step, ..Moment::default() },
            began,
            earlier_seconds: from.seconds,
        };
        // Nobody knows yet how long a step takes.
        wave.allow_interrupts(true);
        Ok(wave)
    }

    /// Trains until each trial has ended or the race has; the state afterwards has no lanes. None where the conductor stopped it: it has the
    /// state to go on from.
    pub fn run(mut self) -> Result<Option<CellState>> {
        let mut longest = 1;
        while self.moment.step < self.last_step() && !self.trials.training.is_empty() {
            let stretch = self.stretch(longest);
            // A stretch that takes long may be stopped in the middle: the study then goes on from before it.
            let before = if self.interruptible || stretch.is_measured { Some(self.state()?) } else { None };
            let advanced = self.advance(&stretch);
            if let (Err(Error::Interrupted), Some(before)) = (&advanced, before) {
                self.conductor.checkpoint(before)?;
                return Ok(None);
            }
            advanced?;
            self.share_out_seconds();
            self.moment.alive = self.trials.training.len();
            self.moment.ended = self.trials.ended.len();
            self.moment.last_step = self.last_step();
            let decision = self.conductor.moment(&self.moment)?;
            if self.moment.step >= self.last_step() {
                break;
            }
            if decision.checkpoint || decision.stop {
                self.save()?;
            }
            if decision.stop {
                return Ok(None);
            }
            longest = decision.steps.max(1);
            self.allow_interrupts(decision.interruptible);
        }
        self.end()
    }

    /// The step at which the wave ends at the latest. A trial of an earlier wave that reached the goal sets it too.
    fn last_step(&self) -> u32 {
        self.work.workload.last_step(self.work.race, self.trials.steps_to_result())
    }

    /// The next steps, `longest` at most: up to the next evaluation, or to a step that is measured, which is taken alone.
    fn stretch(&self, longest: u32) -> Stretch {
        let (start, every) = (self.moment.step, self.work.workload.evaluate_every);
        let evaluation = (start / every + 1) * every;
        let end = evaluation.min(start.saturating_add(longest));
        let end = self.work.probe.map_or(end, |probe| probe.pause(start, end));
        let is_evaluated = end == evaluation;
        let is_measured = self.work.probe.is_some_and(|probe| is_evaluated || probe.is_due(start));
        Stretch { steps: start..end, is_evaluated, is_measured }
    }

    /// Takes a stretch of steps and makes the evaluation that follows, if one does.
    fn advance(&mut self, stretch: &Stretch) -> Result<()> {
        let began = (self.work.now)();
        let progress = self.train(stretch.steps.clone())?;
        self.moment.step_seconds = self.seconds_since(began) / stretch.steps.len() as f64;
        self.moment.evaluated = stretch.is_evaluated;
        if stretch.is_evaluated {
            let began = (self.work.now)();
            self.evaluate(&progress)?;
            self.moment.evaluation_seconds = self.seconds_since(began);
        }
        Ok(())
    }

    /// Takes steps, and measures the trials at the first one, if that is due.
    fn train(&mut self, steps: Range<u32>) -> Result<Vec<Progress>> {
        let is_due = self.work.probe.is_some_and(|probe| probe.is_due(steps.start));
        let measured = if is_due { self.work.measured(&self.trials.numbers()) } else { Vec::new() };
        let before = self.lanes.sites(&measured, steps.start)?;
        let batch = self.work.key.batch_size;
        self.moment.examples += steps.len() as u64 * u64::from(batch) * self.trials.training.len() as u64;
        let trained = self.lanes.train(steps.clone(), batch as usize);
        let progress = self.unless_stopped(trained)?;
        let after = self.lanes.sites(&measured, steps.end)?;
        self.measure(&measured, &Site::steps(before, after))?;
        self.moment.step = steps.end;
        Ok(progress)
    }

    /// Evaluates all lanes, whose last steps went as `progress` says, and ends the trials that have reached the goal or broken.
    fn evaluate(&mut self, progress: &[Progress]) -> Result<()> {
        let CellWork { threshold, full_evaluation, goes_on, .. } = *self.work;
        let evaluated = self.lanes.evaluate(self.work, progress);
        let mine = self.unless_stopped(evaluated)?;
        let outcomes = self.groups.share(&self.trials.numbers(), &mine)?;
        self.trials.record_outcomes(self.moment.step, &outcomes, threshold);
        let of_whole_set = outcomes.iter().filter_map(|outcome| match *outcome {
            Outcome::Evaluated { errors, .. } if full_evaluation || errors <= threshold => Some(errors),
            _ => None,
        });
        self.moment.best_errors = self.moment.best_errors.into_iter().chain(of_whole_set).min();
        let evaluated = || {
            outcomes.iter().filter_map(|outcome| match *outcome {
                Outcome::Evaluated { errors, examples, loss } => Some((errors, examples, loss)),
                Outcome::Broken { .. } => None,
            })
        };
        self.moment.least_errors = self.moment.least_errors.into_iter().chain(evaluated().map(|(errors, ..)| errors)).min();
        // An evaluation sees the hardest examples first, so of the lanes that miss the goal the one that saw the most examples is the nearest to it.
        self.moment.loss = evaluated().min_by_key(|&(errors, examples, _)| (Reverse(examples), errors)).map(|(.., loss)| loss);
        let complete = self.trials.complete();
        // The first to reach the goal, lowest number first, is the cell's best trial, unless one that has ended is better.
        if let Some(&first) = complete.first().filter(|_| self.work.tested)
            && (self.test_errors.is_none() || self.trials.is_better(self.moment.step, first))
        {
            let tested = self.lanes.test(first);
            let mine = self.unless_stopped(tested)?;
            self.test_errors = self.groups.share(&[first], &mine)?.first().copied();
        }
        self.measure_ends(&self.work.measured(&complete))?;
        let begun = self.trials.training.len() + self.trials.ended.len();
        // Trials that end here have trained until now.
        self.share_out_seconds();
        let ended = self.trials.take_ended(goes_on);
        if self.work.ends_are_final(begun) {
            ended.values().try_for_each(|record| self.conductor.ended(record))?;
        }
        self.trials.ended.extend(ended);
        if self.moment.step < self.last_step() {
            self.lanes.retain(&self.trials.training)?;
        }
        Ok(())
    }

    /// Ends the trials that still train. Those that have spent their steps are incomplete, also where another trial reached the goal at that very
    /// step; the others are censored.
    fn end(mut self) -> Result<Option<CellState>> {
        let have_spent = self.moment.step >= self.work.workload.budget();
        if have_spent {
            let end = self.measure_ends(&self.work.measured(&self.trials.numbers()));
            if let Err(Error::Interrupted) = end {
                self.save()?;
                return Ok(None);
            }
            end?;
        }
        let (test_errors, seconds) = (self.test_errors, self.seconds());
        let ended = self.trials.end(if have_spent { Status::Incomplete } else { Status::Censored }, self.moment.step);
        Ok(Some(CellState { ended, test_errors, seconds, ..CellState::default() }))
    }

    /// Measures trials at their end, which no step follows.
    fn measure_ends(&mut self, trials: &[usize]) -> Result<()> {
        let sites = self.lanes.sites(trials, self.moment.step)?;
        self.measure(trials, &sites)
    }

    /// Measures trials, of which this rank's group has the `sites`; a trial without a site has broken. Nothing is recorded where it is interrupted.
    fn measure(&mut self, trials: &[usize], sites: &[Site]) -> Result<()> {
        let Some(probe) = self.work.probe.filter(|_| !trials.is_empty()) else { return Ok(()) };
        // A measurement takes long, however short the steps are.
        self.lanes.backend().listen(Some(self.work.interrupt));
        let measurements = smoothness::measure(&probe, self.lanes.backend(), self.groups, trials, sites, self.conductor)?;
        self.allow_interrupts(self.interruptible);
        self.trials.record_measurements(trials, measurements);
        Ok(())
    }

    /// Lets what takes long be stopped in the middle, or not.
    fn allow_interrupts(&mut self, interruptible: bool) {
        self.interruptible = interruptible;
        self.lanes.backend().listen(interruptible.then_some(self.work.interrupt));
    }

    /// The result of work that may have been interrupted on some ranks, agreed on by all.
    ///
    /// # Errors
    /// [`Error::Interrupted`] where the study is to stop, on all ranks; the work's own.
    fn unless_stopped<T>(&mut self, work: Result<T>) -> Result<T> {
        Votes::new(usize::from(self.interruptible), self.conductor).cast_rest(work)
    }

    /// Divides the seconds since the last time among the trials that train.
    fn share_out_seconds(&mut self) {
        let seconds = self.seconds_since(self.began);
        self.trials.share_out(seconds - self.moment.seconds);
        self.moment.seconds = seconds;
    }

    /// Seconds of the cell so far.
    fn seconds(&self) -> f64 {
        self.earlier_seconds + self.seconds_since(self.began)
    }

    fn seconds_since(&self, moment: Instant) -> f64 {
        (self.work.now)().saturating_duration_since(moment).as_secs_f64()
    }

    /// The cell's state to go on from, as [`Conductor::checkpoint`] takes it.
    fn state(&self) -> Result<CellState> {
        let leads = self.groups.local().rank() == 0;
        Ok(CellState {
            step: self.moment.step,
            lanes: if leads { self.lanes.states(&self.trials.training)? } else { Vec::new() },
            ended: self.trials.ended.values().cloned().collect(),
            test_errors: self.test_errors,
            seconds: self.seconds(),
        })
    }

    /// Hands the conductor what is needed to go on from here.
    fn save(&mut self) -> Result<()> {
        let state = self.state()?;
        self.conductor.checkpoint(state)
    }
}

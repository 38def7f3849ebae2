//! One cell: its trials as lanes, in lockstep, until each has ended or the cell is decided.

use std::ops::Range;

use super::{Groups, Masks};
use crate::Result;
use crate::backend::{Backend, LaneStart, Set};
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

/// Where a cell is, after an evaluation of all its lanes; the same on every rank.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Steps taken.
    pub step: u32,
    /// Lanes still training.
    pub alive: usize,
    /// Fewest errors of a full evaluation so far.
    pub best_errors: Option<u32>,
    /// Training examples gone through by all lanes so far.
    pub examples: u64,
}

/// What to do after a [`Moment`]; all ranks must decide alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Continue,
}

/// Measures a cell, whose trials `masks` has scored. Every rank of the world must call it alike; all get the same trials. Seconds are left at zero.
///
/// Evaluations come every `evaluate_every` steps; steps after the last of them could not be evaluated and are not taken. When one lane reaches the
/// goal in a race, all lanes have been evaluated at that step: nothing later can lower the cell's steps-to-result, so the others end there
/// as censored.
pub fn measure<B: Backend>(
    work: &CellWork,
    backend: &mut B,
    groups: &Groups,
    masks: &Masks,
    observe: &mut dyn FnMut(&Moment) -> Decision,
) -> Result<Cell> {
    let (mut trials, mut lanes) = begin(work, backend, groups, masks)?;
    // Which trial each of this group's lanes is.
    let mut mine: Vec<usize> = (0..trials.len()).filter(|&trial| groups.trains(trial)).collect();
    let mut alive: Vec<bool> = vec![true; trials.len()];
    let limit = if work.full_evaluation { None } else { Some(work.threshold) };
    let (mut test_errors, mut best_errors, mut examples) = (None, None, 0);
    for steps in intervals(work.workload) {
        let progress = backend.train(&mut lanes, steps.clone(), work.key.batch_size as usize)?;
        let sound: Vec<usize> = (0..mine.len()).filter(|&lane| progress[lane].broken.is_none()).collect();
        let evaluations = backend.evaluate(&lanes, &sound, Set::Validation, limit)?;
        let mut counts = evaluations.iter();
        let words: Vec<[u64; 4]> = progress
            .iter()
            .map(|progress| match (progress.broken, progress.broken.map_or_else(|| counts.next(), |_| None)) {
                (None, Some(seen)) => [0, progress.loss.to_bits().into(), seen.errors.into(), seen.examples.into()],
                (broken, _) => [1 + u64::from(broken.unwrap_or(steps.end)), 0, 0, 0],
            })
            .collect();
        let reports = share(groups, &alive, &words)?;

        let mut decided = None;
        for (trial, [broken, loss, errors, seen]) in reports {
            let record = &mut trials[trial];
            let (errors, seen) = (errors as u32, seen as u32);
            let taken = if broken > 0 { (broken - 1) as u32 } else { steps.end };
            examples += u64::from(taken - steps.start) * u64::from(work.key.batch_size);
            record.steps_run = taken;
            if broken > 0 {
                record.status = Status::Infeasible;
                alive[trial] = false;
                continue;
            }
            record.curve.push(CurvePoint { step: steps.end, loss: f32::from_bits(loss as u32), errors, examples: seen });
            if errors <= work.threshold {
                record.status = Status::Complete;
                record.steps = Some(steps.end);
                alive[trial] = false;
                decided = decided.or(Some(trial));
            }
            if errors <= work.threshold || work.full_evaluation {
                best_errors = Some(best_errors.map_or(errors, |best: u32| best.min(errors)));
            }
        }
        if let (Some(winner), None) = (decided, test_errors) {
            test_errors = Some(test(winner, backend, groups, &lanes, &mine, trials.len())?);
        }
        let over = alive.iter().all(|&alive| !alive) || (work.race && decided.is_some());
        if !over {
            let keep: Vec<bool> = mine.iter().map(|&trial| alive[trial]).collect();
            backend.retain(&mut lanes, &keep)?;
            mine.retain(|&trial| alive[trial]);
        }
        let count = alive.iter().filter(|&&alive| alive).count();
        let Decision::Continue = observe(&Moment { step: steps.end, alive: count, best_errors, examples });
        if over {
            for (trial, record) in trials.iter_mut().enumerate() {
                if alive[trial] {
                    record.status = Status::Censored;
                }
            }
            break;
        }
    }
    Ok(Cell { key: work.key, trials, test_errors, seconds: 0.0 })
}

/// The steps between evaluations.
fn intervals(workload: &Workload) -> impl Iterator<Item = Range<u32>> {
    let every = workload.evaluate_every;
    (0..workload.max_steps / every).map(move |index| index * every..(index + 1) * every)
}

/// The trials' records before their first step, and this group's lanes.
fn begin<B: Backend>(work: &CellWork, backend: &mut B, groups: &Groups, masks: &Masks) -> Result<(Vec<Trial>, B::Lanes)> {
    let (mut starts, mut words) = (Vec::new(), Vec::new());
    for (trial, metaparameters) in work.trials.iter().enumerate().filter(|&(trial, _)| groups.trains(trial)) {
        let (weights, mask) = masks.start(trial as u64, work.key.sparsity);
        words.push([mask.kept() as u64, mask.hash()]);
        starts.push(LaneStart { seed: trial as u64, weights, mask, rule: Rule::new(work.workload, metaparameters) });
    }
    let shared = share(groups, &vec![true; work.trials.len()], &words)?;
    let record = |(trial, [kept, hash]): (usize, [u64; 2])| Trial {
        index: trial as u32,
        metaparameters: work.trials[trial],
        status: Status::Incomplete,
        steps: None,
        steps_run: 0,
        parameters_kept: kept as u32,
        mask_hash: hash,
        curve: Vec::new(),
        seconds: 0.0,
    };
    Ok((shared.into_iter().map(record).collect(), backend.lanes(starts)?))
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

/// The winner's errors on the whole test set, known to all ranks.
fn test<B: Backend>(winner: usize, backend: &mut B, groups: &Groups, lanes: &B::Lanes, mine: &[usize], trials: usize) -> Result<u32> {
    let which: Vec<usize> = (0..mine.len()).filter(|&lane| mine[lane] == winner).collect();
    let found = backend.evaluate(lanes, &which, Set::Test, None)?;
    let rows: Vec<[u64; 1]> = (0..trials)
        .filter(|&trial| groups.trains(trial))
        .map(|trial| [if trial == winner { found.first().map_or(0, |found| found.errors.into()) } else { 0 }])
        .collect();
    Ok(groups.share(trials, &rows)?[winner][0] as u32)
}

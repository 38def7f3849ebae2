//! The lanes of this rank's group, one for each trial of a wave that it trains.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::evaluation::{Evaluation, decide};
use super::facts::Outcome;
use super::masks::Masks;
use super::smoothness::Site;
use super::state::LaneRecord;
use super::work::{CellWork, Run};
use crate::Result;
use crate::backend::{Backend, EvaluationSet, LaneStart, LaneState, Progress};
use crate::optimizer::Rule;
use crate::pruning::Mask;
use crate::records::Trial;

/// A lane's trial, mask and margins, beside the state that the back end holds of it.
pub struct Lane {
    trial: usize,
    /// The trial's mask, where its smoothness is measured.
    mask: Option<Rc<Mask>>,
    /// The margin of each validation example when the lane was last evaluated on it; empty before its first bounded evaluation.
    margins: Vec<f32>,
}

impl Lane {
    /// The lane of a trial, and how the back end is to begin it: from the initial weights, or from where it was left.
    pub fn begin(work: &CellWork, masks: &Masks, trial: usize, left: Option<LaneRecord>) -> (Lane, LaneStart) {
        let Run { metaparameters, seeds } = work.run(trial);
        let (weights, mask) = masks.start(seeds.weights, work.key.sparsity);
        let is_measured = work.probe.is_some_and(|probe| probe.measures(trial));
        let (state, margins) = left.map(|left| (left.state, left.margins)).unzip();
        let lane = Lane { trial, mask: is_measured.then(|| Rc::new(mask.clone())), margins: margins.unwrap_or_default() };
        let rule = Rule::new(work.workload.optimizer, work.workload.schedule, &metaparameters);
        (lane, LaneStart { seed: seeds.order, weights, mask, rule, state })
    }
}

/// The lanes, and the back end that holds their weights.
pub struct Lanes<'a, B: Backend> {
    backend: &'a mut B,
    held: B::Lanes,
    /// Lanes in the back end's order, which is that of the trials.
    lanes: Vec<Lane>,
}

impl<'a, B: Backend> Lanes<'a, B> {
    /// Lanes ready for their first step.
    pub fn new(backend: &'a mut B, lanes: Vec<Lane>, starts: Vec<LaneStart>) -> Result<Self> {
        Ok(Lanes { held: backend.lanes(starts)?, backend, lanes })
    }

    /// The back end.
    pub fn backend(&mut self) -> &mut B {
        self.backend
    }

    /// Takes steps on batches of `batch` examples, and says how each lane did.
    pub fn train(&mut self, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>> {
        self.backend.train(&mut self.held, steps, batch)
    }

    /// Evaluates the lanes on the validation set, but those that broke in the steps of `progress`: on all of it where the work says so, else until
    /// they are decided.
    pub fn evaluate(&mut self, work: &CellWork, progress: &[Progress]) -> Result<Vec<Outcome>> {
        let sound: Vec<usize> = (0..self.lanes.len()).filter(|&lane| progress[lane].broken.is_none()).collect();
        let evaluations = if work.full_evaluation { self.evaluate_whole(&sound)? } else { self.evaluate_bounded(&sound, work.threshold)? };
        let mut evaluations = evaluations.into_iter();
        let outcome = |&Progress { loss, broken }: &Progress| match broken {
            Some(step) => Some(Outcome::Broken { step }),
            None => evaluations.next().map(|Evaluation { errors, examples }| Outcome::Evaluated { loss, errors, examples }),
        };
        Ok(progress.iter().filter_map(outcome).collect())
    }

    /// Evaluates the lanes numbered `which` on the whole validation set.
    fn evaluate_whole(&mut self, which: &[usize]) -> Result<Vec<Evaluation>> {
        let examples = self.backend.examples(EvaluationSet::Validation) as u32;
        let errors = self.backend.evaluate(&self.held, which, EvaluationSet::Validation)?;
        Ok(errors.into_iter().map(|errors| Evaluation { errors, examples }).collect())
    }

    /// Evaluates the lanes numbered `which` on the validation set, each until its errors exceed `threshold`.
    fn evaluate_bounded(&mut self, which: &[usize], threshold: u32) -> Result<Vec<Evaluation>> {
        let mut margins: Vec<Vec<f32>> = which.iter().map(|&lane| std::mem::take(&mut self.lanes[lane].margins)).collect();
        let evaluations = decide(self.backend, &self.held, which, threshold, &mut margins);
        which.iter().zip(margins).for_each(|(&lane, margins)| self.lanes[lane].margins = margins);
        evaluations
    }

    /// The errors of a trial on the whole test set, where this rank's group trains it; else nothing. All ranks of the group must call it.
    pub fn test(&mut self, trial: usize) -> Result<Vec<u32>> {
        let which: Vec<usize> = (0..self.lanes.len()).filter(|&lane| self.lanes[lane].trial == trial).collect();
        self.backend.evaluate(&self.held, &which, EvaluationSet::Test)
    }

    /// Where those of `trials` that are measured are after `step` steps; those that broke are left out.
    pub fn sites(&self, trials: &[usize], step: u32) -> Result<Vec<Site>> {
        let mut sites = Vec::new();
        for (place, Lane { trial, mask, .. }) in self.lanes.iter().enumerate() {
            let Some(mask) = mask else { continue };
            if trials.contains(trial) {
                let LaneState { weights, broken, .. } = self.backend.state(&self.held, place)?;
                if broken.is_none() {
                    sites.push(Site { trial: *trial, step, mask: mask.clone(), weights, next: None });
                }
            }
        }
        Ok(sites)
    }

    /// Records from which the lanes whose trials are `training` can go on.
    pub fn states(&self, training: &BTreeMap<usize, Trial>) -> Result<Vec<LaneRecord>> {
        let mut states = Vec::new();
        for (place, lane) in self.lanes.iter().enumerate() {
            if let Some(trial) = training.get(&lane.trial) {
                let (trial, state) = (trial.clone(), self.backend.state(&self.held, place)?);
                states.push(LaneRecord { trial, state, margins: lane.margins.clone() });
            }
        }
        Ok(states)
    }

    /// Drops the lanes whose trials are not `training`.
    pub fn retain(&mut self, training: &BTreeMap<usize, Trial>) -> Result<()> {
        let keep: Vec<bool> = self.lanes.iter().map(|lane| training.contains_key(&lane.trial)).collect();
        self.backend.retain(&mut self.held, &keep)?;
        self.lanes.retain(|lane| training.contains_key(&lane.trial));
        Ok(())
    }
}

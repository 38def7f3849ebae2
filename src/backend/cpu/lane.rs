//! One trial's state on the CPU, and its optimizer step.

use std::sync::Arc;

use super::level::Level;
use super::physical::Physical;
use super::plan::Plan;
use super::simd::{Kernel, Simd};
use crate::backend::{LaneStart, LaneState, Progress};
use crate::config::OptimizerName;
use crate::data::Sampler;
use crate::optimizer::Rule;
use crate::pruning::Mask;

/// A lane: weights, velocities, mask and data order, all of the physical network ([`Physical`]).
pub struct Lane {
    pub(super) weights: Vec<f32>,
    /// The kept weights alone, which steps update; empty where all are kept.
    trained: Vec<f32>,
    /// Of kept parameters; empty for SGD.
    velocity: Vec<f32>,
    pub(super) mask: Mask,
    /// The mask of the logical network, where that is another one.
    logical: Option<Mask>,
    /// What the mask leaves to be computed.
    pub(super) plan: Arc<Plan>,
    pub(super) sampler: Sampler,
    rule: Rule,
    pub(super) progress: Progress,
}

impl Lane {
    /// A lane of `start`, whose mask is `mask` in the physical network.
    pub(super) fn new(plan: Arc<Plan>, physical: &Physical, mask: Mask, start: LaneStart, training_examples: u32) -> Lane {
        let LaneStart { seed, weights, mask: logical, rule, state } = start;
        let mut weights = physical.spread(&weights).into_owned();
        mask.apply(&mut weights);
        let mut velocity = if rule.optimizer == OptimizerName::Sgd { Vec::new() } else { vec![0.0; mask.kept()] };
        let mut progress = Progress { loss: f32::NAN, broken: None };
        let of_kept = |mask: &Mask, values: &[f32]| match mask {
            Mask::Sparse { kept, .. } if !values.is_empty() => kept.iter().map(|&index| values[index as usize]).collect(),
            _ => values.to_vec(),
        };
        if let Some(state) = state {
            (weights, velocity) = (physical.spread(&state.weights).into_owned(), of_kept(&logical, &state.velocity));
            progress = Progress { loss: state.loss, broken: state.broken };
        }
        let trained = if let Mask::Sparse { .. } = mask { of_kept(&mask, &weights) } else { Vec::new() };
        let logical = (logical != mask).then_some(logical);
        Lane { weights, trained, velocity, mask, logical, plan, sampler: Sampler::new(seed, training_examples), rule, progress }
    }

    pub(super) fn state(&self, physical: &Physical) -> LaneState {
        let Progress { loss, broken } = self.progress;
        let velocity = match self.logical.as_ref().unwrap_or(&self.mask) {
            Mask::Sparse { kept, parameters } if !self.velocity.is_empty() => {
                let mut all = vec![0.0; *parameters];
                kept.iter().zip(&self.velocity).for_each(|(&index, &velocity)| all[index as usize] = velocity);
                all
            }
            _ => self.velocity.clone(),
        };
        LaneState { weights: physical.gather(&self.weights).into_owned(), velocity, loss, broken }
    }

    /// One step by the kept parameters' gradient, summed over `batch` examples, with the summed loss behind it. A loss that is not a number,
    /// or infinite, breaks the lane instead.
    pub(super) fn step(&mut self, level: Level, step: u32, batch: usize, gradient: &[f32]) {
        let loss = gradient[self.mask.kept()] / batch as f32;
        self.progress.loss = loss;
        if !loss.is_finite() {
            self.progress.broken = Some(step);
            return;
        }
        level.run(Update { lane: self, gradient, batch: batch as f32, step });
    }
}

struct Update<'a> {
    lane: &'a mut Lane,
    gradient: &'a [f32],
    batch: f32,
    step: u32,
}

impl Kernel for Update<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Update { lane, gradient, batch, step } = self;
        let (rate, momentum) = (lane.rule.rate(step), lane.rule.momentum);
        let Lane { weights, trained, velocity, mask, rule, .. } = lane;
        let values = if let Mask::Sparse { .. } = mask { &mut *trained } else { &mut *weights };
        let gradient = &gradient[..values.len()];
        // Of a power of two, the product with the reciprocal has the quotient's bits, in a fraction of its time.
        if (batch as u32).is_power_of_two() {
            update(rule.optimizer, rate, momentum, values, velocity, |index| gradient[index] * (1.0 / batch));
        } else {
            update(rule.optimizer, rate, momentum, values, velocity, |index| gradient[index] / batch);
        }
        if let Mask::Sparse { kept, .. } = mask {
            kept.iter().zip(trained.iter()).for_each(|(&index, &value)| weights[index as usize] = value);
        }
    }
}

#[inline(always)]
fn update(optimizer: OptimizerName, rate: f32, momentum: f32, weights: &mut [f32], velocity: &mut [f32], gradient: impl Fn(usize) -> f32) {
    match optimizer {
        OptimizerName::Sgd => weights.iter_mut().enumerate().for_each(|(index, w)| Rule::sgd(rate, w, gradient(index))),
        OptimizerName::Momentum => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::momentum(rate, momentum, w, v, gradient(index));
            }
        }
        OptimizerName::Nesterov => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::nesterov(rate, momentum, w, v, gradient(index));
            }
        }
    }
}

//! One trial's state on the CPU, and its optimizer step.

use std::sync::Arc;

use super::level::{Kernel, Level};
use super::plan::Plan;
use super::simd::Simd;
use crate::backend::{LaneStart, LaneState, Progress};
use crate::config::OptimizerName;
use crate::data::Sampler;
use crate::optimizer::Rule;
use crate::pruning::Mask;

/// A lane: weights, velocities, mask and data order.
pub struct Lane {
    pub(super) weights: Vec<f32>,
    /// Empty for SGD.
    velocity: Vec<f32>,
    pub(super) mask: Mask,
    /// What the mask leaves to be computed.
    pub(super) plan: Arc<Plan>,
    /// All ones where a parameter is kept, else zero; empty when dense.
    bits: Vec<u32>,
    pub(super) sampler: Sampler,
    rule: Rule,
    pub(super) progress: Progress,
}

impl Lane {
    pub(super) fn new(plan: Arc<Plan>, start: LaneStart, training_examples: u32) -> Lane {
        let LaneStart { seed, mut weights, mask, rule, state } = start;
        mask.apply(&mut weights);
        let mut bits = Vec::new();
        if let Mask::Sparse { kept, parameters } = &mask {
            bits.resize(*parameters, 0);
            kept.iter().for_each(|&index| bits[index as usize] = u32::MAX);
        }
        let mut velocity = if rule.optimizer == OptimizerName::Sgd { Vec::new() } else { vec![0.0; weights.len()] };
        let mut progress = Progress { loss: f32::NAN, broken: None };
        if let Some(state) = state {
            (weights, velocity) = (state.weights, state.velocity);
            progress = Progress { loss: state.loss, broken: state.broken };
        }
        Lane { weights, velocity, mask, plan, bits, sampler: Sampler::new(seed, training_examples), rule, progress }
    }

    pub(super) fn state(&self) -> LaneState {
        let Progress { loss, broken } = self.progress;
        LaneState { weights: self.weights.clone(), velocity: self.velocity.clone(), loss, broken }
    }

    /// Parameters, flat as the network lays them out; zero where masked.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// One step by a gradient summed over `batch` examples, with the summed loss behind it. A loss that is not a number, or infinite, breaks
    /// the lane instead.
    pub(super) fn step(&mut self, level: Level, step: u32, batch: usize, gradient: &[f32]) {
        let loss = gradient[self.weights.len()] / batch as f32;
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
        let Lane { weights, velocity, bits, rule, .. } = lane;
        // Of a power of two, the product with the reciprocal has the quotient's bits, in a fraction of its time.
        if (batch as u32).is_power_of_two() {
            masked(rule.optimizer, rate, momentum, weights, velocity, bits, gradient, |gradient| gradient * (1.0 / batch));
        } else {
            masked(rule.optimizer, rate, momentum, weights, velocity, bits, gradient, |gradient| gradient / batch);
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn masked(
    optimizer: OptimizerName,
    rate: f32,
    momentum: f32,
    weights: &mut [f32],
    velocity: &mut [f32],
    bits: &[u32],
    gradient: &[f32],
    mean: impl Fn(f32) -> f32,
) {
    let gradient = &gradient[..weights.len()];
    if bits.is_empty() {
        update(optimizer, rate, momentum, weights, velocity, |index| mean(gradient[index]));
    } else {
        // A masked gradient is cut to zero by its bits, not by a product: it may be infinite.
        let bits = &bits[..weights.len()];
        update(optimizer, rate, momentum, weights, velocity, |index| f32::from_bits(mean(gradient[index]).to_bits() & bits[index]));
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

//! One trial's state on the CPU, and its optimizer step.

use std::sync::Arc;

use super::physical::Physical;
use super::plan::Plan;
use super::simd::{Kernel, Simd};
use super::vector_unit::VectorUnit;
use crate::backend::task::Task;
use crate::backend::{LaneStart, LaneState, Progress};
use crate::data::Sampler;
use crate::optimizer::{OptimizerName, Rule};
use crate::pruning::Mask;

/// A lane: weights, velocities, mask and data order, all of the physical network ([`Physical`]).
pub struct Lane {
    /// Network and training set of the lane.
    pub(super) task: Task,
    pub(super) weights: Vec<f32>,
    /// The kept weights alone, which steps update; empty where all are kept.
    trained: Vec<f32>,
    /// The averaged weights, which are evaluated; empty where the weights themselves are.
    average: Vec<f32>,
    /// [`LaneState::velocity`] of the kept parameters.
    velocity: Vec<f32>,
    /// [`LaneState::squares`] of the kept parameters.
    squares: Vec<f32>,
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
    pub(super) fn new(task: Task, plan: Arc<Plan>, physical: &Physical, mask: Mask, start: LaneStart) -> Lane {
        let LaneStart { seed, weights, mask: logical, rule, state } = start;
        let mut weights = physical.spread(&weights).into_owned();
        mask.apply(&mut weights);
        let numbers = rule.optimizer.kept_numbers();
        let zeros = |needed: bool| if needed { vec![0.0; mask.kept()] } else { Vec::new() };
        let (mut velocity, mut squares) = (zeros(numbers > 0), zeros(numbers > 1));
        let mut average = if rule.average_decay.is_some() { weights.clone() } else { Vec::new() };
        let mut progress = Progress { loss: f32::NAN, broken: None };
        let of_kept = |mask: &Mask, values: &[f32]| match mask {
            Mask::Sparse { kept, .. } if !values.is_empty() => kept.iter().map(|&index| values[index as usize]).collect(),
            _ => values.to_vec(),
        };
        if let Some(state) = state {
            weights = physical.spread(&state.weights).into_owned();
            (velocity, squares) = (of_kept(&logical, &state.velocity), of_kept(&logical, &state.squares));
            if !average.is_empty() {
                average = physical.spread(&state.average).into_owned();
            }
            progress = Progress { loss: state.loss, broken: state.broken };
        }
        let trained = if let Mask::Sparse { .. } = mask { of_kept(&mask, &weights) } else { Vec::new() };
        let logical = (!physical.is_logical()).then_some(logical);
        Lane {
            sampler: Sampler::new(seed, task.examples()),
            task,
            weights,
            trained,
            average,
            velocity,
            squares,
            mask,
            logical,
            plan,
            rule,
            progress,
        }
    }

    pub(super) fn state(&self, physical: &Physical) -> LaneState {
        let Progress { loss, broken } = self.progress;
        let of_all = |of_kept: &Vec<f32>| match self.logical.as_ref().unwrap_or(&self.mask) {
            Mask::Sparse { kept, parameters } if !of_kept.is_empty() => {
                let mut all = vec![0.0; *parameters];
                kept.iter().zip(of_kept).for_each(|(&index, &value)| all[index as usize] = value);
                all
            }
            _ => of_kept.clone(),
        };
        let weights = physical.gather(&self.weights).into_owned();
        let average = if self.average.is_empty() { Vec::new() } else { physical.gather(&self.average).into_owned() };
        LaneState { weights, average, velocity: of_all(&self.velocity), squares: of_all(&self.squares), loss, broken }
    }

    /// The weights that evaluations are of.
    pub(super) fn evaluated(&self) -> &[f32] {
        if self.average.is_empty() { &self.weights } else { &self.average }
    }

    /// One step by the kept parameters' gradient, summed over `batch` examples, with the summed loss behind it. A loss that is not a number,
    /// or infinite, breaks the lane instead.
    pub(super) fn step(&mut self, unit: VectorUnit, step: u32, batch: usize, gradient: &[f32]) {
        let loss = gradient[self.mask.kept()] / batch as f32;
        self.progress.loss = loss;
        if !loss.is_finite() {
            self.progress.broken = Some(step);
            return;
        }
        unit.run(Update { lane: self, gradient, batch: batch as f32, step });
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
    fn run<S: Simd>(self) {
        let Update { lane, gradient, batch, step } = self;
        let Lane { weights, trained, average, velocity, squares, mask, rule, .. } = lane;
        let values = if let Mask::Sparse { .. } = mask { &mut *trained } else { &mut *weights };
        let gradient = &gradient[..values.len()];
        let state = State { weights: values, velocity, squares };
        // Where the divisor is a power of two, multiplying by its reciprocal gives the same bits in a fraction of the time.
        if (batch as u32).is_power_of_two() {
            decayed(rule, step, state, |index| gradient[index] * (1.0 / batch));
        } else {
            decayed(rule, step, state, |index| gradient[index] / batch);
        }
        if let Mask::Sparse { kept, .. } = mask {
            kept.iter().zip(trained.iter()).for_each(|(&index, &value)| weights[index as usize] = value);
        }
        if let Some(share) = rule.share_of_average() {
            match mask {
                Mask::Dense(_) => average.iter_mut().zip(weights.iter()).for_each(|(a, &w)| Rule::average(share, a, w)),
                Mask::Sparse { kept, .. } => {
                    kept.iter().zip(trained.iter()).for_each(|(&index, &w)| Rule::average(share, &mut average[index as usize], w));
                }
            }
        }
    }
}

/// What a step changes of the kept parameters; empty where the optimizer has no such numbers.
struct State<'a> {
    weights: &'a mut [f32],
    velocity: &'a mut [f32],
    squares: &'a mut [f32],
}

/// A step with the mean gradient of each parameter, to which the weight decay is added where there is one. Steps without decay have a loop of their
/// own, which does no more than they need.
#[inline(always)]
fn decayed(rule: &Rule, step: u32, state: State, gradient: impl Fn(usize) -> f32) {
    match rule.decay_of_gradient() {
        Some(decay) => update(rule, step, state, |index, w| gradient(index) + decay * w),
        None => update(rule, step, state, |index, _| gradient(index)),
    }
}

#[inline(always)]
fn update(rule: &Rule, step: u32, state: State, gradient: impl Fn(usize, f32) -> f32) {
    let State { weights, velocity, squares } = state;
    let (rate, momentum) = (rule.rate(step), rule.momentum);
    match rule.optimizer {
        OptimizerName::Sgd => weights.iter_mut().enumerate().for_each(|(index, w)| Rule::sgd(rate, w, gradient(index, *w))),
        OptimizerName::Momentum => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::momentum(rate, momentum, w, v, gradient(index, *w));
            }
        }
        OptimizerName::Nesterov => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::nesterov(rate, momentum, w, v, gradient(index, *w));
            }
        }
        OptimizerName::Adam | OptimizerName::AdamW => {
            let adam = rule.adam(step);
            for (index, ((w, a), s)) in weights.iter_mut().zip(velocity).zip(squares).enumerate() {
                adam.update(w, a, s, gradient(index, *w));
            }
        }
    }
}

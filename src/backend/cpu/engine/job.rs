//! Sums that a thread is asked for: whose derivative, at which weights, over which examples.

use crate::backend::cpu::lane::Lane;
use crate::backend::cpu::plan::Plan;
use crate::data::Sampler;
use crate::pruning::Mask;

/// A thread's job: the derivative to compute, and the examples.
pub(super) struct Job<'a> {
    pub weights: &'a [f32],
    pub plan: &'a Plan,
    pub mask: &'a Mask,
    pub selection: Selection<'a>,
    /// Temperature of the loss: logits are divided by it.
    pub temperature: f32,
    pub derivative: Derivative<'a>,
}

/// The derivative that is summed over examples.
#[derive(Clone, Copy)]
pub(super) enum Derivative<'a> {
    /// The gradient, in a leaf laid out as the plan says.
    Gradient,
    /// The Hessian's product with a vector of all parameters, in their order, by kernels (`tangents`).
    HessianProduct(&'a [f32]),
    /// The Hessian's product with a vector by the reference, at these weights of the logical network, whose parameters the vector has.
    ReferenceProduct { weights: &'a [f32], vector: &'a [f32] },
}

impl<'a> Job<'a> {
    /// The gradient of the loss that a lane trains, over the batch of a step.
    pub(super) fn of_lane(lane: &'a Lane, step: u32, batch: usize) -> Job<'a> {
        let selection = Selection::Shuffled(&lane.sampler, u64::from(step) * batch as u64);
        Job { weights: &lane.weights, plan: &lane.plan, mask: &lane.mask, selection, temperature: 1.0, derivative: Derivative::Gradient }
    }

    /// Floats of a leaf's derivative.
    pub(super) fn length(&self) -> usize {
        match self.derivative {
            Derivative::Gradient => self.plan.length,
            Derivative::HessianProduct(vector) | Derivative::ReferenceProduct { vector, .. } => vector.len(),
        }
    }
}

/// Which training examples make up a batch.
#[derive(Clone, Copy)]
pub(super) enum Selection<'a> {
    /// The first ones of the training set.
    InOrder,
    /// The examples at a position of a trial's endless shuffled epochs.
    Shuffled(&'a Sampler, u64),
}

impl Selection<'_> {
    pub(super) fn fill(&self, offset: usize, indices: &mut [u32]) {
        match self {
            Selection::InOrder => indices.iter_mut().enumerate().for_each(|(i, index)| *index = (offset + i) as u32),
            Selection::Shuffled(sampler, position) => sampler.fill(position + offset as u64, indices),
        }
    }
}

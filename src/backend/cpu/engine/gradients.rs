//! Derivatives of a whole batch, summed by all threads of all ranks in the order of the tree.

use super::backend::CpuBackend;
use super::job::{Derivative, Job, Selection};
use super::sums::{PackedSums, add_on, length, split};
use crate::Result;
use crate::comm::{Leaves, add_blocks, additions};

impl CpuBackend<'_> {
    /// A derivative at weights without a mask, summed over the first `examples` training examples, and the summed loss.
    pub(super) fn derivative(
        &mut self,
        weights: &[f32],
        temperature: f32,
        derivative: Derivative,
        examples: usize,
    ) -> Result<(Vec<f32>, f32)> {
        let count = weights.len();
        let (mask, plan) = (self.threads.context.whole.clone(), self.threads.context.scored.clone());
        let weights = self.threads.context.physical.spread(weights);
        let job = Job { weights: &weights, plan: &plan, mask: &mask, selection: Selection::InOrder, temperature, derivative };
        self.gradients(&[job], Leaves::new(examples))?;
        let sum = self.sums.total(0, count);
        Ok((sum[..count].to_vec(), sum[count]))
    }

    /// Sums the gradient and the loss of every job over a whole batch, on every rank: afterwards they are the totals of `self.sums`.
    pub(super) fn gradients(&mut self, jobs: &[Job], leaves: Leaves) -> Result<()> {
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        let wholes = leaves.nodes(leaves.slice(rank, ranks));
        let examples = wholes.iter().map(|&node| leaves.under(node).len()).sum::<usize>() * leaves.examples(0).len();
        let threads = self.threads.sharing(jobs.iter().map(|job| job.plan.work * examples as f64).sum());
        let share = threads.div_ceil(jobs.len().max(1));
        let parts = split(leaves, &wholes, share);
        self.sums.shape(jobs.len(), parts.len(), length(jobs.iter().map(|job| job.mask)));

        let version = self.versions(jobs.len());
        let mut tasks = Vec::with_capacity(jobs.len() * parts.len());
        for ((job, version), sums) in jobs.iter().zip(version..).zip(self.sums.jobs()) {
            tasks.extend(parts.iter().zip(sums.parts()).map(|(&part, sum)| (job, version, part, sum)));
        }
        self.threads.each_of(threads, tasks, |context, seat, (job, version, part, sum)| {
            context.node_sum(seat, job, version, leaves, part, sum);
        });
        self.vote()?;
        let (order, places) = additions(leaves, &parts, &wholes);
        let unit = self.threads.context.unit;
        let sums = self.sums.jobs().flat_map(|sums| sums.pieces(share)).collect();
        self.threads.each_of(threads, sums, |_, _, mut piece| add_blocks(&mut piece, &order, add_on(unit)));

        if ranks > 1 {
            let mut packed = PackedSums::new(&mut self.sums, &places, jobs.iter().map(|job| job.mask));
            self.exchanged.sum(self.communicator, leaves, &mut packed, add_on(unit));
        }
        Ok(())
    }
}

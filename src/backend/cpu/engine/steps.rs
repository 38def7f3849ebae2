//! Training steps: lanes apart, a thread each, or one after another with all threads and ranks sharing their batches.

use std::ops::Range;

use super::backend::CpuBackend;
use super::job::Job;
use super::sums::length;
use crate::Result;
use crate::backend::cpu::lane::Lane;
use crate::comm::Leaves;

impl CpuBackend<'_> {
    /// Every lane takes all its steps on one thread: nothing waits for anything, and a lane's state stays in that core's cache.
    pub(super) fn train_apart(&mut self, lanes: &mut [Lane], steps: Range<u32>, leaves: Leaves, batch: usize) -> Result<()> {
        let unit = self.threads.context.unit;
        let length = length(lanes.iter().map(|lane| &lane.mask));
        let version = self.versions(lanes.len() * steps.len());
        let root = leaves.nodes(0..leaves.count())[0];
        self.sums.shape(lanes.len(), 1, length);
        let (count, from) = (steps.len() as u64, steps.start);
        self.threads.each(lanes.iter_mut().zip(self.sums.jobs()).enumerate().collect(), |context, seat, (index, (lane, sums))| {
            let Some(sum) = sums.parts().next() else { return };
            for step in steps.clone() {
                if lane.progress.broken.is_some() || context.interrupted() {
                    break;
                }
                let job = Job::of_lane(lane, step, batch);
                context.node_sum(seat, &job, version + index as u64 * count + u64::from(step - from), leaves, root, sum);
                lane.step(step, batch, sum, 1).into_iter().for_each(|update| unit.run(update));
            }
        });
        self.vote()
    }

    /// All lanes take one step, threads and ranks sharing their batches.
    pub(super) fn train_together(&mut self, lanes: &mut [Lane], step: u32, leaves: Leaves, batch: usize) -> Result<()> {
        let mut lanes: Vec<&mut Lane> = lanes.iter_mut().filter(|lane| lane.progress.broken.is_none()).collect();
        let jobs: Vec<Job> = lanes.iter().map(|lane| Job::of_lane(lane, step, batch)).collect();
        self.gradients(&jobs, leaves)?;
        drop(jobs);
        let (unit, sums) = (self.threads.context.unit, &self.sums);
        let pieces = self.threads.count().div_ceil(lanes.len().max(1));
        let updates = lanes.iter_mut().enumerate().flat_map(|(index, lane)| {
            let sum = sums.total(index, lane.mask.kept());
            lane.step(step, batch, sum, pieces)
        });
        self.threads.each(updates.collect(), |_, _, update| unit.run(update));
        Ok(())
    }
}

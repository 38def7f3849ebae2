//! The lanes of a group on the device.

use std::ops::Range;

use cudarc::driver::{CudaGraph, CudaSlice, PinnedHostSlice};

use super::check::refuse;
use super::gpu::{Gpu, pinned};
use super::launch::{Kernels, StepNumbers, UpdateRule};
use super::pointer::{ConstPointer, MutPointer, at, at_mut};
use crate::Result;
use crate::backend::task::Task;
use crate::backend::{LaneStart, LaneState, Progress};
use crate::optimizer::Rule;
use crate::pruning::Mask;

/// Lanes, each with a place in every buffer.
pub struct CudaLanes {
    /// Network and training set of the lanes.
    pub(super) task: Task,
    /// Each lane as the host knows it.
    pub(super) known: Vec<HostLane>,
    /// Floats of a lane's parameters, and of a gradient with its loss: a multiple of 32.
    pub(super) pitch: usize,
    /// Most parameters that a lane keeps.
    pub(super) most_kept: usize,
    /// `[lane][pitch]`.
    pub(super) weights: CudaSlice<f32>,
    /// `[lane][pitch]`; nothing where all train by SGD.
    velocity: Option<CudaSlice<f32>>,
    /// `[lane][pitch]`: Adam's average of the gradients' squares; nothing where none trains by Adam.
    squares: Option<CudaSlice<f32>>,
    /// `[lane][pitch]`: the averaged weights, which are evaluated; nothing where the weights themselves are.
    average: Option<CudaSlice<f32>>,
    pub(super) rules: CudaSlice<UpdateRule>,
    /// `[step][lane]`: room for [`STEPS_AT_ONCE`] steps.
    pub(super) numbers: CudaSlice<StepNumbers>,
    pub(super) seeds: CudaSlice<u64>,
    /// `[lane][most_kept]`, or nothing where all lanes are dense.
    kept: Option<CudaSlice<i32>>,
    pub(super) kept_count: CudaSlice<i32>,
    /// `[lane]` losses, as bits, then `[lane]` steps at which a lane stopped, or −1.
    pub(super) report: CudaSlice<i32>,
    /// The report on the host, for the device to write.
    pub(super) pinned: PinnedHostSlice<i32>,
    /// `[lane]`: its own number.
    pub(super) identity: CudaSlice<i32>,
    /// A recorded step, and what it was recorded for.
    pub(super) graph: Option<(GraphKey, CudaGraph)>,
}

/// Steps whose learning rates go to the device together.
pub(super) const STEPS_AT_ONCE: usize = 64;

/// Key of a recorded step: only a step with an equal key can replay the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GraphKey {
    /// The back end that recorded it.
    pub stepper: u64,
    pub batch: usize,
    /// The workspace's generation: it grows when buffers move, and makes an older graph stale.
    pub generation: u64,
    /// Where the sums and the stored weights are, and what ranks exchange.
    pub buffers: [[u64; 2]; 2],
}

/// A lane as the host knows it.
pub(super) struct HostLane {
    seed: u64,
    rule: Rule,
    mask: Mask,
    pub progress: Progress,
}

impl CudaLanes {
    /// Lanes of these starts, which are the task's.
    pub(super) fn new(gpu: &Gpu, task: Task, starts: Vec<LaneStart>) -> Result<CudaLanes> {
        let pitch = pitch(task.network.parameters());
        let mut known = Vec::with_capacity(starts.len());
        let numbers = starts.iter().map(|start| start.rule.optimizer.kept_numbers()).max().unwrap_or(0);
        let averaging = starts.iter().filter(|start| start.rule.average_decay.is_some()).count();
        if averaging > 0 && averaging < starts.len() {
            return Err(refuse("expected lanes that all average their weights, or none, found both; report this as a bug"));
        }
        let zeros = |needed: bool| if needed { vec![0.0_f32; starts.len() * pitch] } else { Vec::new() };
        let mut weights = zeros(true);
        let (mut velocities, mut squares, mut averages) = (zeros(numbers > 0), zeros(numbers > 1), zeros(averaging > 0));
        for (place, start) in starts.into_iter().enumerate() {
            let LaneStart { seed, weights: own, mask, rule, state } = start;
            // Numbers that a lane's state lacks stay zero.
            let put = |to: &mut Vec<f32>, values: &[f32]| {
                if !to.is_empty() {
                    to[place * pitch..][..values.len()].copy_from_slice(values);
                }
            };
            let mut progress = Progress { loss: f32::NAN, broken: None };
            if let Some(state) = state {
                put(&mut weights, &state.weights);
                put(&mut velocities, &state.velocity);
                put(&mut squares, &state.squares);
                put(&mut averages, &state.average);
                progress = Progress { loss: state.loss, broken: state.broken };
            } else {
                let mut own = own;
                mask.apply(&mut own);
                put(&mut weights, &own);
                put(&mut averages, &own);
            }
            known.push(HostLane { seed, rule, mask, progress });
        }
        let upload = |values: Vec<f32>| if values.is_empty() { Ok(None) } else { gpu.upload(&values).map(Some) };
        CudaLanes::with(gpu, task, known, gpu.upload(&weights)?, [upload(velocities)?, upload(squares)?, upload(averages)?])
    }

    /// Lanes whose weights are on the device already, with what is kept beside them: velocities, squares, averages.
    fn with(
        gpu: &Gpu,
        task: Task,
        known: Vec<HostLane>,
        weights: CudaSlice<f32>,
        [velocity, squares, average]: [Option<CudaSlice<f32>>; 3],
    ) -> Result<CudaLanes> {
        let most_kept = known.iter().map(|lane| lane.mask.kept()).max().unwrap_or(0);
        let counts: Vec<i32> = known.iter().map(|lane| lane.mask.kept() as i32).collect();
        let mut kept = None;
        if known.iter().any(|lane| matches!(lane.mask, Mask::Sparse { .. })) {
            let mut indices = Vec::with_capacity(known.len() * most_kept);
            for (place, lane) in known.iter().enumerate() {
                match &lane.mask {
                    Mask::Sparse { kept, .. } => indices.extend(kept.iter().map(|&index| index as i32)),
                    Mask::Dense(parameters) => indices.extend(0..*parameters as i32),
                }
                indices.resize((place + 1) * most_kept, 0);
            }
            kept = Some(gpu.upload(&indices)?);
        }
        let losses = known.iter().map(|lane| lane.progress.loss.to_bits() as i32);
        let broken = known.iter().map(|lane| lane.progress.broken.map_or(-1, |step| step as i32));
        Ok(CudaLanes {
            rules: gpu.upload(&known.iter().map(|lane| UpdateRule::new(&lane.rule)).collect::<Vec<_>>())?,
            numbers: gpu.uninitialised(STEPS_AT_ONCE * known.len())?,
            seeds: gpu.upload(&known.iter().map(|lane| lane.seed).collect::<Vec<_>>())?,
            kept_count: gpu.upload(&counts)?,
            report: gpu.upload(&losses.chain(broken).collect::<Vec<_>>())?,
            pinned: pinned(&gpu.context, 2 * known.len())?,
            identity: gpu.upload(&(0..known.len() as i32).collect::<Vec<_>>())?,
            graph: None,
            known,
            pitch: pitch(task.network.parameters()),
            task,
            most_kept,
            weights,
            velocity,
            squares,
            average,
            kept,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn state(&self, gpu: &Gpu, lane: usize) -> Result<LaneState> {
        let Progress { loss, broken } = self.known[lane].progress;
        let parameters = self.known[lane].mask.parameters();
        let numbers = self.known[lane].rule.optimizer.kept_numbers();
        let of = |values: &Option<CudaSlice<f32>>, has: bool| match values {
            Some(values) if has => gpu.download(values, lane * self.pitch, parameters),
            _ => Ok(Vec::new()),
        };
        Ok(LaneState {
            weights: gpu.download(&self.weights, lane * self.pitch, parameters)?,
            velocity: of(&self.velocity, numbers > 0)?,
            squares: of(&self.squares, numbers > 1)?,
            average: of(&self.average, true)?,
            loss,
            broken,
        })
    }

    pub(super) fn retain(&mut self, gpu: &Gpu, kernels: &Kernels, keep: &[bool]) -> Result<()> {
        let left: Vec<i32> = (0..self.len()).filter(|&lane| keep.get(lane) != Some(&false)).map(|lane| lane as i32).collect();
        if left.len() == self.len() {
            return Ok(());
        }
        let from = gpu.upload(&left)?;
        let weights = self.copies(gpu, kernels, &self.weights, &from, left.len())?;
        let copied = |values: &Option<CudaSlice<f32>>| {
            values.as_ref().map(|values| self.copies(gpu, kernels, values, &from, left.len())).transpose()
        };
        let beside = [copied(&self.velocity)?, copied(&self.squares)?, copied(&self.average)?];
        let mut keep = keep.iter();
        let mut known = std::mem::take(&mut self.known);
        known.retain(|_| keep.next().is_none_or(|&keep| keep));
        *self = CudaLanes::with(gpu, self.task.clone(), known, weights, beside)?;
        // Memory that the kernels above read is freed in the order of the stream, after them.
        Ok(())
    }

    /// The rows of `state`, `[lane][pitch]`, of the first `count` lanes that `from` lists.
    pub(super) fn copies(
        &self,
        gpu: &Gpu,
        kernels: &Kernels,
        state: &CudaSlice<f32>,
        from: &CudaSlice<i32>,
        count: usize,
    ) -> Result<CudaSlice<f32>> {
        let copies = gpu.uninitialised(count * self.pitch)?;
        if count > 0 {
            // SAFETY: `from` lists lanes that `state` has, as both callers see to, and `copies` has room for each.
            unsafe { kernels.retain(count, self.pitch as i32, at(from, 0), at(state, 0), at_mut(&copies, 0)) }?;
        }
        Ok(copies)
    }

    /// `[lane][most_kept]` parameters that train, or nothing where all do.
    pub(super) fn kept(&self) -> Option<ConstPointer<'_, i32>> {
        self.kept.as_ref().map(|kept| at(kept, 0))
    }

    /// `[lane][pitch]` velocities, squares and averages. Where there are none the kernel never looks.
    pub(super) fn beside(&self) -> [MutPointer<'_, f32>; 3] {
        [&self.velocity, &self.squares, &self.average].map(|values| at_mut(values.as_ref().unwrap_or(&self.weights), 0))
    }

    /// `[lane][pitch]`: the weights that evaluations are of.
    pub(super) fn evaluated(&self) -> &CudaSlice<f32> {
        self.average.as_ref().unwrap_or(&self.weights)
    }

    /// Copies each lane's learning rates and Adam's numbers of `steps`, at most [`STEPS_AT_ONCE`], to the device.
    pub(super) fn prepare(&mut self, gpu: &Gpu, steps: Range<u32>) -> Result<()> {
        let numbers: Vec<_> = steps.flat_map(|step| self.known.iter().map(move |lane| StepNumbers::new(&lane.rule, step))).collect();
        gpu.write(&numbers, &mut self.numbers)
    }

    /// `[lane]` losses of the last step, and `[lane]` steps at which a lane stopped.
    pub(super) fn progress(&self) -> (MutPointer<'_, f32>, MutPointer<'_, i32>) {
        (at_mut(&self.report, 0).cast(), at_mut(&self.report, self.len()))
    }
}

/// Floats of a lane's parameters and loss, rounded up so that every lane begins at a whole line of memory.
pub(super) fn pitch(parameters: usize) -> usize {
    (parameters + 1).next_multiple_of(32)
}

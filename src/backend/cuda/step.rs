//! Training steps: gradients of a batch, their sum over the ranks, and the update, recorded as a graph and replayed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaSlice};

use super::check::{Doing, refuse};
use super::dataset::Selection;
use super::exchange::{Exchange, PartialSums};
use super::gpu::Gpu;
use super::gradients::{LaneWeights, LeafGradients};
use super::lanes::{CudaLanes, GraphKey, STEPS_AT_ONCE};
use super::launch::Parts;
use super::model::Model;
use super::partition::BatchPartition;
use super::pointer::{at, at_mut};
use crate::backend::{Interrupt, Progress, vote};
use crate::{Error, Result, comm};

/// Steppers that were made.
static STEPPERS: AtomicU64 = AtomicU64::new(0);

/// State that all steps of a back end share.
pub(super) struct Stepper {
    /// Tells back ends apart: a recorded step has the addresses of one's clock, gradients and data set.
    id: u64,
    /// The step that is next, the one under way, and the first one whose learning rates the lanes have.
    pub clock: CudaSlice<u32>,
    /// How gradients travel between the ranks of a group, made at the first step; none in a group of one rank.
    exchange: Option<Exchange>,
    /// Whether a step was taken: kernels are loaded by then, which must not happen while a step is recorded. NCCL's connections are made as its ranks
    /// join (`nccl::prepare_environment`).
    warm: bool,
}

/// A batch of lanes, and where its gradients go.
struct Batch<'a> {
    model: &'a Model<'a>,
    leaf_gradients: &'a LeafGradients,
    partition: BatchPartition,
    /// Examples of all ranks.
    size: usize,
}

impl Stepper {
    pub fn new(gpu: &Gpu) -> Result<Stepper> {
        Ok(Stepper { id: STEPPERS.fetch_add(1, Ordering::Relaxed), clock: gpu.zeros(3)?, exchange: None, warm: false })
    }

    /// After an error of NCCL in [`Stepper::train`], aborts what NCCL has under way, and hands the error to `comm::abandon`, which ends dps's
    /// programs: this rank may be the only one with the error, and then the others wait for it in their next collective. Nor need the GPU finish.
    pub fn clean_up(&self, lanes: &mut CudaLanes, error: &Error) {
        let Some(exchange) = self.exchange.as_ref().filter(|exchange| exchange.has_failed()) else { return };
        // NCCL's abort waits for recorded steps that use its communicator.
        lanes.graph = None;
        exchange.abort();
        comm::abandon(error);
    }

    /// Takes steps of batches of `size` examples.
    ///
    /// # Errors
    /// The device's, or the other ranks'; [`Stepper::clean_up`] comes next.
    pub fn train(
        &mut self,
        model: &Model,
        leaf_gradients: &mut LeafGradients,
        interrupt: Option<Interrupt>,
        lanes: &mut CudaLanes,
        steps: Range<u32>,
        size: usize,
    ) -> Result<()> {
        let (gpu, group, ranks) = (model.gpu(), model.group, model.group.size());
        let partition = BatchPartition::new(size, group.rank(), ranks);
        let own = leaf_gradients.prepare(model, lanes.len(), &partition)?;
        if ranks > 1 && self.exchange.is_none() {
            self.exchange = Some(Exchange::new(group, model.cuda.shared, model.cuda.reduction, gpu.deadline)?);
        }
        let exchanged = self.exchange.as_mut().map_or(Ok([0; 2]), |exchange| exchange.prepare(gpu, lanes, &partition, ranks))?;
        let generation = model.cuda.workspace.borrow().generation;
        let key = GraphKey { stepper: self.id, batch: size, generation, buffers: [own, exchanged] };
        let serves = lanes.graph.as_ref().is_some_and(|(recorded, _)| *recorded == key);
        // A rank replays a recorded collective only with ranks that recorded it together ("Using NCCL with CUDA Graphs" of NCCL's guide): where the
        // recorded step of one does not serve any more, all record it anew.
        if group.all_gather_words(&[serves.into()]).contains(&0) {
            lanes.graph = None;
        }
        let batch = Batch { model, leaf_gradients, partition, size };
        for first in steps.clone().step_by(STEPS_AT_ONCE) {
            if first > steps.start {
                // A copy from memory that is not pinned may wait for the stream (CUDA's "API synchronization behavior"), without the deadline.
                self.wait(gpu)?;
            }
            let steps = first..steps.end.min(first.saturating_add(STEPS_AT_ONCE as u32));
            lanes.prepare(gpu, steps.clone())?;
            gpu.write(&[first, first, first], &mut self.clock)?;
            for _ in steps {
                vote(interrupt, group)?;
                if !self.warm || self.exchange.as_ref().is_some_and(|exchange| !exchange.in_stream()) {
                    self.step(&batch, lanes)?;
                    self.warm = true;
                    continue;
                }
                if lanes.graph.is_none() {
                    lanes.graph = Some((key, self.record(&batch, lanes)?));
                }
                if let Some((_, graph)) = &lanes.graph {
                    graph.launch().doing("take a step")?;
                }
            }
        }
        self.read_back(gpu, lanes)
    }

    /// The gradients of this rank's leaves of the clock's step.
    fn gradients(&self, batch: &Batch, lanes: &CudaLanes) -> Result<()> {
        let weights = LaneWeights { lanes: lanes.len(), identity: &lanes.identity, weights: &lanes.weights };
        let clock = at(&self.clock, 0);
        let selection = |first, lane| Selection::Shuffled { first, batch: batch.size, clock, seeds: at(&lanes.seeds, lane) };
        // SAFETY: `train` has called `prepare` for these lanes and this partition; a shuffled example is one of the set, and there is a seed for
        // each lane.
        unsafe { batch.leaf_gradients.compute(batch.model, &weights, &batch.partition, selection) }
    }

    /// One step of every lane, from the clock's.
    fn step(&mut self, batch: &Batch, lanes: &CudaLanes) -> Result<()> {
        let Batch { model, leaf_gradients, partition, size } = batch;
        // SAFETY: the clock has three numbers.
        unsafe { model.kernels.clock_step(at_mut(&self.clock, 0)) }?;
        self.gradients(batch, lanes)?;
        let (places, parameters, sums) = (partition.own_leaves().len(), model.network.parameters(), leaf_gradients.buffer()?);
        let (packed, loss_at, sum) = match &mut self.exchange {
            Some(exchange) => (1, lanes.most_kept, exchange.sum(model.gpu(), &model.kernels, model.group, lanes, partition, sums)?),
            None => {
                let (from, parts) = (at(sums, 0), Parts::leaves(places));
                (0, parameters, PartialSums { from, parts, lane_stride: places * lanes.pitch, part_stride: lanes.pitch })
            }
        };
        let (losses, broken) = lanes.progress();
        let [velocity, squares, average] = lanes.beside();
        // SAFETY: the lanes have memory for all of their parameters, their kept indices are the network's (`Task::check_start`), and the sums lie
        // as the strides say.
        unsafe {
            model.kernels.update(
                lanes.len(),
                parameters as i32,
                *size as i32,
                packed,
                sum.parts,
                sum.lane_stride as i64,
                sum.part_stride as i64,
                loss_at as i32,
                lanes.pitch as i32,
                at(&lanes.rules, 0),
                at(&lanes.numbers, 0),
                lanes.kept(),
                at(&lanes.kept_count, 0),
                lanes.most_kept as i32,
                sum.from,
                at_mut(&lanes.weights, 0),
                velocity,
                squares,
                average,
                losses,
                broken,
                at_mut(&self.clock, 0),
            )
        }
    }

    /// Records a step.
    fn record(&mut self, batch: &Batch, lanes: &CudaLanes) -> Result<CudaGraph> {
        let stream = &batch.model.gpu().stream;
        if batch.model.blas.is_some() {
            // cuBLAS chooses, and loads, a kernel when it first meets a size, which must not happen in a capture. Gradients alone change nothing.
            self.gradients(batch, lanes)?;
        }
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).doing("record a step")?;
        let recorded = self.step(batch, lanes);
        // A capture that failed has to be ended all the same.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).doing("record a step");
        recorded?;
        graph?.ok_or_else(|| refuse("expected a recorded step, found none; report this as a bug"))
    }

    /// Waits until the steps are done.
    fn wait(&self, gpu: &Gpu) -> Result<()> {
        self.exchange.as_ref().map_or_else(|| gpu.wait(), |exchange| exchange.wait(gpu))
    }

    /// Loss and end of every lane, from the device.
    fn read_back(&self, gpu: &Gpu, lanes: &mut CudaLanes) -> Result<()> {
        gpu.stream.memcpy_dtoh(&lanes.report, &mut lanes.pinned).doing("give the losses")?;
        self.wait(gpu)?;
        let report = lanes.pinned.as_slice().doing("give the losses")?;
        let (losses, broken) = report.split_at(lanes.known.len());
        for ((lane, &loss), &broken) in lanes.known.iter_mut().zip(losses).zip(broken) {
            lane.progress = Progress { loss: f32::from_bits(loss as u32), broken: u32::try_from(broken).ok() };
        }
        Ok(())
    }
}

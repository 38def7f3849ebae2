//! Gradients of lanes' losses, summed over each leaf of a batch.

use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::dataset::Selection;
use super::gpu::Stored;
use super::micro_batch::{MicroBatch, Output, micro_batches};
use super::model::Model;
use super::partition::BatchPartition;
use super::pointer::{at, at_mut};
use crate::Result;

/// The weights that lanes have.
pub(super) struct LaneWeights<'a> {
    pub lanes: usize,
    /// `[lane]`: its own number, which is its place among the weights.
    pub identity: &'a CudaSlice<i32>,
    /// `[lane][pitch]`.
    pub weights: &'a CudaSlice<f32>,
}

/// Buffers of the gradients of this rank's leaves of a batch.
#[derive(Default)]
pub(super) struct LeafGradients {
    /// `[lane][place][pitch]`: the gradients, each with its loss behind it.
    sums: Option<CudaSlice<f32>>,
    /// `[lane][pitch]`: the weights as convolutions read them; none where they read the weights themselves.
    stored: Option<CudaSlice<Stored>>,
}

impl LeafGradients {
    /// Makes room for what a batch needs: gradients of this rank's leaves, stored weights, and images of all lanes. Where the first two are
    /// afterwards tells whether a recorded step still serves.
    pub fn prepare(&mut self, model: &Model, lanes: usize, partition: &BatchPartition) -> Result<[u64; 2]> {
        let own = partition.own_leaves();
        let sums = model.gpu().make_room(&mut self.sums, lanes * own.len() * model.pitch())?;
        let stored = if model.in_pairs() { model.gpu().make_room(&mut self.stored, lanes * model.pitch())? } else { 0 };
        // Whole leaves, though the last one may be shorter: with room for these, images are cut by nothing that happened before. cuBLAS sums
        // otherwise where its matrices have other sizes.
        let images = lanes * own.len() * partition.length;
        model.cuda.workspace.borrow_mut().ensure(model.gpu(), &model.network, images, partition.length, true)?;
        Ok([sums, stored])
    }

    /// The memory that [`LeafGradients::prepare`] has made for the gradients.
    pub fn buffer(&self) -> Result<&CudaSlice<f32>> {
        self.sums.as_ref().ok_or_else(|| refuse("expected room for gradients, found none; report this as a bug"))
    }

    /// Computes the leaves' gradients and losses on training examples. `selection(first, lane)` says which examples a micro-batch has: those from the
    /// batch's example `first` on, for the lanes from `lane` on.
    ///
    /// # Safety
    /// [`LeafGradients::prepare`] was called for these lanes and this partition; what the selection points to is there for every lane, and
    /// selects training examples.
    pub unsafe fn compute<'s>(
        &self,
        model: &Model,
        weights: &LaneWeights,
        partition: &BatchPartition,
        selection: impl Fn(usize, usize) -> Selection<'s>,
    ) -> Result<()> {
        let (buffer, own, pitch) = (self.buffer()?, partition.own_leaves(), model.pitch());
        // SAFETY: `prepare` has made room for the weights of so many lanes.
        let stored = unsafe { model.stored(weights.weights, self.stored.as_ref()) }?;
        let workspace = model.cuda.workspace.borrow();
        let space = workspace.buffers()?;
        for (lanes, leaves) in micro_batches(weights.lanes, own.len(), partition.length, space.slots) {
            let examples = partition.examples(&(own.start + leaves.start..own.start + leaves.end));
            let batch = MicroBatch {
                kernels: &model.kernels,
                space,
                network: &model.network,
                lanes: lanes.len(),
                images: examples.len(),
                which: at(weights.identity, lanes.start),
                weights: at(weights.weights, 0),
                stored,
                ordered: Some(at(weights.weights, lanes.start * pitch)),
                pitch,
                length: partition.length,
                places: own.len(),
                output: Output::Gradients(at_mut(buffer, (lanes.start * own.len() + leaves.start) * pitch)),
            };
            // SAFETY: the micro-batch is one that the workspace has room for, and its part of the buffer is there (`prepare`, as the caller
            // promises); the caller vouches for the selection.
            unsafe { model.run(&batch, &model.dataset.training, selection(examples.start, lanes.start)) }?;
        }
        Ok(())
    }
}

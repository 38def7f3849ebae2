//! Gradients of lanes' losses, summed over each leaf of a batch.

use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::dataset::Selection;
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

/// `[lane][place][pitch]`: the gradients of this rank's leaves of a batch, each with its loss behind it.
#[derive(Default)]
pub(super) struct LeafGradients(Option<CudaSlice<f32>>);

impl LeafGradients {
    /// Makes room for what a batch needs: gradients of this rank's leaves, and images of all lanes.
    pub fn prepare(&mut self, model: &Model, lanes: usize, partition: &BatchPartition) -> Result<()> {
        let own = partition.own_leaves();
        let floats = lanes * own.len() * model.pitch();
        if self.0.as_ref().is_none_or(|buffer| buffer.len() < floats) {
            self.0 = None;
            self.0 = Some(model.gpu().uninitialised(floats)?);
        }
        let images = lanes * partition.examples(&own).len();
        model.cuda.workspace.borrow_mut().ensure(model.gpu(), &model.network, images, partition.length, true)
    }

    /// The memory that [`LeafGradients::prepare`] has made.
    pub fn buffer(&self) -> Result<&CudaSlice<f32>> {
        self.0.as_ref().ok_or_else(|| refuse("expected room for gradients, found none; report this as a bug"))
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

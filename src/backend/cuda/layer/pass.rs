//! A micro-batch on its way through one layer.

use super::super::gpu::Stored;
use super::super::launch::{LayerKernels, goes_through_relu};
use super::super::micro_batch::{MicroBatch, Output};
use super::super::pointer::{ConstPointer, MutPointer, at, at_mut};
use super::super::products::Blas;
use crate::Result;
use crate::network::Slot;

/// A micro-batch on its way through the layer at [`Pass::index`].
pub struct Pass<'a> {
    batch: &'a MicroBatch<'a>,
    blas: Option<&'a Blas>,
    index: usize,
}

/// Has a kernel, or cuBLAS, compute on the micro-batch of a [`Pass`].
macro_rules! on_batch {
    ($call:expr) => {
        // SAFETY: the caller of `Pass::new` vouches for the batch's images, labels, weights and output. Addresses are where a buffer of the workspace
        // begins, which `Workspace::ensure` has made for as many images of this network; counts and layers are the batch's own.
        unsafe { $call }
    };
}
pub(super) use on_batch;

impl<'a> Pass<'a> {
    /// # Safety
    /// The batch's images and labels are in its workspace; its weights, and its output's memory, are there for all of its lanes and groups. The
    /// layers before this one have computed what it reads.
    pub unsafe fn new(batch: &'a MicroBatch<'a>, blas: Option<&'a Blas>, index: usize) -> Pass<'a> {
        Pass { batch, blas, index }
    }

    pub fn batch(&self) -> &'a MicroBatch<'a> {
        self.batch
    }

    /// cuBLAS, where the products are its own.
    pub fn blas(&self) -> Option<&'a Blas> {
        self.blas
    }

    /// The layer's index in the network.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A map that is read.
    pub fn read(&self, slot: Slot) -> ConstPointer<'a, Stored> {
        at(&self.batch.space.maps[slot], 0)
    }

    /// A map that is written.
    pub fn write(&self, slot: Slot) -> MutPointer<'a, Stored> {
        at_mut(&self.batch.space.maps[slot], 0)
    }

    /// The gradient that is kept for a layer, to read.
    pub fn gradient(&self, layer: usize) -> ConstPointer<'a, Stored> {
        at(&self.batch.space.gradients[layer], 0)
    }

    /// Where to write the gradient kept for `producer`, the layer that wrote this layer's input, and whether that gradient is 0 where the input is 0.
    pub fn sent(&self, producer: usize) -> (MutPointer<'a, Stored>, bool) {
        (at_mut(&self.batch.space.gradients[producer], 0), goes_through_relu(self.batch.network, producer))
    }

    /// Writes the gradients of a layer's weights and bias, summed over each leaf.
    pub fn filter_gradient(
        &self,
        of: &LayerKernels,
        input: ConstPointer<Stored>,
        gradient: ConstPointer<Stored>,
        choice: Option<ConstPointer<u8>>,
    ) -> Result<()> {
        let MicroBatch { kernels, lanes, images, length, places, pitch, output, .. } = *self.batch;
        let Output::Gradients(sums) = output else { return Ok(()) };
        on_batch!(kernels.filter_gradient(
            lanes,
            self.index,
            of,
            images as i32,
            length as i32,
            places as i32,
            pitch as i32,
            input,
            gradient,
            choice,
            sums,
        ))
    }
}

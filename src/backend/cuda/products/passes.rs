//! The passes of convolutions and of the last layer, by chunks of images that the scratch memory holds.

use std::ops::Range;

use super::blas::Blas;
use super::matrix::{Matrix, Operand};
use crate::Result;
use crate::backend::cuda::check::refuse;
use crate::backend::cuda::launch::{ConvolutionShape, OutputMap};
use crate::backend::cuda::micro_batch::{MicroBatch, micro_batches};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer, at, at_mut};
use crate::network::{Convolution, Dense};

/// Where a convolution's forward pass writes beside its map, and the stream that it adds.
pub(in crate::backend::cuda) struct ForwardOutputs<'a> {
    pub to: OutputMap,
    pub choice: Option<MutPointer<'a, u8>>,
    pub stream: Option<MutPointer<'a, f32>>,
    pub shortcut: Option<ConstPointer<'a, f32>>,
}

/// Where the gradient of a convolution's input goes, and what it goes through on its way.
pub(in crate::backend::cuda) struct InputGradient<'a> {
    pub rectified: Option<ConstPointer<'a, f32>>,
    pub bypass: Option<ConstPointer<'a, f32>>,
    pub bypass_channels: i32,
    pub output: MutPointer<'a, f32>,
}

/// Images of some lanes that go through the scratch memory together.
struct Chunk {
    lanes: Range<usize>,
    images: Range<usize>,
    /// Whether the filter gradient of the images is added to that of the images before them in the same leaf.
    add: bool,
}

impl Chunk {
    /// The first image's slot in the micro-batch.
    fn slot(&self, images: usize) -> usize {
        self.lanes.start * images + self.images.start
    }
}

/// Has a kernel, or cuBLAS, compute on a chunk of a micro-batch.
macro_rules! on_chunk {
    ($call:expr) => {
        // SAFETY: the caller vouches for the batch's images, labels, weights and output, and for the layer. The workspace's buffers hold as many
        // images of the network as the batch has; `chunks` has cut it so that the scratch memory holds a chunk's patches with their sums behind
        // them.
        unsafe { $call }
    };
}

impl Blas {
    /// Cuts a micro-batch's images into chunks that the scratch memory holds, where an image takes so many floats. Groups of `length` images stay
    /// together; one that does not fit is cut into chunks of one lane.
    fn chunks(&self, lanes: usize, images: usize, length: usize, floats: usize) -> Result<Vec<Chunk>> {
        let most = self.scratch.len() / floats;
        if most == 0 {
            return Err(refuse(format!(
                "expected an image's patches and sums to take at most {} bytes, found {}; set execution.products = \"fused\"",
                4 * self.scratch.len(),
                4 * floats
            )));
        }
        let mut chunks = Vec::new();
        for (lanes, groups) in micro_batches(lanes, images.div_ceil(length), length, most) {
            let all = groups.start * length..(groups.end * length).min(images);
            let step = if lanes.len() * all.len() <= most { all.len() } else { most };
            chunks.extend(all.clone().step_by(step.max(1)).map(|start| Chunk {
                lanes: lanes.clone(),
                images: start..(start + step).min(all.end),
                add: start > all.start,
            }));
        }
        Ok(chunks)
    }

    /// A convolution's forward pass.
    ///
    /// # Safety
    /// The batch is as [`propagate`](crate::backend::cuda::layer::propagate) asks for, and `layer` is one of its network.
    pub(in crate::backend::cuda) unsafe fn forward(&self, batch: &MicroBatch, layer: &Convolution, outputs: &ForwardOutputs) -> Result<()> {
        let shape = ConvolutionShape::new(layer);
        let (positions, terms, out) = (layer.output.height * layer.output.width, layer.kernel * layer.run(), layer.output.channels);
        let output = at_mut(&batch.space.maps[layer.epilogue.written()], 0).cast();
        let ForwardOutputs { to, choice, stream, shortcut } = *outputs;
        for chunk in self.chunks(batch.lanes, batch.images, 1, positions * (terms + out))? {
            let (lanes, count, slot) = (chunk.lanes.len(), chunk.images.len(), chunk.slot(batch.images));
            let rows = count * positions;
            on_chunk!(self.patches(batch, shape, layer, &chunk))?;
            let patches = Matrix::new(at(&self.scratch, 0), terms, rows * terms, 0);
            let of_lanes = ordered(batch)?.offset(chunk.lanes.start * batch.pitch);
            let weights = Matrix::new(of_lanes.offset(layer.weights), out, batch.pitch, 0);
            let sums = Matrix::new(at_mut(&self.scratch, lanes * rows * terms), out, rows * out, 0);
            on_chunk!({
                self.multiply([rows, out, terms], [lanes, 1], patches, weights, sums, false)?;
                batch.kernels.convolution_tail(
                    lanes,
                    shape,
                    to,
                    batch.images as i32,
                    slot as i64,
                    count as i32,
                    of_lanes,
                    batch.pitch as i32,
                    sums.operand().at,
                    output,
                    choice,
                    stream,
                    shortcut,
                )?;
            });
        }
        Ok(())
    }

    /// The patches of a chunk's images, in the scratch memory.
    ///
    /// # Safety
    /// As [`Blas::forward`].
    unsafe fn patches(&self, batch: &MicroBatch, shape: ConvolutionShape, layer: &Convolution, chunk: &Chunk) -> Result<()> {
        let (images, slot, count) = (batch.images as i32, chunk.slot(batch.images) as i64, chunk.images.len() as i32);
        let map = at(&batch.space.maps[layer.input], 0).cast();
        on_chunk!(batch.kernels.patches(chunk.lanes.len(), shape, images, slot, count, map, at_mut(&self.scratch, 0)))
    }

    /// A convolution's gradients: of its weights and bias, and, where that is asked for, of its input.
    ///
    /// # Safety
    /// As [`Blas::forward`].
    pub(in crate::backend::cuda) unsafe fn backward(
        &self,
        batch: &MicroBatch,
        index: usize,
        layer: &Convolution,
        input: Option<&InputGradient>,
    ) -> Result<()> {
        let shape = ConvolutionShape::new(layer);
        let (positions, terms, out) = (layer.output.height * layer.output.width, layer.kernel * layer.run(), layer.output.channels);
        let (gradient, choice) = (at(&batch.space.gradients[index], 0).cast(), at(&batch.space.choices[index], 0));
        let pooled = shape.pooled != 0;
        let kept = if pooled { positions / 4 } else { positions };
        on_chunk!(self.bias(batch, layer.bias, kept, out, gradient, pooled.then_some(choice)))?;
        for chunk in self.chunks(batch.lanes, batch.images, batch.length, positions * (terms + out))? {
            let (lanes, count, slot) = (chunk.lanes.len(), chunk.images.len(), chunk.slot(batch.images));
            let rows = count * positions;
            let images = batch.images as i32;
            let sums = if pooled {
                let to = at_mut(&self.scratch, lanes * rows * terms);
                on_chunk!(batch.kernels.unpool(lanes, shape, images, slot as i64, count as i32, gradient, choice, to))?;
                Matrix::new(to.into_const(), out, rows * out, batch.length * positions * out)
            } else {
                Matrix::new(gradient.offset(slot * positions * out), out, batch.images * positions * out, batch.length * positions * out)
            };
            on_chunk!(self.patches(batch, shape, layer, &chunk))?;
            let patches = Matrix::new(at_mut(&self.scratch, 0), terms, rows * terms, batch.length * positions * terms);
            on_chunk!(self.filter(batch, &chunk, [terms, out, positions], layer.weights, patches.operand(), sums))?;
            let Some(input) = input else { continue };
            let of_lanes = ordered(batch)?.offset(chunk.lanes.start * batch.pitch);
            let weights = Matrix::new(of_lanes.offset(layer.weights), out, batch.pitch, 0);
            on_chunk!({
                self.multiply([rows, terms, out], [lanes, 1], sums, weights.transposed(), patches, false)?;
                batch.kernels.patch_sums(
                    lanes,
                    shape,
                    images,
                    slot as i64,
                    count as i32,
                    patches.operand().at,
                    input.rectified,
                    input.bypass,
                    input.bypass_channels,
                    input.output,
                )?;
            });
        }
        Ok(())
    }

    /// The gradient of weights at `weights`, summed over each leaf of a chunk: `[terms, out, positions of an image]`.
    ///
    /// # Safety
    /// As [`Blas::forward`]; `patches` and `sums` are matrices of the chunk's images, with room for all of them.
    unsafe fn filter(
        &self,
        batch: &MicroBatch,
        chunk: &Chunk,
        [terms, out, positions]: [usize; 3],
        weights: usize,
        patches: Operand,
        sums: Operand,
    ) -> Result<()> {
        let Some(to) = batch.output.gradients() else { return Ok(()) };
        let (leaf, lane) = (chunk.images.start / batch.length, batch.places * batch.pitch);
        let to = Matrix::new(to.offset(chunk.lanes.start * lane + leaf * batch.pitch + weights), out, lane, batch.pitch);
        let (whole, rest) = (chunk.images.len() / batch.length, chunk.images.len() % batch.length);
        if whole > 0 {
            let size = [terms, out, batch.length * positions];
            on_chunk!(self.multiply(size, [chunk.lanes.len(), whole], patches.transposed(), sums, to, false))?;
        }
        if rest > 0 {
            let [patches, sums] = [patches, sums].map(|matrix| matrix.with(matrix.at.offset(whole * matrix.group)));
            let to = to.with(to.at.offset(whole * to.group));
            let size = [terms, out, rest * positions];
            on_chunk!(self.multiply(size, [chunk.lanes.len(), 1], patches.transposed(), sums, to, chunk.add))?;
        }
        Ok(())
    }

    /// The gradient of a bias, summed over each leaf; `kept` is what there is of an image's gradient in positions.
    ///
    /// # Safety
    /// As [`Blas::forward`].
    unsafe fn bias(
        &self,
        batch: &MicroBatch,
        bias: usize,
        kept: usize,
        out: usize,
        gradient: ConstPointer<f32>,
        choice: Option<ConstPointer<u8>>,
    ) -> Result<()> {
        let Some(sums) = batch.output.gradients() else { return Ok(()) };
        on_chunk!(batch.kernels.bias_gradient(
            batch.lanes,
            batch.images as i32,
            batch.length as i32,
            batch.places as i32,
            batch.pitch as i32,
            bias as i32,
            kept as i32,
            out as i32,
            gradient,
            choice,
            sums,
        ))
    }

    /// The logits, their loss and its gradient, or the margins.
    ///
    /// # Safety
    /// As [`Blas::forward`].
    pub(in crate::backend::cuda) unsafe fn head(&self, batch: &MicroBatch, layer: &Dense) -> Result<()> {
        let logits = at_mut(&batch.space.logits, 0).cast();
        let [features, weights] = head_operands(batch, layer)?;
        let to = Matrix::new(logits, layer.outputs, batch.images * layer.outputs, 0);
        on_chunk!({
            self.multiply([batch.images, layer.outputs, layer.inputs], [batch.lanes, 1], features, weights, to, false)?;
            batch.kernels.softmax_loss(
                batch.lanes,
                batch.images as i32,
                batch.length as i32,
                batch.places as i32,
                layer.bias as i32,
                ordered(batch)?,
                batch.pitch as i32,
                at(&batch.space.labels, 0),
                logits,
                batch.output.gradients(),
                batch.network.parameters() as i32,
                batch.output.margins(),
            )
        })
    }

    /// The gradients of the last layer's weights, bias and input, the last to `output`.
    ///
    /// # Safety
    /// As [`Blas::forward`].
    pub(in crate::backend::cuda) unsafe fn head_backward(&self, batch: &MicroBatch, layer: &Dense, output: MutPointer<f32>) -> Result<()> {
        let (inputs, classes, images) = (layer.inputs, layer.outputs, batch.images);
        let [features, weights] = head_operands(batch, layer)?;
        let gradient = Matrix::new(at(&batch.space.logits, 0).cast(), classes, images * classes, batch.length * classes);
        let all = Chunk { lanes: 0..batch.lanes, images: 0..images, add: false };
        let to = Matrix::new(output, inputs, images * inputs, 0);
        on_chunk!({
            self.bias(batch, layer.bias, 1, classes, gradient.at, None)?;
            self.filter(batch, &all, [inputs, classes, 1], layer.weights, features, gradient)?;
            self.multiply([images, inputs, classes], [batch.lanes, 1], gradient, weights.transposed(), to, false)
        })
    }
}

/// The weights in the order of the lanes.
fn ordered<'a>(batch: &MicroBatch<'a>) -> Result<ConstPointer<'a, f32>> {
    batch.ordered.ok_or_else(|| refuse("expected weights in the order of the lanes, found none; report this as a bug"))
}

/// The last layer's input and weights.
fn head_operands<'a>(batch: &MicroBatch<'a>, layer: &Dense) -> Result<[Operand<'a>; 2]> {
    let features = at(&batch.space.maps[layer.input], 0).cast();
    Ok([
        Matrix::new(features, layer.inputs, batch.images * layer.inputs, batch.length * layer.inputs),
        Matrix::new(ordered(batch)?.offset(layer.weights), layer.outputs, batch.pitch, 0),
    ])
}

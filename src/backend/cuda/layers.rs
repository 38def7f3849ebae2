//! The network's operations on a micro-batch: launches of the fused kernels, or cuBLAS's products.

use super::launch::plain::{GroupNormShape, PoolShape};
use super::launch::{LayerKernels, OutputMap, goes_through_relu, is_unpooled, surrounds_products};
use super::micro_batch::{MicroBatch, Output};
use super::pointer::{ConstPointer, at, at_mut};
use super::products::{Blas, ForwardOutputs, InputGradient};
use crate::Result;
use crate::network::{Convolution, Dense, Epilogue, GlobalMean, GroupNorm, Layer, Network, Pool};

/// Sends a micro-batch through the network: forward, with the losses or the margins; and backward, where gradients are asked for. `blas` is
/// cuBLAS, where the products are its own.
///
/// # Safety
/// The batch's images and labels are in its workspace; its weights, and its output's memory, are there for all of its lanes and groups.
pub(super) unsafe fn propagate(batch: &MicroBatch, blas: Option<&Blas>) -> Result<()> {
    let (pass, layers) = (Layers { batch, blas }, batch.network.layers.iter().enumerate());
    for (index, layer) in layers.clone() {
        match layer {
            Layer::Convolution(layer) => pass.forward(index, layer),
            Layer::Pool(layer) => pass.pool(layer),
            Layer::GlobalMean(layer) => pass.mean(layer),
            Layer::GroupNorm(layer) => pass.group_norm(layer),
            // With the loss and its gradient, or the errors: the logits never leave the registers.
            Layer::Dense(layer) => pass.head(layer),
        }?;
    }
    let Output::Gradients(_) = batch.output else { return Ok(()) };
    layers.rev().try_for_each(|(index, layer)| match layer {
        Layer::Convolution(layer) => pass.backward(index, layer, batch.network),
        Layer::Pool(layer) => pass.pool_backward(index, layer),
        Layer::GlobalMean(layer) => pass.mean_backward(index, layer),
        Layer::GroupNorm(layer) => pass.group_norm_backward(index, layer),
        Layer::Dense(layer) => pass.head_backward(index, layer),
    })
}

/// A micro-batch on its way through the network: [`propagate`] alone makes one.
struct Layers<'a> {
    batch: &'a MicroBatch<'a>,
    blas: Option<&'a Blas>,
}

/// Has a kernel, or cuBLAS, compute on the micro-batch of [`Layers`].
macro_rules! on_batch {
    ($call:expr) => {
        // SAFETY: the caller of `propagate`, which made these `Layers`, vouches for the batch's images, labels, weights and output. Addresses are
        // where a buffer of the workspace begins, which `Workspace::ensure` has made for as many images of this network; counts and layers are the
        // batch's own.
        unsafe { $call }
    };
}

impl Layers<'_> {
    fn forward(&self, index: usize, layer: &Convolution) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, output, .. } = *self.batch;
        let maps = &network.maps;
        let training = matches!(output, Output::Gradients(_));
        let choice = training.then(|| at_mut(&space.choices[index], 0));
        let (mut stream, mut shortcut, mut channels) = (None, None, 0);
        if let Epilogue::Stream { stream: to, shortcut: from, .. } = layer.epilogue {
            stream = Some(at_mut(&space.maps[to], 0));
            if let Some(from) = from {
                (shortcut, channels) = (Some(at(&space.maps[from], 0)), maps[from].channels);
            }
        }
        if let Some(blas) = self.blas_for(layer) {
            let to = OutputMap::new(maps[layer.epilogue.written()], channels);
            return on_batch!(blas.forward(self.batch, layer, &ForwardOutputs { to, choice, stream, shortcut }));
        }
        on_batch!(kernels.convolution_forward(
            lanes,
            index,
            &LayerKernels::new(layer),
            images as i32,
            which,
            weights,
            pitch as i32,
            at(&space.maps[layer.input], 0),
            at_mut(&space.maps[layer.epilogue.written()], 0),
            choice,
            stream,
            shortcut,
        ))
    }

    fn filter_gradient(
        &self,
        index: usize,
        of: &LayerKernels,
        input: ConstPointer<f32>,
        gradient: ConstPointer<f32>,
        choice: Option<ConstPointer<u8>>,
    ) -> Result<()> {
        let MicroBatch { kernels, lanes, images, length, places, pitch, output, .. } = *self.batch;
        let Output::Gradients(sums) = output else { return Ok(()) };
        on_batch!(kernels.filter_gradient(
            lanes,
            index,
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

    fn backward(&self, index: usize, layer: &Convolution, network: &Network) -> Result<()> {
        let MicroBatch { kernels, space, lanes, images, which, weights, pitch, .. } = *self.batch;
        let of = LayerKernels::new(layer);
        let gradient = at(&space.gradients[index], 0);
        let choice = at(&space.choices[index], 0);
        let input = at(&space.maps[layer.input], 0);
        let Some(producer) = layer.producer else {
            return match self.blas_for(layer) {
                Some(blas) => on_batch!(blas.backward(self.batch, index, layer, None)),
                None => self.filter_gradient(index, &of, input, gradient, Some(choice)),
            };
        };
        let rectified = goes_through_relu(network, producer).then_some(input);
        let bypass = layer.bypass.map(|bypass| at(&space.gradients[bypass], 0));
        let bypass_channels = layer.bypass.map_or(0, |bypass| network.convolution(bypass).output.channels) as i32;
        let output = at_mut(&space.gradients[producer], 0);
        if let Some(blas) = self.blas_for(layer) {
            return on_batch!(blas.backward(self.batch, index, layer, Some(&InputGradient { rectified, bypass, bypass_channels, output })));
        }
        let (gradient, choice) = if is_unpooled(layer) {
            let (to, count) = (&space.unpooled[index], images as i32);
            on_batch!(kernels.unpool(lanes, of.shape, count, 0, count, gradient, choice, at_mut(to, 0)))?;
            (at(to, 0), None)
        } else {
            (gradient, Some(choice))
        };
        self.filter_gradient(index, &of, input, gradient, choice)?;
        on_batch!(kernels.data_gradient(
            lanes,
            index,
            &of,
            images as i32,
            which,
            weights,
            pitch as i32,
            gradient,
            choice,
            rectified,
            bypass,
            output,
        ))
    }

    /// cuBLAS, where it multiplies and what follows this layer's sums is one of the things that the kernels around its products do.
    fn blas_for(&self, layer: &Convolution) -> Option<&Blas> {
        self.blas.filter(|_| surrounds_products(self.batch.network, layer))
    }

    fn pool(&self, layer: &Pool) -> Result<()> {
        let MicroBatch { kernels, space, network, .. } = *self.batch;
        let (input, output) = (at(&space.maps[layer.input], 0), at_mut(&space.maps[layer.output], 0));
        on_batch!(kernels.pool_forward(PoolShape::new(network, layer), self.batch.slots() as i32, input, output))
    }

    fn pool_backward(&self, index: usize, layer: &Pool) -> Result<()> {
        let MicroBatch { kernels, space, network, .. } = *self.batch;
        let Some(producer) = layer.producer else { return Ok(()) };
        let (shape, slots, through_relu) =
            (PoolShape::new(network, layer), self.batch.slots() as i32, goes_through_relu(network, producer).into());
        let (input, gradient) = (at(&space.maps[layer.input], 0), at(&space.gradients[index], 0));
        on_batch!(kernels.pool_backward(shape, slots, through_relu, input, gradient, at_mut(&space.gradients[producer], 0)))
    }

    fn mean(&self, layer: &GlobalMean) -> Result<()> {
        let MicroBatch { kernels, space, network, .. } = *self.batch;
        let [slots, height, width, channels, row, len, before] = self.mean_shape(network, layer);
        let (input, output) = (at(&space.maps[layer.input], 0), at_mut(&space.maps[layer.output], 0));
        on_batch!(kernels.global_mean(slots, height, width, channels, row, len, before, input, output))
    }

    fn mean_backward(&self, index: usize, layer: &GlobalMean) -> Result<()> {
        let MicroBatch { kernels, space, network, .. } = *self.batch;
        let [slots, height, width, channels, row, len, before] = self.mean_shape(network, layer);
        let Some(producer) = layer.producer else { return Ok(()) };
        let (input, gradient) = (at(&space.maps[layer.input], 0), at(&space.gradients[index], 0));
        let (through_relu, to) = (goes_through_relu(network, producer).into(), at_mut(&space.gradients[producer], 0));
        on_batch!(kernels.global_mean_backward(slots, height, width, channels, row, len, before, through_relu, input, gradient, to))
    }

    /// What the kernels of the mean are given: slots, and height, width, channels, row, length and border of the map.
    fn mean_shape(&self, network: &Network, layer: &GlobalMean) -> [i32; 7] {
        let map = network.maps[layer.input];
        [self.batch.slots(), map.height, map.width, map.channels, map.row(), map.len(), map.before].map(|number| number as i32)
    }

    fn group_norm(&self, layer: &GroupNorm) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, .. } = *self.batch;
        let (input, output) = (at(&space.maps[layer.input], 0), at_mut(&space.maps[layer.output], 0));
        let shape = GroupNormShape::new(network, layer);
        on_batch!(kernels.group_norm_forward(lanes, shape, images as i32, which, weights, pitch as i32, input, output))
    }

    fn group_norm_backward(&self, index: usize, layer: &GroupNorm) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, length, places, output, .. } = *self.batch;
        let Output::Gradients(sums) = output else { return Ok(()) };
        on_batch!(kernels.group_norm_backward(
            lanes,
            GroupNormShape::new(network, layer),
            images as i32,
            length as i32,
            places as i32,
            goes_through_relu(network, layer.producer).into(),
            which,
            weights,
            pitch as i32,
            at(&space.maps[layer.input], 0),
            at(&space.gradients[index], 0),
            at_mut(&space.gradients[layer.producer], 0),
            sums,
        ))
    }

    fn head(&self, layer: &Dense) -> Result<()> {
        if let Some(blas) = self.blas.filter(|_| layer.has_bias) {
            return on_batch!(blas.head(self.batch, layer));
        }
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, length, places, output, .. } = *self.batch;
        on_batch!(kernels.dense_forward(
            lanes,
            images as i32,
            length as i32,
            places as i32,
            layer.inputs as i32,
            layer.weights as i32,
            if layer.has_bias { layer.bias as i32 } else { -1 },
            which,
            weights,
            pitch as i32,
            at(&space.maps[layer.input], 0),
            at(&space.labels, 0),
            at_mut(&space.logits, 0),
            output.gradients(),
            network.parameters() as i32,
            output.margins(),
        ))
    }

    fn head_backward(&self, index: usize, layer: &Dense) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, .. } = *self.batch;
        let features = at(&space.maps[layer.input], 0);
        let to = layer.producer.map(|producer| at_mut(&space.gradients[producer], 0));
        let rectified = layer.producer.is_some_and(|producer| goes_through_relu(network, producer)).then_some(features);
        if let (Some(blas), Some(to), None, true) = (self.blas, to, rectified, layer.has_bias) {
            return on_batch!(blas.head_backward(self.batch, layer, to));
        }
        let gradient = at(&space.logits, 0);
        self.filter_gradient(index, &LayerKernels::dense(layer), features, gradient, None)?;
        let Some(to) = to else { return Ok(()) };
        on_batch!(kernels.dense_backward(
            lanes,
            images as i32,
            layer.inputs as i32,
            layer.weights as i32,
            which,
            weights,
            pitch as i32,
            gradient,
            rectified,
            to,
        ))
    }
}

//! Convolutions, by kernels that compute tiles of sums, by plain loops, or by cuBLAS's products.

use super::super::buffers::ImageSizes;
use super::super::launch::{ConvolutionShape, LayerKernels, OutputMap, convolution_source, is_unpooled, surrounds_products, uses_tiles};
use super::super::micro_batch::{MicroBatch, Output};
use super::super::pointer::{ConstPointer, at, at_mut};
use super::super::products::{Blas, ForwardOutputs, InputGradient};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::{Convolution, Epilogue, Network};

/// cuBLAS, where it multiplies and what follows this layer's sums is one of the things that the kernels around its products do.
fn blas_for<'a>(layer: &Convolution, pass: &Pass<'a>) -> Option<&'a Blas> {
    pass.blas().filter(|_| surrounds_products(pass.batch().network, layer))
}

impl CudaLayer for Convolution {
    fn describe(&self) -> &'static str {
        if uses_tiles(self) { "tiles of sums" } else { "plain loops" }
    }

    fn source(&self, network: &Network, index: usize, tensor: bool) -> String {
        convolution_source(network, index, self, tensor)
    }

    fn sizes(&self, written: usize) -> ImageSizes {
        let pooled = matches!(self.epilogue, Epilogue::ReluMaxPool { .. });
        ImageSizes {
            gradient: written,
            choices: if pooled { written } else { 0 },
            unpooled: if is_unpooled(self) { self.output.inner_len() } else { 0 },
        }
    }

    fn sums(&self) -> usize {
        self.output.inner_len()
    }

    fn forward(&self, pass: &Pass) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, stored, pitch, output, .. } = *pass.batch();
        let maps = &network.maps;
        let training = matches!(output, Output::Gradients(_));
        let choice = training.then(|| at_mut(&space.choices[pass.index()], 0));
        let (mut stream, mut shortcut, mut channels) = (None, None, 0);
        if let Epilogue::Stream { stream: to, shortcut: from, .. } = self.epilogue {
            stream = Some(pass.write(to).cast());
            if let Some(from) = from {
                (shortcut, channels) = (Some(pass.read(from).cast()), maps[from].channels);
            }
        }
        let written = self.epilogue.written();
        if let Some(blas) = blas_for(self, pass) {
            let to = OutputMap::new(maps[written], channels);
            return on_batch!(blas.forward(pass.batch(), self, &ForwardOutputs { to, choice, stream, shortcut }));
        }
        on_batch!(kernels.convolution_forward(
            lanes,
            pass.index(),
            &LayerKernels::new(self),
            images as i32,
            which,
            stored,
            pitch as i32,
            pass.read(self.input),
            pass.write(written),
            choice,
            stream,
            shortcut,
        ))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let MicroBatch { kernels, space, network, lanes, images, which, stored, pitch, .. } = *pass.batch();
        let (of, blas) = (LayerKernels::new(self), blas_for(self, pass));
        let (gradient, choice) = (pass.gradient(pass.index()), at(&space.choices[pass.index()], 0));
        let input = pass.read(self.input);
        let Some(producer) = self.producer else {
            return match blas {
                Some(blas) => on_batch!(blas.backward(pass.batch(), pass.index(), self, None)),
                None => pass.filter_gradient(&of, input, gradient, Some(choice)),
            };
        };
        let (output, through_relu) = pass.sent(producer);
        let rectified = through_relu.then_some(input);
        let bypass = self.bypass.map(|bypass| pass.gradient(bypass));
        if let Some(blas) = blas {
            let bypass_channels = self.bypass.map_or(0, |bypass| network.convolution(bypass).output.channels) as i32;
            let [rectified, bypass] = [rectified, bypass].map(|map| map.map(ConstPointer::cast));
            let sent = InputGradient { rectified, bypass, bypass_channels, output: output.cast() };
            return on_batch!(blas.backward(pass.batch(), pass.index(), self, Some(&sent)));
        }
        let (gradient, choice) = if is_unpooled(self) {
            let (to, count) = (&space.unpooled[pass.index()], images as i32);
            let in_rows = ConvolutionShape { pooled: 0, ..of.shape };
            on_batch!(kernels.unpool(lanes, in_rows, count, 0, count, gradient.cast(), choice, at_mut(to, 0).cast()))?;
            (at(to, 0), None)
        } else {
            (gradient, Some(choice))
        };
        pass.filter_gradient(&of, input, gradient, choice)?;
        on_batch!(kernels.data_gradient(
            lanes,
            pass.index(),
            &of,
            images as i32,
            which,
            stored,
            pitch as i32,
            gradient,
            choice,
            rectified,
            bypass,
            output,
        ))
    }
}

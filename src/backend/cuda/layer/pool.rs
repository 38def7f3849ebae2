//! A pool that is no part of a convolution.

use super::super::gpu::Stored;
use super::super::launch::{ELEMENTWISE, blocks, kernels, shared_structs};
use super::super::pointer::{ConstPointer, MutPointer};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::{Network, Pool, PoolKind};

shared_structs! {
    /// Windows over a map that has no border, and the map that is written.
    pub struct PoolShape {
        pub size: i32,
        pub stride: i32,
        /// 1 for the mean, 0 for the maximum.
        pub average: i32,
        pub in_height: i32,
        pub in_width: i32,
        pub channels: i32,
        pub height: i32,
        pub width: i32,
        /// Floats of a bordered row and of an image of the map written, and the border's width before them.
        pub row: i32,
        pub len: i32,
        pub before: i32,
        /// 1 where ReLU follows.
        pub relu: i32,
    }
}

impl PoolShape {
    pub fn new(network: &Network, layer: &Pool) -> PoolShape {
        let [from, to] = [layer.input, layer.output].map(|slot| network.maps[slot]);
        PoolShape {
            size: layer.size as i32,
            stride: layer.stride as i32,
            average: (layer.kind == PoolKind::Average).into(),
            in_height: from.height as i32,
            in_width: from.width as i32,
            channels: from.channels as i32,
            height: to.height as i32,
            width: to.width as i32,
            row: to.row() as i32,
            len: to.len() as i32,
            before: to.before as i32,
            relu: layer.relu.into(),
        }
    }

    /// Numbers of an image that are read.
    fn read(&self) -> usize {
        (self.in_height * self.in_width * self.channels) as usize
    }

    /// Numbers of an image that are written.
    fn written(&self) -> usize {
        (self.height * self.width * self.channels) as usize
    }
}

kernels! {
    /// The maximum or the mean over windows.
    fn pool_forward(
        shape: PoolShape,
        slots: i32,
        map: ConstPointer<'_, Stored>,
        to: MutPointer<'_, Stored>
    )[] = ["pool_forward"][0];
    blocks: [blocks(slots as usize * shape.written()), 1, 1];
    threads: ELEMENTWISE;

    /// The gradient of the map that a pool reads.
    fn pool_backward(
        shape: PoolShape,
        slots: i32,
        through_relu: i32,
        map: ConstPointer<'_, Stored>,
        gradient: ConstPointer<'_, Stored>,
        to: MutPointer<'_, Stored>
    )[] = ["pool_backward"][0];
    blocks: [blocks(slots as usize * shape.read()), 1, 1];
    threads: ELEMENTWISE;
}

impl CudaLayer for Pool {
    fn describe(&self) -> &'static str {
        "plain loops"
    }

    fn forward(&self, pass: &Pass) -> Result<()> {
        let (batch, shape) = (pass.batch(), PoolShape::new(pass.batch().network, self));
        on_batch!(batch.kernels.pool_forward(shape, batch.slots() as i32, pass.read(self.input), pass.write(self.output)))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let Some(producer) = self.producer else { return Ok(()) };
        let (batch, shape) = (pass.batch(), PoolShape::new(pass.batch().network, self));
        let (to, through_relu) = pass.sent(producer);
        let (slots, input, gradient) = (batch.slots() as i32, pass.read(self.input), pass.gradient(pass.index()));
        on_batch!(batch.kernels.pool_backward(shape, slots, through_relu.into(), input, gradient, to))
    }
}

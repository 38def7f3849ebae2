//! Group normalisation.

use super::super::gpu::Stored;
use super::super::launch::{ELEMENTWISE, blocks, kernels, shared_structs};
use super::super::micro_batch::{MicroBatch, Output};
use super::super::pointer::{ConstPointer, MutPointer};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::{EPSILON, GroupNorm, Network};

shared_structs! {
    /// A normalisation of groups of channels over a map that has no border, and the map that is written.
    pub struct GroupNormShape {
        pub groups: i32,
        pub group_channels: i32,
        pub positions: i32,
        pub channels: i32,
        /// Offsets in a lane's parameters.
        pub scale_at: i32,
        pub bias_at: i32,
        pub epsilon: f32,
        pub width: i32,
        /// Floats of a bordered row and of an image of the map written, and the border's width before them.
        pub row: i32,
        pub len: i32,
        pub before: i32,
        /// 1 where ReLU follows.
        pub relu: i32,
    }
}

impl GroupNormShape {
    pub fn new(network: &Network, layer: &GroupNorm) -> GroupNormShape {
        let to = network.maps[layer.output];
        GroupNormShape {
            groups: layer.groups as i32,
            group_channels: layer.group_channels as i32,
            positions: layer.positions as i32,
            channels: layer.channels as i32,
            scale_at: layer.scale as i32,
            bias_at: layer.bias as i32,
            epsilon: EPSILON,
            width: to.width as i32,
            row: to.row() as i32,
            len: to.len() as i32,
            before: to.before as i32,
            relu: layer.relu.into(),
        }
    }
}

kernels! {
    /// The normalised map.
    fn group_norm_forward(
        shape: GroupNormShape,
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        map: ConstPointer<'_, Stored>,
        to: MutPointer<'_, Stored>
    )[lanes: usize] = ["group_norm_forward"][0];
    blocks: [blocks(ELEMENTWISE * images as usize * shape.groups as usize), 1, lanes];
    threads: ELEMENTWISE;

    /// The gradient of the map that a normalisation reads, and those of scales and biases, summed over each leaf.
    fn group_norm_backward(
        shape: GroupNormShape,
        images: i32,
        length: i32,
        places: i32,
        through_relu: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        map: ConstPointer<'_, Stored>,
        gradient: ConstPointer<'_, Stored>,
        to: MutPointer<'_, Stored>,
        sums: MutPointer<'_, f32>
    )[lanes: usize] = ["group_norm_backward"][0];
    blocks: [shape.groups as usize, (images as usize).div_ceil(length as usize), lanes];
    threads: ELEMENTWISE;
}

impl CudaLayer for GroupNorm {
    fn describe(&self) -> &'static str {
        "plain loops"
    }

    fn forward(&self, pass: &Pass) -> Result<()> {
        let MicroBatch { kernels, network, lanes, images, which, weights, pitch, .. } = *pass.batch();
        let (shape, input, output) = (GroupNormShape::new(network, self), pass.read(self.input), pass.write(self.output));
        on_batch!(kernels.group_norm_forward(lanes, shape, images as i32, which, weights, pitch as i32, input, output))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let MicroBatch { kernels, network, lanes, images, which, weights, pitch, length, places, output, .. } = *pass.batch();
        let Output::Gradients(sums) = output else { return Ok(()) };
        let (to, through_relu) = pass.sent(self.producer);
        on_batch!(kernels.group_norm_backward(
            lanes,
            GroupNormShape::new(network, self),
            images as i32,
            length as i32,
            places as i32,
            through_relu.into(),
            which,
            weights,
            pitch as i32,
            pass.read(self.input),
            pass.gradient(pass.index()),
            to,
            sums,
        ))
    }
}

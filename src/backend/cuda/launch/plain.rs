//! Pools and group normalisation of `kernels/plain.cu`, whose other kernels are declared in `layers`.

use super::{ELEMENTWISE, blocks, kernels, shared_structs};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::network::{EPSILON, GroupNorm, Network, Pool, PoolKind};

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
        map: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[] = ["pool_forward"][0];
    blocks: [blocks(slots as usize * shape.written()), 1, 1];
    threads: ELEMENTWISE;

    /// The gradient of the map that a pool reads.
    fn pool_backward(
        shape: PoolShape,
        slots: i32,
        through_relu: i32,
        map: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[] = ["pool_backward"][0];
    blocks: [blocks(slots as usize * shape.read()), 1, 1];
    threads: ELEMENTWISE;

    /// The normalised map.
    fn group_norm_forward(
        shape: GroupNormShape,
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        map: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
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
        map: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>,
        sums: MutPointer<'_, f32>
    )[lanes: usize] = ["group_norm_backward"][0];
    blocks: [shape.groups as usize, (images as usize).div_ceil(length as usize), lanes];
    threads: ELEMENTWISE;
}

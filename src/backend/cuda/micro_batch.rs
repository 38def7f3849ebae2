//! Micro-batches: the images that go through the network together, because the workspace has room for so many.

use std::ops::Range;

use super::buffers::Buffers;
use super::gpu::Stored;
use super::launch::Kernels;
use super::pointer::{ConstPointer, MutPointer};
use crate::network::Network;

/// Images of some lanes in the workspace. They form groups: a leaf of the batch, or a block of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct MicroBatch<'a> {
    pub kernels: &'a Kernels,
    pub space: &'a Buffers,
    pub network: &'a Network,
    pub lanes: usize,
    /// Images of each lane.
    pub images: usize,
    /// `[lane]`: the lane's place among the weights.
    pub which: ConstPointer<'a, i32>,
    /// `[place][pitch]`.
    pub weights: ConstPointer<'a, f32>,
    /// `[place][pitch]`: the weights as convolutions read them.
    pub stored: ConstPointer<'a, Stored>,
    /// `[lane][pitch]`: weights in the order of the lanes, for cuBLAS alone; None in evaluations by the fused kernels.
    pub ordered: Option<ConstPointer<'a, f32>>,
    pub pitch: usize,
    /// Images of a group; a lane's last one may have fewer.
    pub length: usize,
    /// Groups that a lane has room for in the output.
    pub places: usize,
    pub output: Output<'a>,
}

/// Numbers that are computed of the images, and their address for the first lane and group.
#[derive(Clone, Copy)]
pub(super) enum Output<'a> {
    /// `[lane][place][pitch]`: gradients and losses summed over each group.
    Gradients(MutPointer<'a, f32>),
    /// `[lane][place][length]`: the margin of each image.
    Margins(MutPointer<'a, f32>),
}

impl<'a> Output<'a> {
    /// Where gradients go, if they are computed.
    pub fn gradients(self) -> Option<MutPointer<'a, f32>> {
        match self {
            Output::Gradients(sums) => Some(sums),
            Output::Margins(_) => None,
        }
    }

    /// Where margins go, if they are computed.
    pub fn margins(self) -> Option<MutPointer<'a, f32>> {
        match self {
            Output::Gradients(_) => None,
            Output::Margins(margins) => Some(margins),
        }
    }
}

impl MicroBatch<'_> {
    /// Images of all lanes: each has a slot of the workspace.
    pub fn slots(&self) -> usize {
        self.lanes * self.images
    }
}

/// Cuts lanes × groups of `length` images into micro-batches of at most `slots` images: whole lanes' groups where they fit, else a group of as
/// many lanes as fit. A group is never cut.
pub(super) fn micro_batches(lanes: usize, groups: usize, length: usize, slots: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let cut = |count: usize, size: usize| (0..count).step_by(size.max(1)).map(move |start| start..(start + size.max(1)).min(count));
    if lanes * length <= slots {
        return cut(groups, slots / (lanes * length).max(1)).map(|groups| (0..lanes, groups)).collect();
    }
    cut(lanes, slots / length.max(1)).flat_map(|lanes| (0..groups).map(move |group| (lanes.clone(), group..group + 1))).collect()
}

//! Buffers of a thread besides its maps: those of each layer, and those that layers share.

use super::super::floats::Floats;
use super::super::pooled::{Event, Events};
use super::super::winograd::Points;

/// One layer's buffers. Those that its kernels do not use are empty.
#[derive(Default)]
pub(in super::super) struct Buffers {
    /// `[image]`, each with the gradient that is kept for the layer.
    pub gradient: Floats,
    /// `[image][what a maximum chose]`, of a layer that ends in a pool.
    pub choice: Vec<u8>,
    /// Weights for the forward pass.
    pub forward: Floats,
    /// Weights for the data gradient, as [`transpose`](crate::backend::cpu::convolution::transpose) makes them; with a pool as
    /// `[kernel][out][kernel][in]`, or the plan's blocks of them.
    pub backward: Floats,
    /// One image's gradients of the sums with the border that the adjoint convolution reads.
    pub bordered: Floats,
    /// The plan's taps with their weights.
    pub taps: Vec<Event>,
}

/// Buffers that layers use one after the other.
#[derive(Default)]
pub(in super::super) struct Scratch {
    /// A group of rows of sums, or of their gradients.
    pub rows: Floats,
    /// The points in which Winograd's formula multiplies the tiles of a layer.
    pub points: Points,
    /// One image's bordered input gradient; of a fully connected layer all images'.
    pub input_gradient: Floats,
    /// Patches of a pooled layer's image, which its windows read, and the events of its gradient.
    pub patches: Floats,
    pub events: Events,
    /// `[number][channel]` of a normalised image.
    pub channels: Floats,
    /// Inputs and outputs of a pruned layer's forward pass, channel by channel.
    pub phases: Floats,
    pub planar: Floats,
    /// Weights on their way into [`Buffers::backward`].
    pub reordered: Floats,
    /// Where the plan leaves out inputs of the logits: `[image][in]` that are read, and their gradients.
    pub logits_input: Floats,
    pub logits_sent: Floats,
}

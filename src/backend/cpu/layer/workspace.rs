//! A thread's workspace, and one pass over the images in it.

use std::sync::Arc;

use super::super::epilogue::relu_backward;
use super::super::floats::Floats;
use super::super::pooled::cut_dead;
use super::super::sparse::SparseLayers;
use super::super::tile::Start;
use super::super::vector_unit::VectorUnit;
use super::buffers::{Buffers, Scratch};
use crate::network::{Map, Network, Slot};

/// A thread's buffers, and the weights in the layouts that the kernels want.
pub(in super::super) struct Workspace {
    pub unit: VectorUnit,
    pub network: Arc<Network>,
    /// One feature map each: `[image][map]`.
    pub maps: Vec<Floats>,
    pub layers: Vec<Buffers>,
    pub scratch: Scratch,
    /// The layers of a plan that are computed in sub-maps, one image at a time.
    pub sparse: SparseLayers,
    /// `[image][logits]`, and their gradient.
    pub logits: Floats,
    pub logit_gradients: Floats,
}

/// One image of a map's values.
#[inline(always)]
pub(super) fn image_of(values: &[f32], map: Map, image: usize) -> &[f32] {
    &values[image * map.len()..][..map.len()]
}

impl Workspace {
    /// Writes the gradient that is kept for the layer `producer`, of one image, to its place among all images'. The layer wrote the map `written`,
    /// whose gradient begins at `from` in `scratch.input_gradient`, of shape `gradient_map`, which may have another border. What is kept has none.
    #[inline(always)]
    pub fn keep(&mut self, producer: usize, written: Slot, image: usize, gradient_map: Map, from: usize) {
        let (map, gradient) = (self.network.maps[written], &self.scratch.input_gradient[from..]);
        let Buffers { gradient: kept, choice, .. } = &mut self.layers[producer];
        let inner = image * map.inner_len()..(image + 1) * map.inner_len();
        let to = &mut kept[inner.clone()];
        if !choice.is_empty() {
            without_border(gradient_map, gradient, to);
            cut_dead(to, &choice[inner]);
        } else if self.network.layers[producer].has_relu() {
            relu_backward(map, image_of(&self.maps[written], map, image), gradient_map, gradient, to);
        } else {
            without_border(gradient_map, gradient, to);
        }
    }

    /// Writes the gradients that are kept for the layer `producer`, of the first `count` images: it wrote the map `written`, of which
    /// `scratch.input_gradient` has all gradients, without a border.
    #[inline(always)]
    pub fn keep_all(&mut self, producer: usize, written: Slot, count: usize) {
        let map = self.network.maps[written];
        for image in 0..count {
            self.keep(producer, written, image, map, image * map.len());
        }
    }
}

#[inline(always)]
fn without_border(map: Map, values: &[f32], to: &mut [f32]) {
    let row = map.width * map.channels;
    for (y, to) in to.chunks_exact_mut(row).enumerate().take(map.height) {
        to.copy_from_slice(&values[map.at_row(y)..][..row]);
    }
}

/// One pass over the first images of a workspace.
pub(in super::super) struct Pass<'a> {
    pub space: &'a mut Workspace,
    pub weights: &'a [f32],
    /// Laid out as the plan says. Empty where none is made.
    pub gradient: &'a mut [f32],
    /// Whether a backward pass will follow.
    pub is_training: bool,
    pub count: usize,
    /// Whether the pass is the first, and the last, of those whose gradient is summed.
    pub is_first: bool,
    pub is_last: bool,
}

impl<'a> Pass<'a> {
    /// A forward pass that no backward pass follows.
    pub fn forward(space: &'a mut Workspace, weights: &'a [f32], count: usize) -> Pass<'a> {
        Pass { space, weights, gradient: &mut [], is_training: false, count, is_first: true, is_last: true }
    }

    /// The start of the sums over the pass's images in the gradient of weights that a layer writes
    /// ([`CpuLayer::writes_weights`](super::CpuLayer::writes_weights)).
    pub fn start(&self) -> Start<'static> {
        if self.is_first { Start::First } else { Start::Chain }
    }
}

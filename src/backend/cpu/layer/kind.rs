//! The trait that each kind of layer implements.

use std::ops::Range;

use super::super::simd::{Kernel, Simd};
use super::super::tile::{Live, Start};
use super::super::vector_unit::VectorUnit;
use super::buffers::{Buffers, Scratch};
use super::workspace::{Pass, Workspace};
use crate::network::Network;

/// Where a layer stands.
pub(in super::super) struct Place {
    /// The layer's index in [`Network::layers`].
    pub index: usize,
    /// Where the gradient of the weights begins in a leaf's gradient.
    pub weights: usize,
    /// Where the gradient of the bias begins.
    pub bias: usize,
    /// The inputs of a convolution or a fully connected layer that its products read: up to the last one with a kept weight. Inputs by which
    /// [`physical`](crate::backend::cpu::physical) widened the network have none.
    pub inputs: Live,
    /// The outputs whose gradients its products read.
    pub outputs: Live,
}

/// A layer with the kernels that compute it under a mask. A layer without parameters answers what has no default here.
pub(in super::super) trait CpuLayer: Passes + Send + Sync {
    /// Which kernels compute it, in words.
    fn describe(&self) -> &'static str;

    /// Makes room for `images` images, in the layer's own buffers and in those that layers share. All masks of a layer use the room that the layer
    /// without a mask makes; what else a pruned layer needs it makes in [`Passes::prepare`].
    fn make_room(&self, _network: &Network, _images: usize, _buffers: &mut Buffers, _scratch: &mut Scratch) {}

    /// Says where each of the layer's weights stands in its part of a leaf's gradient (0 for what is not there), and returns that part's floats.
    fn lay_out(&self, places: &mut [u32]) -> usize {
        places.iter_mut().enumerate().for_each(|(weight, place)| *place = weight as u32);
        places.len()
    }

    /// Copies the gradient of the layer's weights from the layer's part of a leaf's gradient to `to`, in the order of the weights. `to` has LOGITS
    /// more floats behind the weights, which the copy may overwrite.
    fn collect(&self, _unit: VectorUnit, from: &[f32], to: &mut [f32]) {
        to[..from.len()].copy_from_slice(from);
    }

    /// Whether [`CpuLayer::lay_out`] puts weights that follow each other far apart: all of them are then collected at once.
    fn is_transposed(&self) -> bool {
        false
    }

    /// Whether maps and gradients are in sub-maps ([`sparse`](crate::backend::cpu::sparse)).
    fn is_in_submaps(&self) -> bool {
        false
    }

    /// Whether a leaf's first images write the gradient of the layer's weights, whatever is there. If not, they add to it, as later images do.
    fn writes_weights(&self) -> bool {
        false
    }

    /// Multiply-adds of an image's forward pass and both gradients, of a layer that takes `forward` for the forward pass with all weights.
    fn work(&self, forward: f64) -> f64 {
        3.0 * forward
    }

    /// The most bytes that the plan of any mask can hold for the layer. Callers ask the layer that was made without a mask.
    fn most_bytes(&self) -> u64 {
        0
    }

    /// Floats of the weights laid out for the forward pass beside those of the network, and of what the layer is multiplied in: the layer without a
    /// mask knows.
    fn floats(&self) -> [usize; 2] {
        [0; 2]
    }

    /// The layer as a fully connected one.
    fn dense(&self) -> Option<&dyn DenseLayer> {
        None
    }
}

/// Forward and backward passes of a layer.
pub(in super::super) trait Passes {
    /// Lays the layer's weights out for the forward pass, and for the data gradient if `backward`.
    fn prepare(&self, _place: &Place, _space: &mut Workspace, _weights: &[f32], _backward: bool) {}

    /// Forward over the images of a pass.
    fn forward(&self, place: &Place, pass: &mut Pass);

    /// Backward over the images of a pass: adds the gradients of the layer's parameters to the pass's ([`CpuLayer::writes_weights`] says which a
    /// first pass writes) and, if the layer has a producer, writes the gradient that is kept for the producer.
    fn backward(&self, place: &Place, pass: &mut Pass);
}

/// Passes of a layer, compiled for each vector unit. Every method is `#[inline(always)]`.
pub(super) trait Vectorised {
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool);
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass);
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass);
}

impl<L: Vectorised> Passes for L {
    fn prepare(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        space.unit.run(Prepare(self, place, space, weights, backward));
    }

    fn forward(&self, place: &Place, pass: &mut Pass) {
        pass.space.unit.run(Forward(self, place, pass));
    }

    fn backward(&self, place: &Place, pass: &mut Pass) {
        pass.space.unit.run(Backward(self, place, pass));
    }
}

/// The methods that a fully connected layer has besides, for the images of several leaves that go through the layer together.
pub(in super::super) trait DenseLayer {
    /// Adds what some images give to the gradient of the parameters; without the weights, if the layer writes these
    /// ([`CpuLayer::writes_weights`]).
    fn leaf_gradient(&self, place: &Place, pass: &mut Pass, images: Range<usize>);

    /// Writes the gradient of the weights over all images, if the layer does.
    fn weight_gradient(&self, place: &Place, pass: &mut Pass, start: Start);

    /// Sends the gradient of all images to the producer, if there is one.
    fn send(&self, place: &Place, pass: &mut Pass);
}

/// Passes of a fully connected layer, compiled for each vector unit. Every method is `#[inline(always)]`.
pub(super) trait VectorisedDense {
    fn leaf_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, images: Range<usize>);
    fn weight_gradient<S: Simd>(&self, _place: &Place, _pass: &mut Pass, _start: Start) {}
    fn send<S: Simd>(&self, place: &Place, pass: &mut Pass);
}

impl<L: VectorisedDense> DenseLayer for L {
    fn leaf_gradient(&self, place: &Place, pass: &mut Pass, images: Range<usize>) {
        pass.space.unit.run(LeafGradient(self, place, pass, images));
    }

    fn weight_gradient(&self, place: &Place, pass: &mut Pass, start: Start) {
        pass.space.unit.run(WeightGradient(self, place, pass, start));
    }

    fn send(&self, place: &Place, pass: &mut Pass) {
        pass.space.unit.run(SendBack(self, place, pass));
    }
}

/// Makes a method of a layer a kernel, with the method's arguments in their order.
macro_rules! kernels {
    ($($Kernel:ident<$($life:lifetime),*>: $Layer:ident.$method:ident($($argument:ident: $Type:ty),*);)*) => {$(
        struct $Kernel<$($life),*, L>(&'a L, &'a Place, $($Type),*);

        impl<$($life),*, L: $Layer> Kernel for $Kernel<$($life),*, L> {
            #[inline(always)]
            fn run<S: Simd>(self) {
                let $Kernel(layer, place, $($argument),*) = self;
                layer.$method::<S>(place, $($argument),*);
            }
        }
    )*};
}

kernels! {
    Prepare<'a>: Vectorised.prepare(space: &'a mut Workspace, weights: &'a [f32], backward: bool);
    Forward<'a, 'b>: Vectorised.forward(pass: &'a mut Pass<'b>);
    Backward<'a, 'b>: Vectorised.backward(pass: &'a mut Pass<'b>);
    LeafGradient<'a, 'b>: VectorisedDense.leaf_gradient(pass: &'a mut Pass<'b>, images: Range<usize>);
    WeightGradient<'a, 'b>: VectorisedDense.weight_gradient(pass: &'a mut Pass<'b>, start: Start<'a>);
    SendBack<'a, 'b>: VectorisedDense.send(pass: &'a mut Pass<'b>);
}

//! What a worker computes in: buffers of each layer, and those that layers share.

use super::super::convolution::{adjoint, group_rows, laid_out_len};
use super::super::dense::{LOGITS, is_narrow, over_images};
use super::super::floats::Floats;
use super::super::pooled::{self, Event, Events};
use super::super::pruned::deep;
use super::super::tile::TOGETHER;
use super::super::winograd::Points;
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Layer, Network, Slot};

/// Floats of a pass, gradients among them: as many images as begin within the second-level cache. It is a constant because bits depend on it.
const PASS: usize = 1 << 18;

/// Images of a pass.
pub(in super::super) fn images_a_pass(network: &Network) -> usize {
    PASS.div_ceil(image_floats(network))
}

/// Floats of an image's maps and their gradients.
pub(in super::super) fn image_floats(network: &Network) -> usize {
    let gradients = network.layers.iter().map(|layer| gradient_floats(network, layer));
    network.maps.iter().map(|map| map.len()).sum::<usize>() + gradients.sum::<usize>()
}

/// Floats of an image's gradient that is kept for a layer.
pub(super) fn gradient_floats(network: &Network, layer: &Layer) -> usize {
    match layer {
        Layer::Convolution(Convolution { epilogue: Epilogue::ReluMaxPool { pooled }, .. }) => network.maps[*pooled].inner_len(),
        Layer::Convolution(layer) => layer.output.inner_len(),
        Layer::Pool(layer) => network.maps[layer.output].inner_len(),
        Layer::GlobalMean(layer) => network.maps[layer.output].inner_len(),
        // The logits' gradient is the worker's.
        Layer::Dense(Dense { output: DenseOutput::Logits, .. }) => 0,
        Layer::Dense(layer) => layer.outputs,
    }
}

/// Floats from one image's logits to the next's.
pub(super) fn logits_stride(network: &Network) -> usize {
    match network.layers.last() {
        Some(Layer::Dense(layer)) if !is_narrow(layer.inputs, layer.outputs, layer.output) => layer.outputs,
        _ => LOGITS,
    }
}

/// One layer's buffers. Those that its kernels do not use are empty.
#[derive(Default)]
pub(super) struct Buffers {
    /// `[image]`, each with the gradient that is kept for the layer.
    pub gradient: Floats,
    /// `[image][what a maximum chose]`.
    pub choice: Vec<u8>,
    /// Weights for the forward pass.
    pub forward: Floats,
    /// Weights for the data gradient, as [`transpose`](super::super::convolution::transpose) makes them; with a pool as
    /// `[kernel][out][kernel][in]`, or the plan's blocks of them.
    pub backward: Floats,
    /// The convolution that is the data gradient, where that is how it is computed.
    pub adjoint: Option<Convolution>,
    /// One image's gradients of the sums with the border that the adjoint reads.
    pub bordered: Floats,
    /// The plan's taps with their weights.
    pub taps: Vec<Event>,
}

/// Buffers that layers use one after the other.
#[derive(Default)]
pub(super) struct Scratch {
    /// A group of rows of sums, or of their gradients.
    pub rows: Floats,
    /// What a layer of stride 1 is multiplied in.
    pub points: Points,
    /// One image's bordered input gradient; of a fully connected layer all images'.
    pub input_gradient: Floats,
    /// What the windows of a pooled layer's image read, and the events of its gradient.
    pub patches: Floats,
    pub events: Events,
    /// What a pruned pooled layer's forward pass reads and makes.
    pub phases: Floats,
    pub planar: Floats,
    /// Weights on their way into [`Buffers::backward`].
    pub reordered: Floats,
    /// Where the plan leaves out inputs of the logits: `[image][in]` that are read, and their gradients.
    pub logits_input: Floats,
    pub logits_sent: Floats,
}

/// Images that there is room for.
#[derive(Clone, Copy)]
pub(super) struct Images {
    /// Of a pass.
    pub pass: usize,
    /// The first of the layers that are computed over several leaves at once, if there are such.
    pub tail: Option<usize>,
}

impl Images {
    /// Where several leaves are computed at once.
    pub(super) fn most(self) -> usize {
        if self.tail.is_some() { self.pass * TOGETHER } else { self.pass }
    }

    /// In a map.
    pub(super) fn of_map(self, network: &Network, slot: Slot) -> usize {
        let is_input = |layer: &Layer| matches!(layer, Layer::Dense(layer) if layer.input == slot);
        if self.tail.is_some_and(|tail| network.layers[tail..].iter().any(is_input)) { self.most() } else { self.pass }
    }

    /// In what is kept for a layer.
    fn of_layer(self, network: &Network, index: usize) -> usize {
        let sends = |tail: usize| index >= tail || network.layers[tail].producer() == Some(index);
        if self.tail.is_some_and(sends) { self.most() } else { self.pass }
    }
}

/// The buffers of all layers.
pub(super) fn allocate(network: &Network, images: Images) -> (Vec<Buffers>, Scratch) {
    let mut scratch = Scratch::default();
    let layers = network.layers.iter().enumerate().map(|(index, layer)| {
        let pass = images.of_layer(network, index);
        let mut buffers = Buffers { gradient: Floats::zeros(gradient_floats(network, layer) * pass), ..Buffers::default() };
        match layer {
            Layer::Convolution(layer) => convolution(network, layer, pass, &mut buffers, &mut scratch),
            Layer::Pool(layer) => scratch.input_gradient.grow(network.maps[layer.input].len()),
            Layer::GlobalMean(layer) => scratch.input_gradient.grow(network.maps[layer.input].len()),
            Layer::Dense(layer) => dense(layer, pass, &mut buffers, &mut scratch),
        }
        buffers
    });
    (layers.collect(), scratch)
}

fn convolution(network: &Network, layer: &Convolution, pass: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
    scratch.rows.grow(group_rows(layer) * layer.output.row());
    scratch.points.grow(layer);
    buffers.forward.grow(laid_out_len(layer));
    let mut sent = layer.input_map.len();
    if let Epilogue::ReluMaxPool { pooled } = layer.epilogue {
        buffers.choice = vec![0; network.maps[pooled].inner_len() * pass];
        if deep(layer) {
            scratch.events.grow(layer);
            sent = pooled::sent_len(layer.input_map);
        } else {
            scratch.patches.grow(pooled::patches_len(layer.input_map));
        }
    } else if layer.producer.is_some() {
        buffers.adjoint = adjoint(layer);
    }
    scratch.input_gradient.grow(sent);
    if layer.producer.is_some() {
        buffers.backward.grow(buffers.adjoint.as_ref().map_or(layer.weight_count(), laid_out_len));
        buffers.bordered.grow(buffers.adjoint.as_ref().map_or(0, |adjoint| adjoint.input_map.len()));
        scratch.reordered.grow(layer.weight_count());
    }
}

fn dense(layer: &Dense, pass: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
    scratch.input_gradient.grow(layer.inputs * pass);
    if is_narrow(layer.inputs, layer.outputs, layer.output) {
        buffers.forward.grow(layer.inputs * LOGITS);
        buffers.backward.grow(LOGITS * layer.inputs);
        scratch.logits_input.grow(layer.inputs * pass);
        scratch.logits_sent.grow(layer.inputs * pass);
        return;
    }
    let over_images = over_images(layer, pass);
    buffers.forward.grow(laid_out_len(&over_images));
    scratch.rows.grow(over_images.output.len());
    if layer.producer.is_some() {
        buffers.backward.grow(over_images.weight_count());
        scratch.reordered.grow(over_images.weight_count());
    }
}

//! A room for each kind of layer: all that the GPU back end knows of it.
//!
//! `kind.rs` says what a kind of layer is asked ([`CudaLayer`]), and a file for each kind answers: convolutions (`convolution.rs`), fully connected
//! layers (`dense.rs`), pools (`pool.rs`), means (`mean.rs`) and group normalisation (`norm.rs`). `pass.rs` has the micro-batch that a layer
//! computes on. Each declares the kernels that are its own; those of convolutions are in the folder `launch` beside this one, and cuBLAS's products
//! are in `products`. Nothing here knows of steps, ranks or trials.

mod convolution;
mod dense;
mod kind;
mod mean;
mod norm;
mod pass;
mod pool;

pub(super) use dense::lowered;
pub(super) use kind::CudaLayer;

use super::launch::Declaration;
use super::micro_batch::{MicroBatch, Output};
use super::products::Blas;
use crate::Result;
use crate::network::{Layer, Network};
use pass::Pass;

/// The kernels that kinds of layers declare.
pub(super) const KERNELS: [&[Declaration]; 4] = [dense::KERNELS, mean::KERNELS, norm::KERNELS, pool::KERNELS];

/// C++ that does not compile unless the structs that kinds of layers declare are laid out the same there.
pub(super) fn layouts() -> String {
    [norm::layouts(), pool::layouts()].concat()
}

/// Dispatches a layer of a [`lowered`] network to the file of its kind.
pub(super) fn of(layer: &Layer) -> &dyn CudaLayer {
    match layer {
        Layer::Convolution(layer) => layer,
        Layer::Pool(layer) => layer,
        Layer::GlobalMean(layer) => layer,
        Layer::GroupNorm(layer) => layer,
        Layer::Dense(layer) => layer,
    }
}

/// Which kernels compute each layer of a network, in words.
pub fn kernels(network: &Network) -> Vec<&'static str> {
    lowered(network).layers.iter().map(|layer| of(layer).describe()).collect()
}

/// The kernels that are made for the layers of a [`lowered`] network, to stand behind `kernels/`. `tensor`: the tensor cores multiply.
pub(super) fn source(network: &Network, tensor: bool) -> String {
    network.layers.iter().enumerate().map(|(index, layer)| of(layer).source(network, index, tensor)).collect()
}

/// Sends a micro-batch through the network: forward, with the losses or the margins; and backward, where gradients are asked for. `blas` is
/// cuBLAS, where the products are its own.
///
/// # Safety
/// The batch's images and labels are in its workspace; its weights, and its output's memory, are there for all of its lanes and groups.
pub(super) unsafe fn propagate(batch: &MicroBatch, blas: Option<&Blas>) -> Result<()> {
    let layers = batch.network.layers.iter().map(of).enumerate();
    // SAFETY: the caller vouches for the batch.
    let pass = |index| unsafe { Pass::new(batch, blas, index) };
    layers.clone().try_for_each(|(index, layer)| layer.forward(&pass(index)))?;
    match batch.output {
        Output::Gradients(_) => layers.rev().try_for_each(|(index, layer)| layer.backward(&pass(index))),
        Output::Margins(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LayerSpec, NetworkName, Padding};

    #[test]
    fn what_tiles_do_not_know_is_computed_by_plain_loops() {
        for name in [NetworkName::Resnet20, NetworkName::WideResnet16x2, NetworkName::Lenet5Caffe] {
            assert!(!kernels(&Network::new(name)).contains(&"plain loops"), "{name}");
        }
        let layers = [
            LayerSpec::convolution(6, 3, 1, Padding::Valid),
            LayerSpec::Relu,
            LayerSpec::convolution(6, 3, 3, Padding::Valid),
            LayerSpec::MaxPool { size: 3, stride: 1 },
            LayerSpec::Flatten,
            LayerSpec::dense(10),
        ];
        let network = Network::listed(&layers, [13, 13, 1], 10).unwrap();
        assert_eq!(kernels(&network), ["tiles of sums", "plain loops", "plain loops", "a warp an image"], "11 is no multiple of 3");
    }
}

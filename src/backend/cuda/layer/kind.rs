//! The trait that each kind of layer implements.

use super::super::buffers::ImageSizes;
use super::pass::Pass;
use crate::Result;
use crate::network::Network;

/// A layer of a [`lowered`](super::lowered) network with the kernels that compute it. A kind of layer implements only the methods without a default
/// if its kernels are the same for all networks and its only buffers are its map and the map's gradient.
pub trait CudaLayer {
    /// Which kernels compute it, in words.
    fn describe(&self) -> &'static str;

    /// CUDA C++ of the kernels that are made for this layer, the network's at `index`. `tensor`: the tensor cores multiply.
    fn source(&self, _network: &Network, _index: usize, _tensor: bool) -> String {
        String::new()
    }

    /// Elements of an image in the buffers that training needs beside the map, of which the layer writes `written` floats.
    fn sizes(&self, written: usize) -> ImageSizes {
        ImageSizes { gradient: written, ..ImageSizes::default() }
    }

    /// Floats of an image that kernels index and that lie in no map.
    fn sums(&self) -> usize {
        0
    }

    /// Forward over the images of a pass.
    fn forward(&self, pass: &Pass) -> Result<()>;

    /// Backward over the images of a pass, whose output is gradients: writes the gradients of the layer's parameters, summed over each leaf, and, if
    /// the layer has a producer, the gradient that is kept for the producer.
    fn backward(&self, pass: &Pass) -> Result<()>;
}

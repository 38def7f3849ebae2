//! The buffers that the images under way are in.

use cudarc::driver::CudaSlice;

use super::gpu::{Gpu, Stored};
use crate::Result;
use crate::network::Network;

/// Elements of an image in the buffers that a layer has in training.
#[derive(Default, Clone, Copy)]
pub(super) struct ImageSizes {
    /// Floats of the gradient that is kept for the layer.
    pub gradient: usize,
    /// Bytes of what the layer's pool chose.
    pub choices: usize,
    /// Floats of the gradient of the sums, where a pool follows them and two kernels read it.
    pub unpooled: usize,
}

impl ImageSizes {
    /// Bytes of an image in all of them.
    pub fn bytes(self) -> usize {
        4 * (self.gradient + self.unpooled) + self.choices
    }
}

/// Buffers for `slots` images. Residual streams, and logits that become no gradients, are floats.
pub(super) struct Buffers {
    /// `[slot][map]`, one a map of the network; borders are zero and stay so.
    pub maps: Vec<CudaSlice<Stored>>,
    /// `[slot][gradient of the convolution's sum, or of its pooled map; of what a pool or a mean writes]`, one a layer.
    pub gradients: Vec<CudaSlice<Stored>>,
    /// `[slot][gradient of the convolution's sum]` where a pool follows it and two kernels read it, one a layer.
    pub unpooled: Vec<CudaSlice<Stored>>,
    /// `[slot][what the pool chose]`, one a layer.
    pub choices: Vec<CudaSlice<u8>>,
    /// `[slot][classes]`: gradients of the logits, and first, where the products are cuBLAS's or there are more than 16 classes, the logits.
    pub logits: CudaSlice<Stored>,
    pub labels: CudaSlice<u16>,
    pub slots: usize,
}

impl Buffers {
    /// Buffers of a network whose layers have so many elements of an image.
    pub fn new(gpu: &Gpu, network: &Network, layers: &[ImageSizes], slots: usize) -> Result<Buffers> {
        Ok(Buffers {
            maps: network.maps.iter().map(|map| gpu.zeros(map.len() * slots)).collect::<Result<_>>()?,
            gradients: layers.iter().map(|layer| gpu.uninitialised(layer.gradient * slots)).collect::<Result<_>>()?,
            unpooled: layers.iter().map(|layer| gpu.uninitialised(layer.unpooled * slots)).collect::<Result<_>>()?,
            choices: layers.iter().map(|layer| gpu.uninitialised(layer.choices * slots)).collect::<Result<_>>()?,
            logits: gpu.uninitialised(network.classes * slots)?,
            labels: gpu.uninitialised(slots)?,
            slots,
        })
    }
}

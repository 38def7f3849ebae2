//! Memory for the images under way: one set of buffers, used by every micro-batch.

use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::gpu::Gpu;
use super::launch::is_unpooled;
use crate::Result;
use crate::network::{Epilogue, Layer, Map, Network};

/// Bytes that the images under way may take: enough for thousands of blocks a launch, beyond which nothing gets faster.
const MOST_BYTES: u64 = 8 << 30;

/// The buffers, and what they may become.
pub(super) struct Workspace {
    buffers: Option<Buffers>,
    /// Changes when a buffer moves: what was captured with the old ones is void.
    pub generation: u64,
    /// Most slots, whatever memory there is.
    pub limit: usize,
}

/// Buffers for `slots` images.
pub(super) struct Buffers {
    /// `[slot][map]`, one a map of the network; borders are zero and stay so.
    pub maps: Vec<CudaSlice<f32>>,
    /// `[slot][gradient of the convolution's sum, or of its pooled map; of what a pool or a mean writes]`, one a layer.
    pub gradients: Vec<CudaSlice<f32>>,
    /// `[slot][gradient of the convolution's sum]` where a pool follows it and two kernels read it, one a layer.
    pub unpooled: Vec<CudaSlice<f32>>,
    /// `[slot][what the pool chose]`, one a layer.
    pub choices: Vec<CudaSlice<u8>>,
    /// `[slot][classes]`: gradients of the logits, and first, where the products are cuBLAS's, the logits.
    pub logits: CudaSlice<f32>,
    pub labels: CudaSlice<u16>,
    pub slots: usize,
    training: bool,
    /// Whether memory, not a wish, decided how many slots there are: asking again would give no more.
    capped: bool,
    /// The network that the buffers are sized for.
    network: Network,
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace { buffers: None, generation: 0, limit: usize::MAX }
    }
}

/// Floats of a layer's gradient, bytes of its pool's choice, and floats of the gradient before the pool, an image.
fn sizes(network: &Network, layer: &Layer) -> [usize; 3] {
    let written = layer.written().map_or(0, |slot| network.maps[slot].inner_len());
    match layer {
        Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
            [written, written, if is_unpooled(layer) { layer.output.inner_len() } else { 0 }]
        }
        _ => [written, 0, 0],
    }
}

/// Most images of a lane of which the kernels can index everything: they count its floats in 31 bits, and images beside their positions in 17
/// (`kernels/data_gradient.cu`).
fn most_images(network: &Network) -> usize {
    let maps = network.maps.iter().map(Map::len);
    let sums = network.layers.iter().flat_map(|layer| match layer {
        Layer::Convolution(convolution) => [convolution.output.inner_len(), convolution.input_map.inner_len()],
        _ => [0, 0],
    });
    (i32::MAX as usize / maps.chain(sums).max().unwrap_or(1).max(1)).min((1 << 17) - 1)
}

/// Bytes of one slot.
pub(super) fn slot_bytes(network: &Network, training: bool) -> u64 {
    let maps: usize = network.maps.iter().map(|map| 4 * map.len()).sum();
    let of = |layer: &Layer| {
        let [gradient, choice, unpooled] = sizes(network, layer);
        4 * (gradient + unpooled) + choice
    };
    let rest: usize = if training { network.layers.iter().map(of).sum::<usize>() } else { 0 };
    (maps + rest + 4 * network.classes + 2) as u64
}

impl Workspace {
    /// Makes room for `wanted` images at once, or as many as memory allows, but for `least` at the least.
    pub fn ensure(&mut self, gpu: &Gpu, network: &Network, wanted: usize, least: usize, training: bool) -> Result<()> {
        if least > most_images(network) {
            return Err(refuse(format!(
                "expected at most {} images that are summed together, for which the kernels' indices suffice, found {least}; use a smaller batch, or \
                 more ranks a batch",
                most_images(network)
            )));
        }
        let wanted = wanted.max(least);
        let (mut had, mut training) = (0, training);
        if let Some(buffers) = self.buffers.as_ref().filter(|buffers| buffers.network == *network) {
            let enough = buffers.slots >= wanted || (buffers.capped && buffers.slots >= least);
            if enough && (buffers.training || !training) {
                return Ok(());
            }
            (had, training) = (buffers.slots, buffers.training || training);
        }
        // The old buffers go first: their memory counts as free.
        self.buffers = None;
        self.generation += 1;
        let bytes = slot_bytes(network, training);
        let most = (gpu.free()? / 2).min(MOST_BYTES) / bytes;
        let wanted = wanted.max(had);
        let most = (most as usize).min(most_images(network)).min(self.limit);
        let mut slots = wanted.min(most).max(least);
        loop {
            match Buffers::new(gpu, network, slots, training) {
                Ok(buffers) => {
                    self.buffers = Some(Buffers { capped: slots < wanted, ..buffers });
                    return Ok(());
                }
                Err(_) if slots > least => slots = (slots / 2).max(least),
                Err(_) => {
                    return Err(refuse(format!(
                        "expected {} MB of free memory for the {least} images that are summed together, found less on {}; use a smaller batch, \
                         or a GPU that nobody else uses",
                        (bytes * least as u64) >> 20,
                        gpu.name
                    )));
                }
            }
        }
    }

    /// The buffers that [`Workspace::ensure`] has made.
    pub fn buffers(&self) -> Result<&Buffers> {
        self.buffers.as_ref().ok_or_else(|| refuse("expected room for images, found none; report this as a bug"))
    }
}

impl Buffers {
    fn new(gpu: &Gpu, network: &Network, slots: usize, training: bool) -> Result<Buffers> {
        let maps = network.maps.iter().map(|map| gpu.zeros(map.len() * slots)).collect::<Result<_>>()?;
        let (mut gradients, mut choices, mut unpooled) = (Vec::new(), Vec::new(), Vec::new());
        for layer in &network.layers {
            let [gradient, choice, before_pool] = if training { sizes(network, layer) } else { [0; 3] };
            unpooled.push(gpu.uninitialised(before_pool * slots)?);
            gradients.push(gpu.uninitialised(gradient * slots)?);
            choices.push(gpu.uninitialised(choice * slots)?);
        }
        let (logits, labels) = (gpu.uninitialised(network.classes * slots)?, gpu.uninitialised(slots)?);
        Ok(Buffers { maps, gradients, unpooled, choices, logits, labels, slots, training, capped: false, network: network.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkName;

    #[test]
    fn no_lane_has_numbers_beyond_what_kernels_can_index() {
        for (name, expected) in [(NetworkName::SimpleCnn, 116_508), (NetworkName::Resnet8, 116_105)] {
            let network = Network::new(name);
            let most = most_images(&network);
            assert_eq!(most, expected, "{name}");
            for map in &network.maps {
                assert!(i32::try_from(most * map.len()).is_ok(), "{name}");
            }
        }
    }
}

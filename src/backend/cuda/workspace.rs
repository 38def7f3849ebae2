//! Memory for the images under way: one set of buffers, used by every micro-batch.

use super::buffers::{Buffers, ImageSizes};
use super::check::refuse;
use super::gpu::Gpu;
use super::layer;
use crate::Result;
use crate::network::{Layer, Map, Network};

/// Bytes that the images under way may take, and a quarter of what is free at most, since lanes and their gradients may take the rest
/// (`lanes_that_fit`): enough for thousands of blocks a launch, beyond which nothing gets faster.
const MOST_BYTES: u64 = 8 << 30;

/// The buffers for the images under way, and the limit to which the buffers may grow.
pub(super) struct Workspace {
    room: Option<Room>,
    /// Changes when a buffer moves: what was captured with the old ones is void.
    pub generation: u64,
    /// Most slots, whatever memory there is.
    pub limit: usize,
}

/// Buffers with what they were made for.
struct Room {
    buffers: Buffers,
    network: Network,
    training: bool,
    /// Whether memory, not a wish, decided how many slots there are: asking again would give no more.
    capped: bool,
}

impl Default for Workspace {
    fn default() -> Self {
        Workspace { room: None, generation: 0, limit: usize::MAX }
    }
}

/// Elements of an image in each layer's buffers; none where nothing is trained.
fn sizes(network: &Network, training: bool) -> Vec<ImageSizes> {
    let written = |layer: &Layer| layer.written().map_or(0, |slot| network.maps[slot].inner_len());
    let of = |layer: &Layer| if training { layer::of(layer).sizes(written(layer)) } else { ImageSizes::default() };
    network.layers.iter().map(of).collect()
}

/// Most images of a lane of which the kernels can index everything: they count its floats in 31 bits.
fn most_images(network: &Network) -> usize {
    let maps = network.maps.iter().map(Map::len);
    let sums = network.layers.iter().map(|layer| layer::of(layer).sums());
    i32::MAX as usize / maps.chain(sums).chain([network.classes]).max().unwrap_or(1).max(1)
}

/// Bytes of one slot.
pub(super) fn slot_bytes(network: &Network, training: bool) -> u64 {
    let maps: usize = network.maps.iter().map(|map| 4 * map.len()).sum();
    let rest: usize = sizes(network, training).into_iter().map(ImageSizes::bytes).sum();
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
        if let Some(room) = self.room.as_ref().filter(|room| room.network == *network) {
            let slots = room.buffers.slots;
            let enough = slots >= wanted || (room.capped && slots >= least);
            if enough && (room.training || !training) {
                return Ok(());
            }
            (had, training) = (slots, room.training || training);
        }
        // The old buffers go first: their memory counts as free.
        self.room = None;
        self.generation += 1;
        let bytes = slot_bytes(network, training);
        let most = (gpu.free()? / 4).min(MOST_BYTES) / bytes;
        let wanted = wanted.max(had);
        let most = (most as usize).min(most_images(network)).min(self.limit);
        let (layers, mut slots) = (sizes(network, training), wanted.min(most).max(least));
        loop {
            match Buffers::new(gpu, network, &layers, slots) {
                Ok(buffers) => {
                    self.room = Some(Room { buffers, network: network.clone(), training, capped: slots < wanted });
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
        self.room.as_ref().map(|room| &room.buffers).ok_or_else(|| refuse("expected room for images, found none; report this as a bug"))
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

//! The layers of a lane that visit kept weights alone, on one image at a time.

use super::super::floats::Floats;
use super::super::pooled::Event;
use super::super::simd::{Kernel, Simd};
use super::super::vector_unit::VectorUnit;
use super::submaps::{self, channel_map, submaps_len};
use super::weights::received;
use crate::network::{Layer, Map, Network, Slot};

/// Gradients that are there at once.
pub(in super::super) const TURNS: usize = 3;

/// One image's maps and gradients in sub-maps, and kept weights with their values. Empty until a lane has a layer that needs them.
pub(in super::super) struct SparseLayers {
    unit: VectorUnit,
    /// One a map.
    pub maps: Vec<Floats>,
    /// The gradients of convolutions' sums, each with the border that the data gradient reads. The backward pass of a layer uses the gradients of the
    /// layer, of its producer and of its block. These three layers are neighbours in the list of layers, so that three buffers in turns are enough,
    /// and stay in the cache.
    pub gradients: [Floats; TURNS],
    /// One a layer: the events of its kept weights (`weights.rs`) with their weights, forward and backward.
    pub forward: Vec<Vec<Event>>,
    pub backward: Vec<Vec<Event>>,
    /// One a layer: sums for its gradient, `[tap][submap]`, then `[output channel][submap]` for its biases.
    pub sums: Vec<Floats>,
    /// Some rows of one channel.
    pub band: Floats,
}

impl SparseLayers {
    pub(in super::super) fn new(network: &Network, unit: VectorUnit) -> SparseLayers {
        let floats = |count: usize| (0..count).map(|_| Floats::default()).collect::<Vec<_>>();
        let events = || network.layers.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        SparseLayers {
            unit,
            maps: floats(network.maps.len()),
            gradients: std::array::from_fn(|_| Floats::default()),
            forward: events(),
            backward: events(),
            sums: floats(network.layers.len()),
            band: Floats::default(),
        }
    }

    /// Makes room for the maps and gradients of all layers that can be in sub-maps, or can have a neighbour there.
    pub(in super::super) fn make_room(&mut self, network: &Network) {
        for (submaps, &map) in self.maps.iter_mut().zip(&network.maps).filter(|(_, map)| submaps::fit(**map)) {
            submaps.grow(submaps_len(map));
            self.band.grow(channel_map(map).len());
        }
        for (index, layer) in network.layers.iter().enumerate() {
            if let Layer::Convolution(layer) = layer {
                self.gradients[index % TURNS].grow(submaps_len(received(layer)));
            }
        }
    }

    /// Brings a map from one layout into another: true means sub-maps.
    pub(in super::super) fn bring_map(&mut self, network: &Network, slot: Slot, layouts: [bool; 2], maps: &mut [Floats]) {
        if layouts[0] != layouts[1] {
            let map = network.maps[slot];
            let (image, submaps) = (&mut maps[slot], &mut self.maps[slot]);
            self.unit.run(Bring { to_submaps: layouts[1], image_map: map, image, submaps_map: map, submaps });
        }
    }

    /// Brings the gradient of a convolution's sum from one layout into another: true means sub-maps. `gradient` has channels last.
    pub(in super::super) fn bring_gradient(&mut self, network: &Network, index: usize, layouts: [bool; 2], gradient: &mut [f32]) {
        if layouts[0] != layouts[1] {
            let layer = network.convolution(index);
            let (image_map, submaps_map) = (layer.output, received(layer));
            let (image, submaps) = (gradient, &mut self.gradients[index % TURNS][..]);
            self.unit.run(Bring { to_submaps: layouts[1], image_map, image, submaps_map, submaps });
        }
    }
}

struct Bring<'a> {
    to_submaps: bool,
    image_map: Map,
    image: &'a mut [f32],
    submaps_map: Map,
    submaps: &'a mut [f32],
}

impl Kernel for Bring<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Bring { to_submaps, image_map, image, submaps_map, submaps } = self;
        let image = &mut image[..image_map.len()];
        // SAFETY: the maps are the physical network's, cut where `fit` says that they can be; both functions check the lengths.
        unsafe {
            if to_submaps {
                submaps::cut::<S>(image_map, image, submaps_map, submaps)
            } else {
                submaps::join::<S>(submaps_map, submaps, image_map, image)
            }
        }
    }
}

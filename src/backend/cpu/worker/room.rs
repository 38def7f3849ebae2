//! A worker, and the room that it makes for its network.

use super::tail::{Images, Tail, gradient_floats};
use crate::backend::cpu::dense::LOGITS;
use crate::backend::cpu::floats::Floats;
use crate::backend::cpu::layer::{Buffers, LayerPlan, Scratch, Workspace, layers};
use crate::backend::cpu::physical::Physical;
use crate::backend::cpu::plan::Plan;
use crate::backend::cpu::sparse::SparseLayers;
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::network::{Layer, Network};
use crate::settings::Convolutions;

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

/// A workspace for up to `capacity` images, `pass` of them at a time. Buffers of pruned layers and of leaves computed together are made when they are
/// first needed, all others at once.
pub(in crate::backend::cpu) struct Worker {
    pub(super) space: Workspace,
    pub(super) capacity: usize,
    pub(super) pass: usize,
    /// Floats from one image's logits to the next's.
    pub(super) logits_stride: usize,
    pub(super) labels: Vec<u16>,
    /// The fully connected layers that are computed over several leaves at once, if there are such.
    pub(super) tail: Option<Tail>,
    /// The weights that were prepared last.
    pub(super) prepared: Option<Prepared>,
}

/// Whose weights are laid out for the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prepared {
    /// [`Plan::id`] of the plan.
    pub(super) plan: u64,
    /// The lane and step.
    pub(super) version: u64,
    /// Whether for gradients too.
    pub(super) backward: bool,
}

impl Worker {
    pub(in crate::backend::cpu) fn new(physical: &Physical, unit: VectorUnit, convolutions: Convolutions, capacity: usize) -> Worker {
        let network = physical.network().clone();
        let pass = images_a_pass(&network).min(capacity);
        let plans = layers(&network, None, true, convolutions);
        let tail = Tail::new(&plans, pass);
        let images = Images { pass, tail: tail.as_ref().map(|tail| tail.first) };
        let mut scratch = Scratch::default();
        let room = |(LayerPlan { place, layer }, description): (&LayerPlan, &Layer)| {
            let images = images.of_layer(&network, place.index);
            let mut buffers = Buffers { gradient: Floats::zeros(gradient_floats(&network, description) * images), ..Buffers::default() };
            layer.make_room(&network, images, &mut buffers, &mut scratch);
            buffers
        };
        let buffers = plans.iter().zip(&network.layers).map(room).collect();
        let in_map = |slot: usize| if slot == 0 { images.of_map(&network, slot).max(capacity) } else { images.of_map(&network, slot) };
        let logits_stride = network.classes.next_multiple_of(LOGITS);
        Worker {
            capacity,
            pass,
            logits_stride,
            labels: vec![0; images.most().max(capacity)],
            tail,
            prepared: None,
            space: Workspace {
                unit,
                maps: (0..network.maps.len()).map(|slot| Floats::zeros(network.maps[slot].len() * in_map(slot))).collect(),
                layers: buffers,
                scratch,
                sparse: SparseLayers::new(&network, unit),
                logits: Floats::zeros(images.most() * logits_stride),
                logit_gradients: Floats::zeros(images.most() * logits_stride),
                network,
            },
        }
    }

    /// Images that can be gathered.
    pub(in crate::backend::cpu) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lays the weights out for the kernels. `version` tells one set of weights from another, so that passes over the same ones share the
    /// work; `backward` says whether gradients will be asked for.
    pub(in crate::backend::cpu) fn prepare(&mut self, plan: &Plan, weights: &[f32], version: u64, backward: bool) {
        let wanted = Prepared { plan: plan.id, version, backward };
        if self.prepared == Some(wanted) || self.prepared == Some(Prepared { backward: true, ..wanted }) {
            return;
        }
        self.prepared = Some(wanted);
        if plan.has_sparse() {
            self.space.sparse.make_room(&self.space.network);
        }
        for LayerPlan { place, layer } in &plan.layers {
            let backward = backward && self.space.network.layers[place.index].producer().is_some();
            layer.prepare(place, &mut self.space, weights, backward);
        }
    }

    /// Panics unless the weights of a plan are laid out, and for gradients too if `backward`: kernels read what [`Worker::prepare`] has made.
    pub(super) fn assert_prepared(&self, plan: &Plan, backward: bool) {
        let is_prepared = |prepared: Prepared| prepared.plan == plan.id && (prepared.backward || !backward);
        assert!(self.prepared.is_some_and(is_prepared), "Worker::prepare comes before gradients and margins, with the same plan");
    }
}

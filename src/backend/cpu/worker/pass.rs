//! A thread's buffers, and one pass over the images in them.

use std::sync::Arc;

use super::buffers::{self, Buffers, Images, Scratch, images_a_pass};
use super::tail::Tail;
use crate::backend::cpu::floats::Floats;
use crate::backend::cpu::physical::Physical;
use crate::backend::cpu::plan::Plan;
use crate::backend::cpu::sparse::SparseLayers;
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::data::{Examples, Pixels};
use crate::network::{Map, Network, Slot};

/// Buffers for up to `capacity` images, `pass` of them at a time, allocated once, and the weights in the layouts that the kernels want.
pub(in crate::backend::cpu) struct Worker {
    pub(super) unit: VectorUnit,
    pub(super) network: Arc<Network>,
    pub(super) capacity: usize,
    pub(super) pass: usize,
    /// One feature map each: `[image][map]`; the first has room for all images.
    pub(super) maps: Vec<Floats>,
    pub(super) layers: Vec<Buffers>,
    pub(super) scratch: Scratch,
    /// The layers of a plan that are computed in sub-maps, one image at a time.
    pub(super) sparse: SparseLayers,
    /// `[image][logits]`, and their gradient.
    pub(super) logits: Floats,
    pub(super) logit_gradients: Floats,
    /// Floats from one image's logits to the next's.
    pub(super) logits_stride: usize,
    pub(super) labels: Vec<u16>,
    /// The fully connected layers that are computed over several leaves at once, if there are such.
    pub(super) tail: Option<Tail>,
    /// What was prepared last.
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
    pub(in crate::backend::cpu) fn new(physical: &Physical, unit: VectorUnit, capacity: usize) -> Worker {
        let network = physical.network().clone();
        let pass = images_a_pass(&network).min(capacity);
        let tail = Tail::new(&network, pass);
        let images = Images { pass, tail: tail.as_ref().map(|tail| tail.first) };
        let (layers, scratch) = buffers::allocate(&network, images);
        let maps = (0..network.maps.len()).map(|slot| Floats::zeros(network.maps[slot].len() * images.of_map(&network, slot)));
        let logits_stride = buffers::logits_stride(&network);
        let mut worker = Worker {
            unit,
            capacity,
            pass,
            maps: maps.collect(),
            layers,
            scratch,
            sparse: SparseLayers::new(&network, unit),
            logits: Floats::zeros(images.most() * logits_stride),
            logit_gradients: Floats::zeros(images.most() * logits_stride),
            logits_stride,
            labels: vec![0; images.most().max(capacity)],
            tail,
            prepared: None,
            network,
        };
        worker.maps[0].grow(worker.network.maps[0].len() * capacity);
        worker
    }

    /// Images that can be gathered.
    pub(in crate::backend::cpu) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Puts normalised images into the network's first map.
    pub(in crate::backend::cpu) fn gather(&mut self, examples: &Examples, tables: &[[f32; 256]], indices: &[u32]) {
        let map = self.network.maps[0];
        let row = map.width * map.channels;
        for (image, &index) in indices.iter().enumerate() {
            self.labels[image] = examples.labels[index as usize];
            let to = &mut self.maps[0][image * map.len()..][..map.len()];
            let place = index as usize * map.inner_len();
            let bytes = match &examples.images {
                Pixels::Bytes(values) => &values[place..][..map.inner_len()],
                Pixels::Floats(values) => {
                    for (y, row_values) in values[place..][..map.inner_len()].chunks_exact(row).enumerate() {
                        to[map.at_row(y)..][..row].copy_from_slice(row_values);
                    }
                    continue;
                }
            };
            for (y, bytes) in bytes.chunks_exact(row).enumerate() {
                let to = &mut to[map.at_row(y)..][..row];
                if let [table] = tables {
                    for (to, &byte) in to.iter_mut().zip(bytes) {
                        *to = table[usize::from(byte)];
                    }
                } else {
                    for (to, bytes) in to.chunks_exact_mut(tables.len()).zip(bytes.chunks_exact(tables.len())) {
                        for ((to, &byte), table) in to.iter_mut().zip(bytes).zip(tables) {
                            *to = table[usize::from(byte)];
                        }
                    }
                }
            }
        }
    }

    /// The gathered images, `[image][bordered map]`, and their labels.
    pub(in crate::backend::cpu) fn gathered(&self, count: usize) -> (&[f32], &[u16]) {
        (&self.maps[0][..count * self.network.maps[0].len()], &self.labels[..count])
    }

    /// Passes over gathered images, as (first image, images): layers in sub-maps hold one image, which their maps and gradients let stay in the
    /// cache.
    pub(super) fn passes(&self, plan: &Plan, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let images = if plan.has_sparse() { 1 } else { self.pass };
        (0..count).step_by(images).map(move |image| (image, images.min(count - image)))
    }

    /// Panics unless the weights of a plan are laid out, and for gradients too if `backward`: kernels read what [`Worker::prepare`] has made.
    pub(super) fn assert_prepared(&self, plan: &Plan, backward: bool) {
        let is_prepared = |prepared: Prepared| prepared.plan == plan.id && (prepared.backward || !backward);
        assert!(self.prepared.is_some_and(is_prepared), "Worker::prepare comes before gradients and margins, with the same plan");
    }

    /// Copies gathered images to the first ones' places.
    pub(super) fn bring_first(&mut self, image: usize, count: usize) {
        if image > 0 {
            let len = self.network.maps[0].len();
            self.maps[0].copy_within(image * len..(image + count) * len, 0);
            self.labels.copy_within(image..image + count, 0);
        }
    }

    /// Brings what a layer reads into channels last, if another layer left it in sub-maps.
    pub(super) fn bring_input(&mut self, plan: &Plan, producer: Option<usize>, input: Slot) {
        if plan.is_sparse(producer) {
            self.sparse.bring_map(&self.network, input, [true, false], &mut self.maps);
        }
    }

    /// Brings the gradient that a layer has written for its producer into sub-maps, if the producer is computed there.
    pub(super) fn bring_back(&mut self, plan: &Plan, producer: Option<usize>) {
        if let Some(producer) = producer.filter(|&producer| plan.is_sparse(Some(producer))) {
            self.sparse.bring_gradient(&self.network, producer, [false, true], &mut self.layers[producer].gradient);
        }
    }
}

/// One image of a map's values.
pub(super) fn image_of(values: &[f32], map: Map, image: usize) -> &[f32] {
    &values[image * map.len()..][..map.len()]
}

/// One pass over the gathered images.
pub(super) struct Pass<'a> {
    pub(super) worker: &'a mut Worker,
    pub(super) plan: &'a Plan,
    pub(super) weights: &'a [f32],
    /// What the loss divides logits by.
    pub(super) temperature: f32,
    /// Empty where none is made.
    pub(super) gradient: &'a mut [f32],
    /// Whether a backward pass will follow.
    pub(super) is_training: bool,
    pub(super) count: usize,
    /// Whether it is the first over the gathered images.
    pub(super) first: bool,
    pub(super) loss: f32,
}

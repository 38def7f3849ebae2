//! One thread's share of the work: the buffers for a few images of one lane, and the network's operations on them.
//!
//! The plan of a lane says for each layer which kernels compute it ([`Path`]); there is a file for each kind here: convolutions row
//! by row (`rows.rs`), those with a pool (`pooled.rs`), fully connected layers (`matrix.rs`) and logits (`logits.rs`), layers without
//! parameters (`pool.rs`), the loss (`loss.rs`). Nothing here knows of batches, ranks or trials.

mod backward;
mod buffers;
mod collect;
mod logits;
mod loss;
mod matrix;
mod pool;
mod pooled;
mod prepare;
mod rows;

pub(super) use buffers::{image_floats, images_a_pass};
pub(super) use collect::collect;

use std::sync::Arc;

use self::buffers::{Buffers, Scratch};
use super::floats::Floats;
use super::physical::Physical;
use super::plan::{Path, Plan};
use super::sparse::SparseLayers;
use super::vector_unit::VectorUnit;
use crate::backend::margin::margin;
use crate::data::{Examples, Pixels};
use crate::network::{Convolution, Dense, GlobalMean, Map, Network, Operations, Pool, Slot};

/// Buffers for up to `capacity` images, `pass` of them at a time, allocated once, and the weights in the layouts that the kernels want.
pub(super) struct Worker {
    unit: VectorUnit,
    network: Arc<Network>,
    capacity: usize,
    pass: usize,
    /// One feature map each: `[image][map]`; the first has room for all images.
    maps: Vec<Floats>,
    layers: Vec<Buffers>,
    scratch: Scratch,
    /// The layers of a plan that are computed in panes, one image at a time.
    sparse: SparseLayers,
    /// `[image][logits]`, and their gradient.
    logits: Floats,
    logit_gradients: Floats,
    /// Floats from one image's logits to the next's.
    logits_stride: usize,
    labels: Vec<u16>,
    /// The lane and step whose weights were prepared last.
    prepared: Option<(u64, bool)>,
}

impl Worker {
    pub(super) fn new(physical: &Physical, unit: VectorUnit, capacity: usize) -> Worker {
        let network = physical.network().clone();
        let pass = images_a_pass(&network).min(capacity);
        let (layers, scratch) = buffers::allocate(&network, pass);
        let logits_stride = buffers::logits_stride(&network);
        let mut worker = Worker {
            unit,
            capacity,
            pass,
            maps: network.maps.iter().map(|map| Floats::zeros(map.len() * pass)).collect(),
            layers,
            scratch,
            sparse: SparseLayers::new(&network, unit),
            logits: Floats::zeros(pass * logits_stride),
            logit_gradients: Floats::zeros(pass * logits_stride),
            logits_stride,
            labels: vec![0; capacity],
            prepared: None,
            network,
        };
        worker.maps[0].grow(worker.network.maps[0].len() * capacity);
        worker
    }

    /// Images that can be gathered.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lays the weights out for the kernels. `version` tells one set of weights from another, so that passes over the same ones share the
    /// work; `backward` says whether gradients will be asked for.
    pub(super) fn prepare(&mut self, plan: &Plan, weights: &[f32], version: u64, backward: bool) {
        if self.prepared == Some((version, true)) || self.prepared == Some((version, backward)) {
            return;
        }
        self.prepared = Some((version, backward));
        self.sparse.prepare(&self.network, plan, weights, backward);
        self.unit.run(prepare::Prepare { worker: self, plan, weights, backward });
    }

    /// Puts normalised images into the network's first map.
    pub(super) fn gather(&mut self, examples: &Examples, tables: &[[f32; 256]], indices: &[u32]) {
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
    pub(super) fn gathered(&self, count: usize) -> (&[f32], &[u16]) {
        (&self.maps[0][..count * self.network.maps[0].len()], &self.labels[..count])
    }

    /// Forward and backward over the first `count` gathered images: adds the summed gradient to `gradient`, laid out as the plan says, and
    /// returns the summed loss, that of logits divided by `temperature`. [`Worker::prepare`] must have seen the same plan and weights.
    pub(super) fn gradient(&mut self, plan: &Plan, weights: &[f32], temperature: f32, gradient: &mut [f32], count: usize) -> f32 {
        let network = self.network.clone();
        self.sparse.begin(plan);
        let mut loss = 0.0;
        for (image, count) in self.passes(plan, count) {
            self.bring_first(image, count);
            let mut pass = Pass { worker: self, plan, weights, temperature, gradient, count, loss };
            network.forward(&mut pass);
            pass.softmax_cross_entropy();
            network.backward(&mut pass);
            loss = pass.loss;
        }
        self.sparse.end(&network, plan, gradient);
        loss
    }

    /// Passes over gathered images, as (first image, images): layers in panes hold one image, which their maps and gradients let stay in the
    /// cache.
    fn passes(&self, plan: &Plan, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let images = if plan.has_sparse() { 1 } else { self.pass };
        (0..count).step_by(images).map(move |image| (image, images.min(count - image)))
    }

    /// Copies gathered images to the first ones' places.
    fn bring_first(&mut self, image: usize, count: usize) {
        if image > 0 {
            let len = self.network.maps[0].len();
            self.maps[0].copy_within(image * len..(image + count) * len, 0);
            self.labels.copy_within(image..image + count, 0);
        }
    }

    /// Forward over the gathered images: the margin of each.
    pub(super) fn margins(&mut self, plan: &Plan, weights: &[f32], margins: &mut [f32]) {
        let network = self.network.clone();
        for (image, count) in self.passes(plan, margins.len()) {
            self.bring_first(image, count);
            network.forward(&mut Pass { worker: self, plan, weights, temperature: 1.0, gradient: &mut [], count, loss: 0.0 });
            for ((to, logits), &label) in
                margins[image..][..count].iter_mut().zip(self.logits.chunks_exact(self.logits_stride)).zip(&self.labels)
            {
                *to = margin(&logits[..network.classes], label.into());
            }
        }
    }

    /// Brings what a layer reads into channels last, if another layer left it in panes.
    fn bring_input(&mut self, plan: &Plan, producer: Option<usize>, input: Slot) {
        if plan.is_sparse(producer) {
            self.sparse.bring_map(&self.network, input, [true, false], &mut self.maps);
        }
    }

    /// Brings the gradient that a layer has written for its producer into panes, if the producer is computed there.
    fn bring_back(&mut self, plan: &Plan, producer: Option<usize>) {
        if let Some(producer) = producer.filter(|&producer| plan.is_sparse(Some(producer))) {
            self.sparse.bring_gradient(&self.network, producer, [false, true], &mut self.layers[producer].gradient);
        }
    }
}

/// One image of a map's values.
fn image_of(values: &[f32], map: Map, image: usize) -> &[f32] {
    &values[image * map.len()..][..map.len()]
}

/// One pass over the gathered images.
struct Pass<'a> {
    worker: &'a mut Worker,
    plan: &'a Plan,
    weights: &'a [f32],
    /// What the loss divides logits by.
    temperature: f32,
    /// Empty where only the outcome is wanted.
    gradient: &'a mut [f32],
    count: usize,
    loss: f32,
}

impl Pass<'_> {
    /// Whether a backward pass will follow.
    fn is_training(&self) -> bool {
        !self.gradient.is_empty()
    }
}

impl Operations for Pass<'_> {
    fn convolution_forward(&mut self, index: usize, layer: &Convolution) {
        let worker = &mut *self.worker;
        worker.sparse.bring_maps(&worker.network, self.plan, index, layer, &mut worker.maps);
        match &self.plan.layers[index].path {
            Path::Sparse(_) => {
                worker.sparse.forward(&worker.network, self.plan, index, &self.weights[layer.bias..][..layer.output.channels])
            }
            Path::Pooled(pooled) => worker.unit.run(pooled::Forward { pass: self, index, layer, pooled }),
            _ => worker.unit.run(rows::Forward { pass: self, index, layer }),
        }
    }

    fn convolution_backward(&mut self, index: usize, layer: &Convolution, network: &Network) {
        let (worker, plan) = (&mut *self.worker, self.plan);
        let here = plan.is_sparse(Some(index));
        if let Some(bypass) = layer.bypass.filter(|&bypass| plan.is_sparse(Some(bypass)) != here) {
            worker.sparse.bring_gradient(network, bypass, [!here, here], &mut worker.layers[bypass].gradient);
        }
        match &plan.layers[index].path {
            Path::Sparse(_) => worker.sparse.backward(network, plan, index),
            Path::Pooled(pooled) => worker.unit.run(pooled::Backward { pass: self, index, layer, pooled }),
            _ => worker.unit.run(rows::Backward { pass: self, index, layer }),
        }
        if let Some(producer) = layer.producer.filter(|&producer| plan.is_sparse(Some(producer)) != here) {
            let worker = &mut *self.worker;
            worker.sparse.bring_gradient(network, producer, [here, !here], &mut worker.layers[producer].gradient);
        }
    }

    fn pool_forward(&mut self, _index: usize, layer: &Pool) {
        self.worker.bring_input(self.plan, layer.producer, layer.input);
        pool::forward(self, layer);
    }

    fn pool_backward(&mut self, index: usize, layer: &Pool) {
        pool::backward(self, index, layer);
        self.worker.bring_back(self.plan, layer.producer);
    }

    fn global_mean_forward(&mut self, _index: usize, layer: &GlobalMean) {
        self.worker.bring_input(self.plan, layer.producer, layer.input);
        pool::mean_forward(self, layer);
    }

    fn global_mean_backward(&mut self, index: usize, layer: &GlobalMean) {
        pool::mean_backward(self, index, layer);
        self.worker.bring_back(self.plan, layer.producer);
    }

    fn dense_forward(&mut self, index: usize, layer: &Dense) {
        self.worker.bring_input(self.plan, layer.producer, layer.input);
        match &self.plan.layers[index].path {
            Path::Logits(_) => self.worker.unit.run(logits::Forward { pass: self, index, layer }),
            _ => self.worker.unit.run(matrix::Forward { pass: self, index, layer }),
        }
    }

    fn dense_backward(&mut self, index: usize, layer: &Dense) {
        match &self.plan.layers[index].path {
            Path::Logits(_) => self.worker.unit.run(logits::Backward { pass: self, index, layer }),
            _ => self.worker.unit.run(matrix::Backward { pass: self, index, layer }),
        }
        self.worker.bring_back(self.plan, layer.producer);
    }

    fn softmax_cross_entropy(&mut self) {
        loss::softmax_cross_entropy(self);
    }
}

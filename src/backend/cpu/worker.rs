//! One thread's share of the work: the buffers for a few images of one lane, and the network's operations on them.

use std::sync::Arc;

use super::convolution::{
    RESIDENT_WEIGHTS, add_positions, data_gradient_rows, filter_gradient_rows, forward_rows, group_rows, laid_out_len, lay_out, transpose,
    transpose_matrix,
};
use super::epilogue;
use super::floats::Floats;
use super::level::{Kernel, Level};
use super::plan::{LOGITS, LayerPlan, Plan};
use super::planar::Planes;
use super::pooled::{self, Event, Events};
use super::pruned::{BLOCK, deep};
use super::simd::Simd;
use super::taps;
use super::tile::{Positions, Runs, outer, product};
use super::winograd::{self, Points};
use crate::backend::margin::margin;
use crate::data::Examples;
use crate::network::{Convolution, Dense, Epilogue, GlobalMean, Layer, Map, Network, Operations};
use crate::pruning::Mask;

/// Buffers for up to `capacity` images, `pass` of them at a time, allocated once, and the weights in the layouts that the kernels want.
pub(super) struct Worker {
    level: Level,
    network: Arc<Network>,
    capacity: usize,
    pass: usize,
    /// One feature map each: `[image][map]`; the first has room for all images.
    maps: Vec<Floats>,
    /// One a layer: [image][gradient of the convolution's sum, or of its pooled map]; empty for other layers.
    gradients: Vec<Floats>,
    /// One a layer: [image][what the pool chose]; empty without a pool.
    choices: Vec<Vec<u8>>,
    /// Gradient of the mean's output: `[image][channels]`.
    mean_gradient: Floats,
    /// [image][LOGITS].
    logits: Floats,
    logit_gradients: Floats,
    labels: Vec<u8>,
    /// A group of rows of sums, or of their gradients.
    rows: Floats,
    /// What a layer of stride 1 is multiplied in.
    points: Points,
    /// One image's bordered input gradient.
    input_gradient: Floats,
    /// What the windows of a pooled layer's image read, and the events of its gradient.
    patches: Floats,
    events: Events,
    /// What a pruned layer's forward pass reads and makes.
    phases: Floats,
    planar: Floats,
    /// One a layer: convolution weights for the forward pass.
    packed: Vec<Floats>,
    /// One a layer: the convolution that is its data gradient, and one image's gradients of its sums with the border that this one needs.
    adjoints: Vec<Option<Convolution>>,
    bordered: Vec<Floats>,
    /// One a layer: convolution weights for the data gradient, as [`transpose`] makes them; with a pool as `[kernel][out][kernel][in]`, or
    /// the plan's blocks of them.
    transposed: Vec<Floats>,
    /// One a layer: the plan's taps with their weights.
    taps: Vec<Vec<Event>>,
    /// The layers of a plan that are computed in panes, one image at a time.
    planes: Planes,
    /// Weights on their way into `transposed`.
    reordered: Floats,
    /// Dense weights as `[in][LOGITS]` and as `[LOGITS][in]`, of the rows that the plan computes with.
    dense_rows: Floats,
    dense_transposed: Floats,
    /// Where the plan leaves some out: `[image][in]` that they read, and its gradient.
    dense_input: Floats,
    dense_input_gradient: Floats,
    /// The lane and step whose weights were prepared last.
    prepared: Option<(u64, bool)>,
}

impl Worker {
    pub(super) fn new(network: Arc<Network>, level: Level, capacity: usize) -> Worker {
        let pass = images_a_pass(&network).min(capacity);
        let mut worker = Worker {
            level,
            capacity,
            pass,
            maps: network.maps.iter().map(|map| Floats::zeros(map.len() * pass)).collect(),
            gradients: Vec::new(),
            choices: Vec::new(),
            mean_gradient: Floats::default(),
            logits: Floats::zeros(pass * LOGITS),
            logit_gradients: Floats::zeros(pass * LOGITS),
            labels: vec![0; capacity],
            rows: Floats::default(),
            points: Points::default(),
            input_gradient: Floats::default(),
            patches: Floats::default(),
            events: Events::default(),
            phases: Floats::default(),
            planar: Floats::default(),
            packed: Vec::new(),
            adjoints: Vec::new(),
            bordered: Vec::new(),
            transposed: Vec::new(),
            taps: network.layers.iter().map(|_| Vec::new()).collect(),
            planes: Planes::new(&network, level),
            reordered: Floats::default(),
            dense_rows: Floats::default(),
            dense_transposed: Floats::default(),
            dense_input: Floats::default(),
            dense_input_gradient: Floats::default(),
            prepared: None,
            network: network.clone(),
        };
        for layer in &network.layers {
            let (mut choice, mut packed, mut transposed, mut adjoint) = (0, 0, 0, None);
            match layer {
                Layer::Convolution(c) => {
                    packed = laid_out_len(c);
                    worker.points.grow(c);
                    if let Epilogue::ReluMaxPool { pooled } = c.epilogue {
                        choice = network.maps[pooled].inner_len();
                        if deep(c) {
                            worker.events.grow(c);
                            worker.input_gradient.grow(pooled::sent_len(c.input_map));
                        } else {
                            worker.patches.grow(pooled::patches_len(c.input_map));
                        }
                    }
                    if c.producer.is_some() {
                        adjoint = super::convolution::adjoint(c).filter(|_| choice == 0);
                        transposed = adjoint.as_ref().map_or(c.weight_count(), laid_out_len);
                        worker.reordered.grow(c.weight_count());
                        worker.input_gradient.grow(c.input_map.len());
                    }
                    worker.rows.grow(group_rows(c) * c.output.width * c.output.channels);
                }
                Layer::GlobalMean(mean) => worker.mean_gradient.grow(network.maps[mean.output].len() * pass),
                Layer::Dense(dense) => {
                    worker.dense_rows.grow(dense.inputs * LOGITS);
                    worker.dense_transposed.grow(LOGITS * dense.inputs);
                    worker.dense_input.grow(dense.inputs * pass);
                    worker.dense_input_gradient.grow(dense.inputs * pass);
                }
            }
            worker.gradients.push(Floats::zeros(gradient_floats(&network, layer) * pass));
            worker.choices.push(vec![0; choice * pass]);
            worker.packed.push(Floats::zeros(packed));
            worker.bordered.push(Floats::zeros(adjoint.as_ref().map_or(0, |adjoint| adjoint.input_map.len())));
            worker.adjoints.push(adjoint);
            worker.transposed.push(Floats::zeros(transposed));
        }
        worker.maps[0].grow(network.maps[0].len() * capacity);
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
        self.planes.prepare(&self.network, plan, weights, backward);
        self.level.run(Prepare { worker: self, plan, weights, backward });
    }

    /// Puts normalised images into the network's first map.
    pub(super) fn gather(&mut self, examples: &Examples, tables: &[[f32; 256]], indices: &[u32]) {
        let map = self.network.maps[0];
        let row = map.width * map.channels;
        for (image, &index) in indices.iter().enumerate() {
            let bytes = examples.image(index as usize);
            self.labels[image] = examples.labels[index as usize];
            let to = &mut self.maps[0][image * map.len()..][..map.len()];
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
    pub(super) fn gathered(&self, count: usize) -> (&[f32], &[u8]) {
        (&self.maps[0][..count * self.network.maps[0].len()], &self.labels[..count])
    }

    /// Forward and backward over the first `count` gathered images: adds the summed gradient to `gradient`, laid out as the plan says, and
    /// returns the summed loss, that of logits divided by `temperature`. [`Worker::prepare`] must have seen the same plan and weights.
    pub(super) fn gradient(&mut self, plan: &Plan, weights: &[f32], temperature: f32, gradient: &mut [f32], count: usize) -> f32 {
        let network = self.network.clone();
        self.planes.begin(plan);
        let mut loss = 0.0;
        for (image, count) in self.passes(plan, count) {
            self.bring_first(image, count);
            let mut pass = Pass { worker: self, plan, weights, temperature, gradient, count, loss };
            network.forward(&mut pass);
            pass.softmax_cross_entropy();
            network.backward(&mut pass);
            loss = pass.loss;
        }
        self.planes.end(&network, plan, gradient);
        loss
    }

    /// Passes over gathered images, as (first image, images): layers in panes hold one image, which their maps and gradients let stay in the
    /// cache.
    fn passes(&self, plan: &Plan, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let images = if plan.planar() { 1 } else { self.pass };
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
        let classes = network.classes();
        for (image, count) in self.passes(plan, margins.len()) {
            self.bring_first(image, count);
            network.forward(&mut Pass { worker: self, plan, weights, temperature: 1.0, gradient: &mut [], count, loss: 0.0 });
            for ((to, logits), &label) in margins[image..][..count].iter_mut().zip(self.logits.chunks_exact(LOGITS)).zip(&self.labels) {
                *to = margin(&logits[..classes], label.into());
            }
        }
    }
}

/// Floats of a pass, gradients among them: as many images as begin within the second-level cache. It is a constant because bits depend on it.
const PASS: usize = 1 << 18;

/// Images of a pass.
pub(super) fn images_a_pass(network: &Network) -> usize {
    PASS.div_ceil(image_floats(network))
}

/// Floats of an image's maps and their gradients.
pub(super) fn image_floats(network: &Network) -> usize {
    let gradients = network.layers.iter().map(|layer| gradient_floats(network, layer));
    network.maps.iter().map(|map| map.len()).sum::<usize>() + gradients.sum::<usize>()
}

/// Floats of an image's gradient of a convolution's sum, or of its pooled map.
fn gradient_floats(network: &Network, layer: &Layer) -> usize {
    match layer {
        Layer::Convolution(layer) => match layer.epilogue {
            Epilogue::ReluMaxPool { pooled } => network.maps[pooled].inner_len(),
            _ => layer.output.inner_len(),
        },
        _ => 0,
    }
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

impl Operations for Pass<'_> {
    fn convolution_forward(&mut self, index: usize, layer: &Convolution) {
        let worker = &mut *self.worker;
        worker.planes.bring_maps(&worker.network, self.plan, index, layer, &mut worker.maps);
        if self.plan.planar_at(Some(index)) {
            worker.planes.forward(&worker.network, self.plan, index, &self.weights[layer.bias..][..layer.output.channels]);
        } else {
            worker.level.run(ConvolutionForward { pass: self, index, layer });
        }
    }

    fn convolution_backward(&mut self, index: usize, layer: &Convolution, network: &Network) {
        let (worker, plan) = (&mut *self.worker, self.plan);
        let here = plan.planar_at(Some(index));
        if let Some(bypass) = layer.bypass {
            worker.planes.bring_gradient(network, bypass, [plan.planar_at(layer.bypass), here], &mut worker.gradients);
        }
        if here {
            worker.planes.backward(network, plan, index);
        } else {
            worker.level.run(ConvolutionBackward { pass: self, index, layer, network });
        }
        if let Some(producer) = layer.producer {
            let worker = &mut *self.worker;
            worker.planes.bring_gradient(network, producer, [here, plan.planar_at(layer.producer)], &mut worker.gradients);
        }
    }

    fn global_mean_forward(&mut self, layer: &GlobalMean) {
        let worker = &mut *self.worker;
        let planar = self.plan.planar_at(Some(layer.producer));
        worker.planes.bring_map(&worker.network, layer.input, [planar, false], &mut worker.maps);
        let (from, to) = (worker.network.maps[layer.input], worker.network.maps[layer.output]);
        let positions = from.height * from.width;
        let mut output = std::mem::take(&mut worker.maps[layer.output]);
        for (input, output) in worker.maps[layer.input].chunks_exact(from.len()).zip(output.chunks_exact_mut(to.len())).take(self.count) {
            output.fill(0.0);
            for position in input.chunks_exact(from.channels) {
                for (sum, &value) in output.iter_mut().zip(position) {
                    *sum += value;
                }
            }
            for sum in output.iter_mut() {
                *sum /= positions as f32;
            }
        }
        worker.maps[layer.output] = output;
    }

    fn global_mean_backward(&mut self, layer: &GlobalMean) {
        let worker = &mut *self.worker;
        let map = worker.network.maps[layer.input];
        let positions = (map.height * map.width) as f32;
        for image in 0..self.count {
            let rectified = &worker.maps[layer.input][image * map.len()..][..map.len()];
            let gradient = &mut worker.mean_gradient[image * map.channels..][..map.channels];
            gradient.iter_mut().for_each(|gradient| *gradient /= positions);
            let to = &mut worker.gradients[layer.producer][image * map.len()..][..map.len()];
            for (to, rectified) in to.chunks_exact_mut(map.channels).zip(rectified.chunks_exact(map.channels)) {
                for ((to, &r), &g) in to.iter_mut().zip(rectified).zip(&*gradient) {
                    *to = if r > 0.0 { g } else { 0.0 };
                }
            }
        }
        let planar = self.plan.planar_at(Some(layer.producer));
        worker.planes.bring_gradient(&worker.network, layer.producer, [false, planar], &mut worker.gradients);
    }

    fn dense_forward(&mut self, layer: &Dense) {
        let index = self.plan.layers.len() - 1;
        self.worker.level.run(DenseForward { pass: self, index, layer });
    }

    fn dense_backward(&mut self, layer: &Dense) {
        let index = self.plan.layers.len() - 1;
        self.worker.level.run(DenseBackward { pass: self, index, layer });
    }

    fn softmax_cross_entropy(&mut self) {
        let worker = &mut *self.worker;
        let classes = worker.network.classes();
        for image in 0..self.count {
            let logits = &mut worker.logits[image * LOGITS..][..classes];
            logits.iter_mut().for_each(|logit| *logit /= self.temperature);
            let gradient = &mut worker.logit_gradients[image * LOGITS..][..classes];
            let label = usize::from(worker.labels[image]);
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for (to, &mut logit) in gradient.iter_mut().zip(&mut *logits) {
                // libm's functions are the same on every machine; the system's are not.
                *to = libm::expf(logit - largest);
                sum += *to;
            }
            for to in gradient.iter_mut() {
                *to /= sum;
            }
            gradient[label] -= 1.0;
            gradient.iter_mut().for_each(|to| *to /= self.temperature);
            self.loss += libm::logf(sum) + largest - logits[label];
        }
    }
}

/// The kept parameters' part of a leaf's gradient, or of a sum of some, in the parameters' order. `room`, and `to` where all are kept, have
/// room for all parameters and [`LOGITS`] floats, which are undefined.
pub(super) fn collect(level: Level, network: &Network, plan: &Plan, mask: &Mask, gradient: &[f32], room: &mut [f32], to: &mut [f32]) {
    match (&plan.places, mask) {
        (Some(places), _) => to.iter_mut().zip(places).for_each(|(to, &place)| *to = gradient[place as usize]),
        (None, Mask::Dense(_)) => level.run(Collect { network, plan, gradient, to }),
        (None, Mask::Sparse { kept, .. }) => {
            level.run(Collect { network, plan, gradient, to: &mut *room });
            to.iter_mut().zip(kept).for_each(|(to, &index)| *to = room[index as usize]);
        }
    }
}

struct Collect<'a> {
    network: &'a Network,
    plan: &'a Plan,
    gradient: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Collect<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Collect { network, plan, gradient, to } = self;
        assert!(to.len() >= network.parameters() + LOGITS);
        for (layer, plan) in network.layers.iter().zip(&plan.layers) {
            let from = &gradient[plan.weights..plan.bias];
            let (bias, outputs) = match layer {
                Layer::Convolution(layer) => {
                    let (outputs, to) = (layer.output.channels, &mut to[layer.weights..][..layer.weight_count()]);
                    if plan.blocks.is_partial {
                        plan.blocks.places.iter().for_each(|&(place, weight)| to[weight as usize] = from[place as usize]);
                    } else if plan.blocks.offsets.is_empty() {
                        to.copy_from_slice(from);
                    } else {
                        unsafe { transpose_matrix::<S>(from, outputs, layer.weight_count() / outputs, to) };
                    }
                    (layer.bias, outputs)
                }
                Layer::Dense(layer) => {
                    let to = &mut to[layer.weights..][..layer.inputs * layer.outputs + LOGITS];
                    for (row, from) in from.chunks_exact(LOGITS).enumerate().take(plan.rows.as_ref().map_or(layer.inputs, Vec::len)) {
                        let input = plan.rows.as_ref().map_or(row, |rows| rows[row] as usize);
                        // What a row writes beyond its own, the next one writes again if it is computed, and the bias after the last.
                        for v in (0..LOGITS).step_by(S::WIDTH) {
                            unsafe { S::store(to.as_mut_ptr().add(input * layer.outputs + v), S::load(from.as_ptr().add(v))) };
                        }
                    }
                    (layer.bias, layer.outputs)
                }
                Layer::GlobalMean(_) => continue,
            };
            to[bias..][..outputs].copy_from_slice(&gradient[plan.bias..][..outputs]);
        }
    }
}

struct Prepare<'a> {
    worker: &'a mut Worker,
    plan: &'a Plan,
    weights: &'a [f32],
    backward: bool,
}

/// A pooled layer's weights for the backward pass, and a pruned one's for the forward pass.
#[inline(always)]
unsafe fn prepare_pooled<S: Simd>(
    layer: &Convolution,
    plan: &LayerPlan,
    weights: &[f32],
    backward: bool,
    transposed: &mut [f32],
    taps: &mut Vec<Event>,
) {
    if let Some(plan) = &plan.taps {
        taps.clear();
        taps.extend(plan.taps.iter().map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
    }
    if backward && layer.producer.is_some() && !plan.blocks.sent.is_empty() {
        transposed[..plan.blocks.offsets.len() * BLOCK].fill(0.0);
        plan.blocks.places.iter().for_each(|&(place, weight)| transposed[place as usize] = weights[weight as usize]);
    } else if backward && layer.producer.is_some() {
        let (run, outputs) = (layer.run(), layer.output.channels);
        for (from, to) in weights.chunks_exact(run * outputs).zip(transposed.chunks_exact_mut(run * outputs)) {
            unsafe { transpose_matrix::<S>(from, run, outputs, to) };
        }
    }
}

impl Kernel for Prepare<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Prepare { worker, plan, weights, backward } = self;
        for (index, layer) in worker.network.layers.iter().enumerate() {
            if plan.planar_at(Some(index)) {
                continue;
            }
            if let (Layer::Convolution(layer), None) = (layer, &plan.layers[index].taps) {
                unsafe { lay_out::<S>(layer, &weights[layer.weights..][..layer.weight_count()], &mut worker.packed[index]) };
            }
            match layer {
                Layer::Convolution(layer) if matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) => {
                    let weights = &weights[layer.weights..][..layer.weight_count()];
                    let (transposed, taps) = (&mut worker.transposed[index], &mut worker.taps[index]);
                    unsafe { prepare_pooled::<S>(layer, &plan.layers[index], weights, backward, transposed, taps) };
                    if plan.layers[index].taps.is_some() {
                        worker.phases.grow(taps::phases_len(layer));
                        worker.planar.grow(taps::planar_len(layer));
                    }
                }
                Layer::Convolution(layer) if backward && layer.producer.is_some() => {
                    let weights = &weights[layer.weights..][..layer.weight_count()];
                    let (adjoint, room) = (worker.adjoints[index].as_ref(), &mut worker.reordered);
                    unsafe { transpose::<S>(layer, adjoint, weights, room, &mut worker.transposed[index]) };
                }
                Layer::Dense(layer) => {
                    let plan = &plan.layers[index];
                    // A row is read beyond its end: into the next one, or the bias.
                    let weights = &weights[layer.weights..][..(layer.inputs + 1) * layer.outputs];
                    assert!(LOGITS <= 2 * layer.outputs);
                    let (count, nothing) = (plan.computed_rows(layer), [0.0; LOGITS]);
                    let row = |row: usize| match &plan.rows {
                        Some(rows) => rows.get(row).map_or(nothing.as_ptr(), |&input| weights[input as usize * layer.outputs..].as_ptr()),
                        None => weights[row * layer.outputs..].as_ptr(),
                    };
                    for (index, to) in worker.dense_rows.chunks_exact_mut(LOGITS).enumerate().take(count) {
                        for v in (0..LOGITS).step_by(S::WIDTH) {
                            unsafe { S::store(to.as_mut_ptr().add(v), S::load(row(index).add(v))) };
                        }
                    }
                    for first in (0..if backward { count } else { 0 }).step_by(S::WIDTH) {
                        for v in (0..LOGITS).step_by(S::WIDTH) {
                            let to = worker.dense_transposed[v * count + first..].as_mut_ptr();
                            unsafe { S::transpose(|i| row(first + i).add(v), to, count) };
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

struct ConvolutionForward<'a, 'b> {
    pass: &'a mut Pass<'b>,
    index: usize,
    layer: &'a Convolution,
}

impl Kernel for ConvolutionForward<'_, '_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let ConvolutionForward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let written = layer.epilogue.written();
        let map = worker.network.maps[written];
        let mut output = std::mem::take(&mut worker.maps[written]);
        let mut kept_stream = match layer.epilogue {
            Epilogue::Stream { stream, .. } => std::mem::take(&mut worker.maps[stream]),
            _ => Floats::default(),
        };
        let group = group_rows(layer);
        let pool = matches!(layer.epilogue, Epilogue::ReluMaxPool { .. });
        let resident = layer.kernel * layer.run() * S::WIDTH.min(layer.output.channels) * 2 <= RESIDENT_WEIGHTS;
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let output = &mut output[image * map.len()..][..map.len()];
            let choice = match worker.choices[index].get_mut(image * map.inner_len()..(image + 1) * map.inner_len()) {
                Some(choice) if !pass.gradient.is_empty() => choice,
                _ => &mut [],
            };
            if let Some(plan) = &pass.plan.layers[index].taps {
                let (phases, planar, values) = (&mut worker.phases, &mut worker.planar, &worker.taps[index]);
                unsafe {
                    taps::phases::<S>(layer, &plan.corners, input, phases);
                    taps::forward_taps::<S>(layer, plan, values, phases, bias, planar, output, choice);
                }
                continue;
            }
            if pool && resident {
                unsafe { pooled::forward_resident::<S>(layer, input, &worker.packed[index], bias, map, output, choice) };
                continue;
            }
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                let sums = &mut worker.rows[..rows * layer.output.width * layer.output.channels];
                let (weights, points) = (&worker.packed[index], &mut worker.points);
                unsafe { forward_rows::<S>(layer, input, weights, Some(bias), first, sums, points) };
                match layer.epilogue {
                    Epilogue::ReluMaxPool { .. } => {
                        unsafe { pooled::pool_rows::<S>(layer, sums, first, rows, map, output, choice) };
                    }
                    Epilogue::Relu { .. } => epilogue::relu(layer, sums, first, rows, map, output),
                    Epilogue::Stream { shortcut, .. } => {
                        if let Some(shortcut) = shortcut {
                            let from = worker.network.maps[shortcut];
                            epilogue::add_shortcut(
                                layer,
                                from,
                                &worker.maps[shortcut][image * from.len()..][..from.len()],
                                first,
                                rows,
                                sums,
                            );
                        }
                        let offset = image * layer.output.len() + first * layer.output.width * layer.output.channels;
                        kept_stream[offset..][..sums.len()].copy_from_slice(sums);
                        epilogue::relu(layer, sums, first, rows, map, output);
                    }
                }
            }
        }
        worker.maps[written] = output;
        if let Epilogue::Stream { stream, .. } = layer.epilogue {
            worker.maps[stream] = kept_stream;
        }
    }
}

struct ConvolutionBackward<'a, 'b> {
    pass: &'a mut Pass<'b>,
    index: usize,
    layer: &'a Convolution,
    network: &'a Network,
}

impl Kernel for ConvolutionBackward<'_, '_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let ConvolutionBackward { pass, index, layer, network } = self;
        let worker = &mut *pass.worker;
        let channels = layer.output.channels;
        let row = layer.output.width * channels;
        let group = group_rows(layer);
        let own = worker.gradients[index].len() / worker.pass;
        let plan = &pass.plan.layers[index];
        let (weight_gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(plan.bias - plan.weights);
        let bias_gradient = &mut bias_gradient[..channels];
        let mut producer = layer.producer.map(|producer| (network.convolution(producer), std::mem::take(&mut worker.gradients[producer])));
        let winograd = winograd::fits(layer);
        if winograd {
            let input = |image: usize| image_of(&worker.maps[layer.input], layer.input_map, image);
            let d = |image: usize| &worker.gradients[index][image * own..][..own];
            unsafe { winograd::filter_gradient::<S>(layer, pass.count, input, d, weight_gradient, &mut worker.points) };
        }
        for image in 0..pass.count {
            let input = image_of(&worker.maps[layer.input], layer.input_map, image);
            let received = &worker.gradients[index][image * own..][..own];
            let gradient_map = worker.adjoints[index].as_ref().map_or(layer.input_map, |adjoint| adjoint.output);
            let sent = if producer.is_some() { gradient_map.len() } else { 0 };
            if worker.adjoints[index].is_none() {
                worker.input_gradient[..sent].fill(0.0);
            }
            if let Epilogue::ReluMaxPool { .. } = layer.epilogue {
                let choice = &worker.choices[index][image * own..][..own];
                pooled::bias_gradient(received, bias_gradient);
                let blocks = &plan.blocks;
                unsafe {
                    if deep(layer) {
                        let (events, weights) = (&mut worker.events, &worker.transposed[index]);
                        if blocks.sent.is_empty() {
                            events.list(layer, blocks, received, choice);
                        } else {
                            events.list_few::<S>(layer, blocks, received, choice);
                        }
                        pooled::filter_gradient_events::<S>(layer, input, events, blocks, weight_gradient);
                        if producer.is_some() && blocks.sent.is_empty() {
                            pooled::data_gradient_events::<S>(layer, weights, events, &mut worker.input_gradient[..sent]);
                        } else if producer.is_some() {
                            pooled::data_gradient_blocks::<S>(layer, blocks, weights, events, &mut worker.input_gradient);
                        }
                    } else {
                        pooled::patches(layer.input_map, input, &mut worker.patches);
                        pooled::filter_gradient_selected::<S>(layer, &worker.patches, received, choice, weight_gradient);
                    }
                }
            } else {
                let input_gradient = &mut worker.input_gradient[..sent];
                for first in (0..layer.output.height).step_by(group) {
                    let rows = group.min(layer.output.height - first);
                    let d = &received[first * row..][..rows * row];
                    unsafe {
                        add_positions::<S>(d, bias_gradient);
                        if !winograd {
                            filter_gradient_rows::<S>(layer, input, d, first, rows, weight_gradient);
                        }
                        if producer.is_some() && worker.adjoints[index].is_none() {
                            data_gradient_rows::<S>(layer, &worker.transposed[index], d, first, rows, input_gradient);
                        }
                    }
                }
                if let Some(adjoint) = &worker.adjoints[index] {
                    let bordered = &mut worker.bordered[index];
                    for (y, from) in received.chunks_exact(row).enumerate() {
                        bordered[adjoint.input_map.at_row(y)..][..row].copy_from_slice(from);
                    }
                    let row = adjoint.output.row();
                    let group = group_rows(adjoint);
                    for (index_of_group, sums) in input_gradient.chunks_mut(group * row).enumerate() {
                        let first = index_of_group * group;
                        let (weights, points) = (&worker.transposed[index], &mut worker.points);
                        unsafe { forward_rows::<S>(adjoint, bordered, weights, None, first, sums, points) };
                    }
                }
            }
            let Some((producer, gradients)) = &mut producer else { continue };
            let input_gradient = &worker.input_gradient[..sent];
            let inner = layer.input_map.inner_len();
            let to = &mut gradients[image * inner..][..inner];
            match producer.epilogue {
                // The map has no border.
                Epilogue::ReluMaxPool { .. } => {
                    to.copy_from_slice(input_gradient);
                    pooled::cut_dead(to, &worker.choices[layer.producer.unwrap_or(0)][image * inner..][..inner]);
                }
                Epilogue::Relu { .. } => epilogue::relu_backward(layer.input_map, input, gradient_map, input_gradient, to),
                Epilogue::Stream { .. } => {
                    epilogue::relu_backward(layer.input_map, input, gradient_map, input_gradient, to);
                    if let Some(bypass) = layer.bypass {
                        let block = network.convolution(bypass);
                        let size = block.output.inner_len();
                        let gradient = &worker.gradients[bypass][image * size..][..size];
                        epilogue::add_shortcut_backward(block, gradient, producer.output, layer.input_map, input, to);
                    }
                }
            }
        }
        if let (Some(index), Some((_, gradients))) = (layer.producer, producer) {
            worker.gradients[index] = gradients;
        }
    }
}

fn image_of(maps: &[f32], map: Map, image: usize) -> &[f32] {
    &maps[image * map.len()..][..map.len()]
}

/// `[image][row]` of what a dense layer's rows read of its input; the input itself where they read all of it.
#[inline(always)]
fn dense_input<'a>(layer: &Dense, plan: &LayerPlan, input: &'a [f32], room: &'a mut [f32], count: usize) -> &'a [f32] {
    let Some(rows) = &plan.rows else { return input };
    for (to, from) in room.chunks_exact_mut(plan.computed_rows(layer)).zip(input.chunks_exact(layer.inputs)).take(count) {
        to[rows.len()..].fill(0.0);
        to.iter_mut().zip(rows).for_each(|(to, &row)| *to = from[row as usize]);
    }
    room
}

struct DenseForward<'a, 'b> {
    pass: &'a mut Pass<'b>,
    index: usize,
    layer: &'a Dense,
}

impl Kernel for DenseForward<'_, '_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let DenseForward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let plan = &pass.plan.layers[index];
        let inputs = plan.computed_rows(layer);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        for logits in worker.logits.chunks_exact_mut(LOGITS).take(pass.count) {
            logits[..layer.outputs].copy_from_slice(bias);
        }
        let runs = Runs { rows: 1, row_stride: 0, run: inputs };
        let input = dense_input(layer, plan, &worker.maps[layer.input], &mut worker.dense_input, pass.count).as_ptr();
        let logits = worker.logits.as_mut_ptr();
        let mut image = 0;
        macro_rules! tiles {
            ($images:literal) => {
                while pass.count - image >= $images {
                    unsafe {
                        let (a, c) = (input.add(image * inputs), logits.add(image * LOGITS));
                        let b = worker.dense_rows.as_ptr();
                        if S::WIDTH == LOGITS {
                            product::<S, $images, 1, true>(a, inputs, runs, b, LOGITS, c, LOGITS);
                        } else {
                            product::<S, $images, 2, true>(a, inputs, runs, b, LOGITS, c, LOGITS);
                        }
                    }
                    image += $images;
                }
            };
        }
        tiles!(8);
        tiles!(4);
        tiles!(1);
    }
}

struct DenseBackward<'a, 'b> {
    pass: &'a mut Pass<'b>,
    index: usize,
    layer: &'a Dense,
}

impl Kernel for DenseBackward<'_, '_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let DenseBackward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let plan = &pass.plan.layers[index];
        let (inputs, count) = (plan.computed_rows(layer), pass.count);
        let d = worker.logit_gradients.as_ptr();
        let (gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(inputs * LOGITS);
        for gradient in worker.logit_gradients.chunks_exact(LOGITS).take(count) {
            for (sum, &value) in bias_gradient[..layer.outputs].iter_mut().zip(gradient) {
                *sum += value;
            }
        }

        // The forward pass has left there what the rows read.
        let read = if plan.rows.is_some() { &worker.dense_input } else { &worker.maps[layer.input] };
        debug_assert!(read.len() >= count * inputs);
        let positions = Positions { rows: 1, columns: count, x_row: 0, x_stride: inputs, d_stride: LOGITS };
        let tall = if S::WIDTH == LOGITS { 8 } else { 4 };
        for from in (0..inputs).step_by(tall) {
            unsafe {
                let (x, g) = (read.as_ptr().add(from), gradient.as_mut_ptr().add(from * LOGITS));
                if S::WIDTH == LOGITS {
                    outer::<S, 8, 1>(x, d, positions, g, LOGITS);
                } else {
                    outer::<S, 4, 2>(x, d, positions, g, LOGITS);
                }
            }
        }

        let to = match layer.producer {
            Some(producer) => &mut worker.gradients[producer],
            None => &mut worker.mean_gradient,
        };
        let to = &mut to[..count * layer.inputs];
        to.fill(0.0);
        let sent = match plan.rows {
            Some(_) => {
                worker.dense_input_gradient[..count * inputs].fill(0.0);
                worker.dense_input_gradient.as_mut_ptr()
            }
            None => to.as_mut_ptr(),
        };
        let runs = Runs { rows: 1, row_stride: 0, run: layer.outputs };
        for image in 0..count {
            for from in (0..inputs).step_by(2 * S::WIDTH) {
                unsafe {
                    let (b, c) = (worker.dense_transposed.as_ptr().add(from), sent.add(image * inputs + from));
                    product::<S, 1, 2, true>(d.add(image * LOGITS), LOGITS, runs, b, inputs, c, inputs);
                }
            }
        }
        if let Some(rows) = &plan.rows {
            for (to, from) in to.chunks_exact_mut(layer.inputs).zip(worker.dense_input_gradient.chunks_exact(inputs)) {
                rows.iter().zip(from).for_each(|(&row, &from)| to[row as usize] = from);
            }
        }
        if let Some(producer) = layer.producer {
            pooled::cut_dead(to, &worker.choices[producer]);
        }
    }
}

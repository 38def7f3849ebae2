//! Weights in the layouts that the kernels of a plan want.

use super::super::convolution::{lay_out, transpose, transpose_matrix};
use super::super::dense::{LOGITS, adjoint_over_images, over_images};
use super::super::plan::{Path, Plan};
use super::super::pooled::Event;
use super::super::pruned::{BLOCK, Blocks};
use super::super::simd::{Kernel, Simd};
use super::super::taps;
use super::buffers::Buffers;
use super::pass::{Prepared, Worker};
use crate::network::{Convolution, Dense, Layer};

impl Worker {
    /// Lays the weights out for the kernels. `version` tells one set of weights from another, so that passes over the same ones share the
    /// work; `backward` says whether gradients will be asked for.
    pub(in crate::backend::cpu) fn prepare(&mut self, plan: &Plan, weights: &[f32], version: u64, backward: bool) {
        let wanted = Prepared { plan: plan.id, version, backward };
        if self.prepared == Some(wanted) || self.prepared == Some(Prepared { backward: true, ..wanted }) {
            return;
        }
        self.prepared = Some(wanted);
        self.sparse.prepare(&self.network, plan, weights, backward);
        self.unit.run(Prepare { worker: self, plan, weights, backward });
    }
}

/// Lays out the weights of all layers but those in sub-maps; for the backward pass too if `backward`.
struct Prepare<'a> {
    worker: &'a mut Worker,
    plan: &'a Plan,
    weights: &'a [f32],
    backward: bool,
}

impl Kernel for Prepare<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Prepare { worker, plan, weights, backward } = self;
        let (network, scratch) = (&*worker.network, &mut worker.scratch);
        for ((layer, plan), buffers) in network.layers.iter().zip(&plan.layers).zip(&mut worker.layers) {
            let backward = backward && layer.producer().is_some();
            match (layer, &plan.path) {
                (Layer::Convolution(layer), Path::Rows) => {
                    let weights = &weights[layer.weights..][..layer.weight_count()];
                    lay_out::<S>(layer, weights, &mut buffers.forward);
                    if backward {
                        let adjoint = buffers.adjoint.as_ref();
                        transpose::<S>(layer, adjoint, weights, &mut scratch.reordered, &mut buffers.backward);
                    }
                }
                (Layer::Convolution(layer), Path::Pooled(_)) => {
                    let weights = &weights[layer.weights..][..layer.weight_count()];
                    if let Some(taps) = plan.path.taps() {
                        buffers.taps.clear();
                        buffers.taps.extend(taps.taps.iter().map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
                        scratch.phases.grow(taps::phases_len(layer));
                        scratch.planar.grow(taps::planar_len(layer));
                    } else {
                        lay_out::<S>(layer, weights, &mut buffers.forward);
                    }
                    if let (true, Some(blocks)) = (backward, plan.path.blocks()) {
                        for_events::<S>(layer, blocks, weights, &mut buffers.backward);
                    }
                }
                (Layer::Dense(layer), Path::Matrix) => {
                    let over_images = over_images(layer, 1);
                    let weights = &weights[layer.weights..][..over_images.weight_count()];
                    lay_out::<S>(&over_images, weights, &mut buffers.forward);
                    if backward {
                        transpose_matrix::<S>(weights, layer.inputs, layer.outputs, &mut scratch.reordered[..weights.len()]);
                        let adjoint = adjoint_over_images(layer, 1);
                        lay_out::<S>(&adjoint, &scratch.reordered[..weights.len()], &mut buffers.backward);
                    }
                }
                (Layer::Dense(layer), Path::Logits(rows)) => {
                    for_logits::<S>(layer, rows.as_deref(), plan.path.computed_rows(layer), weights, backward, buffers);
                }
                _ => {}
            }
        }
    }
}

/// A pooled layer's weights for the data gradient: those of the blocks that are sent, or all as `[kernel][out][kernel · in]`.
#[inline(always)]
fn for_events<S: Simd>(layer: &Convolution, blocks: &Blocks, weights: &[f32], to: &mut [f32]) {
    if let (Some(_), Some(places)) = (&blocks.sent, &blocks.places) {
        to[..blocks.offsets.len() * BLOCK].fill(0.0);
        places.iter().for_each(|&(place, weight)| to[place as usize] = weights[weight as usize]);
        return;
    }
    let (run, outputs) = (layer.run(), layer.output.channels);
    for (from, to) in weights.chunks_exact(run * outputs).zip(to.chunks_exact_mut(run * outputs)) {
        transpose_matrix::<S>(from, run, outputs, to);
    }
}

/// Logits' weights as `[in][LOGITS]` and, if `backward`, as `[LOGITS][in]`: of `count` inputs, those in `rows` or all.
#[inline(always)]
fn for_logits<S: Simd>(layer: &Dense, rows: Option<&[u32]>, count: usize, weights: &[f32], backward: bool, buffers: &mut Buffers) {
    // A row is read beyond its end: into the next one, or the bias.
    let weights = &weights[layer.weights..][..(layer.inputs + 1) * layer.outputs];
    assert!(LOGITS <= 2 * layer.outputs && layer.outputs <= LOGITS && count <= layer.inputs && count.is_multiple_of(LOGITS));
    assert!(!backward || buffers.backward.len() >= LOGITS * count);
    let nothing = [0.0; LOGITS];
    let row = |row: usize| match rows {
        Some(rows) => rows.get(row).map_or(nothing.as_ptr(), |&input| weights[input as usize * layer.outputs..][..LOGITS].as_ptr()),
        None => weights[row * layer.outputs..][..LOGITS].as_ptr(),
    };
    for (index, to) in buffers.forward.chunks_exact_mut(LOGITS).enumerate().take(count) {
        for v in (0..LOGITS).step_by(S::WIDTH) {
            // SAFETY: `to` and a row, or the zeros in its place, have LOGITS floats, which are whole vectors.
            unsafe { S::store(to.as_mut_ptr().add(v), S::load(row(index).add(v))) };
        }
    }
    for first in (0..if backward { count } else { 0 }).step_by(S::WIDTH) {
        for v in (0..LOGITS).step_by(S::WIDTH) {
            let to = buffers.backward[v * count + first..].as_mut_ptr();
            // SAFETY: inputs come in groups of 32 (the assert), so that there are rows of LOGITS floats for a whole vector of them; `backward` has
            // as many floats as LOGITS rows of `count` (the assert), of which these vectors are some.
            unsafe { S::transpose(|i| row(first + i).add(v), to, count) };
        }
    }
}

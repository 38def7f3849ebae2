//! Several leaves at once, in the fully connected layers at the end of a network.
//!
//! The weights of these layers do not fit the second-level cache, and eight images are little work for as many: over the images of up to eight leaves
//! the weights are read once, and their gradients written once, added in the order of the tree while they are in registers ([`Start::Tree`]). All
//! that lies before these layers goes leaf by leaf, in buffers that each leaf has for itself from its forward to its backward pass. No bit depends on
//! it.
//!
//! A study of dense Lenet-300-100 took 1.2 to 1.4 times as long with each leaf by itself, in batches of 2, 4 and 8 on one thread: cells of as many
//! steps, in turn, by one program with and without this.

use super::super::layer::{DenseLayer, LayerPlan, Pass, Place};
use super::super::plan::Plan;
use super::super::tile::{Start, TOGETHER};
use super::loss::softmax_cross_entropy;
use super::passes::{backward, forward};
use super::room::Worker;
use super::tail::{Bank, Tail};
use crate::data::Examples;

impl Worker {
    /// Leaves that can be computed together; 1 where there is nothing to gain.
    pub(in crate::backend::cpu) fn together(&self, plan: &Plan) -> usize {
        if self.tail.is_some() && !plan.has_sparse() { TOGETHER } else { 1 }
    }

    fn tail(&mut self) -> &mut Tail {
        self.tail.as_mut().expect("Worker::together has said that leaves can be computed together")
    }

    /// Begins with no leaf.
    pub(in crate::backend::cpu) fn begin(&mut self) {
        let tail = self.tail();
        tail.counts.clear();
        tail.losses.clear();
    }

    /// Changes a leaf's buffers for the worker's own, and back.
    fn exchange(&mut self, leaf: usize) {
        let Some(tail) = &mut self.tail else { return };
        let bank = &mut tail.banks[leaf];
        std::mem::swap(&mut self.space.maps, &mut bank.maps);
        std::mem::swap(&mut self.labels, &mut bank.labels);
        for (layer, (gradient, choice)) in self.space.layers.iter_mut().zip(bank.gradients.iter_mut().zip(&mut bank.choices)) {
            std::mem::swap(&mut layer.gradient, gradient);
            std::mem::swap(&mut layer.choice, choice);
        }
    }

    /// Gathers the next leaf's images, and brings them to the fully connected layers. If `keep`, its backward pass can follow.
    ///
    /// # Panics
    /// As [`Worker::gradient`], and if there are too many leaves, or images in one.
    pub(in crate::backend::cpu) fn add_leaf(
        &mut self,
        (plan, weights): (&Plan, &[f32]),
        examples: &Examples,
        tables: &[[f32; 256]],
        indices: &[u32],
        keep: bool,
    ) {
        self.assert_prepared(plan, keep);
        let (pass, count) = (self.pass, indices.len());
        let tail = self.tail();
        let (first, leaf, image) = (tail.first, tail.counts.len(), tail.counts.iter().sum::<usize>());
        assert!(leaf < TOGETHER && count <= pass, "room for a leaf");
        tail.counts.push(count);
        let leaf = if keep { leaf } else { 0 };
        if tail.banks.len() <= leaf {
            let bank = Bank::new(&self.space.network, &self.space.layers, first, pass);
            self.tail().banks.push(bank);
        }
        self.exchange(leaf);
        self.gather(examples, tables, indices);
        forward(plan, &plan.layers[..first], &mut Pass { is_training: keep, ..Pass::forward(&mut self.space, weights, count) });
        self.exchange(leaf);

        let (Some(Tail { banks, .. }), space) = (&self.tail, &mut self.space) else { return };
        let (bank, layer) = (&banks[leaf], &space.network.layers[first]);
        let (slot, inputs) = (layer.input(), space.network.maps[layer.input()].len());
        let (own, all) = (..count * inputs, image * inputs..(image + count) * inputs);
        self.labels[image..][..count].copy_from_slice(&bank.labels[..count]);
        space.maps[slot][all.clone()].copy_from_slice(&bank.maps[slot][own]);
        if let Some(producer) = layer.producer().filter(|&producer| keep && !bank.choices[producer].is_empty()) {
            space.layers[producer].choice[all].copy_from_slice(&bank.choices[producer][own]);
        }
    }

    /// Forward and backward through the fully connected layers, over all leaves: writes their weights' summed gradient into `gradient`, which is laid
    /// out as the plan says. [`Worker::leaf_gradient`] makes the rest of each leaf's.
    pub(in crate::backend::cpu) fn gradient_together(&mut self, plan: &Plan, weights: &[f32], temperature: f32, gradient: &mut [f32]) {
        self.assert_prepared(plan, true);
        let (first, counts) = (self.tail().first, std::mem::take(&mut self.tail().counts));
        let count = counts.iter().sum();
        let behind = &plan.layers[first..];
        forward(plan, behind, &mut Pass { is_training: true, ..Pass::forward(&mut self.space, weights, count) });
        let mut image = 0;
        for &count in &counts {
            let loss = softmax_cross_entropy(self, image..image + count, temperature, 0.0);
            image += count;
            self.tail().losses.push(loss);
        }
        let mut pass = Pass { gradient, is_training: true, ..Pass::forward(&mut self.space, weights, count) };
        for (place, layer) in behind.iter().rev().filter_map(dense) {
            layer.weight_gradient(place, &mut pass, Start::Tree(&counts));
            layer.send(place, &mut pass);
        }
        self.tail().counts = counts;
    }

    /// After [`Worker::gradient_together`]: makes `gradient`, which [`Plan::clear`] has cleared, a leaf's, but for the weights of fully connected
    /// layers with many outputs, and returns its summed loss.
    pub(in crate::backend::cpu) fn leaf_gradient(&mut self, plan: &Plan, weights: &[f32], leaf: usize, gradient: &mut [f32]) -> f32 {
        self.assert_prepared(plan, true);
        let tail = self.tail();
        let (first, count, loss) = (tail.first, tail.counts[leaf], tail.losses[leaf]);
        let image: usize = tail.counts[..leaf].iter().sum();
        let (before, behind) = plan.layers.split_at(first);
        let mut pass = Pass { gradient, is_training: true, ..Pass::forward(&mut self.space, weights, count) };
        for (place, layer) in behind.iter().filter_map(dense) {
            layer.leaf_gradient(place, &mut pass, image..image + count);
        }
        let (Some(tail), space) = (&mut self.tail, &self.space) else { return loss };
        let layer = &space.network.layers[first];
        if let Some(producer) = layer.producer() {
            let inputs = space.network.maps[layer.input()].len();
            let kept = &space.layers[producer].gradient[image * inputs..][..count * inputs];
            tail.banks[leaf].gradients[producer][..kept.len()].copy_from_slice(kept);
        }
        self.exchange(leaf);
        backward(plan, before, &mut Pass { gradient, is_training: true, ..Pass::forward(&mut self.space, weights, count) });
        self.exchange(leaf);
        loss
    }

    /// Forward through the fully connected layers, over all leaves: the margin of each image.
    pub(in crate::backend::cpu) fn margins_together(&mut self, plan: &Plan, weights: &[f32], margins: &mut [f32]) {
        self.assert_prepared(plan, false);
        let (first, count) = (self.tail().first, self.tail().counts.iter().sum());
        forward(plan, &plan.layers[first..], &mut Pass::forward(&mut self.space, weights, count));
        self.write_margins(&mut margins[..count]);
    }
}

/// A layer of the tail, all of which are fully connected.
fn dense(plan: &LayerPlan) -> Option<(&Place, &dyn DenseLayer)> {
    plan.layer.dense().map(|layer| (&plan.place, layer))
}

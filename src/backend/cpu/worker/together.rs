//! Several leaves at once, in the fully connected layers at the end of a network.
//!
//! Their weights do not fit the second-level cache, and eight images are little work for as many: over the images of up to eight leaves the weights
//! are read once, and their gradients written once, added in the order of the tree while they are in registers ([`Start::Tree`]). All that lies
//! before these layers goes leaf by leaf, in buffers that each leaf has for itself from its forward to its backward pass. No bit depends on it.

use super::super::plan::{Path, Plan};
use super::super::tile::{Start, TOGETHER};
use super::pass::{Pass, Worker};
use super::tail::{Bank, Tail, has_choice};
use super::{logits, loss, matrix};
use crate::data::Examples;
use crate::network::Layer;

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
        std::mem::swap(&mut self.maps, &mut bank.maps);
        std::mem::swap(&mut self.labels, &mut bank.labels);
        for (layer, (gradient, choice)) in self.layers.iter_mut().zip(bank.gradients.iter_mut().zip(&mut bank.choices)) {
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
        let (network, pass, count) = (self.network.clone(), self.pass, indices.len());
        let tail = self.tail();
        let (first, leaf, image) = (tail.first, tail.counts.len(), tail.counts.iter().sum::<usize>());
        assert!(leaf < TOGETHER && count <= pass, "room for a leaf");
        tail.counts.push(count);
        let leaf = if keep { leaf } else { 0 };
        if tail.banks.len() <= leaf {
            tail.banks.push(Bank::new(&network, first, pass));
        }
        self.exchange(leaf);
        self.gather(examples, tables, indices);
        let mut before =
            Pass { worker: self, plan, weights, temperature: 1.0, gradient: &mut [], is_training: keep, count, first: true, loss: 0.0 };
        network.forward_of(0..first, &mut before);
        self.exchange(leaf);

        let (Some(Tail { banks, .. }), Layer::Dense(layer)) = (&self.tail, &network.layers[first]) else { return };
        let bank = &banks[leaf];
        self.labels[image..][..count].copy_from_slice(&bank.labels[..count]);
        self.maps[layer.input][image * layer.inputs..][..count * layer.inputs]
            .copy_from_slice(&bank.maps[layer.input][..count * layer.inputs]);
        if let Some(producer) = layer.producer.filter(|&producer| keep && has_choice(&network.layers[producer])) {
            let choice = &mut self.layers[producer].choice[image * layer.inputs..][..count * layer.inputs];
            choice.copy_from_slice(&bank.choices[producer][..count * layer.inputs]);
        }
    }

    /// Forward and backward through the fully connected layers, over all leaves: writes their weights' summed gradient into `gradient`, which is laid
    /// out as the plan says. [`Worker::leaf_gradient`] makes the rest of each leaf's.
    pub(in crate::backend::cpu) fn gradient_together(&mut self, plan: &Plan, weights: &[f32], temperature: f32, gradient: &mut [f32]) {
        self.assert_prepared(plan, true);
        let (network, unit) = (self.network.clone(), self.unit);
        let (first, counts) = (self.tail().first, std::mem::take(&mut self.tail().counts));
        let count = counts.iter().sum();
        let mut pass = Pass { worker: self, plan, weights, temperature, gradient, is_training: true, count, first: true, loss: 0.0 };
        network.forward_of(first..network.layers.len(), &mut pass);
        let mut image = 0;
        for &count in &counts {
            pass.loss = 0.0;
            loss::softmax_cross_entropy(&mut pass, image..image + count);
            image += count;
            let loss = pass.loss;
            pass.worker.tail().losses.push(loss);
        }
        for (index, layer) in network.layers.iter().enumerate().skip(first).rev() {
            let Layer::Dense(layer) = layer else { continue };
            if let Path::Logits(_) = plan.layers[index].path {
                unit.run(logits::Send { pass: &mut pass, index, layer });
            } else {
                unit.run(matrix::Weights { pass: &mut pass, index, layer, start: Start::Tree(&counts) });
                unit.run(matrix::Send { pass: &mut pass, index, layer });
            }
        }
        self.tail().counts = counts;
    }

    /// After [`Worker::gradient_together`]: makes `gradient`, which [`Plan::clear`] has cleared, a leaf's, but for the weights of fully connected
    /// layers with many outputs, and returns its summed loss.
    pub(in crate::backend::cpu) fn leaf_gradient(&mut self, plan: &Plan, weights: &[f32], leaf: usize, gradient: &mut [f32]) -> f32 {
        self.assert_prepared(plan, true);
        let (network, unit) = (self.network.clone(), self.unit);
        let tail = self.tail();
        let (first, count, loss) = (tail.first, tail.counts[leaf], tail.losses[leaf]);
        let image: usize = tail.counts[..leaf].iter().sum();
        let mut pass = Pass { worker: self, plan, weights, temperature: 1.0, gradient, is_training: true, count, first: true, loss: 0.0 };
        for (index, layer) in network.layers.iter().enumerate().skip(first) {
            let (Layer::Dense(layer), images) = (layer, image..image + count) else { continue };
            match plan.layers[index].path {
                Path::Logits(_) => unit.run(logits::Gradient { pass: &mut pass, index, layer, images }),
                _ => unit.run(matrix::Bias { pass: &mut pass, index, layer, images }),
            }
        }
        let worker = &mut *pass.worker;
        if let (Some(tail), Layer::Dense(layer)) = (&mut worker.tail, &network.layers[first])
            && let Some(producer) = layer.producer
        {
            let kept = &worker.layers[producer].gradient[image * layer.inputs..][..count * layer.inputs];
            tail.banks[leaf].gradients[producer][..kept.len()].copy_from_slice(kept);
        }
        pass.worker.exchange(leaf);
        network.backward_of(0..first, &mut pass);
        pass.worker.exchange(leaf);
        loss
    }

    /// Forward through the fully connected layers, over all leaves: the margin of each image.
    pub(in crate::backend::cpu) fn margins_together(&mut self, plan: &Plan, weights: &[f32], margins: &mut [f32]) {
        self.assert_prepared(plan, false);
        let network = self.network.clone();
        let (first, count) = (self.tail().first, self.tail().counts.iter().sum());
        let mut pass =
            Pass { worker: self, plan, weights, temperature: 1.0, gradient: &mut [], is_training: false, count, first: true, loss: 0.0 };
        network.forward_of(first..network.layers.len(), &mut pass);
        self.write_margins(&mut margins[..count]);
    }
}

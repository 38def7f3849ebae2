//! The network's operations, each by the kernels that the plan says; gradients and margins of the gathered images.

use super::pass::{Pass, Worker};
use super::{logits, loss, matrix, pool, pooled, rows};
use crate::backend::cpu::plan::{Path, Plan};
use crate::backend::cpu::tile::Start;
use crate::backend::margin::margin;
use crate::network::{Convolution, Dense, GlobalMean, Network, Operations, Pool};

impl Worker {
    /// Forward and backward over the first `count` gathered images, at least one: makes `gradient`, which [`Plan::clear`] has cleared, the
    /// summed gradient, laid out as the plan says, and returns the summed loss, that of logits divided by `temperature`. [`Worker::prepare`] must
    /// have seen the same weights.
    ///
    /// # Panics
    /// Unless [`Worker::prepare`] has laid weights out for this plan and for gradients.
    pub(in crate::backend::cpu) fn gradient(
        &mut self,
        plan: &Plan,
        weights: &[f32],
        temperature: f32,
        gradient: &mut [f32],
        count: usize,
    ) -> f32 {
        self.assert_prepared(plan, true);
        let network = self.network.clone();
        self.sparse.begin(plan);
        let mut loss = 0.0;
        for (image, count) in self.passes(plan, count) {
            self.bring_first(image, count);
            let first = image == 0;
            let mut pass = Pass { worker: self, plan, weights, temperature, gradient, is_training: true, count, first, loss };
            network.forward(&mut pass);
            pass.softmax_cross_entropy();
            network.backward(&mut pass);
            loss = pass.loss;
        }
        self.sparse.end(&network, plan, gradient);
        loss
    }

    /// Forward over the gathered images: the margin of each. [`Worker::prepare`] must have seen the same weights.
    ///
    /// # Panics
    /// Unless [`Worker::prepare`] has laid weights out for this plan.
    pub(in crate::backend::cpu) fn margins(&mut self, plan: &Plan, weights: &[f32], margins: &mut [f32]) {
        self.assert_prepared(plan, false);
        let network = self.network.clone();
        for (image, count) in self.passes(plan, margins.len()) {
            self.bring_first(image, count);
            network.forward(&mut Pass {
                worker: self,
                plan,
                weights,
                temperature: 1.0,
                gradient: &mut [],
                is_training: false,
                count,
                first: image == 0,
                loss: 0.0,
            });
            self.write_margins(&mut margins[image..][..count]);
        }
    }

    /// The margins of the first images, whose logits are there.
    pub(super) fn write_margins(&self, margins: &mut [f32]) {
        for ((to, logits), &label) in margins.iter_mut().zip(self.logits.chunks_exact(self.logits_stride)).zip(&self.labels) {
            *to = margin(&logits[..self.network.classes], label.into());
        }
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
        let unit = self.worker.unit;
        match &self.plan.layers[index].path {
            Path::Logits(_) => {
                unit.run(logits::Gradient { images: 0..self.count, pass: self, index, layer });
                unit.run(logits::Send { pass: self, index, layer });
            }
            _ => {
                // What is there is of no use: `Plan::clear` leaves it as it was.
                let start = if self.first { Start::First } else { Start::Chain };
                unit.run(matrix::Bias { images: 0..self.count, pass: self, index, layer });
                unit.run(matrix::Weights { pass: self, index, layer, start });
                unit.run(matrix::Send { pass: self, index, layer });
            }
        }
        self.worker.bring_back(self.plan, layer.producer);
    }

    fn softmax_cross_entropy(&mut self) {
        loss::softmax_cross_entropy(self, 0..self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::physical::Physical;
    use crate::backend::cpu::vector_unit::VectorUnit;
    use crate::comm::Leaves;
    use crate::config::NetworkName;

    fn worker() -> (Worker, Plan, Vec<f32>) {
        let physical = Physical::new(&Arc::new(Network::new(NetworkName::Lenet300x100)));
        let (network, plan) = (physical.network(), Plan::new(physical.network(), &physical.whole(), true));
        (Worker::new(&physical, VectorUnit::best(), Leaves::LONGEST), plan, vec![0.0; network.parameters()])
    }

    #[test]
    #[should_panic(expected = "Worker::prepare comes before gradients and margins")]
    fn margins_need_prepared_weights() {
        let (mut worker, plan, weights) = worker();
        worker.margins(&plan, &weights, &mut [0.0]);
    }

    #[test]
    #[should_panic(expected = "Worker::prepare comes before gradients and margins")]
    fn gradients_need_weights_that_were_prepared_for_them() {
        let (mut worker, plan, weights) = worker();
        worker.prepare(&plan, &weights, 0, false);
        worker.margins(&plan, &weights, &mut [0.0]);
        worker.gradient(&plan, &weights, 1.0, &mut vec![0.0; plan.length], 1);
    }

    #[test]
    #[should_panic(expected = "Worker::prepare comes before gradients and margins")]
    fn another_plan_needs_its_own_preparation() {
        let (mut worker, plan, weights) = worker();
        let other = Plan::new(&worker.network, &crate::pruning::Mask::Dense(weights.len()), true);
        worker.prepare(&plan, &weights, 0, true);
        worker.gradient(&other, &weights, 1.0, &mut vec![0.0; other.length], 1);
    }
}

//! Passes over the gathered images, layer by layer: gradients and margins.

use super::loss::softmax_cross_entropy;
use super::room::Worker;
use crate::backend::cpu::layer::{LayerPlan, Pass, Workspace};
use crate::backend::cpu::plan::Plan;
use crate::backend::margin::margin;
use crate::network::{Convolution, Epilogue, Layer};

impl Worker {
    /// Forward and backward over the first `images` gathered images, at least one: makes `gradient`, which [`Plan::clear`] has cleared, the
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
        images: usize,
    ) -> f32 {
        self.assert_prepared(plan, true);
        let mut loss = 0.0;
        for (image, count) in self.passes(plan, images) {
            self.bring_first(image, count);
            let (is_first, is_last) = (image == 0, image + count == images);
            let mut pass = Pass { space: &mut self.space, weights, gradient, is_training: true, count, is_first, is_last };
            forward(plan, &plan.layers, &mut pass);
            loss = softmax_cross_entropy(self, 0..count, temperature, loss);
            let mut pass = Pass { space: &mut self.space, weights, gradient, is_training: true, count, is_first, is_last };
            backward(plan, &plan.layers, &mut pass);
        }
        loss
    }

    /// Forward over the gathered images: the margin of each. [`Worker::prepare`] must have seen the same weights.
    ///
    /// # Panics
    /// Unless [`Worker::prepare`] has laid weights out for this plan.
    pub(in crate::backend::cpu) fn margins(&mut self, plan: &Plan, weights: &[f32], margins: &mut [f32]) {
        self.assert_prepared(plan, false);
        for (image, count) in self.passes(plan, margins.len()) {
            self.bring_first(image, count);
            forward(plan, &plan.layers, &mut Pass::forward(&mut self.space, weights, count));
            self.write_margins(&mut margins[image..][..count]);
        }
    }

    /// Passes over gathered images, as (first image, images). With a layer in sub-maps a pass has one image, whose maps and gradients stay in the
    /// cache.
    fn passes(&self, plan: &Plan, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let images = if plan.has_sparse() { 1 } else { self.pass };
        (0..count).step_by(images).map(move |image| (image, images.min(count - image)))
    }

    /// The margins of the first images, whose logits are there.
    pub(super) fn write_margins(&self, margins: &mut [f32]) {
        for ((to, logits), &label) in margins.iter_mut().zip(self.space.logits.chunks_exact(self.logits_stride)).zip(&self.labels) {
            *to = margin(&logits[..self.space.network.classes], label.into());
        }
    }
}

/// Forward through some layers of a plan, after those before them.
pub(super) fn forward(plan: &Plan, layers: &[LayerPlan], pass: &mut Pass) {
    for LayerPlan { place, layer } in layers {
        bring_maps(plan, place.index, pass.space);
        layer.forward(place, pass);
    }
}

/// Backward through some layers of a plan, after those behind them.
pub(super) fn backward(plan: &Plan, layers: &[LayerPlan], pass: &mut Pass) {
    for LayerPlan { place, layer } in layers.iter().rev() {
        let here = plan.is_sparse(Some(place.index));
        if let Layer::Convolution(Convolution { bypass: Some(bypass), .. }) = pass.space.network.layers[place.index] {
            bring_gradient(bypass, [plan.is_sparse(Some(bypass)), here], pass.space);
        }
        layer.backward(place, pass);
        if let Some(producer) = pass.space.network.layers[place.index].producer() {
            bring_gradient(producer, [here, plan.is_sparse(Some(producer))], pass.space);
        }
    }
}

/// Brings what a layer reads from the layout of the layer that wrote it into the layer's own: channels last, or sub-maps.
fn bring_maps(plan: &Plan, index: usize, space: &mut Workspace) {
    let Workspace { network, sparse, maps, .. } = space;
    let (layer, here) = (&network.layers[index], plan.is_sparse(Some(index)));
    sparse.bring_map(network, layer.input(), [plan.is_sparse(layer.producer()), here], maps);
    if let Layer::Convolution(Convolution { epilogue: Epilogue::Stream { shortcut: Some(shortcut), .. }, producer: Some(first), .. }) =
        layer
    {
        let writer = network.layers[*first].producer();
        sparse.bring_map(network, *shortcut, [plan.is_sparse(writer), here], maps);
    }
}

/// Brings the gradient that is kept for a layer from one layout into another: true means sub-maps.
fn bring_gradient(index: usize, layouts: [bool; 2], space: &mut Workspace) {
    space.sparse.bring_gradient(&space.network, index, layouts, &mut space.layers[index].gradient);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::physical::Physical;
    use crate::backend::cpu::vector_unit::VectorUnit;
    use crate::comm::Leaves;
    use crate::data::{Examples, ImageShape};
    use crate::network::{Network, NetworkName};
    use crate::pruning::Mask;
    use crate::settings::Convolutions;

    fn worker() -> (Worker, Plan, Vec<f32>) {
        let physical = Physical::new(&Arc::new(Network::new(NetworkName::Lenet300x100)));
        let (network, plan) = (physical.network(), Plan::new(physical.network(), &physical.whole(), true, Convolutions::Direct));
        (Worker::new(&physical, VectorUnit::best(), Convolutions::Direct, Leaves::LONGEST), plan, vec![0.0; network.parameters()])
    }

    /// The gradient over two images of random pixels, in a buffer that held `before`.
    fn gradient_over(before: f32, mask: &Mask, weights: &[f32]) -> Vec<f32> {
        let physical = Physical::new(&Arc::new(Network::new(NetworkName::SimpleCnn)));
        let plan = Plan::new(physical.network(), mask, true, Convolutions::Winograd);
        let mut worker = Worker::new(&physical, VectorUnit::best(), Convolutions::Winograd, Leaves::LONGEST);
        let pixels: Vec<u8> = (0..2 * 28 * 28).map(|pixel: u32| (pixel.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let shape = ImageShape { height: 28, width: 28, channels: 1 };
        let examples = Examples { images: pixels.into(), labels: vec![3, 7], shape };
        let tables = vec![std::array::from_fn(|byte| byte as f32 / 255.0)];
        worker.prepare(&plan, weights, 1, true);
        worker.gather(&examples, &tables, &[0, 1]);
        let mut gradient = vec![before; plan.length];
        plan.clear(&mut gradient);
        worker.gradient(&plan, weights, 1.0, &mut gradient, 2);
        gradient
    }

    #[test]
    fn a_gradient_does_not_depend_on_what_its_buffer_held() {
        let parameters = Network::new(NetworkName::SimpleCnn).parameters();
        let sparse = Mask::Sparse { kept: (0..parameters as u32).step_by(20).collect(), parameters };
        // With zeros for weights no pool chooses anything, so that channels have no events.
        let drawn: Vec<f32> = (0..parameters).map(|index| (index as f32 * 0.7).sin() * 0.1).collect();
        for (mask, weights) in [(Mask::Dense(parameters), &drawn), (sparse, &drawn), (Mask::Dense(parameters), &vec![0.0; parameters])] {
            let [clean, used] = [0.0, f32::NAN].map(|before| gradient_over(before, &mask, weights));
            assert!(clean.iter().all(|value| value.is_finite()) && clean.iter().any(|&value| value != 0.0));
            assert_eq!(clean, used);
        }
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
        let other = Plan::new(&worker.space.network, &Mask::Dense(weights.len()), true, Convolutions::Direct);
        worker.prepare(&plan, &weights, 0, true);
        worker.gradient(&other, &weights, 1.0, &mut vec![0.0; other.length], 1);
    }
}

//! The reference: any network in plain loops, one image at a time.
//!
//! The fast back ends are compared with it, and it computes Hessian products for networks that the CPU's kernels of Hessian products do not know. It
//! is written for reading: no vectors, no threads, no layouts of its own, and no use of what layers say for faster back ends
//! ([`producer`](crate::network::Convolution::producer), [`bypass`](crate::network::Convolution::bypass)). It may not know of lanes, ranks or
//! masks: a removed weight is a zero.
//!
//! All functions take the parameters flat as [`Network::tensors`] lays them out. They panic where a length does not fit the network, or a label is
//! none of its classes.

mod number;
mod pass;

pub use number::{Dual, Number};

use super::margin::margin;
use crate::data::{Examples, Pixels};
use crate::network::Network;
use pass::Pass;

/// Images as a network reads them, with their labels.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Normalised, `[image][height][width][channels]`, without borders.
    pub images: &'a [f32],
    /// The class of each image, from 0.
    pub labels: &'a [u16],
}

impl<'a> Batch<'a> {
    /// Each image with its label.
    fn examples(self, network: &Network) -> impl Iterator<Item = (&'a [f32], u16)> + use<'a> {
        let values = network.maps[0].inner_len();
        assert_eq!(self.images.len(), self.labels.len() * values, "values of {} images", self.labels.len());
        self.images.chunks_exact(values).zip(self.labels.iter().copied())
    }
}

/// The images of `examples` as a network reads them; `tables` are [`Dataset::lookup_table`](crate::data::Dataset::lookup_table)'s.
pub fn normalised(examples: &Examples, tables: &[[f32; 256]]) -> Vec<f32> {
    match &examples.images {
        Pixels::Bytes(values) => values.iter().zip(tables.iter().cycle()).map(|(&byte, table)| table[usize::from(byte)]).collect(),
        Pixels::Floats(values) => values.clone(),
    }
}

/// The logits of one normalised image: `[classes]`.
pub fn logits<T: Number>(network: &Network, weights: &[T], image: &[f32]) -> Vec<T> {
    let mut pass = Pass::new(network, weights, 1.0, &mut []);
    pass.forward(image);
    pass.logits
}

/// The margin of each image, as [`Backend::margins`](super::Backend::margins) says it.
pub fn margins(network: &Network, weights: &[f32], batch: Batch) -> Vec<f32> {
    batch.examples(network).map(|(image, label)| margin(&logits(network, weights, image), label.into())).collect()
}

/// The loss of logits divided by `temperature`, summed over the images.
pub fn loss<T: Number>(network: &Network, weights: &[T], temperature: f32, batch: Batch) -> T {
    let mut pass = Pass::new(network, weights, temperature, &mut []);
    batch.examples(network).for_each(|(image, label)| pass.add_loss(image, label));
    pass.loss
}

/// The gradient of [`loss`], `[parameters]`, and the loss.
pub fn gradient<T: Number>(network: &Network, weights: &[T], temperature: f32, batch: Batch) -> (Vec<T>, T) {
    let mut gradient = vec![T::from(0.0); network.parameters()];
    let mut pass = Pass::new(network, weights, temperature, &mut gradient);
    for (image, label) in batch.examples(network) {
        pass.add_loss(image, label);
        pass.add_gradient();
    }
    let loss = pass.loss;
    (gradient, loss)
}

/// The flow through a network, which is the sum of the logits of an image whose values are all 1, and the flow's gradient, `[parameters]`. Where the
/// weights are magnitudes, the flow is the synaptic flow of Tanaka et al., NeurIPS 2020. A group normalisation scales and shifts alone here, because
/// means and variances would conserve no flow. The authors' public code also leaves out the means and variances of batch normalisation, by the
/// values 0 and 1 of an untrained network.
pub fn flow<T: Number>(network: &Network, weights: &[T]) -> (Vec<T>, T) {
    let mut gradient = vec![T::from(0.0); network.parameters()];
    let mut pass = Pass::new(network, weights, 1.0, &mut gradient);
    pass.normalises = false;
    pass.forward(&vec![1.0; network.maps[0].inner_len()]);
    let sum = pass.add_logit_sum_gradient();
    (gradient, sum)
}

/// The product of the Hessian of [`loss`] with `vector`, `[parameters]`, and the loss: exact but for rounding, ReLU and the maximum having no
/// curvature. It is the derivative of the gradient along the vector (Pearlmutter, "Fast Exact Multiplication by the Hessian", 1994).
pub fn hessian_product<T: Number>(network: &Network, weights: &[T], vector: &[T], temperature: f32, batch: Batch) -> (Vec<T>, T) {
    assert_eq!(weights.len(), vector.len(), "parameters");
    let along: Vec<Dual<T>> = weights.iter().zip(vector).map(|(&value, &slope)| Dual { value, slope }).collect();
    let (gradient, loss) = gradient(network, &along, temperature, batch);
    (gradient.into_iter().map(|entry| entry.slope).collect(), loss.value)
}

//! Networks as data: layers over feature maps, the layout of their parameters, and their cost.
//!
//! Written once for every back end: a back end implements [`Operations`], and [`Network::forward`] and [`Network::backward`]
//! call them in order. Nothing here may know of a device, a rank, an optimizer or a data set.

mod builder;
mod initialisation;
mod layer;
mod listed;
mod tensor;

pub use initialisation::initial_weights;
pub use layer::{Convolution, Dense, DenseOutput, Epilogue, GlobalMean, Layer, Map, Operations, Pool, PoolKind, Slot};
pub use tensor::{Tensor, TensorKind};

use crate::config::{LayerSpec, NetworkName, Workload};

/// A network: its feature maps, its layers in forward order and its parameters in one flat vector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Network {
    /// Classes told apart.
    pub classes: usize,
    /// Feature maps that layers read and write, one buffer each for every example; slot 0 is the normalised image.
    pub maps: Vec<Map>,
    /// Layers in forward order.
    pub layers: Vec<Layer>,
    /// The parameter tensors in the order of the flat vector: each layer's weights, then its bias.
    pub tensors: Vec<Tensor>,
}

impl Network {
    /// The network that a list of layers makes for images of `image` rows, columns and channels.
    ///
    /// # Errors
    /// A sentence about the first layer that does not fit: what it gets, and what it needs.
    pub fn listed(layers: &[LayerSpec], image: [usize; 3], classes: usize) -> Result<Network, String> {
        listed::network(layers, image, classes)
    }

    /// The network of a workload, for images of `image` rows, columns and channels and so many classes.
    ///
    /// # Errors
    /// As [`Network::listed`].
    pub fn of(workload: &Workload, image: [usize; 3], classes: usize) -> Result<Network, String> {
        Network::listed(&workload.network.layers(classes as u32), image, classes)
    }

    /// The network of that name for the images that it is usually for, MNIST's or CIFAR-10's.
    pub fn new(name: NetworkName) -> Network {
        let image = match name {
            NetworkName::SimpleCnn | NetworkName::Lenet300x100 | NetworkName::Lenet5Caffe => [28, 28, 1],
            NetworkName::Resnet8 | NetworkName::Resnet20 | NetworkName::WideResnet16x2 | NetworkName::VggLike => [32, 32, 3],
        };
        Network::listed(&name.layers(10), image, 10).unwrap_or_else(|problem| unreachable!("{name}: {problem}"))
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range().end)
    }

    /// Multiplications and additions of one image's forward pass (2 for each multiply-add), padding included.
    pub fn forward_flop(&self) -> f64 {
        self.layers.iter().map(Layer::forward_flop).sum()
    }

    /// FLOP of one image's forward and backward pass: the first layer has no data gradient.
    pub fn training_flop(&self) -> f64 {
        let first = self.layers.first().map_or(0.0, Layer::forward_flop);
        3.0 * self.forward_flop() - first
    }

    /// Runs the forward pass on whatever images the back end holds.
    pub fn forward(&self, operations: &mut impl Operations) {
        for (index, layer) in self.layers.iter().enumerate() {
            match layer {
                Layer::Convolution(convolution) => operations.convolution_forward(index, convolution),
                Layer::Pool(pool) => operations.pool_forward(index, pool),
                Layer::GlobalMean(mean) => operations.global_mean_forward(index, mean),
                Layer::Dense(dense) => operations.dense_forward(index, dense),
            }
        }
    }

    /// Runs the backward pass after [`Operations::softmax_cross_entropy`]; gradients are summed over examples.
    pub fn backward(&self, operations: &mut impl Operations) {
        for (index, layer) in self.layers.iter().enumerate().rev() {
            match layer {
                Layer::Convolution(convolution) => operations.convolution_backward(index, convolution, self),
                Layer::Pool(pool) => operations.pool_backward(index, pool),
                Layer::GlobalMean(mean) => operations.global_mean_backward(index, mean),
                Layer::Dense(dense) => operations.dense_backward(index, dense),
            }
        }
    }

    /// The convolution at `index` in [`Network::layers`]; a layer refers only to layers that are convolutions.
    pub fn convolution(&self, index: usize) -> &Convolution {
        match &self.layers[index] {
            Layer::Convolution(convolution) => convolution,
            other => unreachable!("layer {index} is {other:?}, not a convolution"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_counts_and_costs_are_the_papers() {
        let simple = Network::new(NetworkName::SimpleCnn);
        assert_eq!(simple.parameters(), 62_346);
        assert!((simple.forward_flop() / 1e6 - 7.5).abs() < 0.01, "{}", simple.forward_flop());
        assert!((simple.training_flop() / 1e6 - 21.6).abs() < 0.05, "{}", simple.training_flop());
        let resnet = Network::new(NetworkName::Resnet8);
        assert_eq!(resnet.parameters(), 75_050);
        assert_eq!((simple.classes, resnet.classes), (10, 10));
    }
}

//! Networks as data: layers over feature maps, the layout of their parameters, and their cost.
//!
//! Every back end reads the same [`Network`]: its forward pass goes through [`Network::layers`] in order, its backward pass in reverse. The names of
//! networks and the layers that a configuration may list are declared here. Nothing here may know of a device, a rank, an optimizer or a data set.

mod builder;
mod choice;
mod description;
mod initialisation;
mod layer;
mod listed;
mod names;
mod specification;
mod tensor;

pub use choice::NetworkChoice;
pub(crate) use choice::NetworkKind;
pub use description::Network;
pub use initialisation::{initial_weights, weights_drawn_anew};
pub use layer::{Convolution, Dense, DenseOutput, EPSILON, Epilogue, GlobalMean, GroupNorm, Layer, Map, Pool, PoolKind, Slot};
pub use names::NetworkName;
pub use specification::{Initialisation, LayerName, LayerSpec, Padding};
pub use tensor::{Tensor, TensorKind};

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

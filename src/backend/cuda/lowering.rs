//! The network as the GPU's kernels see it, and which of them compute a layer.

use super::launch::uses_tiles;
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Layer, Map, Network, Slot};

/// This network, whose hidden fully connected layers are convolutions of one position: a map of height × width × channels without a border lies
/// in memory as one of 1 × 1 × inputs does. Maps, parameters and the numbers of layers stay what they are.
pub(super) fn lowered(network: &Network) -> Network {
    let layers = network.layers.iter().map(|layer| match layer {
        Layer::Dense(dense) => match dense.output {
            DenseOutput::Hidden { written, relu } => Layer::Convolution(of_one_position(dense, written, relu)),
            DenseOutput::Logits => layer.clone(),
        },
        other => other.clone(),
    });
    Network { layers: layers.collect(), ..network.clone() }
}

/// A hidden fully connected layer as a convolution of one position, which writes to this map.
fn of_one_position(dense: &Dense, written: Slot, relu: bool) -> Convolution {
    Convolution {
        kernel: 1,
        stride: 1,
        output: Map::plain(1, 1, dense.outputs),
        weights: dense.weights,
        bias: dense.bias,
        has_bias: dense.has_bias,
        input: dense.input,
        input_map: Map::plain(1, 1, dense.inputs),
        epilogue: if relu { Epilogue::Relu { rectified: written } } else { Epilogue::Linear { written } },
        producer: dense.producer,
        bypass: None,
    }
}

/// Which kernels compute each layer of a network, in words.
pub fn kernels(network: &Network) -> Vec<&'static str> {
    let network = lowered(network);
    let words = |layer: &Layer| match layer {
        Layer::Convolution(layer) if uses_tiles(layer) => "tiles of sums",
        Layer::GlobalMean(_) => "a thread a channel",
        Layer::Dense(_) => "a warp an image",
        _ => "plain loops",
    };
    network.layers.iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LayerSpec, NetworkName, Padding};

    #[test]
    fn hidden_layers_become_convolutions_of_the_same_parameters() {
        let network = Network::new(NetworkName::Lenet300x100);
        let lowered = lowered(&network);
        assert_eq!((lowered.parameters(), lowered.forward_flop()), (network.parameters(), network.forward_flop()));
        assert!(lowered.layers.iter().zip(&network.layers).all(|(a, b)| a.parameters() == b.parameters() && a.producer() == b.producer()));
        assert_eq!(kernels(&network), ["tiles of sums", "tiles of sums", "a warp an image"]);
    }

    #[test]
    fn what_tiles_do_not_know_is_computed_by_plain_loops() {
        for name in [NetworkName::Resnet20, NetworkName::WideResnet16x2, NetworkName::Lenet5Caffe] {
            assert!(!kernels(&Network::new(name)).contains(&"plain loops"), "{name}");
        }
        let layers = [
            LayerSpec::convolution(6, 3, 1, Padding::Valid),
            LayerSpec::Relu,
            LayerSpec::convolution(6, 3, 3, Padding::Valid),
            LayerSpec::MaxPool { size: 3, stride: 1 },
            LayerSpec::Flatten,
            LayerSpec::dense(10),
        ];
        let network = Network::listed(&layers, [13, 13, 1], 10).unwrap();
        assert_eq!(kernels(&network), ["tiles of sums", "plain loops", "plain loops", "a warp an image"], "11 is no multiple of 3");
    }
}

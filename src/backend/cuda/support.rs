//! Which networks the GPU's kernels know.

use super::check::refuse;
use crate::Result;
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Layer, Network};

/// Why images that are no bytes are refused.
pub(super) const FLOATS: &str =
    "expected images as bytes, which the GPU's kernels read, found 32-bit floating point; use --device cpu, or save them as bytes";

/// Whether the kernels know every layer of a network.
pub fn supports(network: &Network) -> bool {
    check(network).is_ok()
}

/// Rows and columns of a map at most, border included: `kernels/data_gradient.cu` keeps a place in 7 bits each.
const MOST_SIDE: usize = 127;

/// Refuses a network with a layer that the kernels do not know.
pub(super) fn check(network: &Network) -> Result<()> {
    let unknown = network.layers.iter().enumerate().find_map(|(index, layer)| Some((index, unknown(network, layer)?)));
    unknown.map_or(Ok(()), |(index, what)| {
        Err(refuse(format!(
            "expected layers that the GPU's kernels know (docs/gpu.md), found {what}, number {} of the network; use --device cpu",
            index + 1
        )))
    })
}

/// What the kernels do not know of a layer.
fn unknown(network: &Network, layer: &Layer) -> Option<&'static str> {
    match layer {
        Layer::Convolution(layer) => unknown_convolution(network, layer),
        Layer::Pool(_) => Some("a pool that follows no convolution's ReLU, or is no maximum over 2 × 2"),
        Layer::GlobalMean(mean) => match mean.producer {
            Some(producer) if is_convolution(network, producer) => None,
            _ => Some("a global mean of something else than a convolution"),
        },
        Layer::Dense(Dense { has_bias: false, .. }) => Some("a dense layer without a bias"),
        Layer::Dense(layer) if layer.output != DenseOutput::Logits => Some("a hidden dense layer"),
        Layer::Dense(layer) => {
            let map = network.maps[layer.input];
            let follows = |producer: usize| match &network.layers[producer] {
                Layer::GlobalMean(_) => true,
                Layer::Convolution(convolution) => matches!(convolution.epilogue, Epilogue::ReluMaxPool { .. }),
                _ => false,
            };
            let known = map.before + map.after == 0 && layer.producer.is_some_and(follows);
            (!known).then_some("a dense layer that follows neither a global mean nor a convolution's pool")
        }
    }
}

fn unknown_convolution(network: &Network, layer: &Convolution) -> Option<&'static str> {
    let Convolution { input_map: input, output, .. } = layer;
    let shortcut_fits = |from: usize| {
        let from = network.maps[from];
        let same = [from.height, from.width, from.channels] == [output.height, output.width, output.channels];
        same || ([from.height, from.width] == [2 * output.height, 2 * output.width] && from.channels < output.channels)
    };
    let needs_data_gradient = layer.producer.is_some();
    let refusals = [
        (!layer.has_bias, "a convolution without a bias"),
        (matches!(layer.epilogue, Epilogue::Linear { .. }), "a convolution without a ReLU"),
        (
            matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) && (output.height % 2, output.width % 2) != (0, 0),
            "a convolution that is pooled and has an odd number of rows or columns",
        ),
        (
            matches!(layer.epilogue, Epilogue::Stream { shortcut: Some(from), .. } if !shortcut_fits(from)),
            "a residual block whose shortcut neither keeps the shape nor halves rows and columns",
        ),
        (input.height.max(input.width) + input.before + input.after > MOST_SIDE, "a convolution of a map of more than 127 rows or columns"),
        (layer.producer.is_some_and(|producer| !is_convolution(network, producer)), "a convolution that follows none"),
        (
            needs_data_gradient && !(output.channels.is_multiple_of(4) && layer.weights.is_multiple_of(4)),
            "a convolution that is not the first, with channels that are no multiple of 4",
        ),
        (
            needs_data_gradient && (input.height % layer.stride, input.width % layer.stride) != (0, 0),
            "a convolution with a stride that does not divide its map's rows and columns",
        ),
    ];
    refusals.into_iter().find(|(refused, _)| *refused).map(|(_, what)| what)
}

fn is_convolution(network: &Network, index: usize) -> bool {
    matches!(network.layers[index], Layer::Convolution(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Initialisation, LayerSpec, NetworkName};

    #[test]
    fn networks_of_other_layers_are_refused_in_words() {
        for name in [NetworkName::SimpleCnn, NetworkName::Resnet8, NetworkName::Resnet20] {
            assert!(check(&Network::new(name)).is_ok(), "{name}");
        }
        let found = |network: &Network| check(network).map_or_else(|problem| problem.to_string(), |()| "nothing".to_owned());
        let lenet = found(&Network::new(NetworkName::Lenet5Caffe));
        let words =
            "found a convolution that is not the first, with channels that are no multiple of 4, number 2 of the network; use --device cpu";
        assert!(lenet.contains(words), "{lenet}");
        let wide = found(&Network::new(NetworkName::WideResnet16x2));
        assert!(wide.contains("found a residual block whose shortcut neither keeps the shape nor halves rows and columns"), "{wide}");
        let lenet = found(&Network::new(NetworkName::Lenet300x100));
        assert!(lenet.contains("found a hidden dense layer, number 1"), "{lenet}");
        let mut layers = NetworkName::SimpleCnn.layers(10);
        layers.pop();
        layers.push(LayerSpec::Dense { outputs: 10, initialisation: Initialisation::He, bias: false });
        let biasless = found(&Network::listed(&layers, [28, 28, 1], 10).unwrap());
        assert!(biasless.contains("found a dense layer without a bias, number 3 of the network"), "{biasless}");
    }
}

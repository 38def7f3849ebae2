//! Puts a network together: feature maps, parameter tensors and layers, in forward order.

use super::description::Network;
use super::layer::{Convolution, Dense, DenseOutput, Epilogue, GroupNorm, Layer, Map, Slot};
use super::specification::Initialisation;
use super::tensor::{Tensor, TensorKind};

/// The parameters of a layer.
pub(super) struct Learnt<'a> {
    /// The layer's name.
    pub name: &'a str,
    /// How weights begin.
    pub initialisation: Initialisation,
    /// Whether there is a bias.
    pub has_bias: bool,
}

/// Collects maps, layers and tensors.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) network: Network,
}

impl Builder {
    pub(super) fn new(classes: usize) -> Builder {
        Builder { network: Network { classes, maps: Vec::new(), layers: Vec::new(), tensors: Vec::new() } }
    }

    /// Adds a map.
    pub(super) fn map(&mut self, map: Map) -> Slot {
        self.network.maps.push(map);
        self.network.maps.len() - 1
    }

    /// Adds a layer and returns its index.
    pub(super) fn layer(&mut self, layer: Layer) -> usize {
        self.network.layers.push(layer);
        self.network.layers.len() - 1
    }

    /// Weights and bias of a layer with `fan_in` inputs for each of `outputs`.
    fn parameters(&mut self, learnt: &Learnt, fan_in: usize, outputs: usize) -> (usize, usize) {
        let weights = self.tensor(learnt, TensorKind::Weights, fan_in, fan_in * outputs);
        let bias = if learnt.has_bias { self.tensor(learnt, TensorKind::Bias, fan_in, outputs) } else { weights + fan_in * outputs };
        (weights, bias)
    }

    /// Adds a tensor behind the others, and returns its offset.
    fn tensor(&mut self, &Learnt { name, initialisation, .. }: &Learnt, kind: TensorKind, fan_in: usize, len: usize) -> usize {
        let suffix = match kind {
            TensorKind::Weights => "weights",
            TensorKind::Scale => "scale",
            TensorKind::Bias => "bias",
        };
        let offset = self.network.parameters();
        self.network.tensors.push(Tensor { name: format!("{name}.{suffix}"), kind, offset, len, fan_in, initialisation });
        offset
    }

    /// Adds a normalisation of `groups` groups, which divide the channels of the map `input`, and returns its index.
    pub(super) fn group_norm(&mut self, learnt: &Learnt, groups: usize, [input, output]: [Slot; 2], relu: bool, producer: usize) -> usize {
        let map = self.network.maps[input];
        let [scale, bias] = [TensorKind::Scale, TensorKind::Bias].map(|kind| self.tensor(learnt, kind, 1, map.channels));
        let (positions, group_channels) = (map.height * map.width, map.channels / groups);
        let layer = GroupNorm { groups, group_channels, positions, channels: map.channels, scale, bias, input, output, relu, producer };
        self.layer(Layer::GroupNorm(layer))
    }

    /// Adds a convolution from the map `input`, which has the border that it needs, to sums of shape `output`, and returns its index.
    pub(super) fn convolution(
        &mut self,
        learnt: &Learnt,
        input: Slot,
        [kernel, stride]: [usize; 2],
        output: Map,
        epilogue: Epilogue,
        producer: Option<usize>,
    ) -> usize {
        let input_map = self.network.maps[input];
        let (weights, bias) = self.parameters(learnt, kernel * kernel * input_map.channels, output.channels);
        let convolution = Convolution {
            kernel,
            stride,
            output,
            weights,
            bias,
            has_bias: learnt.has_bias,
            input,
            input_map,
            epilogue,
            producer,
            bypass: None,
        };
        self.layer(Layer::Convolution(convolution))
    }

    /// Adds a fully connected layer and returns its index.
    pub(super) fn dense(&mut self, learnt: &Learnt, input: Slot, outputs: usize, output: DenseOutput, producer: Option<usize>) -> usize {
        let inputs = self.network.maps[input].inner_len();
        let (weights, bias) = self.parameters(learnt, inputs, outputs);
        self.layer(Layer::Dense(Dense { input, inputs, outputs, weights, bias, has_bias: learnt.has_bias, producer, output }))
    }
}

//! Puts a network together: feature maps, parameter tensors and layers, in forward order.

use super::{Convolution, Dense, DenseOutput, Epilogue, Kind, Layer, Map, Network, Slot, Tensor};

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

    fn tensor(&mut self, name: String, kind: Kind, len: usize, fan_in: usize) -> usize {
        let offset = self.network.parameters();
        self.network.tensors.push(Tensor { name, kind, offset, len, fan_in });
        offset
    }

    /// Weights and bias of a layer with `fan_in` inputs for each of `outputs`.
    fn parameters(&mut self, name: &str, fan_in: usize, outputs: usize) -> (usize, usize) {
        let weights = self.tensor(format!("{name}.weights"), Kind::Weights, fan_in * outputs, fan_in);
        let bias = self.tensor(format!("{name}.bias"), Kind::Bias, outputs, fan_in);
        (weights, bias)
    }

    /// Adds a convolution from the map `input`, which has the border that it needs, to sums of shape `output`, and returns its index.
    pub(super) fn convolution(
        &mut self,
        name: &str,
        input: Slot,
        [kernel, stride]: [usize; 2],
        output: Map,
        epilogue: Epilogue,
        producer: Option<usize>,
    ) -> usize {
        let input_map = self.network.maps[input];
        let (weights, bias) = self.parameters(name, kernel * kernel * input_map.channels, output.channels);
        let convolution = Convolution { kernel, stride, output, weights, bias, input, input_map, epilogue, producer, bypass: None };
        self.layer(Layer::Convolution(convolution))
    }

    /// Adds a fully connected layer and returns its index.
    pub(super) fn dense(&mut self, name: &str, input: Slot, outputs: usize, output: DenseOutput, producer: Option<usize>) -> usize {
        let inputs = self.network.maps[input].inner_len();
        let (weights, bias) = self.parameters(name, inputs, outputs);
        self.layer(Layer::Dense(Dense { input, inputs, outputs, weights, bias, producer, output }))
    }
}

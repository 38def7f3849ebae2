//! The layer lists of Simple-CNN and ResNet-8 (Lee et al., ICLR 2021, appendix B; layouts as the public code's).

use super::{Convolution, Dense, Epilogue, GlobalMean, Kind, Layer, Map, Network, Slot, Tensor};
use crate::config::NetworkName;

/// Collects maps, layers and tensors in forward order.
struct Builder {
    network: Network,
}

impl Builder {
    fn new(name: NetworkName) -> Builder {
        Builder { network: Network { name, maps: Vec::new(), layers: Vec::new(), tensors: Vec::new() } }
    }

    fn map(&mut self, map: Map) -> Slot {
        self.network.maps.push(map);
        self.network.maps.len() - 1
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

    /// Adds a convolution from the map `input` and returns its index; the caller has chosen the border of `input`.
    fn convolution(&mut self, name: &str, input: Slot, shape: (usize, usize, usize), epilogue: Epilogue, producer: Option<usize>) -> usize {
        let (kernel, stride, channels) = shape;
        let input_map = self.network.maps[input];
        let size = |inner: usize| (input_map.before + inner + input_map.after - kernel) / stride + 1;
        let output = Map::plain(size(input_map.height), size(input_map.width), channels);
        let (weights, bias) = self.parameters(name, kernel * kernel * input_map.channels, channels);
        let convolution = Convolution { kernel, stride, output, weights, bias, input, input_map, epilogue, producer, bypass: None };
        self.network.layers.push(Layer::Convolution(convolution));
        self.network.layers.len() - 1
    }

    fn dense(mut self, input: Slot, outputs: usize, producer: Option<usize>) -> Network {
        let inputs = self.network.maps[input].inner_len();
        let (weights, bias) = self.parameters("dense", inputs, outputs);
        self.network.layers.push(Layer::Dense(Dense { input, inputs, outputs, weights, bias, producer }));
        self.network
    }
}

/// Two 5 × 5 convolutions without padding, each with bias, ReLU and 2 × 2 max-pooling; one fully connected layer.
pub(super) fn simple_cnn() -> Network {
    let mut builder = Builder::new(NetworkName::SimpleCnn);
    let image = builder.map(Map::plain(28, 28, 1));
    let first = builder.map(Map::plain(12, 12, 32));
    let second = builder.map(Map::plain(4, 4, 64));
    let one = builder.convolution("conv1", image, (5, 1, 32), Epilogue::ReluMaxPool { pooled: first }, None);
    let two = builder.convolution("conv2", first, (5, 1, 64), Epilogue::ReluMaxPool { pooled: second }, Some(one));
    builder.dense(second, 10, Some(two))
}

/// The zero border of TensorFlow's SAME padding for a 3 × 3 kernel on an even size: all around for stride 1, below and to the right for 2.
fn same(map: Map, stride: usize) -> Map {
    if stride == 1 { map.bordered(1, 1) } else { map.bordered(0, 1) }
}

/// A 3 × 3 convolution and three pre-activation residual blocks of two, without batch normalisation; global mean; fully connected.
pub(super) fn resnet8() -> Network {
    const BLOCKS: [(usize, usize); 3] = [(16, 1), (32, 2), (64, 2)];
    let mut builder = Builder::new(NetworkName::Resnet8);
    let image = builder.map(same(Map::plain(32, 32, 3), 1));
    let mut shape = Map::plain(32, 32, 16);
    let mut stream = builder.map(shape);
    let mut rectified = builder.map(same(shape, BLOCKS[0].1));
    let mut last = builder.convolution("conv0", image, (3, 1, 16), Epilogue::Stream { stream, rectified, shortcut: None }, None);
    for (block, &(channels, stride)) in BLOCKS.iter().enumerate() {
        shape = Map::plain(shape.height / stride, shape.width / stride, channels);
        let inside = builder.map(same(shape, 1));
        let name = format!("block{}", block + 1);
        let epilogue = Epilogue::Relu { rectified: inside };
        let first = builder.convolution(&format!("{name}.conv1"), rectified, (3, stride, channels), epilogue, Some(last));
        let shortcut = Some(stream);
        stream = builder.map(shape);
        rectified = builder.map(BLOCKS.get(block + 1).map_or(shape, |&(_, next)| same(shape, next)));
        let epilogue = Epilogue::Stream { stream, rectified, shortcut };
        last = builder.convolution(&format!("{name}.conv2"), inside, (3, 1, channels), epilogue, Some(first));
        if let Layer::Convolution(convolution) = &mut builder.network.layers[first] {
            convolution.bypass = Some(last);
        }
    }
    let mean = builder.map(Map::plain(1, 1, shape.channels));
    builder.network.layers.push(Layer::GlobalMean(GlobalMean { input: rectified, output: mean, producer: last }));
    builder.dense(mean, 10, None)
}

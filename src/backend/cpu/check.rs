//! Conditions of a network that kernels rely on: every layer reads what was written before it and lies in its map, and writes maps of its own.

use super::dense::is_narrow;
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Layer, Map, Network, Slot};

/// Channels of the widest vector.
pub(super) const VECTOR: usize = 16;

/// Floats of a map, and parameters, at most: kernels keep offsets in 32 bits.
const MOST: usize = u32::MAX as usize;

/// Panics where a layer would read what nobody has written, or read or write beyond a map or the parameters.
pub(in crate::backend) fn check(network: &Network) {
    network.maps.iter().for_each(|&map| check_map(map));
    let mut check = Check { network, index: 0, writers: vec![None; network.maps.len()], parameters: 0 };
    check.writers[0] = Some(Writer::Image);
    for (index, layer) in network.layers.iter().enumerate() {
        check.index = index;
        match layer {
            Layer::Convolution(layer) => check.convolution(layer),
            Layer::Dense(layer) => check.dense(layer),
            other => check.of_a_map(other),
        }
    }
    assert!(check.parameters == network.parameters() && check.parameters <= MOST, "parameters and tensors");
    assert!(matches!(network.layers.last(), Some(Layer::Dense(layer)) if layer.output == DenseOutput::Logits), "logits come last");
}

/// Panics unless channels come in whole vectors where kernels take them so, and every layer with weights has a bias.
pub(super) fn check_vectors(network: &Network) {
    let whole = |channels: usize| channels.is_multiple_of(VECTOR);
    for layer in &network.layers {
        let [fits, has_bias] = match layer {
            Layer::Convolution(layer) => {
                [whole(layer.output.channels) && (layer.producer.is_none() || whole(layer.input_map.channels)), layer.has_bias]
            }
            Layer::Dense(layer) => {
                let inputs = layer.producer.is_none() || whole(layer.inputs);
                [is_narrow(layer.inputs, layer.outputs, layer.output) || whole(layer.outputs) && inputs, layer.has_bias]
            }
            other => [other.outputs().is_none_or(whole), true],
        };
        assert!(fits && has_bias, "channels in whole vectors, and a bias");
    }
}

/// Panics unless a map has floats, and not too many.
fn check_map(map: Map) {
    let side = |inside: usize| map.before.checked_add(inside)?.checked_add(map.after);
    let len = side(map.height).zip(side(map.width)).and_then(|(high, wide)| high.checked_mul(wide)?.checked_mul(map.channels));
    assert!(map.height > 0 && map.width > 0 && map.channels > 0, "a map has values");
    assert!(len.is_some_and(|len| len <= MOST), "a map of at most {MOST} values: {map:?}");
}

fn is_plain(map: Map) -> bool {
    map.before == 0 && map.after == 0
}

fn shape(map: Map) -> (usize, usize, usize) {
    (map.height, map.width, map.channels)
}

/// Writer of a map.
#[derive(Clone, Copy, PartialEq)]
enum Writer {
    /// Nobody: it is the image.
    Image,
    /// A layer, for the next ones.
    Layer(usize),
    /// A layer, for a shortcut.
    Stream(usize),
}

/// State of the check of a network: the writers of maps so far, and the parameters counted.
struct Check<'a> {
    network: &'a Network,
    index: usize,
    writers: Vec<Option<Writer>>,
    parameters: usize,
}

impl Check<'_> {
    fn reads(&self, slot: Slot, producer: Option<usize>) {
        let writer = self.writers[slot].expect("a layer reads what was written before it");
        assert!(producer.is_none_or(|producer| writer == Writer::Layer(producer)), "a producer wrote what the layer reads");
        assert!(!matches!(writer, Writer::Stream(_)), "none but a shortcut reads a stream");
    }

    fn writes(&mut self, slot: Slot) {
        self.writes_as(slot, Writer::Layer(self.index));
    }

    fn writes_as(&mut self, slot: Slot, writer: Writer) {
        assert!(self.writers[slot].replace(writer).is_none(), "every map is written once");
    }

    /// The layer's parameters follow those of the layer before.
    fn parameters(&mut self, [weights, bias]: [usize; 2], extents: &[usize], outputs: usize, has_bias: bool) {
        let count = extents.iter().try_fold(outputs, |product, &extent| product.checked_mul(extent)).filter(|&count| count <= MOST);
        let count = count.unwrap_or_else(|| panic!("at most {MOST} parameters"));
        assert!(weights == self.parameters && bias == weights + count && count > 0, "parameters follow each other");
        self.parameters = bias + if has_bias { outputs } else { 0 };
    }

    fn convolution(&mut self, layer: &Convolution) {
        let network = self.network;
        let (input, output, written) = (layer.input_map, layer.output, network.maps[layer.epilogue.written()]);
        self.reads(layer.input, layer.producer);
        check_map(output);
        assert!(input == network.maps[layer.input] && is_plain(output) && layer.kernel > 0 && layer.stride > 0, "a convolution's input");
        for (inside, side) in [(input.height, output.height), (input.width, output.width)] {
            let read = (side - 1).checked_mul(layer.stride).and_then(|first| first.checked_add(layer.kernel));
            let there = input.before + inside + input.after;
            // At stride 1 the data gradient is a convolution too. With input rows or columns that no output reads, the data gradient would read
            // beyond the gradients of the sums.
            let fits = read.is_some_and(|read| if layer.stride == 1 { read == there } else { read <= there });
            assert!(fits, "rows and columns that a convolution reads");
        }
        match layer.epilogue {
            Epilogue::ReluMaxPool { .. } => {
                assert!(
                    layer.stride == 1 && shape(written) == (output.height / 2, output.width / 2, output.channels),
                    "the shape of a pool"
                );
            }
            Epilogue::Stream { stream, shortcut, .. } => {
                assert!(network.maps[stream] == output && shape(written) == shape(output), "the shape of a stream");
                if let Some(slot) = shortcut {
                    let from = network.maps[slot];
                    assert!(matches!(self.writers[slot], Some(Writer::Stream(_))), "a shortcut is a stream that was written before");
                    assert!(is_plain(from) && from.channels <= output.channels, "a shortcut's channels");
                    let factor = from.height / output.height;
                    assert!(from.height == factor * output.height && from.width == factor * output.width, "a shortcut's sides");
                }
                self.writes_as(stream, Writer::Stream(self.index));
            }
            Epilogue::Linear { .. } | Epilogue::Relu { .. } => assert!(shape(written) == shape(output), "the shape of a convolution's map"),
        }
        self.writes(layer.epilogue.written());
        if let Some(bypass) = layer.bypass {
            let is_block = |layer: &Layer| {
                matches!(layer, Layer::Convolution(Convolution { epilogue: Epilogue::Stream { shortcut: Some(slot), .. }, .. })
                    if shape(network.maps[*slot]) == shape(input))
            };
            assert!(bypass == self.index + 1 && network.layers.get(bypass).is_some_and(is_block), "a block ends in the next layer");
        }
        self.parameters([layer.weights, layer.bias], &[layer.kernel, layer.kernel, input.channels], output.channels, layer.has_bias);
    }

    /// Checks a pool, a mean or a normalisation: the map written must have the shape that the layer makes of the map read.
    fn of_a_map(&mut self, layer: &Layer) {
        let written = layer.written().expect("a layer other than the logits writes a map");
        self.reads(layer.input(), layer.producer());
        let (from, to) = (self.network.maps[layer.input()], self.network.maps[written]);
        assert!(is_plain(from) && layer.shape_made_of(from) == Some(shape(to).into()), "the shape that a layer makes of a map");
        self.writes(written);
        if let Some(([weights, bias], extents)) = layer.parameters().zip(layer.outputs()) {
            self.parameters([weights.start, bias.start], &[1], extents, !bias.is_empty());
        }
    }

    fn dense(&mut self, layer: &Dense) {
        self.reads(layer.input, layer.producer);
        let from = self.network.maps[layer.input];
        assert!(is_plain(from) && layer.inputs == from.inner_len(), "the inputs of a fully connected layer");
        match layer.output {
            DenseOutput::Logits => {
                assert!(self.index + 1 == self.network.layers.len() && layer.outputs >= self.network.classes, "logits come last");
            }
            DenseOutput::Hidden { written, .. } => {
                assert!(self.network.maps[written] == Map::plain(1, 1, layer.outputs), "the shape of a hidden layer");
                self.writes(written);
            }
        }
        self.parameters([layer.weights, layer.bias], &[layer.inputs], layer.outputs, layer.has_bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LayerSpec, Padding};

    /// Three convolutions on maps of 16 × 16 with a border of 1, and logits.
    fn network() -> Network {
        let convolution = LayerSpec::convolution(16, 3, 1, Padding::Same);
        let pair = [convolution, LayerSpec::Relu];
        let layers = [&pair[..], &pair, &pair, &[LayerSpec::Flatten, LayerSpec::dense(10)]].concat();
        Network::listed(&layers, [16, 16, 16], 10).unwrap()
    }

    fn at(network: &mut Network, index: usize) -> &mut Convolution {
        let Layer::Convolution(layer) = &mut network.layers[index] else { panic!("it is a convolution") };
        layer
    }

    #[test]
    fn a_list_of_layers_passes() {
        check(&network());
        check_vectors(&network());
    }

    /// With a larger input, the data gradient of a convolution would read beyond the gradients of the sums.
    #[test]
    #[should_panic(expected = "rows and columns that a convolution reads")]
    fn an_input_is_not_larger_than_what_stride_1_reads() {
        let mut network = network();
        let layer = at(&mut network, 2);
        let written = layer.epilogue.written();
        (layer.output.height, layer.output.width) = (8, 8);
        (network.maps[written].height, network.maps[written].width) = (8, 8);
        let Some(Layer::Dense(last)) = network.layers.last_mut() else { panic!("it is the logits") };
        last.inputs = 8 * 8 * 16;
        last.bias = last.weights + last.inputs * last.outputs;
        let end = network.tensors.len();
        network.tensors[end - 2].len = 8 * 8 * 16 * 10;
        network.tensors[end - 1].offset = network.tensors[end - 2].range().end;
        check(&network);
    }

    /// A kernel takes the map that it writes out of the list of maps while it runs, so no layer may write the map that it reads.
    #[test]
    #[should_panic(expected = "every map is written once")]
    fn no_layer_writes_the_map_that_it_reads() {
        let mut network = network();
        let slot = at(&mut network, 1).input;
        at(&mut network, 1).epilogue = Epilogue::Relu { rectified: slot };
        at(&mut network, 2).input = slot;
        check(&network);
    }

    #[test]
    #[should_panic(expected = "a layer reads what was written before it")]
    fn no_layer_reads_what_a_later_one_writes() {
        let mut network = network();
        let later = at(&mut network, 1).epilogue.written();
        (at(&mut network, 1).input, at(&mut network, 1).producer) = (later, None);
        check(&network);
    }

    #[test]
    #[should_panic(expected = "a producer wrote what the layer reads")]
    fn a_gradient_goes_to_the_layer_that_wrote_the_map() {
        let mut network = network();
        at(&mut network, 2).producer = Some(0);
        check(&network);
    }

    /// In 64 bits the product 2^32 · 2^32 wraps to 0, so that an unchecked map of 2^32 rows and 2^32 columns would seem to have no floats.
    #[test]
    #[should_panic(expected = "a map of at most 4294967295 values")]
    fn products_of_extents_do_not_wrap() {
        let mut network = network();
        network.maps.push(Map::plain(1 << 32, 1 << 32, 1));
        check(&network);
    }

    #[test]
    #[should_panic(expected = "channels in whole vectors")]
    fn kernels_get_whole_vectors() {
        let layers = [LayerSpec::convolution(5, 3, 1, Padding::Same), LayerSpec::Flatten, LayerSpec::dense(10)];
        check_vectors(&Network::listed(&layers, [6, 6, 3], 10).unwrap());
    }
}

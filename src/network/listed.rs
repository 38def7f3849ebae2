//! From a list of layers to a network: shapes are inferred, and what follows a sum (ReLU, a 2 × 2 maximum, a shortcut) is joined to it.

use std::collections::BTreeMap;

use super::builder::Learnt;
use super::choice::NetworkChoice;
use super::description::Network;
use super::layer::{Convolution, Dense, DenseOutput, Epilogue, GlobalMean, GroupNorm, Layer, Map, Pool, PoolKind, Slot};
use super::names::NetworkName;
use super::specification::{Initialisation, LayerSpec, Padding};
use super::tensor::TensorKind;
use crate::Error;

/// Parameters that a network may have.
const MOST_PARAMETERS: u64 = 100_000_000;

/// Channels by which kernels widen a layer at most.
const WIDER: u64 = 32;

/// Parameters that a network may have, its layers widened: kernels keep their places in 32 bits.
const MOST_PADDED: u64 = 1 << 31;

/// Values that all maps of an image may have together.
const MOST_VALUES: u64 = 100_000_000;

/// The network of a list, or a sentence about the first layer that does not fit.
fn network(layers: &[LayerSpec], image: [usize; 3], classes: usize) -> Result<Network, String> {
    let network = Network { classes, ..Network::default() };
    let mut reader = Reader { layers, network, shape: Map::plain(image[0], image[1], image[2]), ..Reader::default() };
    reader.input = reader.write(reader.shape)?;
    while reader.next < layers.len() {
        reader.layer(classes)?;
    }
    if !reader.ended {
        return Err(format!("expected a dense layer at the end, which makes the logits, found {}", reader.found()));
    }
    Ok(reader.network)
}

impl Network {
    /// The network that a list of layers makes for images of `image` rows, columns and channels.
    ///
    /// # Errors
    /// [`Error::Configuration`] about the first layer that does not fit: what it gets, and what it needs.
    pub fn listed(layers: &[LayerSpec], image: [usize; 3], classes: usize) -> crate::Result<Network> {
        let refuse = |problem| Error::Configuration { path: "layers".to_owned(), problems: vec![problem] };
        network(layers, image, classes).map_err(refuse)
    }

    /// The network of a choice, for images of `image` rows, columns and channels and so many classes; or a sentence about the first layer that does
    /// not fit.
    pub(crate) fn of(choice: &NetworkChoice, image: [usize; 3], classes: usize) -> Result<Network, String> {
        network(&choice.layers(classes as u32), image, classes)
    }

    /// The network of that name for the images that it is usually for, MNIST's or CIFAR-10's.
    pub fn new(name: NetworkName) -> Network {
        let image = match name {
            NetworkName::SimpleCnn | NetworkName::Lenet300x100 | NetworkName::Lenet5Caffe => [28, 28, 1],
            NetworkName::Resnet8 | NetworkName::Resnet20 | NetworkName::WideResnet16x2 | NetworkName::VggLike => [32, 32, 3],
        };
        Network::listed(&name.layers(10), image, 10).unwrap_or_else(|problem| unreachable!("{name}: {problem}"))
    }
}

/// Goes through the list.
#[derive(Default)]
struct Reader<'a> {
    layers: &'a [LayerSpec],
    /// The entry to read next.
    next: usize,
    network: Network,
    /// Shape of the map written last, without its border.
    shape: Map,
    /// Place of the map written last.
    input: Slot,
    /// Layer that wrote the map written last; none where no layer so far has parameters.
    producer: Option<usize>,
    /// Where the residual stream is, before its ReLU.
    stream: Option<Slot>,
    /// How many there were of each kind that has parameters.
    counts: BTreeMap<&'static str, usize>,
    /// Whether the logits have been made.
    ended: bool,
    values: u64,
    /// Parameters with channels in whole vectors, at most.
    padded: u64,
}

impl Reader<'_> {
    /// The entry at the place `next`, if there is one.
    fn peek(&self) -> Option<&LayerSpec> {
        self.layers.get(self.next)
    }

    /// Takes the next entry if it is `wanted`; whether it was.
    fn take(&mut self, wanted: &LayerSpec) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }

    /// Last layer of the list, in words.
    fn found(&self) -> String {
        self.layers.last().map_or("no layer".into(), |layer| format!("\"{}\"", layer.name()))
    }

    /// A sentence about the layer read last.
    fn refuse(&self, needs: &str) -> String {
        let Map { height, width, channels, .. } = self.shape;
        let name = self.layers[self.next - 1].name();
        format!("layer {} ({name}): gets {height} × {width} × {channels}, needs {needs}", self.next)
    }

    /// The name of the next of its kind: `conv1`.
    fn counted(&mut self, kind: &'static str) -> String {
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        format!("{kind}{count}")
    }

    /// Reads one entry, and those that are joined to it.
    fn layer(&mut self, classes: usize) -> Result<(), String> {
        let layer = self.layers[self.next].clone();
        self.next += 1;
        match layer {
            LayerSpec::Convolution { channels, kernel, stride, padding, initialisation, bias } => {
                let learnt = Learnt { name: self.counted("conv"), initialisation, has_bias: bias };
                self.convolution(&learnt, [channels, kernel, stride].map(|number| number as usize), padding)
            }
            LayerSpec::Residual { channels, stride, initialisation } => self.residual(channels as usize, stride as usize, initialisation),
            LayerSpec::MaxPool { size, stride } => self.pool(PoolKind::Max, size as usize, stride as usize),
            LayerSpec::AveragePool { size, stride } => self.pool(PoolKind::Average, size as usize, stride as usize),
            LayerSpec::GlobalMean => self.global_mean(),
            LayerSpec::GroupNorm { groups } => self.group_norm(groups as usize),
            LayerSpec::Flatten => self.flatten(),
            LayerSpec::Dense { outputs, initialisation, bias } => self.dense(outputs as usize, classes, initialisation, bias),
            LayerSpec::Relu => {
                Err(self
                    .refuse("to follow a convolution, a pool, a group norm, a dense layer or a residual block directly; move or remove it"))
            }
        }
    }

    /// A map of that shape, with the border that its reader needs.
    fn write(&mut self, shape: Map) -> Result<Slot, String> {
        let border = match self.peek() {
            Some(&LayerSpec::Convolution { kernel, stride, padding: Padding::Same, .. }) => [kernel as usize, stride as usize],
            Some(&LayerSpec::Residual { stride, .. }) => [3, stride as usize],
            _ => return self.bordered(shape, [0, 0]),
        };
        let border = same(shape, border).ok_or_else(|| {
            let (height, width) = (shape.height, shape.width);
            let name = self.layers[self.next].name();
            format!(
                "layer {} ({name}): gets {height} × {width}, where its stride needs other zeros beside rows than beside columns; use \"valid\" padding \
                 or square maps",
                self.next + 1
            )
        })?;
        self.bordered(shape, border)
    }

    fn bordered(&mut self, shape: Map, [before, after]: [usize; 2]) -> Result<Slot, String> {
        let map = shape.bordered(before, after);
        let (high, wide) = ((before + map.height + after) as u64, (before + map.width + after) as u64);
        let values = high.checked_mul(wide).and_then(|area| area.checked_mul(map.channels as u64)).unwrap_or(u64::MAX);
        self.values = self.values.saturating_add(values);
        if self.values > MOST_VALUES {
            let place = if self.next == 0 { "the images".to_owned() } else { format!("layer {}", self.next) };
            return Err(format!(
                "{place}: expected maps of at most {MOST_VALUES} values an image, borders for the next layer's kernel included, found more; take fewer \
                 channels, or a smaller kernel"
            ));
        }
        self.network.maps.push(map);
        Ok(self.network.maps.len() - 1)
    }

    /// Refuses parameters that are too many: each product has so many places, inputs at each place, and outputs.
    fn check_parameters(&mut self, products: &[[usize; 3]]) -> Result<(), String> {
        let count = |[places, inputs, outputs]: [usize; 3], least: usize, wider: u64| {
            let [inputs, outputs] = [inputs, outputs].map(|channels| (channels as u64).saturating_add(wider));
            (places.max(least) as u64).saturating_mul(inputs).saturating_add(1).saturating_mul(outputs)
        };
        let sum = |least, wider| products.iter().fold(0_u64, |sum, &product| sum.saturating_add(count(product, least, wider)));
        if sum(1, 0).saturating_add(self.network.parameters() as u64) > MOST_PARAMETERS {
            return Err(self.refuse(&format!("at most {MOST_PARAMETERS} parameters up to there; give it fewer channels or outputs")));
        }
        // A dense layer may read a map of one channel, whose every place is widened to a vector of 16.
        self.padded = self.padded.saturating_add(sum(16, WIDER));
        if self.padded > MOST_PADDED {
            return Err(self.refuse(&format!(
                "at most {MOST_PADDED} parameters up to there with {WIDER} more channels in each layer, as kernels compute vectors of channels; give it \
                 a smaller kernel"
            )));
        }
        Ok(())
    }

    fn convolution(&mut self, learnt: &Learnt, [channels, kernel, stride]: [usize; 3], padding: Padding) -> Result<(), String> {
        let map = self.network.maps[self.input];
        let sides = [self.shape.height, self.shape.width];
        if padding == Padding::Valid && sides.iter().any(|&side| side < kernel) {
            return Err(self.refuse(&format!("at least {kernel} × {kernel} for its kernel; use \"same\" padding or a smaller kernel")));
        }
        self.check_parameters(&[[kernel * kernel, map.channels, channels]])?;
        let [height, width] = sides.map(|side| match padding {
            Padding::Same => side.div_ceil(stride),
            Padding::Valid => (side - kernel) / stride + 1,
        });
        let output = Map::plain(height, width, channels);
        self.stream = None;
        let epilogue = if let Some(LayerSpec::Residual { .. }) = self.peek() {
            let stream = self.bordered(output, [0, 0])?;
            self.stream = Some(stream);
            self.shape = output;
            Epilogue::Stream { stream, rectified: self.write(output)?, shortcut: None }
        } else {
            self.epilogue(output, stride)?
        };
        self.add_convolution(learnt, [kernel, stride], output, epilogue);
        Ok(())
    }

    /// Adds a convolution of the map written last, which has the border that the convolution needs, to sums of shape `output`, and returns its index.
    fn add_convolution(&mut self, learnt: &Learnt, [kernel, stride]: [usize; 2], output: Map, epilogue: Epilogue) -> usize {
        let (input, input_map, has_bias, written) = (self.input, self.network.maps[self.input], learnt.has_bias, epilogue.written());
        let (weights, bias) = self.network.add_parameters(learnt, kernel * kernel * input_map.channels, output.channels);
        let convolution = Convolution {
            kernel,
            stride,
            output,
            weights,
            bias,
            has_bias,
            input,
            input_map,
            epilogue,
            producer: self.producer,
            bypass: None,
        };
        let index = self.network.add_layer(Layer::Convolution(convolution));
        (self.input, self.producer) = (written, Some(index));
        index
    }

    /// Takes the layers of the list that are the epilogue of a convolution outside residual blocks.
    fn epilogue(&mut self, output: Map, stride: usize) -> Result<Epilogue, String> {
        let pool = LayerSpec::MaxPool { size: 2, stride: 2 };
        let relu = self.peek() == Some(&LayerSpec::Relu);
        // The maximum and the ReLU can change places.
        let both =
            matches!(&self.layers[self.next..], [one, other, ..] if relu && *other == pool || *one == pool && *other == LayerSpec::Relu);
        if both && stride == 1 && output.height >= 2 && output.width >= 2 {
            self.next += 2;
            // After a ReLU and a maximum no value is negative, so that another ReLU in the list would change nothing and is skipped.
            if relu {
                self.take(&LayerSpec::Relu);
            }
            self.shape = Map::plain(output.height / 2, output.width / 2, output.channels);
            return Ok(Epilogue::ReluMaxPool { pooled: self.write(self.shape)? });
        }
        self.shape = output;
        if self.take(&LayerSpec::Relu) {
            return Ok(Epilogue::Relu { rectified: self.write(output)? });
        }
        Ok(Epilogue::Linear { written: self.write(output)? })
    }

    fn residual(&mut self, channels: usize, stride: usize, initialisation: Initialisation) -> Result<(), String> {
        let Some(shortcut) = self.stream else {
            return Err(self.refuse("a convolution or another residual block directly before it"));
        };
        let from = self.shape;
        if channels < from.channels {
            return Err(self.refuse(&format!("at most {channels} channels, for its shortcut adds channels and removes none")));
        }
        if !from.height.is_multiple_of(stride) || !from.width.is_multiple_of(stride) {
            return Err(self.refuse(&format!("sides that its stride {stride} divides")));
        }
        self.check_parameters(&[[9, from.channels, channels], [9, channels, channels]])?;
        let block = self.counted("block");
        let learnt = [1, 2].map(|place| Learnt { name: format!("{block}.conv{place}"), initialisation, has_bias: true });
        let shape = Map::plain(from.height / stride, from.width / stride, channels);
        let inside = self.bordered(shape, [1, 1])?;
        let first = self.add_convolution(&learnt[0], [3, stride], shape, Epilogue::Relu { rectified: inside });
        // Relu stands in the list where no other block follows, which begins with one of its own.
        let followed = matches!(self.peek(), Some(LayerSpec::Residual { .. }));
        if !followed && !self.take(&LayerSpec::Relu) {
            return Err(self.refuse("a relu or another residual block directly after it"));
        }
        self.shape = shape;
        let stream = self.bordered(shape, [0, 0])?;
        let epilogue = Epilogue::Stream { stream, rectified: self.write(shape)?, shortcut: Some(shortcut) };
        let last = self.add_convolution(&learnt[1], [3, 1], shape, epilogue);
        if let Layer::Convolution(convolution) = &mut self.network.layers[first] {
            convolution.bypass = Some(last);
        }
        self.stream = followed.then_some(stream);
        Ok(())
    }

    fn pool(&mut self, kind: PoolKind, size: usize, stride: usize) -> Result<(), String> {
        let Map { height, width, channels, .. } = self.shape;
        if height < size || width < size {
            return Err(self.refuse(&format!("at least {size} × {size} for one window")));
        }
        let relu = self.take(&LayerSpec::Relu);
        self.shape = Map::plain((height - size) / stride + 1, (width - size) / stride + 1, channels);
        self.add(|input, output, producer| Layer::Pool(Pool { kind, size, stride, input, output, relu, producer }))
    }

    fn global_mean(&mut self) -> Result<(), String> {
        self.shape = Map::plain(1, 1, self.shape.channels);
        self.add(|input, output, producer| Layer::GlobalMean(GlobalMean { input, output, producer }))
    }

    fn group_norm(&mut self, groups: usize) -> Result<(), String> {
        let Map { height, width, channels, .. } = self.shape;
        let Some(producer) = self.producer else {
            return Err(self.refuse("a convolution before it; images are normalised already"));
        };
        if !channels.is_multiple_of(groups) {
            return Err(self.refuse(&format!("channels that its {groups} groups divide")));
        }
        if height * width * channels / groups < 2 {
            return Err(self.refuse("at least 2 values in a group; use fewer groups"));
        }
        self.check_parameters(&[[1, 1, channels]])?;
        let learnt = Learnt { name: self.counted("norm"), initialisation: Initialisation::VarianceScaling, has_bias: true };
        let relu = self.take(&LayerSpec::Relu);
        let [scale, bias] = [TensorKind::Scale, TensorKind::Bias].map(|kind| self.network.add_tensor(&learnt, kind, 1, channels));
        let (positions, group_channels) = (height * width, channels / groups);
        self.add(|input, output, _| {
            Layer::GroupNorm(GroupNorm { groups, group_channels, positions, channels, scale, bias, input, output, relu, producer })
        })
    }

    /// Adds a layer that is neither a convolution nor fully connected, made of the map that it reads, the map that it writes and the producer of the
    /// former. The gradient of the latter is needed if that of the former is.
    fn add(&mut self, layer: impl FnOnce(Slot, Slot, Option<usize>) -> Layer) -> Result<(), String> {
        let output = self.write(self.shape)?;
        let index = self.network.add_layer(layer(self.input, output, self.producer));
        self.input = output;
        self.producer = self.producer.map(|_| index);
        self.stream = None;
        Ok(())
    }

    fn flatten(&mut self) -> Result<(), String> {
        if !matches!(self.peek(), Some(LayerSpec::Dense { .. })) {
            return Err(self.refuse("a dense layer directly after it"));
        }
        self.shape = Map::plain(1, 1, self.shape.inner_len());
        Ok(())
    }

    fn dense(&mut self, outputs: usize, classes: usize, initialisation: Initialisation, has_bias: bool) -> Result<(), String> {
        if (self.shape.height, self.shape.width) != (1, 1) {
            return Err(self.refuse("1 × 1 × inputs; put \"flatten\" or \"global-mean\" before it"));
        }
        let inputs = self.shape.channels;
        self.check_parameters(&[[1, inputs, outputs]])?;
        let learnt = Learnt { name: self.counted("dense"), initialisation, has_bias };
        self.stream = None;
        self.ended = self.next == self.layers.len();
        let output = if self.ended {
            if outputs != classes {
                let place = self.next;
                return Err(format!("layer {place} (dense): expected {classes} outputs, one for each class, found {outputs}"));
            }
            DenseOutput::Logits
        } else {
            let relu = self.peek() == Some(&LayerSpec::Relu);
            if !matches!(self.layers.get(self.next + usize::from(relu)), Some(LayerSpec::Dense { .. })) {
                return Err(
                    self.refuse("another dense layer after it, or after its relu; the last dense layer makes the logits and has no relu")
                );
            }
            self.next += usize::from(relu);
            self.shape = Map::plain(1, 1, outputs);
            DenseOutput::Hidden { written: self.write(self.shape)?, relu }
        };
        let (input, producer) = (self.input, self.producer);
        let (weights, bias) = self.network.add_parameters(&learnt, inputs, outputs);
        let index = self.network.add_layer(Layer::Dense(Dense { input, inputs, outputs, weights, bias, has_bias, producer, output }));
        if let DenseOutput::Hidden { written, .. } = output {
            (self.input, self.producer) = (written, Some(index));
        }
        Ok(())
    }
}

/// Zeros before and after a map of that shape for SAME padding of a kernel and a stride; none where rows and columns need different ones.
fn same(map: Map, [kernel, stride]: [usize; 2]) -> Option<[usize; 2]> {
    let [rows, columns] = [map.height, map.width].map(|side| {
        let all = ((side.div_ceil(stride) - 1) * stride + kernel).saturating_sub(side);
        [all / 2, all - all / 2]
    });
    (rows == columns).then_some(rows)
}

#[cfg(test)]
mod tests;

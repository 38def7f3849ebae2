//! Networks drawn at random, with weights, images and labels: what back ends are compared on.

// Each test program uses some of it.
#![allow(dead_code)]

use std::sync::Arc;

use crate::support::inputs::of_examples;
use dps::backend::reference::normalised;
use dps::data::{Dataset, Examples, ImageShape, Normalisation};
use dps::network::{Initialisation, Layer, LayerSpec, Network, NetworkName, Padding, Pool, TensorKind, initial_weights};
use dps::random::{Numbers, Purpose};

/// FLOP of an image's forward pass, at most.
const MOST_FLOP: f64 = 1.5e6;

/// FLOP of all examples' forward passes, unless one example is more.
const MOST_WORK: f64 = 4e6;

/// Layers of a network, at most; a residual block is two.
const MOST_LAYERS: usize = 7;

/// Values of a normalised group, at least: of few values a variance takes most of what a gradient has, and leaves its rounding.
const LEAST_GROUP: usize = 16;

/// Random numbers, one after the other.
pub struct Draws {
    numbers: Numbers,
    next: u64,
}

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws { numbers: Numbers::new(seed, Purpose::RandomMask), next: 0 }
    }

    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.next += 1;
        self.numbers.uniform(self.next)
    }

    /// A whole number, both ends included.
    pub fn between(&mut self, least: u32, most: u32) -> u32 {
        least + (self.uniform() * f64::from(most - least + 1)) as u32
    }

    /// Uniform in (-1, 1).
    pub fn sign(&mut self) -> f64 {
        2.0 * self.uniform() - 1.0
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}

/// A network with all that it is run on.
pub struct Case {
    /// Layers of the network in words, for messages.
    pub name: String,
    pub network: Arc<Network>,
    pub weights: Vec<f32>,
    /// The data set, whose three sets are the same examples.
    pub dataset: Dataset,
}

impl Case {
    /// The network of a seed, with so many examples, or as many fewer as keep their work small.
    pub fn new(seed: u64, most_examples: usize) -> Case {
        let mut draws = Draws::new(seed);
        let (layers, shape, classes) = layers(&mut draws);
        let case = Case::listed(&layers, shape, classes, draws, most_examples);
        Case { name: format!("seed {seed}: {}", case.name), ..case }
    }

    /// A network of the paper, with weights of its own.
    pub fn named(name: NetworkName, examples: usize) -> Case {
        let image = Network::new(name).maps[0];
        let case = Case::listed(&name.layers(10), [image.height, image.width, image.channels], 10, Draws::new(1), examples);
        Case { name: name.to_string(), ..case }
    }

    /// A network of a hidden layer, for images of 5 × 4 with two channels.
    pub fn of_classes(classes: usize, examples: usize) -> Case {
        let dense = |outputs| LayerSpec::Dense { outputs, bias: true, initialisation: Initialisation::VarianceScaling };
        let layers = [LayerSpec::Flatten, dense(12), LayerSpec::Relu, dense(classes as u32)];
        Case::of_layers(&layers, [5, 4, 2], classes, examples)
    }

    /// A list of layers, on images drawn at random.
    pub fn of_layers(layers: &[LayerSpec], shape: [usize; 3], classes: usize, examples: usize) -> Case {
        Case::listed(layers, shape, classes, Draws::new(classes as u64), examples)
    }

    fn listed(layers: &[LayerSpec], shape: [usize; 3], classes: usize, mut draws: Draws, most_examples: usize) -> Case {
        let network = Network::listed(layers, shape, classes).unwrap();
        let examples = most_examples.min((MOST_WORK / network.forward_flop()) as usize).max(1);
        let mut weights = initial_weights(&network, 7);
        for tensor in &network.tensors {
            match tensor.kind {
                TensorKind::Weights => {}
                TensorKind::Scale => weights[tensor.range()].fill_with(|| (1.0 + 0.5 * draws.sign()) as f32),
                TensorKind::Bias => weights[tensor.range()].fill_with(|| (0.3 * draws.sign()) as f32),
            }
        }
        let name = format!("{layers:?} of {shape:?}, {classes} classes, {examples} examples");
        Case { name, dataset: dataset(&mut draws, shape, classes, examples), weights, network: Arc::new(network) }
    }

    /// The examples as the reference reads them.
    pub fn images(&self) -> Vec<f32> {
        normalised(&self.dataset.training, &self.dataset.lookup_table())
    }

    pub fn labels(&self) -> &[u16] {
        &self.dataset.training.labels
    }
}

fn dataset(draws: &mut Draws, [height, width, channels]: [usize; 3], classes: usize, examples: usize) -> Dataset {
    let shape = ImageShape { height, width, channels };
    let images = (0..examples * shape.values()).map(|_| draws.between(0, 255) as u8).collect::<Vec<u8>>().into();
    let labels = (0..examples).map(|_| draws.between(0, classes as u32 - 1) as u16).collect();
    let all = Examples { images, labels, shape };
    let normalisation = (0..channels).map(|_| Normalisation { mean: 0.5 + 0.2 * draws.sign(), std: 0.3 + 0.1 * draws.sign() }).collect();
    of_examples(all, classes, normalisation)
}

/// A list of layers, the images that it fits, and its classes.
fn layers(draws: &mut Draws) -> (Vec<LayerSpec>, [usize; 3], usize) {
    let height = draws.between(4, 20);
    let width = if draws.chance(0.6) { height } else { draws.between(4, 20) };
    let channels = if draws.chance(0.7) { [1, 3][draws.between(0, 1) as usize] } else { draws.between(1, 6) };
    let shape = [height, width, channels].map(|extent| extent as usize);
    let classes = draws.between(2, 40) as usize;
    let end = |draws: &mut Draws| {
        let mut end = vec![if draws.chance(0.4) { LayerSpec::GlobalMean } else { LayerSpec::Flatten }];
        if draws.chance(0.4) {
            end.push(LayerSpec::dense(channel_count(draws)));
            end.extend(draws.chance(0.6).then_some(LayerSpec::Relu));
        }
        end.push(LayerSpec::dense(classes as u32));
        end
    };
    let (mut body, mut whole) = (Vec::new(), Vec::new());
    let parts = draws.between(1, 4);
    // A part that does not fit is drawn again.
    for _ in 0..40 {
        let part = [body.clone(), part(draws)].concat();
        let list = [part.clone(), end(draws)].concat();
        if Network::listed(&list, shape, classes).is_ok_and(|network| is_small(&network)) {
            (body, whole) = (part, list);
        }
        let count = |layers: &[LayerSpec]| layers.iter().filter(|layer| !matches!(layer, LayerSpec::Relu)).count();
        if count(&body) >= parts as usize {
            break;
        }
    }
    let mut layers = if whole.is_empty() { end(draws) } else { whole };
    for layer in &mut layers {
        let (initialisation, bias) = match layer {
            LayerSpec::Convolution { initialisation, bias, .. } | LayerSpec::Dense { initialisation, bias, .. } => {
                (initialisation, Some(bias))
            }
            LayerSpec::Residual { initialisation, .. } => (initialisation, None),
            _ => continue,
        };
        *initialisation = if draws.chance(0.3) { Initialisation::He } else { Initialisation::VarianceScaling };
        if let Some(bias) = bias {
            *bias = draws.chance(0.7);
        }
    }
    for _ in 0..2 {
        layers = with_norm(draws, layers, shape, classes);
    }
    (layers, shape, classes)
}

fn is_small(network: &Network) -> bool {
    network.layers.len() <= MOST_LAYERS && network.forward_flop() <= MOST_FLOP
}

/// A list with one more normalisation, of any number of groups that divides the channels, or the list itself where none fits at the place drawn.
fn with_norm(draws: &mut Draws, layers: Vec<LayerSpec>, shape: [usize; 3], classes: usize) -> Vec<LayerSpec> {
    let at = draws.between(1, layers.len() as u32) as usize;
    let with = |groups: usize, channels: usize| {
        let mut layers = layers.clone();
        if groups == channels {
            // A ReLU is next, and convolutions before have no bias: a channel's mean would not change, and gradients would be rounding alone.
            for layer in &mut layers[..at] {
                if let LayerSpec::Convolution { bias, .. } = layer {
                    *bias = false;
                }
            }
            if layers.get(at) != Some(&LayerSpec::Relu) {
                layers.insert(at, LayerSpec::Relu);
            }
        }
        layers.insert(at, LayerSpec::GroupNorm { groups: groups as u32 });
        let network = Network::listed(&layers, shape, classes).ok().filter(is_small)?;
        let norms = |layer: &Layer| if let Layer::GroupNorm(norm) = layer { Some(norm.clone()) } else { None };
        let norms: Vec<_> = network.layers.iter().filter_map(norms).collect();
        // A normalisation of values that are all but equal gives rounding, which no other one may multiply.
        let normalised = |mut index: usize| loop {
            match &network.layers[index] {
                Layer::Pool(Pool { producer: Some(producer), .. }) => index = *producer,
                layer => break matches!(layer, Layer::GroupNorm(_)),
            }
        };
        let fits = norms.iter().all(|norm| norm.positions * norm.group_channels >= LEAST_GROUP && !normalised(norm.producer));
        fits.then(|| (layers, norms.into_iter().find(|norm| norm.groups == groups).map_or(1, |norm| norm.channels)))
    };
    let Some((_, channels)) = with(1, 0) else { return layers };
    let mut fitting: Vec<_> =
        (1..=channels).filter(|groups| channels.is_multiple_of(*groups)).filter_map(|groups| with(groups, channels)).collect();
    fitting.swap_remove(draws.between(0, fitting.len() as u32 - 1) as usize).0
}

/// Few, many, and those at which vectors end or a little beside.
fn channel_count(draws: &mut Draws) -> u32 {
    match draws.between(0, 2) {
        0 => draws.between(1, 8),
        1 => [8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65][draws.between(0, 11) as usize],
        _ => draws.between(1, 70),
    }
}

fn pool(draws: &mut Draws) -> LayerSpec {
    let (size, stride) = (draws.between(1, 4), draws.between(1, 3));
    if draws.chance(0.5) { LayerSpec::MaxPool { size, stride } } else { LayerSpec::AveragePool { size, stride } }
}

/// A pool, or a convolution and what follows it.
fn part(draws: &mut Draws) -> Vec<LayerSpec> {
    if draws.chance(0.2) {
        let mut part = vec![pool(draws)];
        part.extend(draws.chance(0.3).then_some(LayerSpec::Relu));
        return part;
    }
    let mut channels = channel_count(draws);
    let kernel = if draws.chance(0.4) { 3 } else { draws.between(1, 7) };
    let stride = if draws.chance(0.6) { 1 } else { draws.between(1, 3) };
    let padding = if draws.chance(0.5) { Padding::Same } else { Padding::Valid };
    let mut part = vec![LayerSpec::convolution(channels, kernel, stride, padding)];
    let two = LayerSpec::MaxPool { size: 2, stride: 2 };
    match draws.between(0, 9) {
        0 => {}
        1..=3 => part.push(LayerSpec::Relu),
        4 | 5 => part.extend([LayerSpec::Relu, two]),
        6 => part.extend([two, LayerSpec::Relu]),
        _ => {
            for _ in 0..draws.between(1, 2) {
                let stride = if draws.chance(0.5) { 1 } else { draws.between(1, 3) };
                channels += if draws.chance(0.5) { 0 } else { draws.between(0, channels) };
                part.push(LayerSpec::residual(channels, stride));
            }
            part.push(LayerSpec::Relu);
        }
    }
    part
}

//! The network of a workload: a name, or a list of layers in forward order, without shapes, which follow from the images.

use std::fmt;

use serde::Serialize;

use crate::config::kind::{Flag, Kind, NamedValue, Whole};
use crate::config::names::{Named, names};
use crate::config::reader::{Section, Wanted};
use crate::config::tree::{Node, Value};

names! {
    /// The networks that have a name. None has batch normalisation.
    NetworkName {
        /// The paper's for MNIST and Fashion-MNIST: two 5×5 convolutions with ReLU and max-pooling, and one fully connected layer.
        SimpleCnn = "simple-cnn",
        /// The paper's for CIFAR-10: a 3×3 convolution, three residual blocks of 16, 32 and 64 channels, and one fully connected layer.
        Resnet8 = "resnet-8",
        /// ResNet-8 with nine residual blocks instead of three.
        Resnet20 = "resnet-20",
        /// ResNet-8 with six residual blocks, of 32, 64 and 128 channels.
        WideResnet16x2 = "wide-resnet-16-2",
        /// Fully connected layers of 300 and 100 outputs, with ReLU, and the last one.
        Lenet300x100 = "lenet-300-100",
        /// Two 5×5 convolutions of 20 and 50 channels with ReLU and max-pooling, and fully connected layers of 500 outputs and of the classes.
        Lenet5Caffe = "lenet-5-caffe",
        /// Thirteen 3×3 convolutions of 64 to 512 channels with ReLU, four max-pools, and fully connected layers of 512 outputs and of the classes.
        VggLike = "vgg-like",
    }
}

/// The network of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NetworkChoice {
    /// A network that has a name.
    Named(NetworkName),
    /// The layers of a network.
    Listed(Vec<LayerSpec>),
}

impl NetworkChoice {
    /// The layers, for so many classes.
    pub fn layers(&self, classes: u32) -> Vec<LayerSpec> {
        match self {
            NetworkChoice::Named(name) => name.layers(classes),
            NetworkChoice::Listed(layers) => layers.clone(),
        }
    }
}

/// Writes the network's name, or that it is listed.
impl fmt::Display for NetworkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkChoice::Named(name) => name.fmt(f),
            NetworkChoice::Listed(_) => f.write_str("listed network"),
        }
    }
}

names! {
    /// The layers of a listed network.
    LayerName {
        /// A square convolution.
        Convolution = "convolution",
        /// max(x, 0).
        Relu = "relu",
        /// The maximum over windows.
        MaxPool = "max-pool",
        /// The mean over windows.
        AveragePool = "average-pool",
        /// The mean over all positions.
        GlobalMean = "global-mean",
        /// The normalisation of groups of channels, example by example.
        GroupNorm = "group-norm",
        /// Rows, columns and channels become the inputs of a fully connected layer.
        Flatten = "flatten",
        /// A fully connected layer.
        Dense = "dense",
        /// Two convolutions with a shortcut.
        Residual = "residual",
    }
}

/// One layer of a listed network.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "layer", rename_all = "kebab-case")]
pub enum LayerSpec {
    /// A square convolution.
    Convolution {
        /// Output channels.
        channels: u32,
        /// Rows and columns of the kernel.
        kernel: u32,
        /// Rows and columns from one output to the next.
        stride: u32,
        /// What the kernel reads beyond the map.
        padding: Padding,
        /// Distribution of the initial weights.
        #[serde(skip_serializing_if = "Initialisation::is_usual")]
        initialisation: Initialisation,
        /// Whether it has a bias.
        #[serde(skip_serializing_if = "is_true")]
        bias: bool,
    },
    /// max(x, 0).
    Relu,
    /// The maximum over windows of size × size; windows that would reach beyond the map are left out.
    MaxPool {
        /// Rows and columns of a window.
        size: u32,
        /// Rows and columns from one window to the next.
        stride: u32,
    },
    /// The mean over such windows.
    AveragePool {
        /// Rows and columns of a window.
        size: u32,
        /// Rows and columns from one window to the next.
        stride: u32,
    },
    /// The mean over all positions: a map of 1 × 1.
    GlobalMean,
    /// Each group of channels of an example is brought to mean 0 and variance 1 over its channels and positions; then each channel is multiplied by
    /// its scale, and its bias is added (Wu and He, ECCV 2018). As many groups as channels: instance normalisation; one: layer normalisation of the
    /// map.
    GroupNorm {
        /// Groups, which divide the channels.
        groups: u32,
    },
    /// Rows, columns and channels become the inputs of a dense layer, in that order.
    Flatten,
    /// A fully connected layer.
    Dense {
        /// Outputs: of the last layer, as many as there are classes.
        outputs: u32,
        /// Distribution of the initial weights.
        #[serde(skip_serializing_if = "Initialisation::is_usual")]
        initialisation: Initialisation,
        /// Whether it has a bias.
        #[serde(skip_serializing_if = "is_true")]
        bias: bool,
    },
    /// A pre-activation block without batch normalisation (He et al., 2016): relu, a 3 × 3 convolution of the stride, relu, a 3 × 3 convolution, both
    /// with SAME padding, and the shortcut. Where the shapes are equal the shortcut is the block's input; else it is the relu of the input, averaged
    /// over stride × stride, with zero channels appended.
    Residual {
        /// Output channels, at least as many as the input has.
        channels: u32,
        /// Stride of the first convolution, which divides the map's sides.
        stride: u32,
        /// Distribution of both convolutions' initial weights.
        #[serde(skip_serializing_if = "Initialisation::is_usual")]
        initialisation: Initialisation,
    },
}

names! {
    /// What a convolution reads beyond the edges of its map.
    Padding {
        /// Nothing.
        Valid = "valid",
        /// Zeros, so that there are ⌈side / stride⌉ outputs a side; the smaller half of the zeros comes first, as in TensorFlow.
        Same = "same",
    }
}

names! {
    /// How the weights of a layer begin; inputs are those of one output.
    Initialisation {
        /// Normal with variance 1 / inputs after truncation, truncated at two deviations of the normal that is truncated; as in the code of the
        /// paper's authors.
        VarianceScaling = "variance-scaling",
        /// Normal with variance 2 / inputs, not truncated (He et al., ICCV 2015).
        He = "he",
    }
}

impl Initialisation {
    fn is_usual(&self) -> bool {
        *self == Initialisation::VarianceScaling
    }
}

fn is_true(flag: &bool) -> bool {
    *flag
}

impl LayerSpec {
    /// A convolution with the usual initialisation and a bias.
    pub fn convolution(channels: u32, kernel: u32, stride: u32, padding: Padding) -> LayerSpec {
        LayerSpec::Convolution { channels, kernel, stride, padding, initialisation: Initialisation::VarianceScaling, bias: true }
    }

    /// A fully connected layer with the usual initialisation and a bias.
    pub fn dense(outputs: u32) -> LayerSpec {
        LayerSpec::Dense { outputs, initialisation: Initialisation::VarianceScaling, bias: true }
    }

    /// A residual block with the usual initialisation.
    pub fn residual(channels: u32, stride: u32) -> LayerSpec {
        LayerSpec::Residual { channels, stride, initialisation: Initialisation::VarianceScaling }
    }

    /// The layer's name in a configuration.
    pub fn name(&self) -> LayerName {
        match self {
            LayerSpec::Convolution { .. } => LayerName::Convolution,
            LayerSpec::Relu => LayerName::Relu,
            LayerSpec::MaxPool { .. } => LayerName::MaxPool,
            LayerSpec::AveragePool { .. } => LayerName::AveragePool,
            LayerSpec::GlobalMean => LayerName::GlobalMean,
            LayerSpec::GroupNorm { .. } => LayerName::GroupNorm,
            LayerSpec::Flatten => LayerName::Flatten,
            LayerSpec::Dense { .. } => LayerName::Dense,
            LayerSpec::Residual { .. } => LayerName::Residual,
        }
    }

    /// Reads the layer that an entry of the list describes. `None`: a problem was added.
    fn read(entry: &mut Section<'_, '_>) -> Option<LayerSpec> {
        let name: LayerName = entry.name("layer", LayerName::NAMES, None)?;
        let mut whole = |key, default: Option<u32>, most| {
            let kind = Whole::between(1, most);
            kind.read(key, "3", default, entry)
        };
        Some(match name {
            LayerName::Convolution => LayerSpec::Convolution {
                channels: whole("channels", None, MOST_OUTPUTS)?,
                kernel: whole("kernel", None, MOST_SIDE)?,
                stride: whole("stride", Some(1), MOST_SIDE)?,
                padding: entry.name("padding", Padding::NAMES, Some(Padding::Valid))?,
                initialisation: initialisation(entry)?,
                bias: bias(entry)?,
            },
            LayerName::MaxPool => {
                let size = whole("size", None, MOST_SIDE)?;
                LayerSpec::MaxPool { size, stride: whole("stride", Some(size), MOST_SIDE)? }
            }
            LayerName::AveragePool => {
                let size = whole("size", None, MOST_SIDE)?;
                LayerSpec::AveragePool { size, stride: whole("stride", Some(size), MOST_SIDE)? }
            }
            LayerName::Dense => LayerSpec::Dense {
                outputs: whole("outputs", None, MOST_OUTPUTS)?,
                initialisation: initialisation(entry)?,
                bias: bias(entry)?,
            },
            LayerName::Residual => LayerSpec::Residual {
                channels: whole("channels", None, MOST_OUTPUTS)?,
                stride: whole("stride", Some(1), MOST_SIDE)?,
                initialisation: initialisation(entry)?,
            },
            LayerName::GroupNorm => LayerSpec::GroupNorm { groups: whole("groups", None, MOST_OUTPUTS)? },
            LayerName::Relu => LayerSpec::Relu,
            LayerName::GlobalMean => LayerSpec::GlobalMean,
            LayerName::Flatten => LayerSpec::Flatten,
        })
    }
}

fn initialisation(entry: &mut Section<'_, '_>) -> Option<Initialisation> {
    entry.name("initialisation", Initialisation::NAMES, Some(Initialisation::VarianceScaling))
}

fn bias(entry: &mut Section<'_, '_>) -> Option<bool> {
    Flag.read("bias", "false", Some(true), entry)
}

/// Limits of a layer's numbers, far beyond what there is memory for.
const MOST_OUTPUTS: u32 = 1_000_000;
const MOST_SIDE: u32 = 1_000;
const MOST_LAYERS: usize = 1_000;

/// A name, or a list of layers.
pub(super) struct NetworkKind;

impl Kind for NetworkKind {
    type Value = NetworkChoice;

    fn expected(&self) -> String {
        format!("one of {}, or a list of layers", NetworkName::NAMES.join(", "))
    }

    fn accept(&self, value: &Value) -> Option<NetworkChoice> {
        if let Value::Text(text) = value { text.parse().ok().map(NetworkChoice::Named) } else { None }
    }

    fn toml(&self, value: &NetworkChoice) -> Option<String> {
        if let NetworkChoice::Named(name) = value { Some(format!("\"{name}\"")) } else { None }
    }

    fn names(&self) -> Vec<NamedValue> {
        NetworkName::NAMES.iter().copied().zip(NetworkName::MEANINGS.iter().map(|meaning| meaning.trim())).collect()
    }

    fn read(&self, name: &'static str, example: &str, _: Option<NetworkChoice>, section: &mut Section<'_, '_>) -> Option<NetworkChoice> {
        let Some(Node { value: Value::List(list), origin }) = section.node(name) else {
            return section.name(name, NetworkName::NAMES, None).map(NetworkChoice::Named);
        };
        if list.is_empty() || list.len() > MOST_LAYERS {
            let sentence = format!("expected from 1 to {MOST_LAYERS} layers, found {}; write for example {example}", list.len());
            section.problem(origin, name, &sentence);
            return None;
        }
        let mut layers = Vec::new();
        for (index, Node { value, origin }) in list.iter().enumerate() {
            let place = format!("{name}[{}]", index + 1);
            layers.push(if let Value::Table(table) = value {
                LayerSpec::read(&mut section.inside(&place, table, origin))
            } else {
                let wanted = Wanted { expected: "a layer".into(), example: "{ layer = \"relu\" }" };
                section.problems.add(origin, wanted.sentence(&format!("workload.{place}"), value));
                None
            });
        }
        layers.into_iter().collect::<Option<Vec<_>>>().map(NetworkChoice::Listed)
    }
}

/// Convolutions of stride 1, each with a ReLU, and 2 × 2 max-pooling after the last if `pooled`.
fn convolutions(channels: &[u32], kernel: u32, padding: Padding, pooled: bool) -> Vec<LayerSpec> {
    let one = |&channels: &u32| [LayerSpec::convolution(channels, kernel, 1, padding), LayerSpec::Relu];
    let pool = pooled.then_some(LayerSpec::MaxPool { size: 2, stride: 2 });
    channels.iter().flat_map(one).chain(pool).collect()
}

/// Fully connected layers, each with a ReLU.
fn dense(outputs: &[u32]) -> Vec<LayerSpec> {
    outputs.iter().flat_map(|&outputs| [LayerSpec::dense(outputs), LayerSpec::Relu]).collect()
}

/// A 3 × 3 convolution, residual blocks as (channels, stride), and a mean.
fn residual(first: u32, blocks: &[(u32, u32)], last: [LayerSpec; 1]) -> Vec<LayerSpec> {
    let first = LayerSpec::convolution(first, 3, 1, Padding::Same);
    let blocks = blocks.iter().map(|&(channels, stride)| LayerSpec::residual(channels, stride));
    std::iter::once(first).chain(blocks).chain([LayerSpec::Relu, LayerSpec::GlobalMean]).chain(last).collect()
}

impl NetworkName {
    /// The layers of a network that has a name, for so many classes. Sources: Simple-CNN and ResNet-8 from Lee et al., ICLR 2021, appendix B; the
    /// others are the usual ones of pruning's literature, without batch normalisation, which dps does not have.
    pub fn layers(self, classes: u32) -> Vec<LayerSpec> {
        let last = [LayerSpec::dense(classes)];
        match self {
            NetworkName::SimpleCnn => [
                convolutions(&[32], 5, Padding::Valid, true),
                convolutions(&[64], 5, Padding::Valid, true),
                vec![LayerSpec::Flatten],
                last.into(),
            ]
            .concat(),
            NetworkName::Resnet8 => residual(16, &[(16, 1), (32, 2), (64, 2)], last),
            NetworkName::Resnet20 => {
                let blocks = [(16, 1), (16, 1), (16, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)];
                residual(16, &blocks, last)
            }
            NetworkName::WideResnet16x2 => residual(16, &[(32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)], last),
            NetworkName::Lenet300x100 => [vec![LayerSpec::Flatten], dense(&[300, 100]), last.into()].concat(),
            NetworkName::Lenet5Caffe => [
                convolutions(&[20], 5, Padding::Valid, true),
                convolutions(&[50], 5, Padding::Valid, true),
                vec![LayerSpec::Flatten],
                dense(&[500]),
                last.into(),
            ]
            .concat(),
            NetworkName::VggLike => [
                convolutions(&[64, 64], 3, Padding::Same, true),
                convolutions(&[128, 128], 3, Padding::Same, true),
                convolutions(&[256, 256, 256], 3, Padding::Same, true),
                convolutions(&[512, 512, 512], 3, Padding::Same, true),
                convolutions(&[512, 512, 512], 3, Padding::Same, false),
                vec![LayerSpec::GlobalMean],
                dense(&[512]),
                last.into(),
            ]
            .concat(),
        }
    }
}

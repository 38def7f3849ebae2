//! A layer as a configuration lists it, without shapes, which follow from the images.

use serde::Serialize;

use crate::config::kind::{Flag, Kind, Whole};
use crate::config::names::names;
use crate::config::reader::Section;

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
        /// Padding: values that the kernel reads beyond the map.
        padding: Padding,
        /// Distribution of the initial weights.
        #[serde(skip_serializing_if = "Initialisation::is_usual")]
        initialisation: Initialisation,
        /// Whether the convolution has a bias.
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
        /// Whether the layer has biases.
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
    /// Values that a convolution reads beyond the edges of its map.
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
    pub(super) fn read(entry: &mut Section<'_, '_>) -> Option<LayerSpec> {
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
            LayerName::MaxPool | LayerName::AveragePool => {
                let size = whole("size", None, MOST_SIDE)?;
                let stride = whole("stride", Some(size), MOST_SIDE)?;
                if name == LayerName::MaxPool { LayerSpec::MaxPool { size, stride } } else { LayerSpec::AveragePool { size, stride } }
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

/// Most channels or outputs of a layer, and most rows and columns of a kernel, a window or a stride.
const MOST_OUTPUTS: u32 = 1_000_000;
const MOST_SIDE: u32 = 1_000;

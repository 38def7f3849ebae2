//! Layers, and the feature maps between them.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// Index into [`Network::maps`](super::Network::maps).
pub type Slot = usize;

/// Shape of one example's feature map, channel last, with the zero border that the convolution reading it needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Map {
    /// Rows without the border.
    pub height: usize,
    /// Columns without the border.
    pub width: usize,
    /// Channels.
    pub channels: usize,
    /// Zero rows above and zero columns to the left.
    pub before: usize,
    /// Zero rows below and zero columns to the right.
    pub after: usize,
}

impl Map {
    /// A map with no border.
    pub fn plain(height: usize, width: usize, channels: usize) -> Map {
        Map { height, width, channels, before: 0, after: 0 }
    }

    /// This map with a border of `before` zeros above and to the left, and `after` zeros below and to the right.
    pub fn bordered(self, before: usize, after: usize) -> Map {
        Map { before, after, ..self }
    }

    /// Floats from one row to the next, border included.
    pub fn row(&self) -> usize {
        (self.before + self.width + self.after) * self.channels
    }

    /// Floats of one example, border included.
    pub fn len(&self) -> usize {
        (self.before + self.height + self.after) * self.row()
    }

    /// Whether the map holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Floats of one example without the border.
    pub fn inner_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Index of the first float of inner row `y`, column 0.
    pub fn at_row(&self, y: usize) -> usize {
        (self.before + y) * self.row() + self.before * self.channels
    }
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// A convolution with its bias, if it has one, and what follows it.
    Convolution(Convolution),
    /// The maximum or the mean over windows.
    Pool(Pool),
    /// The mean over all positions.
    GlobalMean(GlobalMean),
    /// The normalisation of groups of channels, example by example.
    GroupNorm(GroupNorm),
    /// A fully connected layer.
    Dense(Dense),
}

/// A square convolution over a map that has its zero padding as a border, so that no kernel handles padding: output (y, x) reads the input rows
/// y·stride … y·stride + kernel − 1, border included.
#[derive(Debug, Clone, PartialEq)]
pub struct Convolution {
    /// Rows and columns of the kernel.
    pub kernel: usize,
    /// Rows and columns from one output to the next.
    pub stride: usize,
    /// The sum's shape, before [`Convolution::epilogue`].
    pub output: Map,
    /// Offset of the weights `[kernel][kernel][in][out]` in the flat parameter vector.
    pub weights: usize,
    /// Offset of the bias `[out]`; where there is none, of what follows the weights.
    pub bias: usize,
    /// Whether there is a bias.
    pub has_bias: bool,
    /// Map read.
    pub input: Slot,
    /// Shape of the map read.
    pub input_map: Map,
    /// Epilogue of the convolution, which is applied to the sum.
    pub epilogue: Epilogue,
    /// The layer that wrote the map read; none where nobody needs its gradient, because no parameter lies before it.
    pub producer: Option<usize>,
    /// For the first convolution of a residual block: the block's last convolution, whose output gradient reaches the block's
    /// input through the shortcut too.
    pub bypass: Option<usize>,
}

/// Operations on a convolution's sum. The gradient that a back end keeps for the layer is, for [`Epilogue::ReluMaxPool`], that of the pooled map; for
/// the others that of the sum.
#[derive(Debug, Clone, PartialEq)]
pub enum Epilogue {
    /// Nothing.
    Linear {
        /// Map written.
        written: Slot,
    },
    /// ReLU, then the maximum over 2 × 2.
    ReluMaxPool {
        /// Map written.
        pooled: Slot,
    },
    /// ReLU.
    Relu {
        /// Map written.
        rectified: Slot,
    },
    /// The residual stream of pre-activation blocks: the sum plus the shortcut, kept as it is and rectified for the next convolution.
    Stream {
        /// The stream written.
        stream: Slot,
        /// ReLU of the stream, written.
        rectified: Slot,
        /// The stream at the block's input: added as it is, or, where the shapes differ, rectified and averaged over stride × stride with zero
        /// channels appended (the authors' public code, network.py; the paper does not say).
        shortcut: Option<Slot>,
    },
}

impl Epilogue {
    /// The map that the next layer reads.
    pub fn written(&self) -> Slot {
        match *self {
            Epilogue::Linear { written } => written,
            Epilogue::ReluMaxPool { pooled } => pooled,
            Epilogue::Relu { rectified } | Epilogue::Stream { rectified, .. } => rectified,
        }
    }
}

/// The maximum or the mean over windows that lie in the map; what is left at its right and lower edges is not read.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Maximum or mean.
    pub kind: PoolKind,
    /// Rows and columns of a window.
    pub size: usize,
    /// Rows and columns from one window to the next.
    pub stride: usize,
    /// Map read: it has no border.
    pub input: Slot,
    /// Map written.
    pub output: Slot,
    /// Whether ReLU follows. The gradient that a back end keeps for the layer is that before the ReLU.
    pub relu: bool,
    /// The layer that wrote the map read; none where nobody needs its gradient.
    pub producer: Option<usize>,
}

/// Function of a window that a [`Pool`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// The largest value. The gradient goes to the first position that has it, in reading order.
    Max,
    /// The mean.
    Average,
}

/// The mean over all positions.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalMean {
    /// Map read.
    pub input: Slot,
    /// Map written: 1 × 1 × channels.
    pub output: Slot,
    /// The layer that wrote the input; none where nobody needs its gradient.
    pub producer: Option<usize>,
}

/// Normalises each group of channels, example by example, and scales and shifts each channel: (x − mean) / √(variance + [`EPSILON`]) · scale + bias
/// with the mean and the variance over the group's channels and all positions (Wu and He, "Group Normalization", ECCV 2018).
#[derive(Debug, Clone, PartialEq)]
pub struct GroupNorm {
    /// Groups.
    pub groups: usize,
    /// Channels of a group. In a network that a back end has widened, the channels behind those of the groups are zero, and stay so.
    pub group_channels: usize,
    /// Positions of the maps.
    pub positions: usize,
    /// Channels of the maps.
    pub channels: usize,
    /// Offset of the factors `[channels]` in the flat parameter vector.
    pub scale: usize,
    /// Offset of the terms `[channels]`.
    pub bias: usize,
    /// Map read: it has no border.
    pub input: Slot,
    /// Map written.
    pub output: Slot,
    /// Whether ReLU follows. The gradient that a back end keeps for the layer is that before the ReLU.
    pub relu: bool,
    /// The layer that wrote the map read.
    pub producer: usize,
}

/// Number that [`GroupNorm`] adds to each variance: PyTorch's default.
pub const EPSILON: f32 = 1e-5;

/// A fully connected layer. The last one of a network makes the logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Map read, flattened: it has no border.
    pub input: Slot,
    /// Inputs.
    pub inputs: usize,
    /// Outputs: of the last layer, the classes.
    pub outputs: usize,
    /// Offset of the weights `[in][out]`.
    pub weights: usize,
    /// Offset of the bias `[out]`; where there is none, of what follows the weights.
    pub bias: usize,
    /// Whether there is a bias.
    pub has_bias: bool,
    /// The layer that wrote the input; none where nobody needs its gradient.
    pub producer: Option<usize>,
    /// Output of the layer, which the sums become.
    pub output: DenseOutput,
}

/// Output of a fully connected layer, which its sums become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenseOutput {
    /// The sums are the logits.
    Logits,
    /// The sums are a map of 1 × 1 × outputs. The gradient that a back end keeps for the layer is that of the sums.
    Hidden {
        /// Map written.
        written: Slot,
        /// Whether ReLU comes between.
        relu: bool,
    },
}

impl Convolution {
    /// Floats that one output reads in one input row: (kernel columns) × (input channels), contiguous.
    pub fn run(&self) -> usize {
        self.kernel * self.input_map.channels
    }

    /// Number of weights.
    pub fn weight_count(&self) -> usize {
        self.kernel * self.run() * self.output.channels
    }
}

impl Layer {
    /// Multiplications and additions of one image's forward pass.
    pub fn forward_flop(&self) -> f64 {
        match self {
            Layer::Convolution(c) => 2.0 * (c.output.height * c.output.width * c.weight_count()) as f64,
            Layer::Pool(_) | Layer::GlobalMean(_) => 0.0,
            // Of each value: one for the mean, three for the variance, two for the normalised value, two for scale and bias.
            Layer::GroupNorm(norm) => 8.0 * (norm.positions * norm.channels) as f64,
            Layer::Dense(dense) => 2.0 * (dense.inputs * dense.outputs) as f64,
        }
    }

    /// The map that it reads.
    pub fn input(&self) -> Slot {
        match self {
            Layer::Convolution(convolution) => convolution.input,
            Layer::Pool(pool) => pool.input,
            Layer::GlobalMean(mean) => mean.input,
            Layer::GroupNorm(norm) => norm.input,
            Layer::Dense(dense) => dense.input,
        }
    }

    /// The map that the next layer reads; none for the logits.
    pub fn written(&self) -> Option<Slot> {
        match self {
            Layer::Convolution(convolution) => Some(convolution.epilogue.written()),
            Layer::Pool(pool) => Some(pool.output),
            Layer::GlobalMean(mean) => Some(mean.output),
            Layer::GroupNorm(norm) => Some(norm.output),
            Layer::Dense(dense) => match dense.output {
                DenseOutput::Logits => None,
                DenseOutput::Hidden { written, .. } => Some(written),
            },
        }
    }

    /// The layer that wrote what this one reads; none where nobody needs its gradient.
    pub fn producer(&self) -> Option<usize> {
        match self {
            Layer::Convolution(convolution) => convolution.producer,
            Layer::Pool(pool) => pool.producer,
            Layer::GlobalMean(mean) => mean.producer,
            Layer::GroupNorm(norm) => Some(norm.producer),
            Layer::Dense(dense) => dense.producer,
        }
    }

    /// Whether the gradient kept for the layer is that before a ReLU: where the map written is not positive, it is zero.
    pub fn has_relu(&self) -> bool {
        match self {
            Layer::Convolution(convolution) => !matches!(convolution.epilogue, Epilogue::Linear { .. }),
            Layer::Pool(pool) => pool.relu,
            Layer::GlobalMean(_) => false,
            Layer::GroupNorm(norm) => norm.relu,
            Layer::Dense(dense) => matches!(dense.output, DenseOutput::Hidden { relu: true, .. }),
        }
    }

    /// Where the layer's weights, or the factors of a normalisation, and its biases are in the flat parameter vector; none where it has no
    /// parameters. Without a bias the second range is empty.
    pub fn parameters(&self) -> Option<[Range<usize>; 2]> {
        let (weights, bias, outputs, has_bias) = self.weighted()?;
        Some([weights..bias, bias..bias + if has_bias { outputs } else { 0 }])
    }

    /// Outputs that the layer's weights lead to; none where it has no parameters.
    pub fn outputs(&self) -> Option<usize> {
        self.weighted().map(|(_, _, outputs, _)| outputs)
    }

    /// Inputs and outputs of the layer's weights, then rows and columns of a kernel; none where it has no parameters. Each factor of a normalisation
    /// leads from one input to one output.
    pub fn weight_extents(&self) -> Option<Vec<usize>> {
        match self {
            Layer::Convolution(layer) => Some(vec![layer.input_map.channels, layer.output.channels, layer.kernel, layer.kernel]),
            Layer::Dense(layer) => Some(vec![layer.inputs, layer.outputs]),
            Layer::GroupNorm(_) => Some(vec![1, 1]),
            Layer::Pool(_) | Layer::GlobalMean(_) => None,
        }
    }

    /// Rows, columns and channels that a layer other than a convolution or a fully connected one makes of a map without a border; none where it
    /// cannot read the map.
    pub fn shape_made_of(&self, from: Map) -> Option<[usize; 3]> {
        let Map { height, width, channels, .. } = from;
        match self {
            Layer::Pool(pool) => {
                let windows = |side: usize| side.checked_sub(pool.size)?.checked_div(pool.stride).map(|rest| rest + 1);
                Some([windows(height)?, windows(width)?, channels]).filter(|_| pool.size > 0)
            }
            Layer::GlobalMean(_) => Some([1, 1, channels]),
            Layer::GroupNorm(norm) => {
                let normalised = norm.groups.checked_mul(norm.group_channels)?;
                let fits = norm.channels == channels && (1..=channels).contains(&normalised) && norm.positions == height * width;
                fits.then_some([height, width, channels])
            }
            Layer::Convolution(_) | Layer::Dense(_) => None,
        }
    }

    fn weighted(&self) -> Option<(usize, usize, usize, bool)> {
        match self {
            Layer::Convolution(layer) => Some((layer.weights, layer.bias, layer.output.channels, layer.has_bias)),
            Layer::Dense(layer) => Some((layer.weights, layer.bias, layer.outputs, layer.has_bias)),
            Layer::GroupNorm(layer) => Some((layer.scale, layer.bias, layer.channels, true)),
            Layer::Pool(_) | Layer::GlobalMean(_) => None,
        }
    }
}

/// Describes a layer in words, for the table of layers.
impl Display for Layer {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        match self {
            Layer::Convolution(layer) => {
                let then = match layer.epilogue {
                    Epilogue::Linear { .. } => "",
                    Epilogue::Relu { .. } => ", relu",
                    Epilogue::ReluMaxPool { .. } => ", relu, max-pool 2 × 2",
                    Epilogue::Stream { shortcut: None, .. } => ", relu beside it",
                    Epilogue::Stream { shortcut: Some(_), .. } => ", shortcut, relu",
                };
                let stride = if layer.stride > 1 { format!(", stride {}", layer.stride) } else { String::new() };
                write!(to, "convolution {0} × {0}{stride}{then}", layer.kernel)
            }
            Layer::Pool(layer) => {
                let kind = if layer.kind == PoolKind::Max { "max-pool" } else { "average-pool" };
                write!(to, "{kind} {0} × {0}, stride {1}{2}", layer.size, layer.stride, if layer.relu { ", relu" } else { "" })
            }
            Layer::GlobalMean(_) => to.write_str("global mean"),
            Layer::GroupNorm(layer) => {
                let groups = if layer.groups == 1 { "group" } else { "groups" };
                write!(to, "group norm, {} {groups}{}", layer.groups, if layer.relu { ", relu" } else { "" })
            }
            Layer::Dense(_) => write!(to, "dense{}", if self.has_relu() { ", relu" } else { "" }),
        }
    }
}

impl Dense {
    /// The layer as a convolution of 1 × 1 over so many positions in a row, each with inputs and outputs of its own.
    pub fn over_positions(&self, positions: usize, epilogue: Epilogue) -> Convolution {
        let &Dense { input, inputs, outputs, weights, bias, has_bias, producer, .. } = self;
        let [input_map, output] = [inputs, outputs].map(|channels| Map::plain(1, positions, channels));
        Convolution { kernel: 1, stride: 1, output, weights, bias, has_bias, input, input_map, epilogue, producer, bypass: None }
    }
}

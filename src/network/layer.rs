//! Layers, the feature maps between them, and the operations a back end implements for them.

use super::Network;

/// Index into [`Network::maps`].
pub type Slot = usize;

/// Shape of one example's feature map, channel last, with the zero border that the convolution reading it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone)]
pub enum Layer {
    /// A convolution with its bias and what follows it.
    Convolution(Convolution),
    /// The mean over all positions.
    GlobalMean(GlobalMean),
    /// A fully connected layer: the logits.
    Dense(Dense),
}

/// A square convolution over a map that has its zero padding as a border, so that no kernel handles padding: output (y, x) reads the input rows
/// y·stride … y·stride + kernel − 1, border included.
#[derive(Debug, Clone)]
pub struct Convolution {
    /// Rows and columns of the kernel.
    pub kernel: usize,
    /// Rows and columns from one output to the next.
    pub stride: usize,
    /// The sum's shape, before [`Convolution::epilogue`].
    pub output: Map,
    /// Offset of the weights `[kernel][kernel][in][out]` in the flat parameter vector.
    pub weights: usize,
    /// Offset of the bias `[out]`.
    pub bias: usize,
    /// Map read.
    pub input: Slot,
    /// Shape of the map read.
    pub input_map: Map,
    /// What happens to the sum.
    pub epilogue: Epilogue,
    /// The convolution whose output this one reads. `None` where it reads the image, whose gradient is not needed.
    pub producer: Option<usize>,
    /// For the first convolution of a residual block: the block's last convolution, whose output gradient reaches the block's
    /// input through the shortcut too.
    pub bypass: Option<usize>,
}

/// What happens to a convolution's sum. The gradient that a back end keeps for the layer is, for [`Epilogue::ReluMaxPool`], that of the
/// pooled map; for the others that of the sum.
#[derive(Debug, Clone)]
pub enum Epilogue {
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
        /// Its ReLU, written.
        rectified: Slot,
        /// The stream at the block's input: added as it is, or, where the shapes differ, rectified and averaged over 2 × 2 with zero channels
        /// appended (the authors' public code, network.py; the paper does not say).
        shortcut: Option<Slot>,
    },
}

impl Epilogue {
    /// The map that the next layer reads.
    pub fn written(&self) -> Slot {
        match *self {
            Epilogue::ReluMaxPool { pooled } => pooled,
            Epilogue::Relu { rectified } | Epilogue::Stream { rectified, .. } => rectified,
        }
    }
}

/// The mean over all positions of a rectified map.
#[derive(Debug, Clone)]
pub struct GlobalMean {
    /// Map read.
    pub input: Slot,
    /// Map written: 1 × 1 × channels.
    pub output: Slot,
    /// The convolution that wrote the input.
    pub producer: usize,
}

/// The fully connected layer that ends a network.
#[derive(Debug, Clone)]
pub struct Dense {
    /// Map read, flattened.
    pub input: Slot,
    /// Inputs.
    pub inputs: usize,
    /// Outputs: the classes.
    pub outputs: usize,
    /// Offset of the weights `[in][out]`.
    pub weights: usize,
    /// Offset of the bias `[out]`.
    pub bias: usize,
    /// The convolution that wrote the input; none where a [`GlobalMean`] did.
    pub producer: Option<usize>,
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
            Layer::GlobalMean(_) => 0.0,
            Layer::Dense(dense) => 2.0 * (dense.inputs * dense.outputs) as f64,
        }
    }
}

/// What a back end does for a network, on the images and the weights it holds. Gradients of parameters are summed over examples.
pub trait Operations {
    /// Convolution, bias and epilogue.
    fn convolution_forward(&mut self, index: usize, layer: &Convolution);
    /// Adds the gradients of weights and bias; writes the gradient of the producer's output, if there is a producer.
    fn convolution_backward(&mut self, index: usize, layer: &Convolution, network: &Network);
    /// Mean over positions.
    fn global_mean_forward(&mut self, layer: &GlobalMean);
    /// Writes the gradient of the producer's sum.
    fn global_mean_backward(&mut self, layer: &GlobalMean);
    /// Logits.
    fn dense_forward(&mut self, layer: &Dense);
    /// Adds the gradients of weights and bias; writes the gradient of the input.
    fn dense_backward(&mut self, layer: &Dense);
    /// Loss summed over examples, and the gradient of the logits.
    fn softmax_cross_entropy(&mut self);
}

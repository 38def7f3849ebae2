//! Both networks forward in plain f64 loops, written for reading and not for speed: what finite differences are taken of.
//!
//! Everything is channel-last, one image at a time. Parameters are one flat vector, layers in forward order, each layer's weights and
//! then its bias; convolution weights are [kh][kw][in][out], dense weights [in][out].

/// The networks of Lee et al., ICLR 2021.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    SimpleCnn,
    ResNet8,
}

/// One layer's weights or bias within the flat parameter vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    pub offset: usize,
    pub length: usize,
    /// Inputs of one output unit; none for a bias.
    pub fan_in: Option<usize>,
}

impl Net {
    /// Height, width and channels of an image.
    pub fn image(self) -> [usize; 3] {
        match self {
            Net::SimpleCnn => [28, 28, 1],
            Net::ResNet8 => [32, 32, 3],
        }
    }

    /// Name, inputs of one output unit, and outputs of each layer.
    fn layers(self) -> &'static [(&'static str, usize, usize)] {
        match self {
            Net::SimpleCnn => &[("conv1", 25, 32), ("conv2", 25 * 32, 64), ("fc", 1024, 10)],
            Net::ResNet8 => &[
                ("conv", 9 * 3, 16),
                ("block1/conv1", 9 * 16, 16),
                ("block1/conv2", 9 * 16, 16),
                ("block2/conv1", 9 * 16, 32),
                ("block2/conv2", 9 * 32, 32),
                ("block3/conv1", 9 * 32, 64),
                ("block3/conv2", 9 * 64, 64),
                ("fc", 64, 10),
            ],
        }
    }

    /// The flat parameter vector's layout.
    pub fn tensors(self) -> Vec<Tensor> {
        let mut tensors = Vec::new();
        let mut offset = 0;
        for &(layer, fan_in, outputs) in self.layers() {
            for (kind, length, fan_in) in [("weight", fan_in * outputs, Some(fan_in)), ("bias", outputs, None)] {
                tensors.push(Tensor { name: format!("{layer}/{kind}"), offset, length, fan_in });
                offset += length;
            }
        }
        tensors
    }

    /// Length of the flat parameter vector.
    pub fn parameter_count(self) -> usize {
        self.tensors().iter().map(|t| t.length).sum()
    }
}

/// One image's feature map, [height][width][channel].
struct Map {
    height: usize,
    width: usize,
    channels: usize,
    values: Vec<f64>,
}

impl Map {
    fn zeros(height: usize, width: usize, channels: usize) -> Map {
        Map { height, width, channels, values: vec![0.0; height * width * channels] }
    }

    fn at(&self, y: usize, x: usize, c: usize) -> f64 {
        self.values[(y * self.width + x) * self.channels + c]
    }

    fn at_mut(&mut self, y: usize, x: usize, c: usize) -> &mut f64 {
        &mut self.values[(y * self.width + x) * self.channels + c]
    }
}

/// The flat parameters not yet used, handed out layer by layer.
struct Unused<'a>(&'a [f64]);

impl<'a> Unused<'a> {
    fn take(&mut self, length: usize) -> &'a [f64] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }
}

/// A square convolution. `before` zero rows and columns are at the top and left, as many as `height` and `width` need at the bottom and
/// right.
struct Convolution {
    kernel: usize,
    stride: usize,
    before: usize,
    height: usize,
    width: usize,
    outputs: usize,
}

impl Convolution {
    /// No padding, stride 1.
    fn valid(input: &Map, kernel: usize, outputs: usize) -> Convolution {
        Convolution { kernel, stride: 1, before: 0, height: input.height + 1 - kernel, width: input.width + 1 - kernel, outputs }
    }

    /// TensorFlow's SAME padding of a square, 3×3: ceil(size/stride) outputs, and the smaller half of the zeros comes first.
    fn same(input: &Map, stride: usize, outputs: usize) -> Convolution {
        let (height, width) = (input.height.div_ceil(stride), input.width.div_ceil(stride));
        let before = ((height - 1) * stride + 3 - input.height) / 2;
        Convolution { kernel: 3, stride, before, height, width, outputs }
    }

    fn apply(&self, input: &Map, parameters: &mut Unused) -> Map {
        let weight = parameters.take(self.kernel * self.kernel * input.channels * self.outputs);
        let bias = parameters.take(self.outputs);
        let mut output = Map::zeros(self.height, self.width, self.outputs);
        for oy in 0..self.height {
            for ox in 0..self.width {
                let mut sums = bias.to_vec();
                for ky in 0..self.kernel {
                    for kx in 0..self.kernel {
                        // Position in the padded input; the padding contributes nothing.
                        let (py, px) = (oy * self.stride + ky, ox * self.stride + kx);
                        if py < self.before || px < self.before || py - self.before >= input.height || px - self.before >= input.width {
                            continue;
                        }
                        for i in 0..input.channels {
                            let value = input.at(py - self.before, px - self.before, i);
                            let row = ((ky * self.kernel + kx) * input.channels + i) * self.outputs;
                            for (sum, w) in sums.iter_mut().zip(&weight[row..row + self.outputs]) {
                                *sum += value * w;
                            }
                        }
                    }
                }
                for (o, sum) in sums.into_iter().enumerate() {
                    *output.at_mut(oy, ox, o) = sum;
                }
            }
        }
        output
    }
}

fn relu(input: &Map) -> Map {
    Map { values: input.values.iter().map(|v| v.max(0.0)).collect(), ..*input }
}

/// 2×2 windows, stride 2, each reduced by `f`.
fn pool(input: &Map, f: impl Fn([f64; 4]) -> f64) -> Map {
    let mut output = Map::zeros(input.height / 2, input.width / 2, input.channels);
    for y in 0..output.height {
        for x in 0..output.width {
            for c in 0..output.channels {
                let corner = |dy, dx| input.at(2 * y + dy, 2 * x + dx, c);
                *output.at_mut(y, x, c) = f([corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)]);
            }
        }
    }
    output
}

fn max_pool(input: &Map) -> Map {
    pool(input, |v| v[0].max(v[1]).max(v[2]).max(v[3]))
}

fn average_pool(input: &Map) -> Map {
    pool(input, |v| (v[0] + v[1] + v[2] + v[3]) / 4.0)
}

fn dense(input: &[f64], outputs: usize, parameters: &mut Unused) -> Vec<f64> {
    let weight = parameters.take(input.len() * outputs);
    let bias = parameters.take(outputs);
    (0..outputs).map(|o| bias[o] + (0..input.len()).map(|i| input[i] * weight[i * outputs + o]).sum::<f64>()).collect()
}

fn simple_cnn(image: Map, parameters: &mut Unused) -> Vec<f64> {
    let mut x = image;
    for outputs in [32, 64] {
        x = max_pool(&relu(&Convolution::valid(&x, 5, outputs).apply(&x, parameters)));
    }
    dense(&x.values, 10, parameters)
}

fn resnet_8(image: Map, parameters: &mut Unused) -> Vec<f64> {
    let mut x = Convolution::same(&image, 1, 16).apply(&image, parameters);
    for (channels, stride) in [(16, 1), (32, 2), (64, 2)] {
        let h = relu(&x);
        let h = relu(&Convolution::same(&h, stride, channels).apply(&h, parameters));
        let mut out = Convolution::same(&h, 1, channels).apply(&h, parameters);
        // An identity shortcut is x itself, a pooled one is of relu(x); the channels it lacks are zero.
        let shortcut = if stride == 1 { x } else { average_pool(&relu(&x)) };
        for y in 0..out.height {
            for x in 0..out.width {
                for c in 0..shortcut.channels {
                    *out.at_mut(y, x, c) += shortcut.at(y, x, c);
                }
            }
        }
        x = out;
    }
    let x = relu(&x);
    let mut mean = vec![0.0; x.channels];
    for (i, v) in x.values.iter().enumerate() {
        mean[i % x.channels] += v / (x.height * x.width) as f64;
    }
    dense(&mean, 10, parameters)
}

/// Logits [image][10] of normalised images [image][height][width][channel].
pub fn logits(network: Net, parameters: &[f64], images: &[f64]) -> Vec<[f64; 10]> {
    assert_eq!(parameters.len(), network.parameter_count());
    let [height, width, channels] = network.image();
    let chunks = images.chunks_exact(height * width * channels);
    assert!(chunks.remainder().is_empty(), "images must be whole");
    chunks
        .map(|image| {
            let image = Map { height, width, channels, values: image.to_vec() };
            let mut unused = Unused(parameters);
            let logits = match network {
                Net::SimpleCnn => simple_cnn(image, &mut unused),
                Net::ResNet8 => resnet_8(image, &mut unused),
            };
            assert!(unused.0.is_empty());
            logits.try_into().expect("ten logits")
        })
        .collect()
}

/// Softmax cross-entropy summed over the images.
pub fn loss(network: Net, parameters: &[f64], images: &[f64], labels: &[u16]) -> f64 {
    let logits = logits(network, parameters, images);
    assert_eq!(logits.len(), labels.len());
    let one = |(row, &label): (&[f64; 10], &u16)| {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + row.iter().map(|v| (v - top).exp()).sum::<f64>().ln() - row[label as usize]
    };
    logits.iter().zip(labels).map(one).sum()
}

/// ∂[`loss`]/∂parameters\[index\] by central differences, good to about 1e-8 (absolute); `None` where a kink of ReLU or of the maximum lies
/// within the step, so that the difference says nothing: callers count these and insist that they are few.
///
/// `loss_here` is the loss at `parameters` itself, which a caller of many indices computes once.
pub fn finite_difference(network: Net, parameters: &[f64], images: &[f64], labels: &[u16], loss_here: f64, index: usize) -> Option<f64> {
    const STEP: f64 = 4e-6;
    let mut moved = parameters.to_vec();
    // Central slope, and the right slope less the left one.
    let mut slopes = |h: f64| {
        moved[index] = parameters[index] + h;
        let right = loss(network, &moved, images, labels) - loss_here;
        moved[index] = parameters[index] - h;
        let left = loss_here - loss(network, &moved, images, labels);
        ((right + left) / (2.0 * h), (right - left) / h)
    };
    let (wide, wide_bend) = slopes(STEP);
    let (narrow, narrow_bend) = slopes(STEP / 2.0);
    // A kink inside the step makes the two slopes differ. A kink exactly here (a unit that the mask left with nothing but zeros) does
    // not, but leaves a bend that does not halve with the step, as that of a smooth function does.
    let tolerance = 1e-6 * (narrow.abs() + 1e-1);
    let smooth = (wide - narrow).abs() < tolerance && (2.0 * narrow_bend - wide_bend).abs() < tolerance;
    smooth.then_some(narrow)
}

//! The PyTorch fixtures of `tests/fixtures` as structs. The field `about` of each file says what its numbers are.

use super::noise;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Fixture {
    pub about: String,
    pub network: String,
    pub parameters: usize,
    pub tensors: Vec<TensorLayout>,
    /// Parameters that the fixtures' mask keeps.
    pub mask_kept: usize,
    /// Every list of samples holds each `sample_stride`-th entry of the flat vector, from 0.
    pub sample_stride: usize,
    pub image: Image,
    /// The dense and the masked network on one batch.
    pub batches: Vec<Batch>,
    pub trajectories: Vec<Trajectory>,
    pub connection_sensitivity: ConnectionSensitivity,
}

#[derive(Debug, Deserialize)]
pub struct TensorLayout {
    pub name: String,
    pub offset: usize,
    pub length: usize,
    /// Inputs of one output unit; none for a bias.
    pub fan_in: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub struct Image {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub mean: Vec<f64>,
    pub std: Vec<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Batch {
    pub masked: bool,
    pub image_seed: u32,
    pub size: usize,
    pub loss_sum: f64,
    pub loss_mean: f64,
    pub errors: usize,
    pub logits: Vec<[f64; 10]>,
    /// Gradient of the summed loss with respect to mask·w, masked.
    pub gradient: Summary,
}

/// A vector as long as the parameters: norms, sums and samples.
#[derive(Debug, Deserialize)]
pub struct Summary {
    pub l2: f64,
    /// One summary for each tensor, in the order of the layout.
    pub tensors: Vec<TensorSummary>,
    pub samples: Vec<f64>,
}

#[derive(Debug, Deserialize)]
pub struct TensorSummary {
    pub name: String,
    pub l2: f64,
    pub sum: f64,
}

#[derive(Debug, Deserialize)]
pub struct Trajectory {
    /// The optimizer's name, as the program has it.
    pub optimizer: String,
    pub momentum: f64,
    pub learning_rate: f64,
    pub schedule: Schedule,
    pub masked: bool,
    pub batch_size: usize,
    /// Step k, from 0, trains on the batch with image seed `first_image_seed` + k.
    pub first_image_seed: u32,
    /// Mean loss of each step's batch before the step's update.
    pub losses: Vec<f64>,
    /// mask·w after the last step.
    pub r#final: Summary,
    pub float32: Float32,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Schedule {
    Constant,
    Linear { decay_steps: u64, end_factor: f64 },
}

/// The largest differences of PyTorch's own float32 run, as a scale for tolerances.
#[derive(Debug, Deserialize)]
pub struct Float32 {
    pub loss: f64,
    pub parameter: f64,
}

#[derive(Debug, Deserialize)]
pub struct ConnectionSensitivity {
    /// Mini-batch b, from 0, has image seed `first_image_seed` + b.
    pub first_image_seed: u32,
    pub batches: usize,
    pub batch_size: usize,
    /// Σ|g|, g the sum over the mini-batches of w·∂(mean loss)/∂w.
    pub total: f64,
    /// Samples of |g|/total.
    pub samples: Vec<f64>,
    pub cuts: Vec<Cut>,
}

#[derive(Debug, Deserialize)]
pub struct Cut {
    pub sparsity: f64,
    pub biases: Biases,
    pub kept_count: usize,
    pub kept_sum: u64,
    pub kept_xor: u64,
    /// Relative difference between the lowest score kept and the highest dropped.
    pub threshold_gap: f64,
    /// Indices so near the threshold that float32 may decide them otherwise.
    pub ambiguous: Vec<Ambiguous>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Biases {
    Included,
    /// Every bias is kept, over and above the sparsity's share of the weights.
    Exempt,
}

#[derive(Debug, Deserialize)]
pub struct Ambiguous {
    pub index: usize,
    pub kept: bool,
}

/// Smoothness, gradient variance and the Hessian–gradient product.
#[derive(Debug, Deserialize)]
pub struct Theory {
    pub image_seed: u32,
    pub images: usize,
    pub measurements: Vec<Measured>,
    /// At each temperature.
    pub grasp: Vec<Grasp>,
}

/// At w, and along the step from w to w − rate·(mean gradient of the first `step_examples` examples).
#[derive(Debug, Deserialize)]
pub struct Measured {
    pub masked: bool,
    pub rate: f64,
    pub step_examples: usize,
    pub points: u32,
    pub loss: f64,
    pub gradient_norm: f64,
    pub squared_norms: f64,
    pub lipschitz: f64,
}

/// w·(H g) by double backward.
#[derive(Debug, Deserialize)]
pub struct Grasp {
    pub temperature: f64,
    pub norm: f64,
    pub samples: Vec<f64>,
    pub cuts: Vec<Cut>,
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/tests/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

impl Theory {
    pub fn read(network: &str) -> Theory {
        read(&format!("theory-{network}"))
    }
}

impl Fixture {
    pub fn read(network: &str) -> Fixture {
        read(network)
    }

    /// The parameters that every batch, trajectory and score starts from, before any mask.
    pub fn start(&self) -> Vec<f32> {
        noise::parameters(&self.tensors)
    }

    /// Bytes [image][height][width][channel] and labels of a batch.
    pub fn images(&self, image_seed: u32, count: usize) -> (Vec<u8>, Vec<u16>) {
        let bytes = count * self.image.height * self.image.width * self.image.channels;
        (noise::image_bytes(image_seed, bytes), noise::labels(image_seed, count))
    }
}

impl Cut {
    /// Says how a mask differs from this cut, after setting the ambiguous indices aside; `None` if it does not.
    pub fn difference(&self, kept: &[bool]) -> Option<String> {
        let mut kept = kept.to_vec();
        let count = kept.iter().filter(|&&k| k).count();
        for ambiguous in &self.ambiguous {
            kept[ambiguous.index] = ambiguous.kept;
        }
        let indices = || (0..kept.len() as u64).filter(|&j| kept[j as usize]);
        let found = (count, indices().sum::<u64>(), indices().fold(0, |a, j| a ^ j));
        let expected = (self.kept_count, self.kept_sum, self.kept_xor);
        let of = "count, sum and xor of the kept indices";
        (found != expected).then(|| format!("sparsity {}, biases {:?}: {of} {found:?}, expected {expected:?}", self.sparsity, self.biases))
    }
}

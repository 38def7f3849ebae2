//! A study as data: what a configuration file says, after validation.
//!
//! The types are written out by serde but read by hand (`rules.rs`), so that no study exists that was not validated.

use serde::Serialize;

use super::goal::{exact_threshold, float32_threshold};

/// A whole configuration file. Source: protocol of Lee et al., ICLR 2021, section 3 and appendix B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// What is trained, and when it has arrived.
    pub workload: Workload,
    /// The cells, and how many trials each has.
    pub grid: Grid,
    /// How connections are removed before training.
    pub pruning: Pruning,
    /// Where the trials' metaparameters come from.
    pub search: Search,
    /// How the data set is split.
    pub data: DataSplit,
    /// What is measured along training besides; absent where nothing is. It changes no step that is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<Smoothness>,
    /// How the work is run; nothing here but who multiplies, and how, changes a cell's steps-to-result.
    pub execution: Execution,
}

/// Data set × network × optimizer (with its schedule) × goal error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// The data set.
    pub dataset: DatasetName,
    /// The network.
    pub network: NetworkName,
    /// The optimizer.
    pub optimizer: OptimizerName,
    /// The learning-rate schedule.
    pub schedule: ScheduleName,
    /// Validation error, a fraction in (0, 1), at or below which a trial is complete.
    pub goal_error: f64,
    /// How a validation error is compared with the goal.
    pub goal_comparison: GoalComparison,
    /// Step budget of a trial.
    pub max_steps: u32,
    /// Steps between two evaluations on the whole validation set.
    pub evaluate_every: u32,
}

/// The study cells: every batch size with every sparsity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grid {
    /// Global batch sizes, in examples.
    pub batch_sizes: Vec<u32>,
    /// Fractions of parameters removed, each in [0, 1).
    pub sparsities: Vec<f64>,
    /// Trials a cell (100 in the paper).
    pub trials: u32,
}

impl Grid {
    /// Takes in the cells of `other`: batch sizes and sparsities of both, each in ascending order, and the larger number of trials.
    pub fn join(&mut self, other: &Grid) {
        self.batch_sizes.extend(&other.batch_sizes);
        self.batch_sizes.sort_unstable();
        self.batch_sizes.dedup();
        self.sparsities.extend(&other.sparsities);
        self.sparsities.sort_unstable_by(f64::total_cmp);
        self.sparsities.dedup();
        self.trials = self.trials.max(other.trials);
    }
}

/// Pruning at initialisation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pruning {
    /// The score by which connections are kept.
    pub criterion: Criterion,
    /// Whether biases compete with weights, as in the public code, or are always kept.
    pub biases: BiasPruning,
    /// Training examples the score is summed over: the first n of the training set; 0 means all of them, as in the paper.
    pub examples: u32,
    /// What GraSP divides logits by before it scores; none for the other criteria.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl Pruning {
    /// The temperature of GraSP's authors' public code.
    pub const TEMPERATURE: f64 = 200.0;
}

impl Default for Pruning {
    fn default() -> Self {
        Pruning { criterion: Criterion::Snip, biases: BiasPruning::Prunable, examples: 0, temperature: None }
    }
}

/// The metaparameter search of a cell: one Sobol dimension for each ranged metaparameter, in the order of the fields here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    /// Direction numbers of the Sobol sequence.
    pub sobol: SobolNumbers,
    /// Learning rate η.
    pub learning_rate: Metaparameter,
    /// Momentum m; must be given for the momentum and Nesterov optimizers, and must not for SGD.
    pub momentum: Option<Metaparameter>,
    /// Steps D over which a linear decay runs; only with the linear-decay schedule.
    pub decay_steps: Option<Metaparameter>,
    /// η_end / η of a linear decay; only with the linear-decay schedule.
    pub end_learning_rate_factor: Option<Metaparameter>,
}

/// A value for every trial, or a range that the search draws from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metaparameter {
    /// The same value for every trial.
    Fixed(f64),
    /// Drawn by the search.
    Range(Range),
}

/// Limits and scale of a searched metaparameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// Lower limit.
    pub min: f64,
    /// Upper limit.
    pub max: f64,
    /// How a uniform number becomes a value.
    pub scale: Scale,
}

/// How the training file becomes a training and a validation set, and the training set a stream of batches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataSplit {
    /// Share of the training file held out for validation.
    pub validation_fraction: f64,
    /// Seed of the split, the same for all trials.
    pub split_seed: u64,
    /// In which order trials see the training set.
    pub order: DataOrder,
    /// Whose data they are.
    pub source: DataSource,
}

impl Default for DataSplit {
    fn default() -> Self {
        DataSplit { validation_fraction: 0.1, split_seed: 0, order: DataOrder::PerTrial, source: DataSource::Original }
    }
}

/// Measurements of the loss surface along training: the gradient's local Lipschitz constant, the loss, and the norm and variance of the gradient
/// over the training set (Lee et al., ICLR 2021, section 4.2 and appendix C; McCandlish et al., 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Smoothness {
    /// Steps between two measurements: each is of a step that ends at a multiple of it, as in the public code.
    pub every: u32,
    /// Whether the first step is measured too: the only one that starts at untrained weights.
    pub start: bool,
    /// Trials of each cell that are measured: the first n; 0 means all of them.
    pub trials: u32,
    /// Points of a step at which the gradient is compared with that at its start: γ = 1/points, 2/points … 1.
    pub points: u32,
    /// Whether γ = 1, the end of the step, is among them, as in equation 11 of the paper; the public code leaves it out.
    pub whole_step: bool,
    /// Training examples measured on: the first n of the training set; 0 means all of them, as in the paper.
    pub examples: u32,
}

/// How many of `all` a count of the configuration means: the first `count`, 0 meaning all of them.
pub fn first_of(count: u32, all: u64) -> u64 {
    if count == 0 { all } else { all.min(count.into()) }
}

/// How the work is run. `race` and `full_evaluation` change what else is recorded (how the other trials end, how far their evaluations go), and
/// `products` and `tf32` every number: these four take part in the digest of a study. No other field changes a cell's steps-to-result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Execution {
    /// The processor that trains.
    pub device: DeviceName,
    /// Threads a rank; 0 means the processors available to it divided by the ranks on the host.
    pub threads: u32,
    /// Ranks D that share each batch; 0 means automatic: as many as get 16 examples each. Groups of D ranks share the trials.
    pub data_parallel: u32,
    /// Who multiplies matrices on a GPU.
    pub products: Products,
    /// GPUs multiply in TF32 (10 bits of mantissa, added up in 32 bits): faster, with other records.
    pub tf32: bool,
    /// How GPUs add up their gradients.
    pub reduction: Reduction,
    /// Ranks may share a GPU; their gradients then travel over MPI.
    pub share_gpu: bool,
    /// Trials trained at once, all ranks together, the others in later waves; 0 for as many as memory has room for.
    pub lanes: u32,
    /// Seconds between two checkpoints of the trials under way, or more, so that they stop the training for a fiftieth of the time at most and are written for
    /// half of it; 0 writes one only when a signal stops the study.
    pub checkpoint_seconds: u32,
    /// Seconds that a rank waits for the others before it gives up and ends them all; 0 for ever. A wait is at most as long as the slowest
    /// rank's step, score or write.
    pub deadline_seconds: u32,
    /// End a cell as soon as its steps-to-result is decided: at the first evaluation at which a trial reaches the goal.
    pub race: bool,
    /// Evaluate on the whole validation set even where it is decided earlier that the goal is missed; false stores a bound instead of such
    /// an error.
    pub full_evaluation: bool,
}

impl Default for Execution {
    fn default() -> Self {
        Execution {
            device: DeviceName::Auto,
            threads: 0,
            data_parallel: 0,
            products: Products::Fused,
            tf32: false,
            reduction: Reduction::Reproducible,
            share_gpu: false,
            lanes: 0,
            checkpoint_seconds: 2,
            deadline_seconds: 1800,
            race: true,
            full_evaluation: false,
        }
    }
}

/// Declares an enum whose values have one name each, the same in TOML, on the command line and in the results.
macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($(#[$value_doc:meta])* $value:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum $kind { $($(#[$value_doc])* #[serde(rename = $name)] $value),+ }

        impl $kind {
            /// Every value's name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name used in configuration files and results.
            pub fn name(self) -> &'static str {
                match self { $($kind::$value => $name),+ }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok($kind::$value),)+
                    other => Err(format!("expected one of {}, found \"{other}\"", Self::NAMES.join(", "))),
                }
            }
        }
    };
}

names! {
    /// Maps from u in (0, 1) to a metaparameter's value (Shallue et al., 2019, section 4.2; names as in their data).
    Scale {
        /// floor(u·(max − min) + min), a whole number of steps.
        Integer = "integer",
        /// u·(max − min) + min.
        Linear = "linear",
        /// 10^(u·(log10 max − log10 min) + log10 min).
        Log = "log",
        /// 1 − 10^(u·(log10(1−min) − log10(1−max)) + log10(1−max)), so that u = 0 is max and u = 1 is min.
        ReverseLog = "reverse-log",
    }
}
names! {
    /// The data sets of the paper.
    DatasetName {
        /// MNIST, 28×28×1, 60,000 + 10,000.
        Mnist = "mnist",
        /// Fashion-MNIST, 28×28×1, 60,000 + 10,000.
        FashionMnist = "fashion-mnist",
        /// CIFAR-10, 32×32×3, 50,000 + 10,000.
        Cifar10 = "cifar-10",
    }
}
names! {
    /// The networks of the paper.
    NetworkName {
        /// Two 5×5 convolutions with max-pooling and one fully connected layer; 62,346 parameters.
        SimpleCnn = "simple-cnn",
        /// Eight layers with identity shortcuts, no batch normalisation; 75,050 parameters.
        Resnet8 = "resnet-8",
    }
}
names! {
    /// The optimizers of the paper.
    OptimizerName {
        /// w ← w − η g.
        Sgd = "sgd",
        /// v ← m v + g; w ← w − η v.
        Momentum = "momentum",
        /// v ← m v + g; w ← w − η (g + m v).
        Nesterov = "nesterov",
    }
}
names! {
    /// How a validation error is compared with the goal.
    #[derive(Default)]
    GoalComparison {
        /// errors ≤ goal · examples, exactly: 720 of 6,000 at goal 0.12.
        #[default]
        Integers = "integers",
        /// 1 − accuracy ≤ goal with the accuracy in 32-bit floating point, as in the public code: 719 of 6,000 at goal 0.12.
        Float32 = "float32",
    }
}
names! {
    /// Whose data the files of a data set hold.
    DataSource {
        /// Its publishers': every file must be the original, byte by byte.
        Original = "original",
        /// Somebody else's in the same format, as re-encoded images: no file is compared with an original.
        Own = "own",
    }
}
names! {
    /// In which order trials see the training set.
    DataOrder {
        /// Each trial in an order of its own, drawn by its number.
        PerTrial = "per-trial",
        /// All trials in the same order, as in the public code.
        Shared = "shared",
    }
}
names! {
    /// Learning-rate schedules.
    #[derive(Default)]
    ScheduleName {
        /// η at every step.
        #[default]
        Constant = "constant",
        /// η_k = (η − η_end)(1 − min(k, D)/D) + η_end.
        LinearDecay = "linear-decay",
    }
}
names! {
    /// Pruning criteria.
    Criterion {
        /// Connection sensitivity |w · ∂L/∂w| (Lee et al., ICLR 2019).
        Snip = "snip",
        /// A uniformly random subset: the usual control.
        Random = "random",
        /// The weights of largest magnitude at initialisation.
        Magnitude = "magnitude",
        /// Gradient signal preservation w · (H ∂L/∂w) (Wang et al., ICLR 2020).
        Grasp = "grasp",
    }
}
names! {
    /// Whether biases can be pruned.
    BiasPruning {
        /// Biases are scored with the weights; zero at initialisation, they are pruned first, as in the public code.
        Prunable = "prunable",
        /// Biases are never pruned, and sparsity counts the weights alone.
        Exempt = "exempt",
    }
}
names! {
    /// Direction numbers of the Sobol sequence.
    SobolNumbers {
        /// Bratley and Fox (1988), as the paper's public code uses.
        BratleyFox = "bratley-fox",
        /// Joe and Kuo (2008), D6.
        JoeKuo = "joe-kuo",
    }
}
names! {
    /// Where training runs.
    DeviceName {
        /// A GPU if one is usable, else the CPU; says in one line which.
        Auto = "auto",
        /// The CPU.
        Cpu = "cpu",
        /// A GPU, or an error.
        Cuda = "cuda",
    }
}

names! {
    /// How GPUs that share a batch add up their gradients.
    Reduction {
        /// Parts of the sum travel, and every rank adds them up in the tree's order: the same bits on any number of ranks.
        Reproducible = "reproducible",
        /// NCCL's all-reduce: fewer bytes, in whatever order it takes.
        Nccl = "nccl",
    }
}

names! {
    /// Who multiplies matrices on a GPU.
    Products {
        /// Our own kernels: a lane's bits depend on nothing but the lane.
        Fused = "fused",
        /// cuBLAS, which chooses its kernels by the matrices' sizes: a lane's bits depend on how many lanes are trained beside it, and so on
        /// ranks, on memory and on where a study was interrupted.
        Cublas = "cublas",
    }
}

impl Default for Search {
    /// The paper's learning-rate range; the other metaparameters must be named by the optimizers and schedules that need them.
    fn default() -> Self {
        Search {
            sobol: SobolNumbers::BratleyFox,
            learning_rate: Metaparameter::Range(Range { min: 1e-4, max: 1.0, scale: Scale::Log }),
            momentum: None,
            decay_steps: None,
            end_learning_rate_factor: None,
        }
    }
}

impl Workload {
    /// The most validation errors, of so many examples, with which a trial is complete.
    pub fn goal_threshold(&self, examples: u64) -> u64 {
        match self.goal_comparison {
            GoalComparison::Integers => exact_threshold(self.goal_error, examples),
            GoalComparison::Float32 => float32_threshold(self.goal_error, examples),
        }
    }
}

impl DatasetName {
    /// The network that fits its images.
    pub fn network(self) -> NetworkName {
        match self {
            DatasetName::Mnist | DatasetName::FashionMnist => NetworkName::SimpleCnn,
            DatasetName::Cifar10 => NetworkName::Resnet8,
        }
    }

    /// Examples in the training file, and bytes of one image.
    pub fn training_file(self) -> (u64, u64) {
        match self {
            DatasetName::Mnist | DatasetName::FashionMnist => (60_000, 28 * 28),
            DatasetName::Cifar10 => (50_000, 32 * 32 * 3),
        }
    }
}

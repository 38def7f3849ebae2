//! The section `[execution]`.

use super::race::{Race, RaceLength};
use crate::config::key::{flag, key, name};
use crate::config::kind::Whole;
use crate::config::names::names;
use crate::config::section::section;

/// Threads of a rank at most.
const MOST_THREADS: u32 = 1_024;

section! {
    /// How the work is done. Of these keys `race` and `full_evaluation` change what is recorded besides steps-to-result. `device` changes rounding,
    /// and so do `convolutions` on the CPU and `products`, `tf32` and `reduction` on a GPU. With `products = "cublas"` the number of ranks, `lanes`
    /// and `data_parallel` change rounding too, with `reduction = "nccl"` the number of ranks and `data_parallel`. The others change no record.
    ///
    /// `race`, `full_evaluation`, `convolutions`, `products` and `tf32` take part in the digest of a study.
    #[derive(Debug, Clone, PartialEq)]
    "execution" Execution: Default {
        /// The processor that trains.
        device: DeviceName = DeviceName::Auto => name(),
        /// Threads of each rank; 0: the host's processors are shared among its ranks.
        threads: u32 = 0 => key(Whole::or_zero_for("automatic").at_most(MOST_THREADS), "0"),
        /// Ranks that share each batch; 0: as many as get 16 examples each, on GPUs as many as exchange their gradients in a twentieth of a step.
        /// Groups of so many ranks share the trials.
        data_parallel: u32 = 0 => key(Whole::or_zero_for("automatic"), "0").see("gpu.md#several-gpus"),
        /// How the CPU computes convolutions of 5 × 5 that a ReLU and a 2 × 2 max-pool follow, forward, and those of 3 × 3 and stride 1, forward and
        /// backward. A result file without this key means `direct`, as files of dps 0.2 do.
        #[serde(skip_serializing_if = "Convolutions::is_direct")]
        convolutions: Convolutions = Convolutions::Winograd => name().see("performance.md#winograds-formula"),
        /// Kernels or library that multiply matrices on a GPU.
        products: Products = Products::Fused => name(),
        /// Whether GPUs multiply in TF32, with 11 significant bits, added up in 32 bits. This is faster, gives other records, and is an error on the
        /// CPU.
        tf32: bool = false => flag(),
        /// How GPUs that share a batch add up their gradients.
        reduction: Reduction = Reduction::Reproducible => name(),
        /// Whether ranks may share a GPU. Their gradients then travel over MPI.
        share_gpu: bool = false => flag(),
        /// Trials that are trained at once, all ranks together; 0: as many as memory has room for. The others follow in later waves.
        lanes: u32 = 0 => key(Whole::or_zero_for("automatic"), "0"),
        /// Seconds between two checkpoints of the trials under way; 0: only when a signal stops the study. They are further apart where they would
        /// stop the training for more than a fiftieth of the time, or be written for more than half of it.
        checkpoint_seconds: u32 = 2 => key(Whole::or_zero_for("none but at a signal").of("seconds"), "2"),
        /// Seconds that a rank waits for the others before it ends them all; 0: for ever. A wait is at most as long as the slowest rank's step, score
        /// or write.
        deadline_seconds: u32 = 1800 => key(Whole::or_zero_for("no limit").of("seconds"), "1800"),
        /// Whether a cell ends once its steps-to-result is decided, which is at the first evaluation at which a trial reaches the goal. A number goes
        /// on to that many times the steps-to-result, so that it is known which of the other trials reach the goal by then; `true` is 1.
        race: Race = Race::Until(1.0) => key(RaceLength, "3").see("how-it-works.md#the-race"),
        /// Whether every evaluation counts the errors on the whole validation set. Otherwise one stops where it is decided that the goal is missed,
        /// and its number of errors is a lower bound.
        full_evaluation: bool = false => flag().see("how-it-works.md#decided-evaluations"),
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
    /// How the CPU computes some convolutions of 5 × 5 and of 3 × 3.
    Convolutions {
        /// 5 × 5 term by term, 3 × 3 by Winograd's formula in small tiles (2 × 2 outputs).
        Direct = "direct",
        /// 5 × 5 by Winograd's formula too, and 3 × 3 in larger tiles on maps of 16 × 16, 32 × 32 and 64 × 64, rounded otherwise, unless a mask
        /// removes most of a layer's weights.
        Winograd = "winograd",
    }
}

impl Convolutions {
    /// Whether a kept configuration leaves the key out ([`crate::settings::recorded`]).
    fn is_direct(&self) -> bool {
        *self == Convolutions::Direct
    }
}

names! {
    /// Kernels or library that multiply matrices on a GPU.
    Products {
        /// The program's own kernels: a trial's bits depend on nothing but the trial.
        Fused = "fused",
        /// NVIDIA's cuBLAS, which chooses its kernels by the matrices' sizes: a trial's bits depend on how many trials are trained beside it, and so
        /// on ranks, on memory and on where a study was interrupted.
        Cublas = "cublas",
        /// The program's own kernels on tensor cores, each factor split into two TF32 numbers: nearly as exact as in 32 bits. Needs compute
        /// capability 8.0.
        Split = "split",
        /// The program's own kernels on tensor cores, each factor kept in memory as the sum of two bfloat16 numbers, which is the factor to within
        /// 2⁻¹⁷ of itself: predicted to be faster than split products, and run on no GPU yet. Needs compute capability 8.0.
        Pairs = "pairs",
    }
}

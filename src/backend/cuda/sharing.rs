//! From which batch size on GPUs share a batch: where exchanging its gradients costs a small part of a step. Below that they share the trials, and
//! exchange nothing. Both give each GPU as many images.
//!
//! The rule rests on the speed of one H200, as measured, for pairs as predicted, and on what NVLink carries by its data sheet: no exchange was
//! measured. It has these numbers whatever the GPU is, so that all ranks come to the same answer.

use super::gpu::Arithmetic;
use crate::backend::Sharing;
use crate::network::Network;
use crate::settings::Reduction;

/// Part of a step's time that the exchange may take.
const PART: f64 = 0.05;
/// Bytes a second that a GPU gets from the others: two thirds of what NVLink carries in one direction, 450 GB/s (NVIDIA's data sheets of the
/// H100 SXM and the H200).
const LINKED: f64 = 300e9;
/// Bytes a second where gradients travel through the host's memory over MPI.
const THROUGH_HOST: f64 = 5e9;
/// FLOP a second of training by products in 32 bits, split ones and TF32's: an H200's 2.085, 2.658 and 7.585 million images a second of Simple-CNN at
/// batch size 1,024 with 100 trials (docs/gpu/h200-speed.json), of 21.57 MFLOP each.
const IN_32_BITS: f64 = 45e12;
const SPLIT: f64 = 57e12;
const TF32: f64 = 164e12;
/// FLOP a second by pairs of bfloat16, which no GPU has measured: what `make gpu-cost` predicts of Simple-CNN at batch size 1,024, rounded down.
const PAIRS: f64 = 100e12;

/// The batch sizes from which on GPUs share a batch of `network`. `through_host` says whether their gradients travel over MPI.
pub fn sharing(network: &Network, reduction: Reduction, arithmetic: Arithmetic, through_host: bool) -> Sharing {
    let rate = match arithmetic {
        Arithmetic::Single => IN_32_BITS,
        Arithmetic::Split => SPLIT,
        Arithmetic::Tf32 => TF32,
        Arithmetic::Pairs => PAIRS,
    };
    let bandwidth = if through_host { THROUGH_HOST } else { LINKED };
    // Reproducible sums take the gradients of every other rank. NCCL's ring takes less than twice one gradient in all; for two ranks as much.
    let seconds = 4.0 * network.parameters() as f64 / bandwidth;
    let examples = seconds / PART * rate / network.training_flop();
    match reduction {
        Reduction::Reproducible => Sharing { least: 1.0, each_peer: examples },
        Reduction::Nccl => Sharing { least: 2.0 * examples, each_peer: 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkName;

    #[test]
    fn eight_gpus_share_large_batches_and_trials_of_small_ones() {
        let network = Network::new(NetworkName::SimpleCnn);
        let first_shared = |reduction, arithmetic, through_host| {
            let sharing = sharing(&network, reduction, arithmetic, through_host);
            (1..=14).map(|power| 1 << power).find(|&batch| sharing.ranks_a_batch(8, batch, 0) == 8)
        };
        assert_eq!(first_shared(Reduction::Reproducible, Arithmetic::Single, false), Some(2_048));
        assert_eq!(first_shared(Reduction::Reproducible, Arithmetic::Split, false), Some(4_096));
        assert_eq!(first_shared(Reduction::Reproducible, Arithmetic::Tf32, false), Some(8_192));
        assert_eq!(first_shared(Reduction::Reproducible, Arithmetic::Pairs, false), Some(8_192));
        assert_eq!(first_shared(Reduction::Nccl, Arithmetic::Split, false), Some(1_024));
        assert_eq!(first_shared(Reduction::Reproducible, Arithmetic::Split, true), None);
    }
}

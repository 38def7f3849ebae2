//! From which batch size on GPUs share a batch: where exchanging its gradients costs a small part of a step. Below that they share the trials, and
//! exchange nothing. Both give each GPU as many images.
//!
//! The rule rests on predictions (docs/gpu.md), no measurement, and on an H100's numbers whatever the GPU is, so that all ranks come to the same
//! answer.

use crate::backend::Sharing;
use crate::network::Network;
use crate::settings::Reduction;

/// Part of a step's time that the exchange may take.
const PART: f64 = 0.05;
/// Bytes a second that a GPU gets from the others: two thirds of what NVLink carries in one direction, 450 GB/s (NVIDIA's data sheet of the H100
/// SXM).
const LINKED: f64 = 300e9;
/// Bytes a second where gradients travel through the host's memory over MPI.
const THROUGH_HOST: f64 = 5e9;
/// FLOP a second of training with products in 32 bits, and with products of tensor cores: the middle of the predicted ranges for Simple-CNN.
const IN_32_BITS: f64 = 35e12;
const ON_TENSOR_CORES: f64 = 95e12;

/// The batch sizes from which on GPUs share a batch of `network`. `through_host` says whether their gradients travel over MPI.
pub fn sharing(network: &Network, reduction: Reduction, on_tensor_cores: bool, through_host: bool) -> Sharing {
    let rate = if on_tensor_cores { ON_TENSOR_CORES } else { IN_32_BITS };
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
        let first_shared = |reduction, on_tensor_cores, through_host| {
            let sharing = sharing(&network, reduction, on_tensor_cores, through_host);
            (1..=14).map(|power| 1 << power).find(|&batch| sharing.ranks_a_batch(8, batch, 0) == 8)
        };
        assert_eq!(first_shared(Reduction::Reproducible, false, false), Some(2_048));
        assert_eq!(first_shared(Reduction::Reproducible, true, false), Some(8_192));
        assert_eq!(first_shared(Reduction::Nccl, true, false), Some(2_048));
        assert_eq!(first_shared(Reduction::Reproducible, true, true), None);
    }
}

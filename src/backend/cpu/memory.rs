//! The memory that training takes, by arithmetic, before anything is allocated.

use super::layer::{LayerPlan, layers};
use super::worker::{image_floats, images_a_pass, images_at_once};
use crate::comm::{Exchanged, Leaves};
use crate::network::Network;
use crate::settings::Convolutions;

/// Lanes that a rank trains at once, by the numbers that their memory depends on.
#[derive(Debug, Clone, Copy)]
pub struct Wave {
    /// Examples of a batch.
    pub batch: usize,
    /// Parameters that a lane's mask keeps: all of a dense network.
    pub kept: usize,
    /// Lanes of this rank.
    pub lanes: usize,
    /// Ranks that share each batch.
    pub ranks: usize,
    /// Threads of this rank.
    pub threads: usize,
    /// Examples of the validation set.
    pub validation: usize,
    /// Numbers that the optimizer keeps for each parameter besides the parameter.
    pub numbers: usize,
    /// Whether averaged weights are evaluated.
    pub averaged: bool,
    /// How convolutions are computed.
    pub convolutions: Convolutions,
}

impl Wave {
    /// Bytes of the lanes of a physical network, and of what their steps need, on the rank that needs most.
    pub fn bytes(&self, network: &Network) -> u64 {
        let floats = network.parameters() as u64 + 1;
        let layers = layers(network, None, true, self.convolutions);
        let (kept, lanes) = (self.kept as u64, self.lanes as u64);
        // Weights, averaged ones, and what the optimizer keeps of those that are kept; the last margin of each validation example, and their order.
        let mut lane = floats * (1 + u64::from(self.averaged)) + kept * self.numbers as u64 + 2 * self.validation as u64;
        if self.kept < network.parameters() {
            // The kept weights by themselves, their indices, and the plan: a kept weight is in it twice, with its place and an offset.
            let most = layers.iter().map(|plan| plan.layer.most_bytes()).sum::<u64>() / 4;
            lane += 2 * kept + (6 * kept).min(floats - 1 + most);
        }
        let leaves = Leaves::new(self.batch);
        let nodes = |rank: usize| leaves.nodes(leaves.slice(rank, self.ranks)).len() as u64;
        let most = (0..self.ranks).map(nodes).max().unwrap_or(0);
        // A rank receives its share of everybody's columns: as many floats, about, as it sends of its own nodes.
        let exchanged = if self.ranks > 1 { Exchanged::floats(most, lanes * (kept + 1)) } else { 0 };
        // Sums of a lane: one where lanes stay on a thread, else one for each part that threads compute, or of each of its nodes.
        let parts = if self.ranks == 1 && self.lanes >= self.threads {
            1
        } else {
            (self.threads.div_ceil(self.lanes.max(1)).min(leaves.count()) as u64).max(most).max(1)
        };
        let waiting = u64::from(leaves.count().next_power_of_two().ilog2());
        // The back end that scores connections has threads of its own.
        let threads = self.threads as u64 * (2 * worker_floats(network, &layers) + waiting * floats);
        4 * (lanes * (lane + parts * (kept + 1)) + exchanged + threads)
    }
}

/// Floats of a thread's buffers, about: the images of a pass, or of the leaves computed together and of a pass, with their gradients, weights in four
/// layouts, and Winograd's points.
fn worker_floats(network: &Network, layers: &[LayerPlan]) -> u64 {
    let floats: Vec<[usize; 2]> = layers.iter().map(|plan| plan.layer.floats()).collect();
    let weights = 2 * network.parameters() + 2 * floats.iter().map(|[weights, _]| weights).sum::<usize>();
    let points = floats.iter().map(|&[_, points]| points).max().unwrap_or(0);
    let pass = Leaves::LONGEST.min(images_a_pass(network));
    (images_at_once(layers, pass) * image_floats(network) + weights + points) as u64
}

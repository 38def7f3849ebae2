//! Plans: what a lane's mask leaves to be computed, found once for the lane, because a mask never changes.
//!
//! Which kernels a layer gets follows from the configuration and the mask alone (`layer/mod.rs`), so that a study's bits do not depend on where it
//! ran. A pruned layer leaves out products with removed weights. A pruned layer with a pool adds up the other products in the order of the unpruned
//! direct kernels: finite sums have the same bits, up to the sign of a zero. A pruned convolution without a pool has an order of its own, which
//! [`sparse`](super::sparse) states. An infinite or NaN activation no longer makes a sum NaN through a removed weight.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dense::LOGITS;
use super::layer::{CpuLayer, LayerPlan, layers};
use super::vector_unit::VectorUnit;
use crate::network::Network;
use crate::pruning::Mask;
use crate::settings::Convolutions;

/// Multiply-adds that an image is worth, in time, before any weight is: it is read, taken apart and pooled.
const FIXED_WORK: f64 = 0.7e6;

/// Plans that were made.
static PLANS: AtomicU64 = AtomicU64::new(0);

/// The kernels of each layer, and where its gradient stands.
///
/// The gradient of a leaf, and sums of them, hold nothing but what the kernels add to, in their order: zeroing and adding them costs as
/// little as they hold.
pub(super) struct Plan {
    /// Tells plans apart: no two have the same.
    pub id: u64,
    /// One entry a layer.
    pub layers: Vec<LayerPlan>,
    /// Floats of a leaf's gradient.
    pub length: usize,
    /// Where each kept parameter stands in a leaf's gradient; none for a dense mask, and where a layer is transposed ([`CpuLayer::is_transposed`]).
    pub places: Option<Vec<u32>>,
    /// Multiply-adds that a step on one example is worth, estimated.
    pub work: f64,
}

impl Plan {
    /// The plan for a mask; if not `pruned`, one whose kernels compute with removed weights as with any other.
    pub(super) fn new(network: &Network, mask: &Mask, pruned: bool, convolutions: Convolutions) -> Plan {
        let id = PLANS.fetch_add(1, Ordering::Relaxed);
        let mut plan = Plan { id, layers: Plan::layers(network, mask, pruned, convolutions), length: 0, places: None, work: FIXED_WORK };
        plan.lay_out(network, mask);
        plan.work += network.layers.iter().zip(&plan.layers).map(|(layer, plan)| plan.layer.work(layer.forward_flop() / 2.0)).sum::<f64>();
        plan
    }

    /// The layers of a plan, before they have places.
    pub(super) fn layers(network: &Network, mask: &Mask, pruned: bool, convolutions: Convolutions) -> Vec<LayerPlan> {
        let Mask::Sparse { kept, parameters } = mask else { return layers(network, None, pruned, convolutions) };
        let mut flags = vec![false; *parameters];
        kept.iter().for_each(|&index| flags[index as usize] = true);
        layers(network, Some(&flags), pruned, convolutions)
    }

    /// Gives every layer its place in a leaf's gradient, and finds those of the kept parameters.
    fn lay_out(&mut self, network: &Network, mask: &Mask) {
        let mut places = vec![0; network.parameters()];
        for (LayerPlan { place, layer }, [weights, bias]) in with_parameters(network, &mut self.layers) {
            place.weights = self.length;
            place.bias = self.length + layer.lay_out(&mut places[weights.clone()]);
            places[weights].iter_mut().for_each(|at| *at += place.weights as u32);
            places[bias.clone()].iter_mut().enumerate().for_each(|(i, at)| *at = (place.bias + i) as u32);
            self.length = place.bias + bias.len();
        }
        // A layer that is laid out transposed and whole has consecutive weights far apart: `places` stays none, and `collect` first transposes
        // the layer.
        let whole = self.layers.iter().any(|plan| plan.layer.is_transposed());
        if let (Mask::Sparse { kept, .. }, false) = (mask, whole) {
            self.places = Some(kept.iter().map(|&index| places[index as usize]).collect());
        }
    }

    /// The kept parameters' part of a leaf's gradient, or of a sum of some, in the parameters' order. `scratch`, and `to` where all are kept, have
    /// room for all parameters and [`LOGITS`] floats, which are undefined.
    pub(super) fn collect(&self, unit: VectorUnit, network: &Network, mask: &Mask, gradient: &[f32], scratch: &mut [f32], to: &mut [f32]) {
        match (&self.places, mask) {
            (Some(places), _) => to.iter_mut().zip(places).for_each(|(to, &place)| *to = gradient[place as usize]),
            (None, Mask::Dense(_)) => self.collect_all(unit, network, gradient, to),
            (None, Mask::Sparse { kept, .. }) => {
                self.collect_all(unit, network, gradient, scratch);
                to.iter_mut().zip(kept).for_each(|(to, &index)| *to = scratch[index as usize]);
            }
        }
    }

    fn collect_all(&self, unit: VectorUnit, network: &Network, gradient: &[f32], to: &mut [f32]) {
        assert!(to.len() >= network.parameters() + LOGITS);
        for (LayerPlan { place, layer }, [weights, bias]) in with_parameters(network, &self.layers) {
            layer.collect(unit, &gradient[place.weights..place.bias], &mut to[weights.start..weights.end + LOGITS]);
            to[bias.clone()].copy_from_slice(&gradient[place.bias..][..bias.len()]);
        }
    }

    /// Clears a leaf's gradient for the kernels, which add to it: zeros everywhere but in the weights of the layers whose kernels write first.
    pub(super) fn clear(&self, gradient: &mut [f32]) {
        let end = gradient.len();
        self.without(|layer| layer.writes_weights(), end).for_each(|range| gradient[range].fill(0.0));
    }

    /// The runs of a leaf's gradient, and of what stands behind it up to `end`, that are summed leaf by leaf where fully connected layers are
    /// computed over several leaves at once: all but the weights of fully connected layers that write them.
    pub(super) fn summed_by_leaf(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        self.without(|layer| layer.dense().is_some() && layer.writes_weights(), end)
    }

    /// The runs of a leaf's gradient, and of what stands behind it up to `end`, but for the weights of some layers.
    fn without(&self, left_out: impl Fn(&dyn CpuLayer) -> bool, end: usize) -> impl Iterator<Item = Range<usize>> {
        let left_out = self.layers.iter().filter(move |plan| left_out(&*plan.layer)).map(|plan| plan.place.weights..plan.place.bias);
        left_out.chain(std::iter::once(end..end)).scan(0, |from, written| Some(std::mem::replace(from, written.end)..written.start))
    }

    /// Whether a layer is computed in sub-maps ([`sparse`](super::sparse)).
    pub(super) fn is_sparse(&self, layer: Option<usize>) -> bool {
        layer.is_some_and(|layer| self.layers[layer].layer.is_in_submaps())
    }

    /// Whether any layer is.
    pub(super) fn has_sparse(&self) -> bool {
        self.layers.iter().any(|plan| plan.layer.is_in_submaps())
    }
}

/// The layers that have parameters, each with where its weights and its biases are among them.
fn with_parameters<L>(network: &Network, layers: impl IntoIterator<Item = L>) -> impl Iterator<Item = (L, [Range<usize>; 2])> {
    layers.into_iter().zip(&network.layers).filter_map(|(plan, layer)| Some((plan, layer.parameters()?)))
}

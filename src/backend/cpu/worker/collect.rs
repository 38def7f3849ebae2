//! From a leaf's gradient, laid out as kernels write it, to the kept parameters' in their order.

use super::super::convolution::transpose_matrix;
use super::super::dense::LOGITS;
use super::super::plan::{Path, Plan};
use super::super::pruned::Blocks;
use super::super::simd::{Kernel, Simd};
use super::super::vector_unit::VectorUnit;
use crate::network::{Layer, Network};
use crate::pruning::Mask;

/// The kept parameters' part of a leaf's gradient, or of a sum of some, in the parameters' order. `scratch`, and `to` where all are kept, have
/// room for all parameters and [`LOGITS`] floats, which are undefined.
pub(in super::super) fn collect(
    unit: VectorUnit,
    network: &Network,
    plan: &Plan,
    mask: &Mask,
    gradient: &[f32],
    scratch: &mut [f32],
    to: &mut [f32],
) {
    match (&plan.places, mask) {
        (Some(places), _) => to.iter_mut().zip(places).for_each(|(to, &place)| *to = gradient[place as usize]),
        (None, Mask::Dense(_)) => unit.run(Collect { network, plan, gradient, to }),
        (None, Mask::Sparse { kept, .. }) => {
            unit.run(Collect { network, plan, gradient, to: &mut *scratch });
            to.iter_mut().zip(kept).for_each(|(to, &index)| *to = scratch[index as usize]);
        }
    }
}

struct Collect<'a> {
    network: &'a Network,
    plan: &'a Plan,
    gradient: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Collect<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Collect { network, plan, gradient, to } = self;
        assert!(to.len() >= network.parameters() + LOGITS);
        for (layer, plan) in network.layers.iter().zip(&plan.layers) {
            let from = &gradient[plan.weights..plan.bias];
            let (bias, outputs) = match layer {
                Layer::Convolution(layer) => {
                    let (outputs, to) = (layer.output.channels, &mut to[layer.weights..][..layer.weight_count()]);
                    match plan.path.blocks() {
                        None => to.copy_from_slice(from),
                        Some(Blocks { places: Some(places), .. }) => {
                            places.iter().for_each(|&(place, weight)| to[weight as usize] = from[place as usize]);
                        }
                        Some(_) => transpose_matrix::<S>(from, outputs, layer.weight_count() / outputs, to),
                    }
                    (layer.bias, outputs)
                }
                Layer::Dense(layer) => {
                    let to = &mut to[layer.weights..][..layer.inputs * layer.outputs + LOGITS];
                    if let Path::Logits(rows) = &plan.path {
                        for (row, from) in from.chunks_exact(LOGITS).enumerate().take(rows.as_ref().map_or(layer.inputs, Vec::len)) {
                            let input = rows.as_ref().map_or(row, |rows| rows[row] as usize);
                            let to = &mut to[input * layer.outputs..][..LOGITS];
                            // What a row writes beyond its own, the next one writes again if it is computed, and the bias after the last.
                            for v in (0..LOGITS).step_by(S::WIDTH) {
                                // SAFETY: both slices have LOGITS floats, which are whole vectors.
                                unsafe { S::store(to.as_mut_ptr().add(v), S::load(from.as_ptr().add(v))) };
                            }
                        }
                    } else {
                        to[..from.len()].copy_from_slice(from);
                    }
                    (layer.bias, layer.outputs)
                }
                Layer::Pool(_) | Layer::GlobalMean(_) => continue,
            };
            to[bias..][..outputs].copy_from_slice(&gradient[plan.bias..][..outputs]);
        }
    }
}

//! Gradients at one set of weights over many training examples, by which connections are scored and gradients' noise is measured.

use std::ops::Range;

use cudarc::driver::CudaSlice;

use super::dataset::Selection;
use super::gradients::{LaneWeights, LeafGradients};
use super::launch::Parts;
use super::model::Model;
use super::partition::BatchPartition;
use super::pointer::{at, at_mut};
use crate::Result;
use crate::backend::{Interrupt, vote};
use crate::comm::{Exchanged, Rows, add, sum_of_blocks};
use crate::pruning::Mask;

/// Examples whose gradients are one sum while connections are scored: more are summed in order, so that memory never has to hold them all.
const SUMMED_EXAMPLES: usize = 8192;

/// Examples whose squared norms are one block, which one rank computes.
const SEPARATE_EXAMPLES: usize = 256;

/// Bytes of gradients that are kept apart at a time, where one takes no more.
const SEPARATE_BYTES: usize = 64 << 20;

/// The gradient and the loss, summed over the first `examples` training examples by all ranks of a group.
pub(super) fn gradient(
    model: &Model,
    leaf_gradients: &mut LeafGradients,
    interrupt: Option<Interrupt>,
    weights: &[f32],
    examples: usize,
) -> Result<(Vec<f32>, f32)> {
    let (gpu, group, parameters, pitch) = (model.gpu(), model.group, weights.len(), model.pitch());
    let weights = gpu.upload(weights)?;
    let identity = gpu.upload(&[0_i32])?;
    let weights = LaneWeights { lanes: 1, identity: &identity, weights: &weights };
    let mut total = vec![0.0_f32; parameters + 1];
    let mut exchanged = Exchanged::default();
    for start in (0..examples).step_by(SUMMED_EXAMPLES) {
        vote(interrupt, group)?;
        let partition = BatchPartition::new(SUMMED_EXAMPLES.min(examples - start), group.rank(), group.size());
        leaf_gradients.prepare(model, 1, &partition)?;
        // SAFETY: `prepare` was called for this one lane and this partition; the set has so many examples (`Task::check_gradient`).
        unsafe { leaf_gradients.compute(model, &weights, &partition, |first, _| Selection::Consecutive(start + first)) }?;
        let mut rows = Rows { columns: parameters + 1, floats: Vec::new() };
        for (first, parts) in partition.sent() {
            rows.floats.extend(node_sum(model, leaf_gradients, first, parts, pitch)?);
        }
        exchanged.sum(group, partition.leaves, &mut rows, add);
        add(&mut total, &rows.floats[..=parameters]);
    }
    let loss = total.pop().unwrap_or(0.0);
    Ok((total, loss))
}

/// The sum over some of one lane's leaves, from the one at place `first` on, with its loss behind it.
fn node_sum(model: &Model, leaf_gradients: &LeafGradients, first: usize, parts: Parts, pitch: usize) -> Result<Vec<f32>> {
    let (gpu, parameters) = (model.gpu(), model.network.parameters());
    let sum = gpu.uninitialised::<f32>(parameters + 1)?;
    let (leaves, to) = (at(leaf_gradients.buffer()?, 0), at_mut(&sum, 0));
    let (count, packed) = (parameters as i32, parameters as i32 + 1);
    // SAFETY: `gradient` has computed the leaves, which the parts are among, and `sum` has room for a gradient and its loss.
    unsafe { model.kernels.pack(1, count, first as i32, parts, 0, pitch as i32, None, None, count, packed, leaves, to) }?;
    gpu.download(&sum, 0, parameters + 1)
}

/// Σ ‖mask · ∇fᵢ‖² over the first `examples` training examples. The same bits on any number of ranks: each takes whole blocks of examples,
/// and the blocks' sums are added up in order.
pub(super) fn squared_norms(model: &Model, interrupt: Option<Interrupt>, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
    let group = model.group;
    let (rank, ranks) = (group.rank(), group.size());
    let blocks = examples.div_ceil(SEPARATE_EXAMPLES);
    let gpu = model.gpu();
    let (weights, identity) = (gpu.upload(weights)?, gpu.upload(&[0_i32])?);
    let weights = LaneWeights { lanes: 1, identity: &identity, weights: &weights };
    let kept = match mask {
        Mask::Dense(_) => None,
        Mask::Sparse { kept, .. } => Some(gpu.upload(&kept.iter().map(|&index| index as i32).collect::<Vec<_>>())?),
    };
    let at_once = (SEPARATE_BYTES / (size_of::<f32>() * model.pitch())).clamp(1, SEPARATE_EXAMPLES);
    let mut sums = Vec::new();
    for block in (rank..blocks).step_by(ranks) {
        if interrupt.is_some_and(|interrupt| interrupt()) {
            break;
        }
        let range = block * SEPARATE_EXAMPLES..((block + 1) * SEPARATE_EXAMPLES).min(examples);
        let mut squares = Vec::with_capacity(range.len());
        for first in range.clone().step_by(at_once) {
            let examples = first..range.end.min(first + at_once);
            squares.extend(self::squares(model, &weights, kept.as_ref(), mask.kept(), examples)?);
        }
        sums.push(squares.iter().sum::<f64>());
    }
    vote(interrupt, group)?;
    Ok(sum_of_blocks(group, sums, blocks))
}

/// ‖mask · ∇fᵢ‖² of each of some training examples, at one set of weights.
fn squares(model: &Model, weights: &LaneWeights, kept: Option<&CudaSlice<i32>>, count: usize, examples: Range<usize>) -> Result<Vec<f64>> {
    let (gpu, places) = (model.gpu(), examples.len());
    let partition = BatchPartition::single_examples(places);
    let mut leaf_gradients = LeafGradients::default();
    leaf_gradients.prepare(model, 1, &partition)?;
    let squares = gpu.uninitialised::<f64>(places)?;
    let kept = kept.map(|kept| at(kept, 0));
    // SAFETY: the set has these examples (`Task::check_gradient`), and each a place of its own in both buffers; kept indices are the network's
    // (`Task::check_mask`).
    unsafe {
        leaf_gradients.compute(model, weights, &partition, |first, _| Selection::Consecutive(examples.start + first))?;
        let gradients = at(leaf_gradients.buffer()?, 0);
        model.kernels.squares(places as i32, model.pitch() as i32, kept, count as i32, gradients, at_mut(&squares, 0))?;
    }
    gpu.download(&squares, 0, places)
}

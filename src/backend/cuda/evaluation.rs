//! The margins by which lanes classify examples.

use std::ops::Range;

use super::dataset::{DeviceExamples, Selection};
use super::lanes::CudaLanes;
use super::micro_batch::{MicroBatch, Output, micro_batches};
use super::model::Model;
use super::pointer::{at, at_mut};
use crate::Result;
use crate::backend::EVALUATION_BLOCK;
use crate::backend::margin::{self, WORDS};

/// Images of all lanes that keep a GPU busy: an evaluation looks at about so many before the host asks whether it is decided.
const BUSY_IMAGES: usize = 1 << 14;

/// How many examples of so many lanes each to evaluate at a time, by a group of so many ranks.
pub(super) fn stride(lanes: usize, ranks: usize) -> usize {
    BUSY_IMAGES.div_ceil(lanes * EVALUATION_BLOCK).max(ranks) * EVALUATION_BLOCK
}

/// The margins of the lanes numbered `which` on their lists of examples, `[lane][example]`, by all ranks of a group.
pub(super) fn margins(model: &Model, lanes: &CudaLanes, which: &[usize], set: &DeviceExamples, examples: &[u32]) -> Result<Vec<f32>> {
    let (rank, ranks) = (model.group.rank(), model.group.size());
    let length = examples.len() / which.len().max(1);
    let blocks = length.div_ceil(EVALUATION_BLOCK);
    // Each rank takes some blocks of every lane's list.
    let slice = |rank: usize| blocks * rank / ranks..blocks * (rank + 1) / ranks;
    let own = margins_of_blocks(model, lanes, which, set, examples, slice(rank))?;
    let most = blocks.div_ceil(ranks) * WORDS;
    let mut words = Vec::with_capacity(which.len() * most);
    for margins in own.chunks((slice(rank).len() * EVALUATION_BLOCK).max(1)) {
        let end = words.len() + most;
        margins.chunks(EVALUATION_BLOCK).for_each(|margins| margin::send(margins, &mut words));
        words.resize(end, 0);
    }
    words.resize(which.len() * most, 0);
    let all = model.group.all_gather_words(&words);
    let mut margins = vec![0.0; examples.len()];
    for (lane, margins) in margins.chunks_mut(length.max(1)).enumerate() {
        let mut blocks = margins.chunks_mut(EVALUATION_BLOCK);
        for rank in 0..ranks {
            let words = all[rank * words.len() + lane * most..].chunks(WORDS);
            blocks.by_ref().take(slice(rank).len()).zip(words).for_each(|(margins, words)| margin::receive(words, margins));
        }
    }
    Ok(margins)
}

/// Margins of some lanes on some blocks of their lists, `[lane][block][EVALUATION_BLOCK]`; behind a list's end they are undefined.
fn margins_of_blocks(
    model: &Model,
    lanes: &CudaLanes,
    which: &[usize],
    set: &DeviceExamples,
    examples: &[u32],
    blocks: Range<usize>,
) -> Result<Vec<f32>> {
    if blocks.is_empty() || which.is_empty() {
        return Ok(Vec::new());
    }
    let (gpu, count) = (model.gpu(), blocks.len());
    let length = examples.len() / which.len();
    let range = blocks.start * EVALUATION_BLOCK..(blocks.end * EVALUATION_BLOCK).min(length);
    let lists: Vec<u32> = examples.chunks_exact(length).flat_map(|list| &list[range.clone()]).copied().collect();
    let places: Vec<i32> = which.iter().map(|&lane| lane as i32).collect();
    let (lists, places) = (gpu.upload(&lists)?, gpu.upload(&places)?);
    let margins = gpu.uninitialised::<f32>(which.len() * count * EVALUATION_BLOCK)?;
    let ordered = model.blas.map(|_| lanes.copies(gpu, &model.kernels, lanes.evaluated(), &places, which.len())).transpose()?;
    let room = if model.in_pairs() { Some(gpu.uninitialised(lanes.evaluated().len())?) } else { None };
    // All lanes' weights are stored, also where few lanes are evaluated: each of these multiplies its own by thousands of images.
    // SAFETY: there is room for as many weights.
    let stored = unsafe { model.stored(lanes.evaluated(), room.as_ref()) }?;
    let mut workspace = model.cuda.workspace.borrow_mut();
    let images = (which.len() * count * EVALUATION_BLOCK).min(2 * BUSY_IMAGES);
    workspace.ensure(gpu, &model.network, images, EVALUATION_BLOCK, false)?;
    let space = workspace.buffers()?;
    // Not by the room that trainings have made: cuBLAS sums otherwise where its matrices have other sizes.
    for (lanes_here, groups) in micro_batches(which.len(), count, EVALUATION_BLOCK, space.slots.min(images)) {
        let first = groups.start * EVALUATION_BLOCK;
        let batch = MicroBatch {
            kernels: &model.kernels,
            space,
            network: &model.network,
            lanes: lanes_here.len(),
            images: (groups.end * EVALUATION_BLOCK).min(range.len()) - first,
            which: at(&places, lanes_here.start),
            weights: at(lanes.evaluated(), 0),
            stored,
            ordered: ordered.as_ref().map(|ordered| at(ordered, lanes_here.start * lanes.pitch)),
            pitch: lanes.pitch,
            length: EVALUATION_BLOCK,
            places: count,
            output: Output::Margins(at_mut(&margins, (lanes_here.start * count + groups.start) * EVALUATION_BLOCK)),
        };
        let selection = Selection::Listed { lists: at(&lists, lanes_here.start * range.len() + first), pitch: range.len() };
        // SAFETY: the lists are of examples that the set has and `places` of lanes that there are (`Task::check_evaluation`); the micro-batch is
        // one that the workspace has room for, and so has `margins`.
        unsafe { model.run(&batch, set, selection) }?;
    }
    gpu.download(&margins, 0, which.len() * count * EVALUATION_BLOCK)
}

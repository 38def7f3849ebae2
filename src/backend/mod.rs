//! Back ends: where weights live and arithmetic happens.
//!
//! A back end holds the data set and the state of many lanes, a lane being one trial with its own weights, mask, metaparameters and data
//! order. It advances lanes, evaluates them and scores connections; it may not know what a trial's outcome means, what a cell is, or
//! that files exist. [`mod@reference`] has no lanes: it computes any network in plain loops, for comparison and where no fast kernel fits.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device;
mod margin;
pub mod reference;
mod sharing;
mod state;
mod task;

pub use device::{Chosen, choose};
pub use margin::EVALUATION_BLOCK;
pub use sharing::Sharing;
pub use state::{LaneState, floats};

use std::ops::Range;
use std::sync::Arc;

use crate::comm::Communicator;
use crate::data::Dataset;
use crate::network::Network;
use crate::optimizer::Rule;
use crate::pruning::Mask;
use crate::{Error, Result};

/// Makes back ends: one for each set of ranks that share their batches.
pub trait Device {
    /// Back end that the device makes.
    type Backend<'a>: Backend
    where
        Self: 'a;

    /// A back end for the ranks of `group`, all of which must call it.
    fn backend<'a>(&'a self, network: &Arc<Network>, dataset: &'a Dataset, group: &'a dyn Communicator) -> Result<Self::Backend<'a>>;

    /// The back end as one that scores connections: its products are in 32 bits, also where `execution` asks for coarser ones in training, so that
    /// coarser products change no mask.
    fn scorer<'a>(&'a self, backend: Self::Backend<'a>) -> Result<Self::Backend<'a>> {
        Ok(backend)
    }

    /// The batch sizes from which on ranks share a batch of `network`.
    fn sharing(&self, network: &Network) -> Sharing;
}

/// A device with the data set on it, training lanes for a group of ranks that share every batch. All ranks of the group must make the
/// same calls; all get the same answers.
pub trait Backend {
    /// The state of a set of lanes, in the order they were made.
    type Lanes;

    /// The device as messages and results name it.
    fn describe(&self) -> String;

    /// From now on, where something takes long, `interrupt` is asked in the middle of it; once it says yes on any rank of the group, the operation
    /// ends on all of them with [`Error::Interrupted`], and lanes that were to be changed may have been. With `None` nobody is
    /// asked. All ranks must call it alike.
    fn listen(&mut self, interrupt: Option<Interrupt>);

    /// Lanes for which the device of this rank has room in memory of its own; none where it takes the host's. Every rank of the world must ask.
    fn lanes_that_fit(&self, world: &dyn Communicator) -> Option<u64>;

    /// The loss and its gradient at `weights`, both summed over the first `examples` training examples: `[parameters]`, loss.
    fn gradient(&mut self, weights: &[f32], examples: usize) -> Result<(Vec<f32>, f32)>;

    /// H g: the gradient g of the loss, and its Hessian H, at `weights`, both summed over the first `examples` training examples, of logits divided
    /// by `temperature`: `[parameters]`. Exact but for rounding, ReLU and the maximum having no curvature.
    fn hessian_gradient(&mut self, weights: &[f32], temperature: f32, examples: usize) -> Result<Vec<f32>>;

    /// Σ ‖mask · ∇fᵢ(weights)‖² over the first `examples` training examples, fᵢ being the loss of example i alone: what the gradient's variance
    /// follows from. In double precision and, on the CPU, in one order whatever the ranks and threads.
    fn squared_norms(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64>;

    /// Lanes ready for their first step.
    fn lanes(&mut self, starts: Vec<LaneStart>) -> Result<Self::Lanes>;

    /// The state of a lane, to go on from in another process.
    fn state(&self, lanes: &Self::Lanes, lane: usize) -> Result<LaneState>;

    /// Drops the lanes whose flag is false and closes the gaps.
    fn retain(&mut self, lanes: &mut Self::Lanes, keep: &[bool]) -> Result<()>;

    /// Takes the steps (from 0) of `steps` on batches of `batch` examples, and says how each lane did; a lane whose loss is not finite
    /// stops there.
    fn train(&mut self, lanes: &mut Self::Lanes, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>>;

    /// Examples of a set.
    fn examples(&self, set: EvaluationSet) -> usize;

    /// How many examples to ask for at a time, for that many lanes each, so that every processor of the group has work: a multiple of
    /// [`EVALUATION_BLOCK`].
    fn stride(&self, lanes: usize) -> usize;

    /// The margins by which the lanes numbered `which` classify `examples` of a set, `[lane][example]`: every lane has its own list, all of
    /// them as long. A margin is the logit of the example's label less the largest other one; its sign bit says whether the example is classified
    /// wrongly: of equal logits the first is the prediction. A margin that is no number is given as an infinite one.
    fn margins(&mut self, lanes: &Self::Lanes, which: &[usize], set: EvaluationSet, examples: &[u32]) -> Result<Vec<f32>>;

    /// Counts the wrongly classified examples of a whole set for the lanes numbered `which`.
    fn evaluate(&mut self, lanes: &Self::Lanes, which: &[usize], set: EvaluationSet) -> Result<Vec<u32>> {
        let all: Vec<u32> = (0..self.examples(set) as u32).collect();
        if all.is_empty() {
            return Ok(vec![0; which.len()]);
        }
        let margins = self.margins(lanes, which, set, &all.repeat(which.len()))?;
        let wrong = |margins: &[f32]| margins.iter().filter(|margin| margin.is_sign_negative()).count() as u32;
        Ok(margins.chunks_exact(all.len()).map(wrong).collect())
    }
}

/// Whether to give up what takes long; true once, it stays so.
pub type Interrupt = fn() -> bool;

/// Ends what was interrupted on any rank of the group, on all of them; where somebody listens, all must ask.
fn vote(interrupt: Option<Interrupt>, group: &dyn Communicator) -> Result<()> {
    let Some(interrupt) = interrupt else { return Ok(()) };
    if group.all_gather_words(&[interrupt().into()]).contains(&1) { Err(Error::Interrupted) } else { Ok(()) }
}

/// A lane's seed, weights, mask, optimizer and state at its start.
#[derive(Debug, Clone)]
pub struct LaneStart {
    /// The seed of its data order.
    pub seed: u64,
    /// Initial weights, flat as the network lays them out; masked ones are set to zero by the back end.
    pub weights: Vec<f32>,
    /// Which parameters train.
    pub mask: Mask,
    /// The optimizer.
    pub rule: Rule,
    /// Where the lane was interrupted; none for its first step.
    pub state: Option<LaneState>,
}

/// How a lane did in the steps it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Mean loss over the batch of the last step taken.
    pub loss: f32,
    /// The step (from 0) whose loss was NaN or infinite; the lane stopped there and did not take it.
    pub broken: Option<u32>,
}

/// Which examples to evaluate on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationSet {
    /// The held-out part of the training file.
    Validation,
    /// The test file.
    Test,
}

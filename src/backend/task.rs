//! A back end's task, and refusals of what belongs to another network or of no example: the kernels rely on these checks.

use std::ops::Range;
use std::sync::Arc;

use super::LaneStart;
use crate::network::Network;
use crate::pruning::Mask;
use crate::{Error, Result};

/// A network and the size of its training set: lanes made for one task cannot be used by a back end of another one.
#[derive(Clone)]
pub(super) struct Task {
    /// The device as messages name it.
    device: &'static str,
    pub network: Arc<Network>,
    /// Training examples.
    examples: usize,
}

impl Task {
    pub fn new(device: &'static str, network: Arc<Network>, examples: usize) -> Task {
        Task { device, network, examples }
    }

    /// Training examples, as samplers count them.
    pub fn examples(&self) -> u32 {
        self.examples as u32
    }

    fn refuse(&self, problem: String) -> Error {
        Error::Device { device: self.device.into(), problem }
    }

    /// Refuses lanes that were made for another task.
    pub fn check_lanes(&self, made_for: &Task) -> Result<()> {
        let is_own = Arc::ptr_eq(&self.network, &made_for.network) || self.network == made_for.network;
        if is_own && self.examples == made_for.examples {
            return Ok(());
        }
        let words = |task: &Task| format!("{} parameters and {} training examples", task.network.parameters(), task.examples);
        let (own, other) = (words(self), words(made_for));
        Err(self.refuse(format!(
            "expected lanes of this back end's own network ({own}), found lanes of {} ({other}); make the lanes by a back end of the network \
             that they train",
            if is_own { "another training set" } else { "another network" }
        )))
    }

    /// Refuses a lane whose weights, mask or state are not the network's.
    pub fn check_start(&self, start: &LaneStart) -> Result<()> {
        self.check_weights(&start.weights)?;
        self.check_mask(&start.mask)?;
        let Some(state) = &start.state else { return Ok(()) };
        self.check_weights(&state.weights)?;
        let (kept, numbers) = (start.mask.kept(), start.rule.optimizer.kept_numbers());
        let averages = usize::from(start.rule.average_decay.is_some());
        let beside = [
            ("velocity", &state.velocity, numbers > 0),
            ("squares", &state.squares, numbers > 1),
            ("average", &state.average, averages > 0),
        ];
        for (name, values, needed) in beside {
            // No value is kept beside no weight.
            if values.len() != self.network.parameters() && !(values.is_empty() && (!needed || kept == 0)) {
                return Err(self.refuse(format!(
                    "expected a lane's state with {} numbers of its {name}, one a parameter, found {}; go on from a state of the same network and \
                     optimizer",
                    self.network.parameters(),
                    values.len()
                )));
            }
        }
        Ok(())
    }

    /// Refuses weights of another network.
    pub fn check_weights(&self, weights: &[f32]) -> Result<()> {
        if weights.len() == self.network.parameters() {
            return Ok(());
        }
        Err(self.refuse(format!(
            "expected the {} weights of this back end's network, found {}; give it weights of its own network",
            self.network.parameters(),
            weights.len()
        )))
    }

    /// Refuses a mask of another network, and one whose indices do not ascend.
    pub fn check_mask(&self, mask: &Mask) -> Result<()> {
        if mask.is_of(self.network.parameters()) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "expected a mask of this back end's network, ascending indices of {} parameters, found a mask of {}, or indices that are none of them or \
             out of order; give it a mask of its own network",
            self.network.parameters(),
            mask.parameters()
        )))
    }

    /// Refuses to compute gradients of weights of another network, and of more training examples than there are.
    pub fn check_gradient(&self, weights: &[f32], examples: usize) -> Result<()> {
        self.check_weights(weights)?;
        if examples <= self.examples {
            return Ok(());
        }
        Err(self
            .refuse(format!("expected at most the {} training examples that there are, found {examples}; ask for fewer", self.examples)))
    }

    /// Refuses steps backwards, and batches of no example or of more than an `i32` counts.
    pub fn check_steps(&self, steps: &Range<u32>, batch: usize) -> Result<()> {
        if steps.start <= steps.end && batch > 0 && i32::try_from(batch).is_ok() {
            return Ok(());
        }
        Err(self.refuse(format!("expected steps forward on batches of 1 to {} examples, found {steps:?} and {batch}", i32::MAX)))
    }

    /// Refuses to evaluate lanes or examples that are not there, and lists that are not equally long: `which` of so many lanes on `examples`, of a
    /// set of so many.
    pub fn check_evaluation(&self, which: &[usize], lanes: usize, examples: &[u32], set: usize) -> Result<()> {
        let are_lanes = which.iter().all(|&lane| lane < lanes);
        let are_lists = if which.is_empty() { examples.is_empty() } else { examples.len().is_multiple_of(which.len()) };
        if are_lanes && are_lists && examples.iter().all(|&example| (example as usize) < set) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "expected an evaluation of some of {lanes} lanes, each on equally many of {set} examples, found {} lanes and {} examples, or numbers of \
             lanes or examples that there are none of",
            which.len(),
            examples.len()
        )))
    }
}

//! The record of a trial: how it ended, its evaluations, its measurements and its mask.

use serde::{Deserialize, Serialize};

use crate::optimizer::Metaparameters;
use crate::readable::called;

called! {
    /// How a trial ended, by names and numbers (from 0) of the result file. The public code of the paper writes −1 and −2 in place of the second and
    /// third.
    #[derive(Default, Hash, Serialize, Deserialize)]
    #[repr(u8)]
    Status {
        /// The goal was reached, at [`Trial::steps`].
        Complete = "complete",
        /// The step budget was spent.
        #[default]
        Incomplete = "incomplete",
        /// The loss became NaN or infinite.
        Infeasible = "infeasible",
        /// The cell was decided by another trial before this one ended; it had not reached the goal at any evaluation so far.
        Censored = "censored",
    }
}

/// One evaluation of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Optimizer steps taken before it.
    pub step: u32,
    /// Mean training loss over the batch of the last step.
    pub loss: f32,
    /// Validation examples classified wrongly among those seen.
    pub errors: u32,
    /// Validation examples seen: all of them, unless the evaluation stopped early; then `errors` is a lower bound.
    pub examples: u32,
}

impl CurvePoint {
    /// Share of the examples seen that were classified wrongly: the validation error, or a lower bound of it where the evaluation stopped early.
    pub fn error(&self) -> f64 {
        f64::from(self.errors) / f64::from(self.examples.max(1))
    }
}

/// One measurement of the loss surface where a trial is: of the masked network, over the training set or the part of it that is configured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Optimizer steps taken before it.
    pub step: u32,
    /// Mean loss f(w), in nats.
    pub loss: f64,
    /// Norm of its gradient, ‖∇f(w)‖.
    pub gradient_norm: f64,
    /// Mean over the examples of the squared norm of each one's gradient.
    pub squared_norms: f64,
    /// Local Lipschitz constant of the gradient along the next step: the largest ‖∇f(w + γd) − ∇f(w)‖ / ‖γd‖; none at a trial's end, which no
    /// step follows, and where the step moved nothing or to what is not finite.
    pub lipschitz: Option<f64>,
}

impl Measurement {
    /// β: the variance of the gradient of one example, tr Σ, exact over the examples measured on.
    pub fn variance(&self) -> f64 {
        self.squared_norms - self.gradient_norm * self.gradient_norm
    }

    /// The gradient noise scale tr Σ / ‖∇f‖², in examples (McCandlish et al., 2018, equation 2.9): the batch size at which the noise of a
    /// step's gradient is as large as the gradient.
    pub fn noise_scale(&self) -> f64 {
        self.variance() / (self.gradient_norm * self.gradient_norm)
    }
}

/// The mask of a trial's network at one sparsity, where it took seconds to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskRecord {
    /// Seed of the network: a trial's number, or a confirmation's fresh seed.
    pub seed: u64,
    /// The sparsity.
    pub sparsity: f64,
    /// The kept parameters, in ascending order.
    pub kept: Vec<u32>,
}

/// One training run of a cell with one set of metaparameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number in the cell, from 0 or the study's `search.first_trial` on; also the seed of initialisation, mask and data order, and the Sobol point's
    /// number.
    pub index: u32,
    /// Metaparameters that the search drew.
    pub metaparameters: Metaparameters,
    /// End of the trial.
    pub status: Status,
    /// Steps to the goal, where the trial is complete.
    pub steps: Option<u32>,
    /// Optimizer steps taken in all.
    pub steps_run: u32,
    /// Parameters left after pruning.
    pub parameters_kept: u32,
    /// 64-bit hash of the mask, equal on all ranks.
    pub mask_hash: u64,
    /// Layers of which no weight is left: they pass nothing on, and the network learns no more than how common the classes are.
    pub dead_layers: u32,
    /// Evaluations in order of steps.
    pub curve: Vec<CurvePoint>,
    /// Measurements of the loss surface in order of steps; empty where the study has none.
    pub measurements: Vec<Measurement>,
    /// The trial's share of the cell's wall-clock seconds, which are divided evenly among the trials training at the time.
    pub seconds: f64,
}

impl Trial {
    /// Notes that it reached the goal after `step` steps, where it has at most `threshold` errors there and had more before.
    pub fn reach(&mut self, step: u32, errors: u32, threshold: u32) {
        if errors <= threshold && self.steps.is_none() {
            (self.status, self.steps) = (Status::Complete, Some(step));
        }
    }

    /// A trial of which nothing is recorded yet: incomplete, after no step.
    pub fn new(index: u32, metaparameters: Metaparameters) -> Trial {
        Trial { index, metaparameters, ..Trial::default() }
    }

    /// The fewest errors of its evaluations that saw all `validation_examples`; the others have lower bounds.
    pub fn best_errors(&self, validation_examples: u32) -> Option<u32> {
        self.curve.iter().filter(|point| point.examples == validation_examples).map(|point| point.errors).min()
    }

    /// Whether two records of a trial are equal but for [`Self::times`]. A NaN equals a NaN: their text is the same, as is no other number's.
    pub fn agrees(&self, other: &Trial) -> bool {
        // Trials of different indices differ at once, without copies of their curves.
        self.index == other.index && {
            let other = Trial { seconds: self.seconds, ..other.clone() };
            *self == other || format!("{self:?}") == format!("{other:?}")
        }
    }

    /// The bits of the numbers that depend on how fast the machine was.
    pub fn times(&self) -> [u64; 1] {
        [self.seconds.to_bits()]
    }
}

//! The fits of a study, one a sparsity, and what they say of sparse against dense.

use super::fit::{Estimate, Fit};
use super::studies::StudyResults;
use crate::config::ScheduleName;
use crate::optimizer::Schedule;
use crate::records::{Cell, Trial};

/// What was fitted to one sparsity.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// The fit, or why there is none.
    pub fit: Result<Fit, String>,
    /// Batch sizes left out of it: measured, but no trial reached the goal.
    pub left_out: Vec<u32>,
    /// c1 over the dense network's, where both are fitted; the theory's prediction of the shift.
    pub c1_ratio: Option<Estimate>,
    /// c2 over the dense network's, where both are fitted.
    pub c2_ratio: Option<Estimate>,
    /// H* = Σ η_k² over the best trial's steps to the goal, over the dense network's: geometric mean over the batch sizes where both have one. None where the
    /// learning rate does not decay.
    pub squared_rates_ratio: Option<Estimate>,
    /// The shift as measured, where the dense network shares a batch size.
    pub shift: Option<Shift>,
}

/// K* of a sparse network over the dense one's, over the batch sizes where both have one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Geometric mean of the ratios.
    pub mean: f64,
    /// Smallest ratio.
    pub low: f64,
    /// Largest ratio.
    pub high: f64,
    /// Ratios.
    pub points: usize,
}

/// The fits of a study's sparsities, ascending.
pub fn fits(study: &StudyResults) -> Vec<Fitted> {
    let grid = study.grid();
    let fit = |sparsity: f64| Fit::new(&grid.measured(sparsity));
    let has_dense = grid.sparsities.contains(&0.0);
    let dense = has_dense.then(|| fit(0.0)).and_then(Result::ok);
    let fitted = |&sparsity: &f64| {
        let fit = if sparsity == 0.0 { dense.clone().map_or_else(|| fit(sparsity), Ok) } else { fit(sparsity) };
        let unreached = |&size: &u32| grid.cell(size, sparsity).is_some_and(|cell| cell.steps_to_result().is_none());
        let sparse = sparsity > 0.0;
        let ratios: Vec<f64> = if sparse { grid.ratios(sparsity, 0.0).into_iter().map(|point| point.1).collect() } else { Vec::new() };
        let over_dense =
            |ratio: fn(&Fit, &Fit) -> Estimate| dense.as_ref().filter(|_| sparse).and_then(|dense| Some(ratio(fit.as_ref().ok()?, dense)));
        let best = |size: u32, sparsity: f64| grid.cell(size, sparsity).and_then(Cell::best).map(|trial| squared_rates(study, trial));
        let rates = grid.batch_sizes.iter().filter(|_| sparse && decays(study));
        let rates: Vec<f64> = rates.filter_map(|&size| Some(best(size, sparsity)? / best(size, 0.0)?)).collect();
        Fitted {
            sparsity,
            left_out: grid.batch_sizes.iter().copied().filter(unreached).collect(),
            c1_ratio: over_dense(Fit::c1_over),
            c2_ratio: over_dense(Fit::c2_over),
            squared_rates_ratio: (!rates.is_empty()).then(|| Estimate::geometric(rates.into_iter())),
            shift: Shift::of(&ratios),
            fit,
        }
    };
    grid.sparsities.iter().map(fitted).collect()
}

/// Whether the study's learning rates decay.
pub(super) fn decays(study: &StudyResults) -> bool {
    schedule(study) != ScheduleName::Constant
}

fn schedule(study: &StudyResults) -> ScheduleName {
    study.results.workload.schedule.parse().unwrap_or_default()
}

/// H: the sum of the squared learning rates of the steps that a trial took (appendix A.2 of Lee et al., ICLR 2021).
pub(super) fn squared_rates(study: &StudyResults, trial: &Trial) -> f64 {
    let schedule = Schedule::new(schedule(study), &trial.metaparameters);
    (0..trial.steps_run).map(|step| schedule.at(step).powi(2)).sum()
}

impl Shift {
    /// The mean, with the smallest and the largest ratio for limits.
    pub fn estimate(self) -> Estimate {
        Estimate { value: self.mean, low: self.low, high: self.high }
    }

    fn of(ratios: &[f64]) -> Option<Shift> {
        let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), &ratio| (low.min(ratio), high.max(ratio)));
        let points = ratios.len();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / points as f64).exp();
        (points > 0).then_some(Shift { mean, low, high, points })
    }
}

//! What the measurements along training say of each cell, and of sparse against dense (appendix C of Lee et al., ICLR 2021).

use super::fit::Estimate;
use super::fits::{Fitted, Shift};
use super::studies::Study;
use crate::study::{Cell, CellKey, Measurement, Trial};

/// Means over the measured trials of a cell.
#[derive(Debug, Clone)]
pub struct Smooth {
    /// Which cell.
    pub key: CellKey,
    /// Trials measured.
    pub trials: usize,
    /// Measurements of all of them.
    pub measurements: usize,
    /// L: local Lipschitz constant of the gradient, mean over the training.
    pub lipschitz: f64,
    /// Loss at the first and at the last measurement, in nats.
    pub loss: [f64; 2],
    /// β: variance of the gradient of one example, mean over the training.
    pub variance: f64,
    /// Gradient noise scale in examples at the first measurement, the median over the training, and at the last.
    pub noise_scale: [f64; 3],
    /// The same of the dense network at that batch size, for the sparse ones.
    pub over_dense: Option<OverDense>,
    /// What the theory predicts beside it, as fitted to steps-to-result of the same workload.
    pub measured: Option<Measured>,
}

/// Sparse over dense, factor by factor: their product is the theory's c1 sparse / c1 dense.
#[derive(Debug, Clone, Copy)]
pub struct OverDense {
    /// Δ.
    pub decrease: f64,
    /// β.
    pub variance: f64,
    /// L.
    pub lipschitz: f64,
}

impl OverDense {
    /// c1 sparse / c1 dense = ΔβL sparse / ΔβL dense (proposition 4.1, with equal ε and μ).
    pub fn c1(&self) -> f64 {
        self.decrease * self.variance * self.lipschitz
    }
}

/// What steps-to-result say.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// c1 over the dense network's.
    pub c1_ratio: Option<Estimate>,
    /// K* over the dense network's.
    pub shift: Option<Shift>,
    /// Critical batch size of the fit.
    pub critical: Option<Estimate>,
}

impl Smooth {
    /// Δ = 2 (f(w₁) − f∞), the lower bound of the loss taken to be the last loss measured.
    pub fn decrease(&self) -> f64 {
        2.0 * (self.loss[0] - self.loss[1])
    }

    fn new(cell: &Cell) -> Option<Smooth> {
        let trials: Vec<&Trial> = cell.trials.iter().filter(|trial| !trial.measurements.is_empty()).collect();
        let of_each = |value: &dyn Fn(&[Measurement]) -> f64| mean(trials.iter().map(|trial| value(&trial.measurements)));
        let (first, last) = (|all: &[Measurement]| all.first().copied(), |all: &[Measurement]| all.last().copied());
        let or_nan = |found: Option<f64>| found.unwrap_or(f64::NAN);
        (!trials.is_empty()).then(|| Smooth {
            key: cell.key,
            trials: trials.len(),
            measurements: trials.iter().map(|trial| trial.measurements.len()).sum(),
            lipschitz: of_each(&|all| mean(all.iter().filter_map(|found| found.lipschitz))),
            loss: [of_each(&|all| or_nan(first(all).map(|found| found.loss))), of_each(&|all| or_nan(last(all).map(|found| found.loss)))],
            variance: of_each(&|all| mean(all.iter().map(Measurement::variance))),
            noise_scale: [
                of_each(&|all| or_nan(first(all).map(|found| found.noise_scale()))),
                of_each(&|all| median(all.iter().map(Measurement::noise_scale).collect())),
                of_each(&|all| or_nan(last(all).map(|found| found.noise_scale()))),
            ],
            over_dense: None,
            measured: None,
        })
    }
}

/// The measured cells of a study, in its order. `fits` are those of the study itself and of others of the same workload but for its goal; of
/// several the first that has a sparsity speaks.
pub fn smoothness(study: &Study, fits: &[&Fitted]) -> Vec<Smooth> {
    let all: Vec<Smooth> = study.results.cells.iter().filter_map(Smooth::new).collect();
    let dense = |key: CellKey| all.iter().find(|other| other.key.batch_size == key.batch_size && other.key.sparsity == 0.0);
    let with_ratios = |smooth: &Smooth| {
        let key = smooth.key;
        let over_dense = dense(key).filter(|_| key.sparsity > 0.0).map(|dense| OverDense {
            decrease: smooth.decrease() / dense.decrease(),
            variance: smooth.variance / dense.variance,
            lipschitz: smooth.lipschitz / dense.lipschitz,
        });
        let fitted = fits.iter().find(|fitted| fitted.sparsity == key.sparsity && (fitted.fit.is_ok() || fitted.shift.is_some()));
        let measured = fitted.map(|fitted| Measured {
            c1_ratio: fitted.c1_ratio,
            shift: fitted.shift,
            critical: fitted.fit.as_ref().ok().map(|fit| fit.critical),
        });
        Smooth { over_dense, measured, ..smooth.clone() }
    };
    all.iter().map(with_ratios).collect()
}

/// Whether one study's steps-to-result may stand beside the other's smoothness: everything but the goal and the metaparameters is the same.
pub fn comparable(study: &Study, other: &Study) -> bool {
    let of = |study: &Study| {
        let workload = &study.results.workload;
        let pruning = study.configuration.as_ref().ok().map(|study| study.pruning.clone());
        (workload.dataset.clone(), workload.network.clone(), workload.optimizer.clone(), workload.schedule.clone(), pruning)
    };
    of(study) == of(other)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

//! What the measurements along training say of each cell, and of sparse against dense (appendix C of Lee et al., ICLR 2021).

use super::fit::Estimate;
use super::fits::{Fitted, Shift};
use super::studies::Study;
use crate::study::{Cell, CellKey, Measurement, Trial};

/// How one number is made of a trial's many. The paper takes the mean; the first measurements, of untrained weights, weigh the more in it the shorter the
/// training, and next to nothing in the median.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Mean over the measurements.
    Mean,
    /// The measurement in the middle, by size; of an even number the mean of both.
    Median,
}

impl Along {
    /// Both, the paper's first.
    pub const ALL: [Along; 2] = [Along::Mean, Along::Median];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Along::Mean => "mean",
            Along::Median => "median",
        }
    }

    fn of(self, values: impl Iterator<Item = f64>) -> f64 {
        let mut values: Vec<f64> = values.collect();
        match self {
            Along::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Along::Median => {
                values.sort_unstable_by(f64::total_cmp);
                let middle = [values.len().saturating_sub(1) / 2, values.len() / 2];
                middle.iter().map(|&place| values.get(place).copied().unwrap_or(f64::NAN)).sum::<f64>() / 2.0
            }
        }
    }
}

/// What was measured of a cell: geometric means over its measured trials.
#[derive(Debug, Clone)]
pub struct Smooth {
    /// Which cell.
    pub key: CellKey,
    /// Trials measured.
    pub trials: usize,
    /// Measurements of all of them.
    pub measurements: usize,
    /// Loss at the first and at the last measurement, in nats.
    pub loss: [Estimate; 2],
    /// Mean and median along the training.
    pub along: [Surface<Estimate>; 2],
    /// Gradient noise scale in examples at the first measurement, the median along the training, and at the last.
    pub noise_scale: [Estimate; 3],
    /// Sparse over dense at that batch size, of means and of medians, each trial over the dense one of its seed.
    pub over_dense: Option<[Surface<Estimate>; 2]>,
    /// What the theory predicts beside it, as fitted to steps-to-result of the same workload.
    pub measured: Option<Measured>,
}

/// The three quantities whose product the theory's c1 is proportional to (proposition 4.1, with equal ε and μ); or their ratios sparse over dense, whose
/// product is its c1 sparse / c1 dense.
#[derive(Debug, Clone, Copy)]
pub struct Surface<T> {
    /// Δ = 2 (f(w₁) − f∞) in nats, the lower bound of the loss taken to be the last loss measured.
    pub decrease: T,
    /// β: variance of the gradient of one example.
    pub variance: T,
    /// L: local Lipschitz constant of the gradient.
    pub lipschitz: T,
    /// Δ β L.
    pub c1: T,
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

impl Surface<f64> {
    fn new(trial: &Trial, along: Along) -> Self {
        let all = &trial.measurements;
        let loss = |found: Option<&Measurement>| found.map_or(f64::NAN, |found| found.loss);
        let decrease = 2.0 * (loss(all.first()) - loss(all.last()));
        let variance = along.of(all.iter().map(Measurement::variance));
        let lipschitz = along.of(all.iter().filter_map(|found| found.lipschitz));
        Surface { decrease, variance, lipschitz, c1: decrease * variance * lipschitz }
    }

    fn over(self, dense: Self) -> Self {
        Surface {
            decrease: self.decrease / dense.decrease,
            variance: self.variance / dense.variance,
            lipschitz: self.lipschitz / dense.lipschitz,
            c1: self.c1 / dense.c1,
        }
    }
}

impl Surface<Estimate> {
    fn of(trials: &[Surface<f64>]) -> Self {
        let estimate = |value: fn(&Surface<f64>) -> f64| Estimate::geometric(trials.iter().map(value));
        Surface {
            decrease: estimate(|surface| surface.decrease),
            variance: estimate(|surface| surface.variance),
            lipschitz: estimate(|surface| surface.lipschitz),
            c1: estimate(|surface| surface.c1),
        }
    }
}

/// The trials of a cell that were measured.
fn measured(cell: &Cell) -> impl Iterator<Item = &Trial> {
    cell.trials.iter().filter(|trial| !trial.measurements.is_empty())
}

impl Smooth {
    fn new(cell: &Cell, dense: Option<&Cell>, sampling: f64) -> Option<Smooth> {
        let trials: Vec<&Trial> = measured(cell).collect();
        let of_each = |value: &dyn Fn(&[Measurement]) -> f64| Estimate::geometric(trials.iter().map(|trial| value(&trial.measurements)));
        let or_nan = |found: Option<&Measurement>, value: &dyn Fn(&Measurement) -> f64| found.map_or(f64::NAN, value);
        let noise = |found: &Measurement| noise_scale(found, sampling);
        let pairs: Vec<(&Trial, &Trial)> = dense
            .into_iter()
            .flat_map(|dense| trials.iter().filter_map(|trial| Some((*trial, measured(dense).find(|other| other.index == trial.index)?))))
            .collect();
        let over_dense = |along: Along| {
            let ratios = pairs.iter().map(|(sparse, dense)| Surface::new(sparse, along).over(Surface::new(dense, along)));
            Surface::of(&ratios.collect::<Vec<_>>())
        };
        (!trials.is_empty()).then(|| Smooth {
            key: cell.key,
            trials: trials.len(),
            measurements: trials.iter().map(|trial| trial.measurements.len()).sum(),
            loss: [of_each(&|all| or_nan(all.first(), &|found| found.loss)), of_each(&|all| or_nan(all.last(), &|found| found.loss))],
            along: Along::ALL.map(|along| Surface::of(&trials.iter().map(|trial| Surface::new(trial, along)).collect::<Vec<_>>())),
            noise_scale: [
                of_each(&|all| or_nan(all.first(), &noise)),
                of_each(&|all| Along::Median.of(all.iter().map(noise))),
                of_each(&|all| or_nan(all.last(), &noise)),
            ],
            over_dense: (!pairs.is_empty()).then(|| Along::ALL.map(over_dense)),
            measured: None,
        })
    }
}

/// The measured cells of a study, in its order. `fits` are those of the study itself and of others of the same workload but for its goal; of
/// several the first that has a sparsity speaks.
pub fn smoothness(study: &Study, fits: &[&Fitted]) -> Vec<Smooth> {
    let cells = &study.results.cells;
    let with_fit = |cell: &Cell| {
        let key = cell.key;
        let dense = cells.iter().find(|other| other.key.batch_size == key.batch_size && other.key.sparsity == 0.0 && key.sparsity > 0.0);
        let fitted = fits.iter().find(|fitted| fitted.sparsity == key.sparsity && (fitted.fit.is_ok() || fitted.shift.is_some()));
        let measured = fitted.map(|fitted| Measured {
            c1_ratio: fitted.c1_ratio,
            shift: fitted.shift,
            critical: fitted.fit.as_ref().ok().map(|fit| fit.critical),
        });
        Some(Smooth { measured, ..Smooth::new(cell, dense, study.sampling())? })
    };
    cells.iter().filter_map(with_fit).collect()
}

/// The gradient noise scale of the whole training set in examples. A gradient over a part of it is longer than the whole one's by β · `sampling` of noise
/// (its square, on average; McCandlish et al., 2018, appendix A.1), which is taken off; infinite where noise is all there is.
pub fn noise_scale(found: &Measurement, sampling: f64) -> f64 {
    let square = found.gradient_norm * found.gradient_norm - found.variance() * sampling;
    if square > 0.0 { found.variance() / square } else { f64::INFINITY }
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

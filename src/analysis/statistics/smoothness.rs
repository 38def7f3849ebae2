//! Measurements along training, of each cell and as ratios of sparse over dense (section 4 and appendices A and C of Lee et al., ICLR 2021).
//!
//! The theory predicts K* = c1/B + c2. With a constant learning rate c1 is proportional to Δ·β·L; with a decaying one c̃1 is proportional to L·H*·β
//! and c̃2 to Δ. With ε, the mean of the gradient's squared norm, measured too, c1 = Δ·L·β/ε² and c2 = Δ/(η·ε). H* is the sum of the squared rates of
//! the steps to the goal (appendix A.2).

use super::fit::Estimate;
use super::fits::{Fitted, decays, effective_rate, learning_rate, squared_rates};
use crate::analysis::studies::StudyResults;
use crate::readable::called;
use crate::records::{Cell, CellKey, Measurement, Trial};

called! {
    /// How a trial's measurements become one number. The paper takes the mean of L and does not say what it takes of β. A few large values decide a
    /// mean, but not a median.
    Along {
        /// Mean over the measurements.
        Mean = "mean",
        /// The measurement in the middle, by size; of an even number the mean of both.
        Median = "median",
    }
}

impl Along {
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

/// Measurements of a cell: geometric means over its measured trials.
#[derive(Debug, Clone)]
pub struct Smooth {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Trials measured.
    pub trials: usize,
    /// Measurements of all of them.
    pub measurements: usize,
    /// Numbers of the cell, with means and with medians along the training.
    pub along: [Surface<Estimate>; 2],
    /// Sparse over dense at that batch size, with means and with medians, each trial over the dense one of its seed.
    pub over_dense: Option<[Surface<Estimate>; 2]>,
    /// Gradient noise scale in examples at the start, the median along the training, and at the last measurement.
    pub noise_scale: [Estimate; 3],
    /// The fit to steps-to-result of the same workload at that sparsity, to compare predictions with.
    pub fitted: Option<Fitted>,
}

/// Declares the numbers that the theory uses by their meanings and names.
macro_rules! surface {
    ($(#[doc = $meaning:literal] $number:ident,)+) => {
        /// The numbers that the theory uses: those of a trial, those of a cell, or ratios sparse over dense. What was not measured is NaN.
        #[derive(Debug, Clone, Copy)]
        pub struct Surface<T> { $(#[doc = $meaning] pub $number: T,)+ }

        impl<T: Copy> Surface<T> {
            /// Combines surfaces number by number.
            fn combine<U>(surfaces: &[Surface<T>], combine: impl Fn(&mut dyn Iterator<Item = T>) -> U) -> Surface<U> {
                Surface { $($number: combine(&mut surfaces.iter().map(|surface| surface.$number)),)+ }
            }
        }
    };
}

surface! {
    /// f(w₁): loss at untrained weights, in nats; measured where `smoothness.start` asks for it.
    start_loss,
    /// Loss at the last measurement, taken for the lower bound f∞.
    last_loss,
    /// Δ = 2 (f(w₁) − f∞) in nats.
    decrease,
    /// β, the variance of the gradient of one example, at untrained weights.
    start_variance,
    /// β along the training.
    variance,
    /// β at the last measurement.
    last_variance,
    /// L: local Lipschitz constant of the gradient along the training.
    lipschitz,
    /// H: the sum of the squared learning rates of the trial's steps.
    squared_rates,
    /// ε: the squared norm of the whole training set's gradient along the training, by proposition 4.1.
    gradient,
    /// η/(1 − m): the effective learning rate; not a number where it decays.
    rate,
    /// c1 with ε of its own, by section 4.1: Δ·L·β/ε². The paper takes ε to be the same at every sparsity.
    c1_by_gradient,
    /// c2 by section 4.1: Δ/(η·ε).
    c2_by_gradient,
    /// The ratio of both: the critical batch size by proposition 4.1: L·β·η/ε.
    critical_by_gradient,
    /// The product that c1 is proportional to: Δ·β·L, or L·H·β where the learning rate decays, with β along the training.
    c1,
}

impl Surface<f64> {
    /// The numbers of one trial, by its measurements.
    fn new(study: &StudyResults, trial: &Trial, along: Along) -> Self {
        let at = |found: Option<&Measurement>, value: fn(&Measurement) -> f64| found.map_or(f64::NAN, value);
        let (start, last) = (start(trial), trial.measurements.last());
        let [start_loss, last_loss] = [start, last].map(|found| at(found, |found| found.loss));
        let decrease = 2.0 * (start_loss - last_loss);
        let variance = along.of(between(trial).map(Measurement::variance));
        let lipschitz = along.of(between(trial).filter_map(|found| found.lipschitz));
        let squared_rates = squared_rates(study, trial);
        let gradient = along.of(between(trial).map(|found| squared_gradient(found, study.sampling())));
        let effective = || effective_rate(trial).or_else(|| learning_rate(trial));
        let rate = if decays(study) { f64::NAN } else { effective().unwrap_or(f64::NAN) };
        let [of_c1, of_c2] = [decrease * lipschitz * variance / gradient.powi(2), decrease / rate / gradient];
        Surface {
            start_loss,
            last_loss,
            decrease,
            start_variance: at(start, Measurement::variance),
            variance,
            last_variance: at(last, Measurement::variance),
            lipschitz,
            squared_rates,
            gradient,
            rate,
            c1_by_gradient: if decays(study) { f64::NAN } else { of_c1 },
            c2_by_gradient: of_c2,
            critical_by_gradient: lipschitz * variance * rate / gradient,
            c1: lipschitz * variance * if decays(study) { squared_rates } else { decrease },
        }
    }
}

impl Surface<Estimate> {
    fn of(trials: &[Surface<f64>]) -> Self {
        Surface::combine(trials, |values| Estimate::geometric(values))
    }
}

/// A cell's surface with means along the training, or with medians: which of the two, the surface, and its ratio to the dense network's.
pub type Measured<'a> = (&'a Smooth, Along, Surface<Estimate>, Option<Surface<Estimate>>);

impl Smooth {
    /// The surface with means along the training, and with medians.
    pub fn both(&self) -> [Measured<'_>; 2] {
        let over = |along: Along| self.over_dense.map(|both| both[along as usize]);
        Along::ALL.map(|along| (self, along, self.along[along as usize], over(along)))
    }

    /// c1 sparse over dense, by the theory; with H* of the search where the learning rate decays and there is one.
    pub fn predicted_c1(&self, over: &Surface<Estimate>) -> Estimate {
        match self.fitted.as_ref().and_then(|fitted| fitted.squared_rates_ratio) {
            Some(searched) => over.lipschitz.times(over.variance).times(searched),
            None => over.c1,
        }
    }
}

/// The measurement at untrained weights.
fn start(trial: &Trial) -> Option<&Measurement> {
    trial.measurements.first().filter(|found| found.step == 0)
}

/// The measurements along a trial's training: neither at untrained weights nor at the trial's end.
fn between(trial: &Trial) -> impl Iterator<Item = &Measurement> {
    trial.measurements.iter().filter(|found| found.step > 0 && found.step < trial.steps_run)
}

/// The trials of a cell that were measured.
fn measured(cell: &Cell) -> impl Iterator<Item = &Trial> {
    cell.trials.iter().filter(|trial| !trial.measurements.is_empty())
}

impl Smooth {
    fn new(study: &StudyResults, cell: &Cell, dense: Option<&Cell>) -> Option<Smooth> {
        let trials: Vec<&Trial> = measured(cell).collect();
        let sampling = study.sampling();
        let noise = |found: Option<&Measurement>| found.map_or(f64::NAN, |found| noise_scale(found, sampling));
        let of_each = |value: &dyn Fn(&Trial) -> f64| Estimate::geometric(trials.iter().map(|trial| value(trial)));
        let pairs: Vec<(&Trial, &Trial)> = dense
            .into_iter()
            .flat_map(|dense| trials.iter().filter_map(|trial| Some((*trial, measured(dense).find(|other| other.index == trial.index)?))))
            .collect();
        let over_dense = |along: Along| {
            let ratio = |(sparse, dense): &(&Trial, &Trial)| {
                let both = [sparse, dense].map(|trial| Surface::new(study, trial, along));
                Surface::combine(&both, |pair| pair.next().unwrap_or(f64::NAN) / pair.next().unwrap_or(f64::NAN))
            };
            Surface::of(&pairs.iter().map(ratio).collect::<Vec<_>>())
        };
        (!trials.is_empty()).then(|| Smooth {
            key: cell.key,
            trials: trials.len(),
            measurements: trials.iter().map(|trial| trial.measurements.len()).sum(),
            along: Along::ALL.map(|along| Surface::of(&trials.iter().map(|trial| Surface::new(study, trial, along)).collect::<Vec<_>>())),
            noise_scale: [
                of_each(&|trial| noise(start(trial))),
                of_each(&|trial| Along::Median.of(between(trial).map(|found| noise_scale(found, sampling)))),
                of_each(&|trial| noise(trial.measurements.last())),
            ],
            over_dense: (!pairs.is_empty()).then(|| Along::ALL.map(over_dense)),
            fitted: None,
        })
    }
}

/// Measurements of each cell of a study that has them, in the study's order. `fits` are the study's own and those of other studies of the same
/// workload with any goal; for each sparsity the first one with a fit is taken, or else the first with a shift.
pub fn smoothness(study: &StudyResults, fits: &[&Fitted]) -> Vec<Smooth> {
    let cells = &study.results.cells;
    let with_fit = |cell: &Cell| {
        let key = cell.key;
        let dense = cells.iter().find(|other| other.key.batch_size == key.batch_size && other.key.sparsity == 0.0 && key.sparsity > 0.0);
        let of_sparsity = || fits.iter().filter(|fitted| fitted.sparsity == key.sparsity);
        let fitted = of_sparsity().find(|fitted| fitted.fit.is_ok()).or_else(|| of_sparsity().find(|fitted| fitted.shift.is_some()));
        Some(Smooth { fitted: fitted.map(|&fitted| fitted.clone()), ..Smooth::new(study, cell, dense)? })
    };
    cells.iter().filter_map(with_fit).collect()
}

/// The gradient noise scale of the whole training set in examples. A gradient over a part of it is longer than the whole one's by β · `sampling` of
/// noise (its square, on average; McCandlish et al., 2018, appendix A.1), which is taken off; infinite where noise is all there is.
pub fn noise_scale(found: &Measurement, sampling: f64) -> f64 {
    let squared = squared_gradient(found, sampling);
    if squared > 0.0 { found.variance() / squared } else { f64::INFINITY }
}

/// The squared norm of the whole training set's gradient, without the noise of measuring on a part; 0 where noise is all there is.
fn squared_gradient(found: &Measurement, sampling: f64) -> f64 {
    (found.gradient_norm * found.gradient_norm - found.variance() * sampling).max(0.0)
}

/// Whether one study's steps-to-result may stand beside the other's smoothness: everything but the goal and the metaparameters is the same.
pub fn comparable(study: &StudyResults, other: &StudyResults) -> bool {
    let of = |study: &StudyResults| {
        let workload = &study.results.workload;
        let pruning = study.configuration.as_ref().ok().map(|study| study.pruning.clone());
        (workload.dataset.clone(), workload.network.clone(), workload.optimizer.clone(), workload.schedule.clone(), pruning)
    };
    of(study) == of(other)
}

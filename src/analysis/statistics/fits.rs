//! The fits of a study, one a sparsity, and what they say of sparse against dense.

use super::estimate::{ends, uniform};
use super::exponent::exponent;
use super::fewer::FewerTrials;
use super::fit::{Estimate, Fit, LINEAR_EXPONENTS, Point, Regime, slope_of_known};
use crate::analysis::studies::{Grid, StudyResults};
use crate::optimizer::{Metaparameter, Schedule, ScheduleName};
use crate::readable::count;
use crate::records::{Cell, Trial};

/// The cells of a sparsity that have a K*, as points of a fit.
pub fn measured_points(grid: &Grid, sparsity: f64) -> Vec<Point> {
    Point::all(&grid.measured(sparsity), grid.every)
}

/// Points and fits of one sparsity.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// The steps that were fitted, by batch size.
    pub points: Vec<Point>,
    /// The fit, or why there is none.
    pub fit: Result<Fit, String>,
    /// The exponent a of c1/B^a + c2 (`exponent.rs`); none of fewer than four batch sizes.
    pub exponent: Option<Estimate>,
    /// Batch sizes left out of the fit: measured, but no trial reached the goal.
    pub left_out: Vec<u32>,
    /// c1 over the dense network's, where both are fitted; the theory's prediction of the shift.
    pub c1_ratio: Option<Estimate>,
    /// c2 over the dense network's, where both are fitted.
    pub c2_ratio: Option<Estimate>,
    /// The critical batch size over the dense network's, where both are fitted.
    pub critical_ratio: Option<Estimate>,
    /// H* = Σ η_k² over the best trial's steps to the goal, over the dense network's: geometric mean over the batch sizes where both have one. None
    /// where the learning rate does not decay.
    pub squared_rates_ratio: Option<Estimate>,
    /// How many trials a cell would have been enough for the critical batch size; none where that is not known.
    pub enough_trials: Option<EnoughTrials>,
    /// The shift as measured, where the dense network shares a batch size.
    pub shift: Option<Shift>,
}

/// How many trials a cell are enough for the critical batch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnoughTrials {
    /// The fewest trials, of powers of two, with which 95 of 100 random choices give a critical batch size [`NEAR`] that of all trials.
    These(u32),
    /// More than so many, the largest power of two up to half of those that were run: with more trials it may still change.
    MoreThan(u32),
}

/// A critical batch size that differs by this part at most is called near.
pub const NEAR: f64 = 0.2;

/// Random choices of trials of which a fit is made for each number of trials.
const CHOICES: u64 = 200;

/// Choices that must come near.
const NEAR_CHOICES: u64 = CHOICES * 95 / 100;

/// K* of a sparse network over the dense one's, over the batch sizes where both have one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Geometric mean of the ratios, with the smallest and the largest one for limits.
    pub ratio: Estimate,
    /// How many ratios there are.
    pub points: usize,
}

impl Fitted {
    /// The critical batch size, where there is a fit.
    pub fn critical(&self) -> Option<Estimate> {
        Some(self.fit.as_ref().ok()?.critical)
    }

    /// A fit with nothing beside it.
    pub(super) fn new(sparsity: f64, points: Vec<Point>, fit: Result<Fit, String>) -> Fitted {
        Fitted {
            sparsity,
            exponent: exponent(&points),
            points,
            fit,
            left_out: Vec::new(),
            c1_ratio: None,
            c2_ratio: None,
            critical_ratio: None,
            squared_rates_ratio: None,
            enough_trials: None,
            shift: None,
        }
    }

    /// Points of this curve beside those of the other at the same batch sizes.
    fn beside<'a>(&'a self, other: &'a Fitted) -> impl Iterator<Item = (&'a Point, &'a Point)> {
        self.points.iter().filter_map(|point| Some((point, other.points.iter().find(|other| other.batch_size == point.batch_size)?)))
    }

    /// (batch size, its steps over those of the other) where both have some.
    pub fn ratios(&self, other: &Fitted) -> Vec<(f64, f64)> {
        self.beside(other).map(|(own, other)| (own.batch_size, own.steps / other.steps)).collect()
    }

    /// The exponent e of the ratio of steps, this curve over the other, ∝ B^e, by a line through the logarithms of the measured ratios, each in the
    /// middle of the interval that steps are known to. No law of the steps has a part in it. None for fewer than three ratios.
    pub fn trend(&self, other: &Fitted) -> Option<Estimate> {
        let ratio =
            |(own, other): (&Point, &Point)| ((own.batch_size, (own.middle() - other.middle()).exp()), own.variance() + other.variance());
        let (ratios, variances): (Vec<(f64, f64)>, Vec<f64>) = self.beside(other).map(ratio).unzip();
        slope_of_known(&ratios, &variances)
    }

    /// The regime at a batch size, where the intervals decide it. The law c1/B + c2 makes steps fall in proportion to small batch sizes whatever they
    /// do, so scaling is linear only where the interval of the exponent says so too.
    pub fn regime(&self, batch_size: u32) -> Option<Regime> {
        let regime = self.fit.as_ref().ok()?.regime(f64::from(batch_size));
        regime.filter(|&regime| regime != Regime::Linear || self.is_linear())
    }

    /// Whether the interval of the exponent lies within [`LINEAR_EXPONENTS`].
    pub fn is_linear(&self) -> bool {
        let (least, most) = LINEAR_EXPONENTS;
        self.exponent.is_some_and(|exponent| least <= exponent.low && exponent.high <= most)
    }

    /// Whether the interval of the exponent lies outside of [`LINEAR_EXPONENTS`]: then the law c1/B + c2 is the wrong one.
    pub fn is_not_linear(&self) -> bool {
        let (least, most) = LINEAR_EXPONENTS;
        self.exponent.is_some_and(|exponent| exponent.high < least || most < exponent.low)
    }
}

/// The fits of a study's sparsities, ascending.
pub fn fits(study: &StudyResults) -> Vec<Fitted> {
    let grid = study.grid();
    let points: Vec<Vec<Point>> = grid.sparsities.iter().map(|&sparsity| measured_points(&grid, sparsity)).collect();
    let together = Fit::together(&points);
    let fitted = |((&sparsity, points), fit): ((&f64, &Vec<Point>), Result<Fit, String>)| {
        let unreached = |&size: &u32| grid.cell(size, sparsity).is_some_and(|cell| cell.steps_to_result().is_none());
        let sparse = sparsity > 0.0;
        let best = |size: u32, sparsity: f64| grid.cell(size, sparsity).and_then(Cell::best).map(|trial| squared_rates(study, trial));
        let rates = grid.batch_sizes.iter().filter(|_| sparse && decays(study));
        let rates: Vec<f64> = rates.filter_map(|&size| Some(best(size, sparsity)? / best(size, 0.0)?)).collect();
        Fitted {
            left_out: grid.batch_sizes.iter().copied().filter(unreached).collect(),
            squared_rates_ratio: (!rates.is_empty()).then(|| Estimate::geometric(rates.into_iter())),
            enough_trials: fit.as_ref().ok().and_then(|fit| enough_trials(study, sparsity, fit.critical.value)),
            ..Fitted::new(sparsity, points.clone(), fit)
        }
    };
    let mut fits: Vec<Fitted> = grid.sparsities.iter().zip(&points).zip(together).map(fitted).collect();
    beside_dense(&mut fits);
    fits
}

/// Compares sparse networks with the dense one, where that was measured.
pub(super) fn beside_dense(fits: &mut [Fitted]) {
    let Some(dense) = fits.iter().find(|fitted| fitted.sparsity == 0.0).cloned() else { return };
    for fitted in fits.iter_mut().filter(|fitted| fitted.sparsity > 0.0) {
        let ratios: Vec<f64> = fitted.ratios(&dense).into_iter().map(|point| point.1).collect();
        let points = ratios.len();
        let value = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / points as f64).exp();
        let (low, high) = ends(ratios);
        fitted.shift = (points > 0).then_some(Shift { ratio: Estimate { value, low, high }, points });
        if let (Ok(fit), Ok(dense)) = (&fitted.fit, &dense.fit) {
            fitted.c1_ratio = Some(fit.over(dense, |law| law.c1));
            fitted.c2_ratio = Some(fit.over(dense, |law| law.c2));
            fitted.critical_ratio = Some(fit.critical_over(dense));
        }
    }
}

/// How many trials of each cell of a sparsity give its critical batch size. None where there is none, or a race that ends early hides what other
/// trials would have found.
fn enough_trials(study: &StudyResults, sparsity: f64, critical: f64) -> Option<EnoughTrials> {
    let cells: Vec<&Cell> = study.reached(sparsity).collect();
    if !critical.is_normal() || cells.iter().any(|cell| study.hides_close(cell)) {
        return None;
    }
    let trials: Vec<(u32, FewerTrials)> = cells.iter().map(|cell| (cell.key.batch_size, FewerTrials::new(cell))).collect();
    let most = cells.iter().map(|cell| cell.trials.len()).min()?;
    let every = study.grid().every;
    let mut counter = 0;
    // K* of a random choice: the inverse of its distribution at a uniform number. None where a choice of a cell reaches no goal.
    let mut is_near = |number: usize| {
        let points = trials.iter().map(|(size, trials)| {
            counter += 1;
            Some(Point::new((*size, trials.quantile(number, uniform(counter))?), every))
        });
        let points: Option<Vec<Point>> = points.collect();
        points.is_some_and(|points| (1.0 - NEAR..=1.0 + NEAR).contains(&(Fit::critical_of(&points) / critical)))
    };
    let mut is_enough = |number: usize| (0..CHOICES).filter(|_| is_near(number)).count() as u64 >= NEAR_CHOICES;
    let numbers: Vec<usize> = (0..u32::BITS).map(|power| 1 << power).take_while(|number| 2 * number <= most).collect();
    let largest = *numbers.last()? as u32;
    let enough = numbers.into_iter().find(|&number| is_enough(number));
    Some(enough.map_or(EnoughTrials::MoreThan(largest), |number| EnoughTrials::These(number as u32)))
}

impl EnoughTrials {
    /// The number of trials in a table's field.
    pub fn name(self) -> String {
        match self {
            EnoughTrials::These(trials) => count(trials),
            EnoughTrials::MoreThan(trials) => format!("more than {}", count(trials)),
        }
    }
}

/// Whether the study's learning rates decay.
pub fn decays(study: &StudyResults) -> bool {
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

/// η.
pub fn learning_rate(trial: &Trial) -> Option<f64> {
    trial.metaparameters.get(Metaparameter::LearningRate)
}

/// η/(1 − m): in the long run momentum multiplies the rate by 1/(1 − m) (Shallue et al., 2019).
pub fn effective_rate(trial: &Trial) -> Option<f64> {
    Some(learning_rate(trial)? / (1.0 - trial.metaparameters.get(Metaparameter::Momentum)?))
}

//! Laws whose shape is fitted to confirmed steps too: what they have in common. Each such law lives in a file of its own.
//!
//! Errors, uneven tuning and resamples are those of `means.rs`.

use super::estimate::{Estimate, ends};
use super::fit::RESAMPLES;
use super::means::{Mean, Means, beyond_chi_squared, left_over, uniforms};
use crate::statistics::{QUANTILE, student};

/// Degrees of freedom that a fit leaves at least.
const LEAST_FREEDOM: usize = 4;

/// An end of a curve that is so many times smaller than the other one at every batch size cannot be told from none.
const NONE: f64 = 1e3;

/// The numbers of a law that are fitted to the curves of a study.
pub trait Shape: Clone {
    /// Degrees of freedom that curves leave, of which each leaves so many after c1 and c2. None where a shape cannot be fitted to them.
    fn freedom(of_each: &[usize]) -> Option<usize>;

    /// The shape of the least weighted squares.
    fn of(curves: &[Curve]) -> Self;

    /// The shape of the least squares of other steps of the same curves, from this one on.
    fn again(&self, curves: &[Curve]) -> Self;

    /// Log steps of a curve at a log batch size.
    fn log(&self, curve: usize, size: f64) -> f64;

    /// The number of a curve that is the law's shape; 1: the paper's law.
    fn number(&self, curve: usize) -> f64;

    /// The critical batch size of a curve, where linear scaling meets the floor: infinite where no floor shows, 0 where nothing but a floor does.
    fn critical(&self, curve: usize) -> f64;

    /// The weighted squares of all curves.
    fn squares(&self, curves: &[Curve]) -> f64 {
        curves.iter().enumerate().map(|(number, curve)| curve.squares(|size| self.log(number, size))).sum()
    }
}

/// A law fitted to curves that share their seeds.
#[derive(Debug, Clone)]
pub struct Shaped<S> {
    /// How often means with these standard errors would lie as far from the law, if it held for all curves.
    pub goodness: f64,
    shape: S,
    resamples: Vec<S>,
}

impl<S: Shape> Shaped<S> {
    /// The fit of curves of at least three batch sizes each. None of curves that leave less than [`LEAST_FREEDOM`], or to which the shape cannot be
    /// fitted.
    pub fn new<'a>(curves: &'a [Vec<Mean<'a>>]) -> Option<Self> {
        let all: Vec<Means> = curves.iter().map(|means| Means::new(means)).collect::<Result<_, _>>().ok()?;
        let of_each: Vec<usize> = all.iter().map(Means::freedom).collect();
        let freedom = S::freedom(&of_each).filter(|&freedom| freedom >= LEAST_FREEDOM)?;
        let weighed = |variance: f64| all.iter().map(|means| Curve::new(means, variance)).collect::<Vec<_>>();
        let squares = |variance: f64| {
            let curves = weighed(variance);
            S::of(&curves).squares(&curves)
        };
        let variance = left_over(squares, freedom);
        let mut curves = weighed(variance);
        let shape = S::of(&curves);
        let stretched = variance.sqrt() * student(freedom) / QUANTILE;
        let seeds = all.iter().map(Means::seeds).max().unwrap_or(0);
        let fitted: Vec<Vec<f64>> =
            curves.iter().enumerate().map(|(number, curve)| curve.sizes.iter().map(|&size| shape.log(number, size)).collect()).collect();
        let resample = |resample: u64| {
            let uniforms = uniforms(resample, seeds);
            for (number, (curve, means)) in curves.iter_mut().zip(&all).enumerate() {
                curve.logs = means.drawn(&fitted[number], &uniforms, stretched, resample, number);
            }
            shape.again(&curves)
        };
        let resamples = (0..u64::from(RESAMPLES)).map(resample).collect();
        Some(Shaped { goodness: beyond_chi_squared(squares(0.0), freedom), shape, resamples })
    }

    /// A number that follows from the fitted shape.
    pub fn estimate(&self, of: impl Fn(&S) -> f64) -> Estimate {
        Estimate::new(of(&self.shape), self.resamples.iter().map(of).collect())
    }
}

/// A curve as it is fitted: logarithms of batch sizes and of steps, and the weights of the latter.
pub struct Curve {
    pub(super) sizes: Vec<f64>,
    pub(super) logs: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

impl Curve {
    fn new(means: &Means, variance: f64) -> Curve {
        Curve { sizes: means.sizes().map(f64::ln).collect(), logs: means.logs().to_vec(), weights: means.weights(variance) }
    }

    /// The logarithms of c1 and c2 of c1/B^a and c2, of which neither is [`NONE`] times smaller than the other one at every batch size.
    pub(super) fn within(&self, [linear, floor]: [f64; 2], exponent: f64) -> [f64; 2] {
        let (small, large) = ends(self.sizes.iter().copied());
        if linear - floor > exponent * large + NONE.ln() {
            [linear, linear - exponent * large - NONE.ln()]
        } else if linear - floor < exponent * small - NONE.ln() {
            [floor + exponent * small - NONE.ln(), floor]
        } else {
            [linear, floor]
        }
    }

    /// The weighted squares of the log steps about those of a law.
    pub(super) fn squares(&self, law: impl Fn(f64) -> f64) -> f64 {
        let residuals = self.sizes.iter().zip(&self.logs).map(|(&size, log)| log - law(size));
        residuals.zip(&self.weights).map(|(residual, weight)| weight * residual * residual).sum()
    }
}

/// From a shape on, the nearest one of the least squares (Levenberg, 1944; Marquardt, 1963). `stepped` is a step of Gauss and Newton with a damping.
pub(super) fn nearest<S>(mut shape: S, squares: impl Fn(&S) -> f64, stepped: impl Fn(&S, f64) -> S) -> S {
    const TURNS: usize = 40;
    let mut least = squares(&shape);
    let mut damping = 1e-3;
    for _ in 0..TURNS {
        let next = stepped(&shape, damping);
        let after = squares(&next);
        if after <= least {
            let is_done = least - after < 1e-7 * (1.0 + after);
            (shape, least, damping) = (next, after, damping / 10.0);
            if is_done {
                break;
            }
        } else if damping > 1e6 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    shape
}

/// ln(1 + e^x) without overflow, and e^x over 1 + e^x.
pub(super) fn with_one(x: f64) -> (f64, f64) {
    (x.max(0.0) + (-x.abs()).exp().ln_1p(), 1.0 / (1.0 + (-x).exp()))
}

//! The paper's law K ≈ c1/B + c2 fitted to measured steps-to-result (Lee et al., ICLR 2021, section 4.1).
//!
//! Steps are known to an interval: a training reached the goal after one evaluation and no later than the next. The fit is by the likelihood of
//! those intervals, and what it says is never narrower than they are.

pub use super::estimate::{COVERED, Estimate};
use super::estimate::{ends, normal, scramble, student_between, uniform};
use super::least_squares::{Law, LeastSquares};
use crate::readable::called;
use crate::settings::ascending;
use crate::statistics::{QUANTILE, student};

/// Resamples of the bootstrap.
pub const RESAMPLES: u32 = 2_000;

/// Points a fit needs: one more than it has parameters.
const FEWEST_POINTS: usize = 3;

/// Local slope of log K against log B below which scaling is called linear.
pub const LINEAR_SLOPE: f64 = -0.95;

/// Exponents a of K = c1/B^a + c2 with which scaling is called linear: twice the batch takes 1.74 to 2.38 times fewer steps where c2 does not count.
pub const LINEAR_EXPONENTS: (f64, f64) = (0.8, 1.25);

/// Local slope above which data parallelism is called maximal.
pub const MAXIMAL_SLOPE: f64 = -0.05;

called! {
    /// Where a batch size lies on a fitted curve, by the curve's local slope d log K / d log B = −1/(1 + B/B_crit), in the paper's words.
    Regime {
        /// Slope below [`LINEAR_SLOPE`]: twice the batch, half the steps.
        Linear = "linear scaling",
        /// A slope between the two: a larger batch saves steps, but fewer than its factor.
        Diminishing = "diminishing returns",
        /// Slope above [`MAXIMAL_SLOPE`]: a larger batch saves no steps.
        Maximal = "maximal data parallelism",
    }
}

/// A cell's steps-to-result as a fit takes them: the goal was reached after more than `above` steps, and after `steps` at the latest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Batch size in examples, at least 1.
    pub batch_size: f64,
    /// Steps of the evaluation before, which did not find the goal reached; 0: there was none.
    pub above: f64,
    /// K*, steps of the evaluation that found it reached.
    pub steps: f64,
    /// Variance of the logarithm of `steps` where these are a mean or median over seeds, but for what moves all points of a curve alike; 0 of one
    /// training.
    pub by_seeds: f64,
}

/// Steps below which none are counted: a training takes one step at least, which is known to half a step.
pub(super) const FEWEST_STEPS: f64 = 0.5;

impl Point {
    /// From a batch size and its K*, with an evaluation after every `every` steps.
    pub fn new((batch_size, steps): (u32, u32), every: u32) -> Point {
        let (steps, every) = (steps.max(1), every.max(1));
        Point {
            batch_size: f64::from(batch_size.max(1)),
            above: f64::from((steps - 1) / every * every),
            steps: f64::from(steps),
            by_seeds: 0.0,
        }
    }

    /// All points of a curve.
    pub fn all(measured: &[(u32, u32)], every: u32) -> Vec<Point> {
        measured.iter().map(|&point| Point::new(point, every)).collect()
    }

    /// The logarithm of the steps at a share of the interval, from its lower to its upper end; of [`FEWEST_STEPS`] where they would be fewer.
    fn at(self, share: f64) -> f64 {
        (self.above + share * (self.steps - self.above)).max(FEWEST_STEPS).ln()
    }

    /// The logarithm of the steps in the middle of the interval.
    pub(super) fn middle(self) -> f64 {
        self.at(0.5)
    }

    /// Variance of the logarithm of steps that lie anywhere in the interval: a twelfth of its squared width, and 1 from 0 steps on.
    pub(super) fn rounding(self) -> f64 {
        ((self.steps / self.above).ln().powi(2) / 12.0).min(1.0)
    }

    /// Variance of the logarithm of the steps.
    pub(super) fn variance(self) -> f64 {
        self.rounding() + self.by_seeds
    }
}

/// K ≈ c1/B + c2 with c1, c2 ≥ 0, the most likely where log K scatters normally.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// c1, in steps × examples.
    pub c1: Estimate,
    /// c2, in steps: the floor that no batch size goes below.
    pub c2: Estimate,
    /// Critical batch size c1/c2: where the two terms are equal, so K* is twice its floor and the local slope is −1/2. Infinite where
    /// no floor shows, 0 where nothing but a floor does.
    pub critical: Estimate,
    /// Points fitted.
    pub points: usize,
    /// Root mean square of the residuals of log K, from the middles of the intervals, with n − 2 degrees of freedom.
    pub deviation: f64,
    /// Degrees of freedom of Student's t, by which its intervals are stretched.
    pub freedom: usize,
    /// The scatter by which its resamples were made; none of means with known standard errors.
    scatter: Option<Scatter>,
    /// (c1, c2) of each resample.
    resamples: Vec<Law>,
}

/// How far log K scatters about a fitted curve: by its own points and those of the curves that were fitted together with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scatter {
    variance: f64,
    /// Degrees of freedom of it.
    freedom: usize,
    /// Degrees of freedom of all curves that were fitted together.
    of_all: usize,
}

/// A curve's points with the law that fits them.
struct Curve<'a> {
    points: &'a [Point],
    fitting: LeastSquares,
    law: Law,
    /// Log K in the middles of the intervals less that of the law.
    residuals: Vec<f64>,
}

impl<'a> Curve<'a> {
    fn new(points: &'a [Point]) -> Result<Self, String> {
        enough(points)?;
        let fitting = LeastSquares::new(points.iter().map(|point| point.batch_size.recip()).collect());
        let law = most_likely(points, &fitting);
        let residuals = points.iter().map(|point| point.middle() - law.steps(point.batch_size).ln()).collect();
        Ok(Curve { points, fitting, law, residuals })
    }

    fn freedom(&self) -> usize {
        self.points.len() - 2
    }

    fn squares(&self) -> f64 {
        self.residuals.iter().map(|residual| residual * residual).sum()
    }

    /// The scatter about this curve. Curves that were fitted together count for as much as this one's own points: few points know their scatter
    /// badly, but curves may scatter differently, so that half of their degrees of freedom are taken.
    fn scatter(&self, all: &[&Curve]) -> Scatter {
        let (of_all, squares) = all.iter().fold((0, 0.0), |(freedom, sum), curve| (freedom + curve.freedom(), sum + curve.squares()));
        let (own, others) = (self.freedom(), of_all - self.freedom());
        let added = others.min(own);
        let of_others = if added > 0 { (squares - self.squares()) / others as f64 } else { 0.0 };
        Scatter { variance: (self.squares() + added as f64 * of_others) / (own + added) as f64, freedom: own + added.div_ceil(2), of_all }
    }

    /// The law of each resample of this curve, the curve with a number. `correlation` is that of the scatter of two curves at a batch size.
    fn resamples(&self, number: u64, scatter: Scatter, correlation: f64) -> Vec<Law> {
        let stretched = scatter.variance.sqrt() * student(scatter.freedom) / QUANTILE;
        let (shared, own) = (correlation.sqrt() * stretched, (1.0 - correlation).sqrt() * stretched);
        // A step count may lie anywhere in its interval. Where points scatter by more than the intervals' widths, the residuals hold that already.
        // Where points scatter by less, other smooth curves may pass through the intervals: `smooth` says how far points are moved onto such a curve.
        let rounding = self.points.iter().map(|point| point.rounding()).sum::<f64>() / self.points.len() as f64;
        let smooth = (rounding * self.freedom() as f64 / self.squares()).min(1.0).sqrt();
        let logs: Vec<f64> = self.points.iter().map(|point| point.batch_size.ln()).collect();
        let (first, last) = ends(logs.iter().copied());
        let resample = |resample: u64| {
            let [left, right] = [0, 1].map(|end| uniform(key(resample, end, number + 1)));
            let log = |(point, log): (&Point, &f64)| {
                let share = left + (right - left) * (log - first) / (last - first);
                let moved = if smooth > 0.0 { point.at(0.5 + smooth * (share - 0.5)) - point.middle() } else { 0.0 };
                let size = point.batch_size.to_bits();
                let common = if shared > 0.0 { shared * normal(key(resample, size, 0)) } else { 0.0 };
                self.law.steps(point.batch_size).ln() + common + own * normal(key(resample, size, number + 1)) + moved
            };
            self.fitting.unweighted(&self.points.iter().zip(&logs).map(log).collect::<Vec<_>>())
        };
        (0..u64::from(RESAMPLES)).map(resample).collect()
    }
}

/// Refuses points of fewer batch sizes than a fit needs.
pub(super) fn enough(points: &[Point]) -> Result<(), String> {
    match different(points) {
        sizes if sizes < FEWEST_POINTS => Err(format!("a fit needs {FEWEST_POINTS} batch sizes with a result, and has {sizes}")),
        _ => Ok(()),
    }
}

/// How many batch sizes differ.
pub(super) fn different(points: &[Point]) -> usize {
    ascending(points.iter().map(|point| point.batch_size.to_bits()), u64::cmp).len()
}

/// The correlation of the scatter of curves at common batch sizes, over all pairs of them: cells share points and seeds. Less its standard error, as
/// intervals of ratios would be too narrow by a correlation that few points exaggerate; at least 0.
fn correlation(curves: &[&Curve]) -> f64 {
    let (mut products, mut of_one, mut of_other, mut freedom) = (0.0, 0.0, 0.0, 0.0_f64);
    for (number, one) in curves.iter().enumerate() {
        for other in &curves[number + 1..] {
            // The two parameters of the law are fitted to each.
            freedom -= 2.0;
            for (point, residual) in one.points.iter().zip(&one.residuals) {
                let at = other.points.iter().position(|other| other.batch_size == point.batch_size);
                if let Some(at) = at {
                    products += residual * other.residuals[at];
                    of_one += residual * residual;
                    of_other += other.residuals[at] * other.residuals[at];
                    freedom += 1.0;
                }
            }
        }
    }
    let found = products / (of_one * of_other).sqrt();
    if found.is_finite() && freedom > 0.0 { (found - freedom.sqrt().recip()).clamp(0.0, 0.95) } else { 0.0 }
}

impl Fit {
    /// Fits the points of one sparsity.
    ///
    /// # Errors
    /// Why there is no fit, as a clause, where fewer than three different batch sizes were measured.
    pub fn new(points: &[Point]) -> Result<Fit, String> {
        Fit::together(&[points]).remove(0)
    }

    /// Fits curves of which two may be compared: the sparsities of a study, or two optimizers at one of them.
    ///
    /// Intervals are percentiles of [`RESAMPLES`] resamples (the parametric bootstrap; Efron, 1979), always the same ones: normal numbers of the
    /// scatter's deviation, stretched by Student's t over the normal's quantile for how few points there are, are added to log K of the fitted
    /// curve, and the law is fitted again. The residuals themselves, drawn with replacement, would be too few to say how far K* may scatter. The
    /// scatter of two curves at one batch size is correlated as far as their residuals are. Steps that lie closer to a curve than their intervals
    /// are wide may lie on another one through these intervals: so they are also moved within them, along a line in log B.
    ///
    /// # Errors
    /// Why a curve has no fit, as a clause, where fewer than three different batch sizes were measured.
    pub fn together(measured: &[impl AsRef<[Point]>]) -> Vec<Result<Fit, String>> {
        let curves: Vec<Result<Curve, String>> = measured.iter().map(|points| Curve::new(points.as_ref())).collect();
        let all: Vec<&Curve> = curves.iter().flatten().collect();
        let correlation = correlation(&all);
        let fit = |(number, curve): (usize, &Result<Curve, String>)| {
            let curve = curve.as_ref().map_err(Clone::clone)?;
            let scatter = curve.scatter(&all);
            let resamples = curve.resamples(number as u64, scatter, correlation);
            Ok(Fit::of_resamples(curve.law, curve.residuals.iter().copied(), (scatter.freedom, Some(scatter)), resamples))
        };
        curves.iter().enumerate().map(fit).collect()
    }

    /// A fit with the residuals of its points, the degrees of freedom of its intervals with the scatter that they are of, and the laws of its
    /// resamples.
    pub(super) fn of_resamples(
        law: Law,
        residuals: impl Iterator<Item = f64>,
        (freedom, scatter): (usize, Option<Scatter>),
        resamples: Vec<Law>,
    ) -> Fit {
        let estimate = |of: fn(Law) -> f64| Estimate::new(of(law), resamples.iter().copied().map(of).collect());
        let (c1, c2, critical) = (estimate(|law| law.c1), estimate(|law| law.c2), estimate(|law| law.c1 / law.c2));
        let (points, squares) = residuals.fold((0, 0.0), |(points, squares), residual| (points + 1, squares + residual * residual));
        Fit { c1, c2, critical, points, deviation: (squares / (points as f64 - 2.0)).sqrt(), freedom, scatter, resamples }
    }

    /// The critical batch size of points, without an interval and by the middles of theirs. NaN or infinite where they have none.
    pub fn critical_of(points: &[Point]) -> f64 {
        let (inverse, logs): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.batch_size.recip(), point.middle())).unzip();
        let law = LeastSquares::new(inverse).unweighted(&logs);
        law.c1 / law.c2
    }

    /// A number that follows from the fitted curve.
    pub fn of_law(&self, of: impl Fn(Law) -> f64) -> Estimate {
        Estimate::new(of(self.law()), self.resamples.iter().map(|law| of(*law)).collect())
    }

    fn law(&self) -> Law {
        Law { c1: self.c1.value, c2: self.c2.value }
    }

    /// How far log K* of a cell may lie from the fit, in 95 of 100 cases.
    pub(super) fn margin(&self) -> f64 {
        self.scatter.map_or(0.0, |scatter| scatter.variance.sqrt() * student(scatter.freedom))
    }

    /// K at a batch size, by the fit.
    pub fn steps(&self, batch_size: f64) -> Estimate {
        self.of_law(|law| law.steps(batch_size))
    }

    /// The regime at a batch size, where every critical batch size in the interval gives the same one.
    pub fn regime(&self, batch_size: f64) -> Option<Regime> {
        let by = |critical: f64| {
            let slope = -1.0 / (1.0 + batch_size / critical);
            if slope < LINEAR_SLOPE {
                Regime::Linear
            } else if slope > MAXIMAL_SLOPE {
                Regime::Maximal
            } else {
                Regime::Diminishing
            }
        };
        let regime = by(self.critical.low);
        (regime == by(self.critical.high)).then_some(regime)
    }

    /// The largest batch size with linear scaling and the smallest with maximal data parallelism: B_crit/19 and 19·B_crit.
    pub fn borders(&self) -> (Estimate, Estimate) {
        let at = |slope: f64| self.critical.scaled(-1.0 / slope - 1.0);
        (at(LINEAR_SLOPE), at(MAXIMAL_SLOPE))
    }

    /// The critical batch size of this fit over that of another that was fitted together with it.
    pub fn critical_over(&self, other: &Fit) -> Estimate {
        self.over(other, |law| law.c1 / law.c2)
    }

    /// K at a batch size by this fit over that by another that was fitted together with it.
    pub fn steps_over(&self, other: &Fit, batch_size: f64) -> Estimate {
        self.over(other, |law| law.steps(batch_size))
    }

    /// K by this fit over K by another that was fitted together with it, in the geometric mean over batch sizes.
    pub fn mean_over(&self, other: &Fit, batch_sizes: impl ExactSizeIterator<Item = f64> + Clone) -> Estimate {
        let count = batch_sizes.len() as f64;
        self.over(other, |law| (batch_sizes.clone().map(|size| law.steps(size).ln()).sum::<f64>() / count).exp())
    }

    /// A number of this fit over the same number of another that was fitted together with it. The resamples of each fit are stretched for its own few
    /// points, which is too much for a ratio: the difference of two numbers has more degrees of freedom than either (Welch's estimate, 1947, capped
    /// at those of all curves). So the ratios' logarithms are shrunk by the excess. They are not shrunk where a fit has three degrees of freedom or
    /// fewer (in simulations Welch's estimate made the interval too narrow), nor for means with known standard errors.
    pub(super) fn over(&self, other: &Fit, of: impl Fn(Law) -> f64) -> Estimate {
        let value = of(self.law()) / of(other.law());
        let narrower = match (self.scatter, other.scatter) {
            (Some(a), Some(b)) if a.freedom.min(b.freedom) > 3 => {
                let sum = a.variance + b.variance;
                let part = |of: Scatter| of.variance.powi(2) / (of.freedom + 2) as f64;
                let welch = sum.powi(2) / (part(a) + part(b)) - 2.0;
                let stretched = a.variance * student(a.freedom).powi(2) + b.variance * student(b.freedom).powi(2);
                (student_between(welch.min(a.of_all as f64)) * (sum / stretched).sqrt()).min(1.0)
            }
            _ => 1.0,
        };
        let ratio = |(this, other): (&Law, &Law)| {
            let ratio = of(*this) / of(*other);
            let is_plain = |value: f64| value.is_finite() && value > 0.0;
            if is_plain(ratio) && is_plain(value) && narrower.is_finite() { value * (ratio / value).powf(narrower) } else { ratio }
        };
        Estimate::new(value, self.resamples.iter().zip(&other.resamples).map(ratio).collect())
    }
}

/// A number for a resample, a batch size and a curve.
pub(super) fn key(resample: u64, size: u64, number: u64) -> u64 {
    scramble(scramble(scramble(resample) ^ size) ^ number) >> 1
}

/// The exponent of a power law y ∝ x^e, by least squares of log y against log x, with the limits of Student's t. None for fewer than three points,
/// and where all x are equal or a number is not above 0.
pub fn slope(points: &[(f64, f64)]) -> Option<Estimate> {
    slope_of_known(points, &vec![0.0; points.len()])
}

/// The [`slope`] of numbers that are known to these variances of their logarithms, even where they lie on a line.
pub fn slope_of_known(points: &[(f64, f64)], variances: &[f64]) -> Option<Estimate> {
    let logs: Vec<(f64, f64)> = points.iter().map(|point| (point.0.ln(), point.1.ln())).collect();
    let freedom = logs.len().checked_sub(2).filter(|&freedom| freedom > 0)?;
    let count = logs.len() as f64;
    let (mean_x, mean_y) = (logs.iter().map(|point| point.0).sum::<f64>() / count, logs.iter().map(|point| point.1).sum::<f64>() / count);
    let squares: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let value = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let left: f64 = logs.iter().map(|(x, y)| (y - mean_y - value * (x - mean_x)).powi(2)).sum();
    let weighted: f64 = logs.iter().zip(variances).map(|((x, _), variance)| (x - mean_x).powi(2) * variance).sum();
    let margin = (student(freedom) * (left / freedom as f64 / squares).sqrt()).max(QUANTILE * weighted.sqrt() / squares);
    value.is_finite().then_some(Estimate { value, low: value - margin, high: value + margin })
}

/// The law of the greatest likelihood, where each point's log K is a normal number of which an interval is known: least squares of the numbers to be
/// expected in the intervals, again and again (the EM algorithm; Dempster, Laird and Rubin, 1977), from their middles on.
fn most_likely(points: &[Point], fitting: &LeastSquares) -> Law {
    const TURNS: usize = 30;
    let middles: Vec<f64> = points.iter().map(|point| point.middle()).collect();
    let mut law = fitting.unweighted(&middles);
    let left =
        |law: Law, logs: &[f64]| points.iter().zip(logs).map(|(point, log)| (log - law.steps(point.batch_size).ln()).powi(2)).sum::<f64>();
    // The most likely variance divides by the number of points: by the degrees of freedom, what is not known would grow in each turn.
    let count = points.len() as f64;
    let rounding = points.iter().map(|point| point.rounding()).sum::<f64>() / count;
    let mut variance = left(law, &middles) / count;
    for _ in 0..TURNS {
        // Where the points scatter by much more than their intervals are wide, or by much less, nothing is left to be gained.
        if variance < 0.01 * rounding || variance > 1e4 * rounding {
            break;
        }
        let expected: Vec<(f64, f64)> =
            points.iter().map(|point| expected(*point, law.steps(point.batch_size).ln(), variance.sqrt())).collect();
        let logs: Vec<f64> = expected.iter().map(|point| point.0).collect();
        let before = law;
        law = fitting.unweighted(&logs);
        variance = (left(law, &logs) + expected.iter().map(|point| point.1).sum::<f64>()) / count;
        if ((law.c1 - before.c1) / before.c1).abs() < 1e-6 && ((law.c2 - before.c2) / before.c2).abs() < 1e-6 {
            break;
        }
    }
    law
}

/// Mean and variance of a normal number within a point's interval.
pub(super) fn expected(point: Point, mean: f64, deviation: f64) -> (f64, f64) {
    let (low, high) = (point.above.ln(), point.steps.ln());
    let [from, to] = [low, high].map(|limit| (limit - mean) / deviation);
    let density = |at: f64| (-at * at / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let weighted = |at: f64| if at.is_finite() { at * density(at) } else { 0.0 };
    // The tail that is the smaller one, so that no digits are lost.
    let above = |at: f64| libm::erfc(at * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
    let inside = if from > 0.0 { above(from) - above(to) } else { above(-to) - above(-from) };
    if inside < 1e-9 {
        return (mean.clamp(low, high), 0.0);
    }
    let shift = (density(from) - density(to)) / inside;
    let variance = 1.0 + (weighted(from) - weighted(to)) / inside - shift * shift;
    (mean + deviation * shift, (deviation * deviation * variance).max(0.0))
}

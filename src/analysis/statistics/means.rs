//! The law c1/B + c2 fitted to means, or medians, of trainings with fresh seeds, whose standard errors are known.
//!
//! Cells share their seeds. So the interval is made by drawing the seeds again, the same draws for all cells, and fitting the law to the means that
//! follow. Where the means lie farther from the law than their standard errors allow, the points of some cells were tuned better than those of
//! others: what is missing is a variance of its own, drawn for each cell.

use super::confirmed::{Confirmed, means_of_halves};
use super::estimate::{normal, uniform};
use super::fit::{Estimate, Fit, Point, RESAMPLES, enough, key};
use super::least_squares::{Law, LeastSquares};
use crate::statistics::{QUANTILE, student};

/// The number that stands for a cell's trainings with fresh seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Middle {
    /// The geometric mean, in which failures count as the tail of a log-normal distribution.
    Mean,
    /// The median, which does not move with how long failed trainings would have taken. That cells share their seeds does not enter its standard
    /// error.
    Median,
}

/// A cell's mean, or median.
#[derive(Debug, Clone, Copy)]
pub struct Mean<'a> {
    /// Batch size in examples, at least 1.
    pub batch_size: f64,
    confirmed: &'a Confirmed,
    middle: Middle,
    /// The mean, or median.
    steps: f64,
    /// The standard error of the logarithm.
    error: f64,
    /// The variance of the logarithm that no other cell shares by its seeds.
    unshared: f64,
}

impl<'a> Mean<'a> {
    /// A cell's mean, or median; none where it or its standard error is not finite.
    pub fn new(batch_size: f64, confirmed: &'a Confirmed, middle: Middle) -> Option<Self> {
        let (steps, error, unshared) = match middle {
            Middle::Mean => (confirmed.mean.value, confirmed.error(), confirmed.of_choice()),
            Middle::Median => {
                let Estimate { value, low, high } = confirmed.median;
                // Where many trainings failed, the interval has no upper limit: the lower one stands for both.
                let error = (if high.is_finite() { (high / low).sqrt() } else { value / low }).ln() / QUANTILE;
                (value, error, error.powi(2))
            }
        };
        (steps > 0.0 && error.is_finite()).then_some(Mean { batch_size, confirmed, middle, steps, error, unshared })
    }

    /// By how much the logarithm moves where the seeds that cells share are drawn again.
    fn resampled(self, uniforms: &[f64]) -> f64 {
        match self.middle {
            Middle::Mean => self.confirmed.resampled(uniforms),
            Middle::Median => 0.0,
        }
    }
}

/// A curve's fit and how well it fits.
#[derive(Debug, Clone)]
pub struct MeanFit {
    /// The fit.
    pub fit: Fit,
    /// How often means with these standard errors would lie as far from the law, if it held.
    pub goodness: f64,
    /// The means as points of the fit.
    pub points: Vec<Point>,
}

/// The fits of curves that share their seeds, and the deviation of the logarithms of means that their standard errors leave over (0: none).
pub fn fit_means<'a>(curves: &'a [impl AsRef<[Mean<'a>]>]) -> (Vec<Result<MeanFit, String>>, f64) {
    let (curves, freedom, variance) = weighed(curves);
    // A deviation that is estimated from few points is uncertain: Student's t stretches it.
    let stretched = variance.sqrt() * student(freedom) / QUANTILE;
    let seeds = curves.iter().flatten().map(Means::seeds).max().unwrap_or(0);
    let fit = |(number, means): (usize, &Result<Means, String>)| {
        let means = means.as_ref().map_err(Clone::clone)?;
        let weights = means.weights(variance);
        let law = means.law(&means.logs, &weights);
        let fitted: Vec<f64> = means.sizes().map(|size| law.steps(size).ln()).collect();
        let resample = |resample: u64| {
            let uniforms = uniforms(resample, seeds);
            means.law(&means.drawn(&fitted, &uniforms, stretched, resample, number), &weights)
        };
        let resamples = (0..u64::from(RESAMPLES)).map(resample).collect();
        let goodness = beyond_chi_squared(means.squares(0.0), means.freedom());
        // Two scatters make the resamples: the scatter of seeds, which have a mean in each half, and that of tuning. The less certain one counts.
        let least = freedom.min(means.seeds().saturating_sub(2));
        Ok(MeanFit { fit: Fit::of_resamples(law, means.residuals(law), (least, None), resamples), goodness, points: means.points.clone() })
    };
    (curves.iter().enumerate().map(fit).collect(), variance.sqrt())
}

/// The law fitted to each curve, as [`fit_means`] does; none of a curve of fewer than three batch sizes.
pub fn laws<'a>(curves: &'a [impl AsRef<[Mean<'a>]>]) -> Vec<Option<Law>> {
    let (curves, _, variance) = weighed(curves);
    let law = |means: &Means| means.law(&means.logs, &means.weights(variance));
    curves.iter().map(|means| means.as_ref().ok().map(law)).collect()
}

/// The means of each curve, the degrees of freedom of all, and the variance that their standard errors leave over.
fn weighed<'a>(curves: &'a [impl AsRef<[Mean<'a>]>]) -> (Vec<Result<Means<'a>, String>>, usize, f64) {
    let curves: Vec<Result<Means, String>> = curves.iter().map(|means| Means::new(means.as_ref())).collect();
    let freedom: usize = curves.iter().flatten().map(Means::freedom).sum();
    let variance = left_over(|variance| curves.iter().flatten().map(|means| means.squares(variance)).sum(), freedom);
    (curves, freedom, variance)
}

/// The variance of log means beyond their standard errors with which the weighted `squares` are as many as there are degrees of freedom (Paule and
/// Mandel, 1982).
pub(super) fn left_over(squares: impl Fn(f64) -> f64, freedom: usize) -> f64 {
    if squares(0.0) <= freedom as f64 {
        return 0.0;
    }
    // In logarithms: from a hundredth of a percent to a factor.
    let (mut low, mut high) = (1e-4_f64.ln(), 1_f64.ln());
    for _ in 0..25 {
        let middle = (low + high) / 2.0;
        if squares((2.0 * middle).exp()) > freedom as f64 { low = middle } else { high = middle }
    }
    (low + high).exp()
}

/// Uniform numbers by which a resample draws so many seeds, the same ones for all curves.
pub(super) fn uniforms(resample: u64, seeds: usize) -> Vec<f64> {
    (0..seeds as u64).map(|draw| uniform(key(resample, draw, 0))).collect()
}

/// The means of a curve.
pub(super) struct Means<'a> {
    means: &'a [Mean<'a>],
    fitting: LeastSquares,
    logs: Vec<f64>,
    /// The means with their variances but for what seeds move in all cells alike, which no shape of the curve follows.
    points: Vec<Point>,
}

impl<'a> Means<'a> {
    /// Why there is no fit, as a clause, where there are fewer than three different batch sizes.
    pub(super) fn new(means: &'a [Mean<'a>]) -> Result<Self, String> {
        let common = correlation(means);
        let point = |&Mean { batch_size, steps, error, unshared, .. }: &Mean| {
            let by_seeds = unshared + (error.powi(2) - unshared) * (1.0 - common);
            Point { batch_size, above: steps, steps, by_seeds }
        };
        let points: Vec<Point> = means.iter().map(point).collect();
        enough(&points)?;
        let (inverse, logs): (Vec<f64>, Vec<f64>) = means.iter().map(|mean| (mean.batch_size.recip(), mean.steps.ln())).unzip();
        Ok(Means { fitting: LeastSquares::new(inverse), means, logs, points })
    }

    /// Degrees of freedom that c1 and c2 leave.
    pub(super) fn freedom(&self) -> usize {
        self.means.len() - 2
    }

    /// Batch sizes.
    pub(super) fn sizes(&self) -> impl Iterator<Item = f64> {
        self.means.iter().map(|mean| mean.batch_size)
    }

    /// Logarithms of the means.
    pub(super) fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// Seeds of the cell that has the most.
    pub(super) fn seeds(&self) -> usize {
        self.means.iter().map(|mean| mean.confirmed.logs().len()).max().unwrap_or(0)
    }

    /// A resample about the logarithms of a fitted curve: seeds drawn by `uniforms`, which all curves share, and for each mean a normal number for
    /// the choice of its points and for the deviation of uneven tuning. `curve` is the place of the curve among those fitted together.
    pub(super) fn drawn(&self, fitted: &[f64], uniforms: &[f64], tuning: f64, resample: u64, curve: usize) -> Vec<f64> {
        let log = |(mean, fitted): (&Mean, &f64)| {
            let deviation = (mean.unshared + tuning * tuning).sqrt();
            let own = deviation * normal(key(resample, mean.batch_size.to_bits(), curve as u64 + 1));
            fitted + mean.resampled(uniforms) + own
        };
        self.means.iter().zip(fitted).map(log).collect()
    }

    /// The inverse variance of each mean, with that of uneven tuning.
    pub(super) fn weights(&self, variance: f64) -> Vec<f64> {
        self.points.iter().map(|point| 1.0 / (point.by_seeds + variance)).collect()
    }

    fn law(&self, logs: &[f64], weights: &[f64]) -> Law {
        self.fitting.law(logs, weights)
    }

    fn residuals(&self, law: Law) -> impl Iterator<Item = f64> {
        self.means.iter().zip(&self.logs).map(move |(mean, log)| log - law.steps(mean.batch_size).ln())
    }

    /// Squares of the residuals over their variances, of the law that makes them the least.
    fn squares(&self, variance: f64) -> f64 {
        let weights = self.weights(variance);
        self.residuals(self.law(&self.logs, &weights)).zip(&weights).map(|(residual, weight)| weight * residual * residual).sum()
    }
}

/// The correlation of the log steps of two cells by seed, over all pairs of cells; at least 0.
fn correlation(means: &[Mean]) -> f64 {
    // Halves of the seeds may have measured different points.
    let deviations = |mean: &Mean| {
        let logs = mean.confirmed.logs();
        let halves = means_of_halves(logs);
        logs.iter().enumerate().map(|(seed, log)| log - halves[seed % 2]).collect::<Vec<f64>>()
    };
    let cells: Vec<Vec<f64>> = means.iter().map(deviations).collect();
    let (mut products, mut squares) = (0.0, 0.0);
    for (number, one) in cells.iter().enumerate() {
        for other in &cells[number + 1..] {
            let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            products += product(one, other);
            squares += (product(one, one) * product(other, other)).sqrt();
        }
    }
    if squares > 0.0 { (products / squares).clamp(0.0, 0.95) } else { 0.0 }
}

/// How often a sum of squares of so many normal numbers is larger (Wilson and Hilferty, 1931: a normal approximation of its cube root).
pub fn beyond_chi_squared(squares: f64, freedom: usize) -> f64 {
    let ninth = 2.0 / 9.0 / freedom as f64;
    let normal = ((squares / freedom as f64).cbrt() - 1.0 + ninth) / ninth.sqrt();
    libm::erfc(normal * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Half the width of the interval of a ratio's logarithm.
pub fn half_width(ratio: Estimate) -> f64 {
    (ratio.high / ratio.low).ln() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 5 % points of tables.
    #[test]
    fn chances_of_sums_of_squares_are_those_of_tables() {
        for (squares, freedom, chance) in [(3.841, 1, 0.05), (5.991, 2, 0.05), (15.507, 8, 0.05), (8.0, 8, 0.433)] {
            assert!((beyond_chi_squared(squares, freedom) - chance).abs() < 0.006, "{squares} {freedom}");
        }
    }
}

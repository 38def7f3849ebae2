//! The critical batch size by several definitions.

use super::confirmations::ConfirmedFit;
use super::estimate::ends;
use super::fit::{Estimate, Fit, Point};
use super::fits::{Fitted, measured_points};
use super::least_squares::Law;
use super::smoothness::Smooth;
use crate::analysis::studies::StudyResults;
use crate::readable::{called, count, significant};

/// By how much of the minimum the examples may grow up to the critical batch size of Zhang et al.
const OVERHEAD: f64 = 0.2;

called! {
    /// A definition of the critical batch size.
    Definition {
        /// c1/c2 of the fit.
        Fit = "fit",
        /// c1/c2 of the fit of confirmed steps.
        Confirmed = "fit of confirmed steps",
        /// E_min/S_min of the trade-off between examples and steps.
        TradeOff = "trade-off",
        /// E_min/S_min of the least examples and the least steps that were measured.
        Measured = "measured ends",
        /// Where the examples exceed their minimum by a fifth.
        Overhead = "20 % overhead",
        /// The batch size whose K* takes the fewest examples.
        FewestExamples = "fewest examples",
        /// The gradient's noise scale.
        NoiseScale = "noise scale",
    }
}

impl Definition {
    /// Meaning of the definition, and its source.
    pub fn source(self) -> &'static str {
        match self {
            Definition::Fit => "c1/c2 of K* = c1/B + c2, the law of Lee et al. (2021)",
            Definition::Confirmed => "c1/c2 of the same law, of the steps that the best points take with fresh seeds",
            Definition::TradeOff => {
                "E_min/S_min of (S/S_min − 1)(E/E_min − 1) = 1 with steps S and examples E = S·B (McCandlish et al., 2018)"
            }
            Definition::Measured => "the fewest examples of any batch size over the fewest steps of any (after McCandlish et al., 2018)",
            Definition::Overhead => {
                "the batch size at which the examples K*·B of the fit are 1.2 times those at the smallest batch size (after Zhang et al., 2024)"
            }
            Definition::FewestExamples => {
                "the batch size that reaches the goal with the fewest examples K*·B, and the smallest and largest ones that cannot be told from it (after Iiduka, 2023)"
            }
            Definition::NoiseScale => "tr Σ/‖∇f‖², the median along the training (McCandlish et al., 2018)",
        }
    }
}

/// A critical batch size.
#[derive(Debug, Clone)]
pub struct Critical {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// By which definition.
    pub definition: Definition,
    /// In examples. Infinite: not within the batch sizes that were measured.
    pub estimate: Estimate,
    /// Data that the estimate was computed from.
    pub from: String,
}

/// The critical batch sizes of a study, by sparsity, then definition. All but the noise scale need a fit. Intervals are of the fit's
/// resamples, but for the fewest examples and the noise scale.
pub fn critical(study: &StudyResults, fits: &[Fitted], confirmed: &[ConfirmedFit], smooth: &[Smooth]) -> Vec<Critical> {
    let mut found = Vec::new();
    for fitted in fits {
        let sparsity = fitted.sparsity;
        let mut add = |definition, estimate, from| found.push(Critical { sparsity, definition, estimate, from });
        if let Ok(fit) = &fitted.fit {
            let points = study.grid().measured(sparsity);
            let sizes: Vec<String> = points.iter().map(|point| count(point.0)).collect();
            let measured = format!("K* at batch size {}", sizes.join(", "));
            add(Definition::Fit, fit.critical, measured.clone());
            let again = confirmed.iter().find(|confirmed| confirmed.fitted.sparsity == sparsity);
            if let Some((confirmed, fit)) = again.and_then(|confirmed| Some((confirmed, confirmed.fit()?))) {
                let sizes: Vec<String> = confirmed.fitted.points.iter().map(|point| count(point.batch_size as u64)).collect();
                add(Definition::Confirmed, fit.critical, format!("confirmed steps at batch size {}", sizes.join(", ")));
            }
            let ends = format!(
                "the fit, which is the same curve: E_min = c1 = {}, S_min = c2 = {}",
                significant(fit.c1.value),
                significant(fit.c2.value)
            );
            add(Definition::TradeOff, fit.critical, ends);
            add(Definition::Measured, measured_ends(fit, &points), measured.clone());
            add(Definition::Overhead, overhead(fit, &points), measured.clone());
            add(Definition::FewestExamples, fewest_examples(fit, &measured_points(&study.grid(), sparsity)), measured);
        }
        let is_known = |smooth: &&Smooth| smooth.key.sparsity == sparsity && !smooth.noise_scale[1].value.is_nan();
        for smooth in smooth.iter().filter(is_known) {
            let from =
                format!("{} measurements of {} trials at batch size {}", smooth.measurements, smooth.trials, count(smooth.key.batch_size));
            add(Definition::NoiseScale, smooth.noise_scale[1], from);
        }
    }
    found
}

/// The least B·K over the least K of (B, K) points by B. Its interval is that of the same ratio of the fitted curve, which has those at the smallest
/// and at the largest of the batch sizes: resampled points would each have a least one of their own, below the curve.
fn measured_ends(fit: &Fit, points: &[(u32, u32)]) -> Estimate {
    let least = |of: fn(f64, f64) -> f64| points.iter().map(|&(size, steps)| of(size.into(), steps.into())).fold(f64::INFINITY, f64::min);
    let (smallest, largest) = sizes(points);
    fit.of_law(|law| smallest * law.steps(smallest) / law.steps(largest)).about(least(|size, steps| size * steps) / least(|_, steps| steps))
}

/// Where B·K of the fitted curve exceeds that at the smallest batch size of (B, K) points by [`OVERHEAD`]. Infinite beyond the largest.
fn overhead(fit: &Fit, points: &[(u32, u32)]) -> Estimate {
    let (smallest, largest) = sizes(points);
    // (c1 + c2 B) = 1.2 (c1 + c2 B₀).
    let exceeds = |Law { c1, c2 }: Law| OVERHEAD * c1 / c2 + (1.0 + OVERHEAD) * smallest;
    fit.of_law(|law| Some(exceeds(law)).filter(|&size| size <= largest).unwrap_or(f64::INFINITY))
}

/// The batch size with the fewest examples K*·B. The limits are the smallest and the largest batch size whose examples may be as few, within the
/// interval of their K* and the scatter about the fit.
fn fewest_examples(fit: &Fit, points: &[Point]) -> Estimate {
    let examples = |point: &&Point| point.batch_size * point.steps;
    let Some(best) = points.iter().min_by(|a, b| examples(a).total_cmp(&examples(b))) else { return Estimate::NONE };
    let margin = (fit.margin() * 2f64.sqrt()).exp();
    let may_be = points.iter().filter(|point| point.batch_size * point.above <= examples(&best) * margin).map(|point| point.batch_size);
    let (low, high) = ends(may_be.chain([best.batch_size]));
    Estimate { value: best.batch_size, low, high }
}

/// The smallest and the largest batch size of (B, K) points by B.
fn sizes(points: &[(u32, u32)]) -> (f64, f64) {
    let size = |point: Option<&(u32, u32)>| point.map_or(f64::NAN, |point| f64::from(point.0.max(1)));
    (size(points.first()), size(points.last()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K = 1,000/B + 10: examples 1,000 + 10 B.
    #[test]
    fn ends_and_overhead_are_those_of_a_curve_without_noise() {
        let points: Vec<(u32, u32)> = [1, 10, 50, 100, 1000].into_iter().map(|size| (size, 1000 / size + 10)).collect();
        let fit = Fit::new(&Point::all(&points, 1)).unwrap();
        // Whole steps: of 11 one knows that they are more than 10.
        let near = |found: Estimate, known: f64| {
            assert!(found.low < found.high && (found.value / known - 1.0).abs() < 0.1, "{found:?} of {known}")
        };
        near(measured_ends(&fit, &points), 1010.0 / 11.0);
        // 1,000 + 10 · 21.2 are 1.2 · 1,010.
        near(overhead(&fit, &points), 21.2);
        assert_eq!(overhead(&fit, &points[..2]).value, f64::INFINITY, "beyond what was measured");
    }

    /// Examples 1,010, 1,100, 1,500, 2,000 and 11,000: the first two cannot be told apart where steps are known to 10.
    #[test]
    fn the_fewest_examples_are_those_of_a_batch_size_or_a_range() {
        let measured = [(1, 1010), (10, 110), (50, 30), (100, 20), (1000, 11)];
        let of = |every: u32| {
            let points = Point::all(&measured, every);
            fewest_examples(&Fit::new(&points).unwrap(), &points)
        };
        assert_eq!((of(1).value, of(1).low, of(1).high), (1.0, 1.0, 1.0));
        assert_eq!((of(10).value, of(10).low), (1.0, 1.0));
        assert!(of(10).high >= 10.0, "{:?}", of(10));
    }

    /// Four times as many steps at one batch size between: the ends are those measured all the same, and the interval holds them.
    #[test]
    fn what_was_measured_is_in_its_interval() {
        let points = [(1, 1010), (10, 440), (50, 30), (100, 20), (1000, 11)];
        let ends = measured_ends(&Fit::new(&Point::all(&points, 1)).unwrap(), &points);
        assert!((ends.value - 1010.0 / 11.0).abs() < 1e-9 && ends.low < ends.value && ends.value <= ends.high, "{ends:?}");
    }
}

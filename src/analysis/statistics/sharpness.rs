//! The law ((c1/B)^q + c2^q)^(1/q) fitted to confirmed steps, with one sharpness q for all sparsities of a study.
//!
//! With q = 1 the law is the paper's, c1/B + c2. A larger q turns more sharply from linear scaling, c1/B, into the floor, c2; both ends are straight
//! lines of log K against log B whatever q is, and c1/c2 is the batch size at which they meet. Curves that share q are one curve, moved along both
//! axes: the ratio of their critical batch sizes is the move along log B.
//!
//! Errors, uneven tuning and resamples are those of `means.rs`.

use super::estimate::Estimate;
use super::fit::RESAMPLES;
use super::least_squares::LeastSquares;
use super::means::{Mean, Means, beyond_chi_squared, left_over, uniforms};
use crate::statistics::{QUANTILE, student};

/// Sharpnesses from which the fit of the means begins: the one with the least squares.
const FIRST: [f64; 7] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0];

/// The least and the greatest sharpness.
const RANGE: (f64, f64) = (0.25, 8.0);

/// Degrees of freedom that the fit leaves at least.
pub(super) const LEAST_FREEDOM: usize = 4;

/// An end of a curve that is so many times smaller than the other one at every batch size cannot be told from none.
pub(super) const NONE: f64 = 1e3;

/// Curves that share a sharpness.
#[derive(Debug, Clone)]
pub struct Sharp {
    /// The sharpness q.
    pub sharpness: Estimate,
    /// How often means with these errors would lie as far from the law, if it held for all curves.
    pub goodness: f64,
    shape: Shape,
    resamples: Vec<Shape>,
}

impl Sharp {
    /// The fit of curves that share their seeds, each of at least three batch sizes. None of one curve, whose sharpness its few means hardly know,
    /// and of so few means that they leave less than [`LEAST_FREEDOM`].
    pub fn new(curves: &[&[Mean]]) -> Option<Sharp> {
        let all: Vec<Means> = curves.iter().map(|means| Means::new(means)).collect::<Result<_, _>>().ok()?;
        let freedom = all.iter().map(Means::freedom).sum::<usize>().checked_sub(1).filter(|&freedom| freedom >= LEAST_FREEDOM)?;
        if all.len() < 2 {
            return None;
        }
        let weighed = |variance: f64| all.iter().map(|means| Curve::new(means, variance)).collect::<Vec<_>>();
        let squares = |variance: f64| Shape::of(&weighed(variance)).1;
        let variance = left_over(squares, freedom);
        let mut curves = weighed(variance);
        let shape = Shape::of(&curves).0;
        let stretched = variance.sqrt() * student(freedom) / QUANTILE;
        let seeds = all.iter().map(Means::seeds).max().unwrap_or(0);
        let fitted: Vec<Vec<f64>> = (0..curves.len()).map(|curve| shape.logs(curve, &curves[curve].sizes).collect()).collect();
        let mut resample = |resample: u64| {
            let uniforms = uniforms(resample, seeds);
            for (number, (curve, means)) in curves.iter_mut().zip(&all).enumerate() {
                curve.logs = means.drawn(&fitted[number], &uniforms, stretched, resample, number);
            }
            shape.clone().fitted(&curves).0
        };
        let resamples: Vec<Shape> = (0..u64::from(RESAMPLES)).map(&mut resample).collect();
        let sharpness = Estimate::new(shape.sharpness.exp(), resamples.iter().map(|shape| shape.sharpness.exp()).collect());
        Some(Sharp { sharpness, goodness: beyond_chi_squared(squares(0.0), freedom), shape, resamples })
    }

    /// The critical batch size c1/c2 of a curve, by its place among those fitted. Infinite where no floor shows, 0 where nothing but a floor does.
    pub fn critical(&self, curve: usize) -> Estimate {
        self.estimate(|shape| shape.critical(curve))
    }

    /// The critical batch size of a curve over that of another one.
    pub fn critical_over(&self, curve: usize, other: usize) -> Estimate {
        self.estimate(|shape| shape.critical(curve) / shape.critical(other))
    }

    fn estimate(&self, of: impl Fn(&Shape) -> f64) -> Estimate {
        Estimate::new(of(&self.shape), self.resamples.iter().map(&of).collect())
    }
}

/// A curve as it is fitted: logarithms of batch sizes and of steps, and the weights of the latter.
pub(super) struct Curve {
    pub sizes: Vec<f64>,
    pub logs: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Curve {
    /// The least and the largest log batch size.
    pub(super) fn ends(&self) -> (f64, f64) {
        self.sizes.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(small, large), &size| (small.min(size), large.max(size)))
    }

    pub(super) fn new(means: &Means, variance: f64) -> Curve {
        Curve { sizes: means.sizes().map(f64::ln).collect(), logs: means.logs().to_vec(), weights: means.weights(variance) }
    }
}

/// The numbers that are fitted, as logarithms.
#[derive(Debug, Clone)]
struct Shape {
    sharpness: f64,
    /// c1 and c2 of each curve.
    ends: Vec<[f64; 2]>,
}

impl Shape {
    /// The shape of the least weighted squares, and these squares.
    fn of(curves: &[Curve]) -> (Shape, f64) {
        let with = |sharpness: f64| {
            // In K^q, B^q, c1^q and c2^q the law is the paper's, so the paper's fit finds c1 and c2. Its squares are q² times those of log K.
            let ends = |curve: &Curve| {
                let fitting = LeastSquares::new(curve.sizes.iter().map(|size| (-sharpness * size).exp()).collect());
                let logs: Vec<f64> = curve.logs.iter().map(|log| sharpness * log).collect();
                let law = fitting.law(&logs, &curve.weights);
                within([law.c1.ln() / sharpness, law.c2.ln() / sharpness], curve)
            };
            let shape = Shape { sharpness: sharpness.ln(), ends: curves.iter().map(ends).collect() };
            let squares = shape.squares(curves);
            (shape, squares)
        };
        let first = FIRST.into_iter().map(with).min_by(|a, b| a.1.total_cmp(&b.1));
        first.map(|(shape, _)| shape.fitted(curves)).unwrap_or((Shape { sharpness: 0.0, ends: Vec::new() }, f64::NAN))
    }

    /// From this shape on, the nearest one of the least squares (Levenberg, 1944; Marquardt, 1963), and these squares.
    fn fitted(mut self, curves: &[Curve]) -> (Shape, f64) {
        const TURNS: usize = 40;
        let mut squares = self.squares(curves);
        let mut damping = 1e-3;
        for _ in 0..TURNS {
            let next = self.stepped(curves, damping);
            let after = next.squares(curves);
            if after <= squares {
                let is_done = squares - after < 1e-7 * (1.0 + after);
                (self, squares, damping) = (next, after, damping / 10.0);
                if is_done {
                    break;
                }
            } else if damping > 1e6 {
                break;
            } else {
                damping *= 10.0;
            }
        }
        (self, squares)
    }

    /// A damped step of Gauss and Newton. Curves share the sharpness alone, so that each has two equations of its own once that is known.
    fn stepped(&self, curves: &[Curve], damping: f64) -> Shape {
        let (mut slope, mut bend) = (0.0, 1e-12);
        let mut own = Vec::with_capacity(curves.len());
        for (number, curve) in curves.iter().enumerate() {
            // The matrix of the two ends, the right side, and the products with the sharpness.
            let (mut a, mut b, mut c, mut right, mut with) = (1e-12, 0.0, 1e-12, [0.0; 2], [0.0; 2]);
            let [linear, floor] = self.ends[number];
            for (place, &size) in curve.sizes.iter().enumerate() {
                let (log, share) = self.at(number, size);
                let (weight, residual) = (curve.weights[place], curve.logs[place] - log);
                let by = [share, 1.0 - share];
                let by_sharpness = share * (linear - size) + (1.0 - share) * floor - log;
                a += weight * by[0] * by[0];
                b += weight * by[0] * by[1];
                c += weight * by[1] * by[1];
                for end in 0..2 {
                    right[end] += weight * by[end] * residual;
                    with[end] += weight * by[end] * by_sharpness;
                }
                slope += weight * by_sharpness * residual;
                bend += weight * by_sharpness * by_sharpness * (1.0 + damping);
            }
            (a, c) = (a * (1.0 + damping), c * (1.0 + damping));
            let solve = move |[x, y]: [f64; 2]| [(c * x - b * y) / (a * c - b * b), (a * y - b * x) / (a * c - b * b)];
            let (of_right, of_with) = (solve(right), solve(with));
            slope -= with[0] * of_right[0] + with[1] * of_right[1];
            bend -= with[0] * of_with[0] + with[1] * of_with[1];
            own.push((of_right, of_with));
        }
        let step = |step: f64| if step.is_nan() { 0.0 } else { step.clamp(-1.0, 1.0) };
        let sharper = step(slope / bend);
        let end = |(number, curve): (usize, &Curve)| {
            let (of_right, of_with) = own[number];
            within([0, 1].map(|end| self.ends[number][end] + step(of_right[end] - sharper * of_with[end])), curve)
        };
        Shape {
            sharpness: (self.sharpness + sharper).clamp(RANGE.0.ln(), RANGE.1.ln()),
            ends: curves.iter().enumerate().map(end).collect(),
        }
    }

    /// Log steps of a curve at a log batch size, and the share of its linear end in them.
    fn at(&self, curve: usize, size: f64) -> (f64, f64) {
        let (sharpness, [linear, floor]) = (self.sharpness.exp(), self.ends[curve]);
        let apart = sharpness * (linear - size - floor);
        // ln(1 + e^x) without overflow.
        (floor + (apart.max(0.0) + (-apart.abs()).exp().ln_1p()) / sharpness, 1.0 / (1.0 + (-apart).exp()))
    }

    fn logs(&self, curve: usize, sizes: &[f64]) -> impl Iterator<Item = f64> {
        sizes.iter().map(move |&size| self.at(curve, size).0)
    }

    fn squares(&self, curves: &[Curve]) -> f64 {
        let of = |(number, curve): (usize, &Curve)| {
            let residuals = curve.logs.iter().zip(self.logs(number, &curve.sizes)).map(|(log, fitted)| log - fitted);
            residuals.zip(&curve.weights).map(|(residual, weight)| weight * residual * residual).sum::<f64>()
        };
        curves.iter().enumerate().map(of).sum()
    }

    fn critical(&self, curve: usize) -> f64 {
        let [linear, floor] = self.ends[curve];
        (linear - floor).exp()
    }
}

/// Ends of which neither is [`NONE`] times smaller than the other one at every batch size.
fn within([linear, floor]: [f64; 2], curve: &Curve) -> [f64; 2] {
    let (small, large) = curve.ends();
    if linear - floor > large + NONE.ln() {
        [linear, linear - large - NONE.ln()]
    } else if linear - floor < small - NONE.ln() {
        [floor + small - NONE.ln(), floor]
    } else {
        [linear, floor]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves of batch sizes 2 to 1,024 with critical batch sizes 128 and 32, without noise.
    fn curves(sharpness: f64) -> Vec<Curve> {
        let curve = |[linear, floor]: [f64; 2]| {
            let sizes: Vec<f64> = (1..=10).map(|power| f64::from(1 << power).ln()).collect();
            let shape = Shape { sharpness: sharpness.ln(), ends: vec![[linear.ln(), floor.ln()]] };
            Curve { logs: shape.logs(0, &sizes).collect(), weights: vec![400.0; sizes.len()], sizes }
        };
        [[25_600.0, 200.0], [32_000.0, 1_000.0]].map(curve).into()
    }

    #[test]
    fn the_sharpness_that_made_the_steps_is_found() {
        for sharpness in [0.6, 1.0, 1.5, 3.3] {
            let (shape, squares) = Shape::of(&curves(sharpness));
            let found = [shape.sharpness.exp(), shape.critical(0), shape.critical(1)];
            let near = found.iter().zip([sharpness, 128.0, 32.0]).all(|(found, truth)| (found / truth - 1.0).abs() < 0.01);
            assert!(near && squares < 1e-4, "{sharpness}: {found:?}, {squares}");
        }
    }

    /// With q = 1 the law is the paper's: half of the steps at the critical batch size are each end's.
    #[test]
    fn the_ends_have_equal_shares_at_the_critical_batch_size() {
        let shape = Shape { sharpness: 0.0, ends: vec![[25_600_f64.ln(), 200_f64.ln()]] };
        let (log, share) = shape.at(0, 128_f64.ln());
        assert!((log.exp() - 400.0).abs() < 1e-9 && (share - 0.5).abs() < 1e-12, "{log} {share}");
    }

    /// Steps that fall in proportion to the batch size have no floor, and do not end in numbers that are none.
    #[test]
    fn a_curve_without_a_floor_has_a_large_critical_batch_size() {
        let mut curves = curves(1.0);
        curves[1].logs = curves[1].sizes.iter().map(|size| 10.0 - size).collect();
        let (shape, squares) = Shape::of(&curves);
        assert!(shape.critical(1) > 1e5 && (shape.critical(0) / 128.0 - 1.0).abs() < 0.02 && squares < 0.01, "{shape:?} {squares}");
    }
}

//! The law c1/B^a + c2 fitted to confirmed steps, with an exponent a for each sparsity of a study.
//!
//! With a = 1 the law is the paper's. The critical batch size is where the two terms are equal, (c1/c2)^(1/a).
//!
//! Errors, uneven tuning and resamples are those of `means.rs`.

use super::estimate::Estimate;
use super::fit::RESAMPLES;
use super::least_squares::LeastSquares;
use super::means::{Mean, Means, beyond_chi_squared, left_over, uniforms};
use super::sharpness::{Curve, LEAST_FREEDOM, NONE};
use crate::statistics::{QUANTILE, student};

/// Exponents from which a fit begins: the one with the least squares.
const FIRST: [f64; 5] = [0.5, 0.7, 1.0, 1.4, 2.0];

/// The least and the greatest exponent.
const RANGE: (f64, f64) = (0.1, 4.0);

/// Curves of one study, each with an exponent.
#[derive(Debug, Clone)]
pub struct Exponents {
    /// How often means with these errors would lie as far from the law, if it held for all curves.
    pub goodness: f64,
    shapes: Vec<Shape>,
    /// The shapes of all curves by resample.
    resamples: Vec<Vec<Shape>>,
}

impl Exponents {
    /// The fit of curves that share their seeds. None where a curve has fewer than four batch sizes, and where all of them leave less than
    /// [`LEAST_FREEDOM`].
    pub fn new(curves: &[&[Mean]]) -> Option<Exponents> {
        let all: Vec<Means> = curves.iter().map(|means| Means::new(means)).collect::<Result<_, _>>().ok()?;
        let freedom = all.iter().map(|means| means.freedom().checked_sub(1).filter(|&left| left > 0)).sum::<Option<usize>>()?;
        if freedom < LEAST_FREEDOM {
            return None;
        }
        let weighed = |variance: f64| all.iter().map(|means| Curve::new(means, variance)).collect::<Vec<_>>();
        let squares = |variance: f64| weighed(variance).iter().map(|curve| Shape::of(curve).squares(curve)).sum::<f64>();
        let variance = left_over(squares, freedom);
        let mut curves = weighed(variance);
        let shapes: Vec<Shape> = curves.iter().map(Shape::of).collect();
        let stretched = variance.sqrt() * student(freedom) / QUANTILE;
        let seeds = all.iter().map(Means::seeds).max().unwrap_or(0);
        let fitted: Vec<Vec<f64>> =
            shapes.iter().zip(&curves).map(|(shape, curve)| curve.sizes.iter().map(|&size| shape.at(size).0).collect()).collect();
        let resample = |resample: u64| {
            let uniforms = uniforms(resample, seeds);
            let drawn = |(number, (curve, means)): (usize, (&mut Curve, &Means))| {
                curve.logs = means.drawn(&fitted[number], &uniforms, stretched, resample, number);
                shapes[number].fitted(curve)
            };
            curves.iter_mut().zip(&all).enumerate().map(drawn).collect()
        };
        let resamples = (0..u64::from(RESAMPLES)).map(resample).collect();
        Some(Exponents { goodness: beyond_chi_squared(squares(0.0), freedom), shapes, resamples })
    }

    /// The exponent a of a curve, by its place among those fitted.
    pub fn exponent(&self, curve: usize) -> Estimate {
        self.estimate(|shapes| shapes[curve].exponent)
    }

    /// The critical batch size of a curve: infinite where no floor shows, 0 where nothing but a floor does.
    pub fn critical(&self, curve: usize) -> Estimate {
        self.estimate(|shapes| shapes[curve].critical())
    }

    /// The critical batch size of a curve over that of another one.
    pub fn critical_over(&self, curve: usize, other: usize) -> Estimate {
        self.estimate(|shapes| shapes[curve].critical() / shapes[other].critical())
    }

    fn estimate(&self, of: impl Fn(&[Shape]) -> f64) -> Estimate {
        Estimate::new(of(&self.shapes), self.resamples.iter().map(|shapes| of(shapes)).collect())
    }
}

/// A curve's law: the logarithms of c1 and c2, and the exponent.
#[derive(Debug, Clone, Copy)]
struct Shape {
    linear: f64,
    floor: f64,
    exponent: f64,
}

impl Shape {
    /// The shape of the least weighted squares.
    fn of(curve: &Curve) -> Shape {
        let with = |exponent: f64| {
            let law = LeastSquares::new(curve.sizes.iter().map(|size| (-exponent * size).exp()).collect()).law(&curve.logs, &curve.weights);
            Shape { linear: law.c1.ln(), floor: law.c2.ln(), exponent }.within(curve).fitted(curve)
        };
        let begun = FIRST.map(with);
        begun.into_iter().min_by(|a, b| a.squares(curve).total_cmp(&b.squares(curve))).unwrap_or(begun[0])
    }

    /// From this shape on, the nearest one of the least squares (Levenberg, 1944; Marquardt, 1963).
    fn fitted(mut self, curve: &Curve) -> Shape {
        const TURNS: usize = 60;
        let mut squares = self.squares(curve);
        let mut damping = 1e-3;
        for _ in 0..TURNS {
            let next = self.stepped(curve, damping);
            let after = next.squares(curve);
            if after <= squares {
                let is_done = squares - after < 1e-8 * (1.0 + after);
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
        self
    }

    /// A damped step of Gauss and Newton.
    fn stepped(&self, curve: &Curve, damping: f64) -> Shape {
        let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
        for ((&size, &log), &weight) in curve.sizes.iter().zip(&curve.logs).zip(&curve.weights) {
            let (fitted, share) = self.at(size);
            let by = [share, 1.0 - share, -share * size];
            for row in 0..3 {
                (0..3).for_each(|column| matrix[row][column] += weight * by[row] * by[column]);
                right[row] += weight * by[row] * (log - fitted);
            }
        }
        (0..3).for_each(|end| matrix[end][end] = matrix[end][end] * (1.0 + damping) + 1e-12);
        let step = solved(matrix, right).map(|step| if step.is_nan() { 0.0 } else { step.clamp(-1.0, 1.0) });
        let exponent = (self.exponent + step[2]).clamp(RANGE.0, RANGE.1);
        Shape { linear: self.linear + step[0], floor: self.floor + step[1], exponent }.within(curve)
    }

    /// Log steps at a log batch size, and the share of c1/B^a in them.
    fn at(&self, size: f64) -> (f64, f64) {
        let apart = self.linear - self.exponent * size - self.floor;
        // ln(1 + e^x) without overflow.
        (self.floor + apart.max(0.0) + (-apart.abs()).exp().ln_1p(), 1.0 / (1.0 + (-apart).exp()))
    }

    fn squares(&self, curve: &Curve) -> f64 {
        let residuals = curve.sizes.iter().zip(&curve.logs).map(|(&size, log)| log - self.at(size).0);
        residuals.zip(&curve.weights).map(|(residual, weight)| weight * residual * residual).sum()
    }

    fn critical(&self) -> f64 {
        ((self.linear - self.floor) / self.exponent).exp()
    }

    /// The shape of which neither term is [`NONE`] times smaller than the other one at every batch size.
    fn within(self, curve: &Curve) -> Shape {
        let Shape { linear, floor, exponent } = self;
        let (small, large) = curve.ends();
        let apart = linear - floor;
        if apart > exponent * large + NONE.ln() {
            Shape { floor: linear - exponent * large - NONE.ln(), ..self }
        } else if apart < exponent * small - NONE.ln() {
            Shape { linear: floor + exponent * small - NONE.ln(), ..self }
        } else {
            self
        }
    }
}

/// The solution of three equations (Cramer's rule); not numbers where there is none.
fn solved(matrix: [[f64; 3]; 3], right: [f64; 3]) -> [f64; 3] {
    let determinant = |m: [[f64; 3]; 3]| {
        let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
        m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
    };
    let all = determinant(matrix);
    [0, 1, 2].map(|unknown| {
        let mut with = matrix;
        (0..3).for_each(|row| with[row][unknown] = right[row]);
        determinant(with) / all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batch sizes 2 to 1,024 by c1 = 20,000, c2 = 150 and an exponent, without noise.
    fn curve(exponent: f64) -> Curve {
        let sizes: Vec<f64> = (1..=10).map(|power| f64::from(1 << power).ln()).collect();
        let shape = Shape { linear: 20_000_f64.ln(), floor: 150_f64.ln(), exponent };
        Curve { logs: sizes.iter().map(|&size| shape.at(size).0).collect(), weights: vec![400.0; sizes.len()], sizes }
    }

    #[test]
    fn the_exponent_that_made_the_steps_is_found() {
        for exponent in [0.6, 1.0, 1.1, 1.7] {
            let shape = Shape::of(&curve(exponent));
            let critical = (20_000_f64 / 150.0).powf(1.0 / exponent);
            let near = (shape.exponent / exponent - 1.0).abs() < 1e-3 && (shape.critical() / critical - 1.0).abs() < 1e-2;
            assert!(near && shape.squares(&curve(exponent)) < 1e-4, "{exponent}: {shape:?}");
        }
    }

    #[test]
    fn a_curve_without_a_floor_has_a_large_critical_batch_size() {
        let mut straight = curve(1.0);
        straight.logs = straight.sizes.iter().map(|size| 10.0 - 0.9 * size).collect();
        let shape = Shape::of(&straight);
        assert!(shape.critical() > 1e5 && (shape.exponent - 0.9).abs() < 0.02, "{shape:?}");
    }

    #[test]
    fn three_equations_are_solved() {
        let found = solved([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], [4.0, 10.0, 14.0]);
        assert!(found.iter().zip([1.0, 2.0, 3.0]).all(|(found, expected)| (found - expected).abs() < 1e-12), "{found:?}");
        assert!(solved([[1.0; 3]; 3], [1.0; 3]).iter().all(|found| !found.is_finite()));
    }
}

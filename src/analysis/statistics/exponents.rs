//! The law c1/B^a + c2 fitted to confirmed steps, with an exponent a for each sparsity of a study.
//!
//! With a = 1 the law is the paper's. The critical batch size is where the two terms are equal, (c1/c2)^(1/a).
//!
//! Code that fits of such laws share is in `shaped.rs`.

use super::least_squares::LeastSquares;
use super::shaped::{Curve, Shape, nearest, with_one};

/// Exponents from which a fit begins: the one with the least squares.
const FIRST: [f64; 5] = [0.5, 0.7, 1.0, 1.4, 2.0];

/// The least and the greatest exponent.
const RANGE: (f64, f64) = (0.1, 4.0);

/// The laws of all curves.
#[derive(Debug, Clone)]
pub struct Exponents(Vec<Bent>);

impl Shape for Exponents {
    /// None where a curve has fewer than four batch sizes.
    fn freedom(of_each: &[usize]) -> Option<usize> {
        of_each.iter().map(|freedom| freedom.checked_sub(1).filter(|&left| left > 0)).sum()
    }

    fn of(curves: &[Curve]) -> Exponents {
        Exponents(curves.iter().map(Bent::of).collect())
    }

    fn again(&self, curves: &[Curve]) -> Exponents {
        Exponents(self.0.iter().zip(curves).map(|(bent, curve)| bent.again(curve)).collect())
    }

    fn log(&self, curve: usize, size: f64) -> f64 {
        self.0[curve].at(size).0
    }

    fn number(&self, curve: usize) -> f64 {
        self.0[curve].exponent
    }

    fn critical(&self, curve: usize) -> f64 {
        self.0[curve].critical()
    }
}

/// A curve's law: the logarithms of c1 and c2, and the exponent.
#[derive(Debug, Clone, Copy)]
struct Bent {
    linear: f64,
    floor: f64,
    exponent: f64,
}

impl Bent {
    /// The law of the least weighted squares.
    fn of(curve: &Curve) -> Bent {
        let with = |exponent: f64| {
            let law = LeastSquares::new(curve.sizes.iter().map(|size| (-exponent * size).exp()).collect()).law(&curve.logs, &curve.weights);
            Bent { linear: law.c1.ln(), floor: law.c2.ln(), exponent }.within(curve).again(curve)
        };
        let begun = FIRST.map(with);
        begun.into_iter().min_by(|a, b| a.squares(curve).total_cmp(&b.squares(curve))).unwrap_or(begun[0])
    }

    /// The law of the least squares of other steps of the same curve, from this one on.
    fn again(self, curve: &Curve) -> Bent {
        nearest(self, |bent| bent.squares(curve), |bent, damping| bent.stepped(curve, damping))
    }

    /// A damped step of Gauss and Newton.
    fn stepped(&self, curve: &Curve, damping: f64) -> Bent {
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
        Bent { linear: self.linear + step[0], floor: self.floor + step[1], exponent }.within(curve)
    }

    /// Log steps at a log batch size, and the share of c1/B^a in them.
    fn at(&self, size: f64) -> (f64, f64) {
        let (above, share) = with_one(self.linear - self.exponent * size - self.floor);
        (self.floor + above, share)
    }

    fn squares(&self, curve: &Curve) -> f64 {
        curve.squares(|size| self.at(size).0)
    }

    fn critical(&self) -> f64 {
        ((self.linear - self.floor) / self.exponent).exp()
    }

    /// The law of which neither term is nearly none at every batch size.
    fn within(self, curve: &Curve) -> Bent {
        let [linear, floor] = curve.within([self.linear, self.floor], self.exponent);
        Bent { linear, floor, ..self }
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
        let shape = Bent { linear: 20_000_f64.ln(), floor: 150_f64.ln(), exponent };
        Curve { logs: sizes.iter().map(|&size| shape.at(size).0).collect(), weights: vec![400.0; sizes.len()], sizes }
    }

    #[test]
    fn the_exponent_that_made_the_steps_is_found() {
        for exponent in [0.6, 1.0, 1.1, 1.7] {
            let shape = Bent::of(&curve(exponent));
            let critical = (20_000_f64 / 150.0).powf(1.0 / exponent);
            let near = (shape.exponent / exponent - 1.0).abs() < 1e-3 && (shape.critical() / critical - 1.0).abs() < 1e-2;
            assert!(near && shape.squares(&curve(exponent)) < 1e-4, "{exponent}: {shape:?}");
        }
    }

    #[test]
    fn a_curve_without_a_floor_has_a_large_critical_batch_size() {
        let mut straight = curve(1.0);
        straight.logs = straight.sizes.iter().map(|size| 10.0 - 0.9 * size).collect();
        let shape = Bent::of(&straight);
        assert!(shape.critical() > 1e5 && (shape.exponent - 0.9).abs() < 0.02, "{shape:?}");
    }

    #[test]
    fn three_equations_are_solved() {
        let found = solved([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]], [4.0, 10.0, 14.0]);
        assert!(found.iter().zip([1.0, 2.0, 3.0]).all(|(found, expected)| (found - expected).abs() < 1e-12), "{found:?}");
        assert!(solved([[1.0; 3]; 3], [1.0; 3]).iter().all(|found| !found.is_finite()));
    }
}

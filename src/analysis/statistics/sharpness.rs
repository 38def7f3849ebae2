//! The law ((c1/B)^q + c2^q)^(1/q) fitted to confirmed steps, with one sharpness q for all sparsities of a study.
//!
//! With q = 1 the law is the paper's, c1/B + c2. A larger q turns more sharply from linear scaling, c1/B, into the floor, c2; both ends are straight
//! lines of log K against log B whatever q is, and c1/c2 is the batch size at which they meet. Curves that share q are one curve, moved along both
//! axes: the ratio of their critical batch sizes is the move along log B.
//!
//! Code that fits of such laws share is in `shaped.rs`.

use super::least_squares::LeastSquares;
use super::shaped::{Curve, Shape, nearest, with_one};

/// Sharpnesses from which the fit of the means begins: the one with the least squares.
const FIRST: [f64; 7] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0];

/// The least and the greatest sharpness.
const RANGE: (f64, f64) = (0.25, 8.0);

/// The numbers that are fitted, as logarithms.
#[derive(Debug, Clone)]
pub struct Sharp {
    sharpness: f64,
    /// c1 and c2 of each curve.
    ends: Vec<[f64; 2]>,
}

impl Shape for Sharp {
    /// None of one curve, whose sharpness its few means hardly know.
    fn freedom(of_each: &[usize]) -> Option<usize> {
        if of_each.len() > 1 { of_each.iter().sum::<usize>().checked_sub(1) } else { None }
    }

    fn of(curves: &[Curve]) -> Sharp {
        let with = |sharpness: f64| {
            // In K^q, B^q, c1^q and c2^q the law is the paper's, so the paper's fit finds c1 and c2. Its squares are q² times those of log K.
            let ends = |curve: &Curve| {
                let fitting = LeastSquares::new(curve.sizes.iter().map(|size| (-sharpness * size).exp()).collect());
                let logs: Vec<f64> = curve.logs.iter().map(|log| sharpness * log).collect();
                let law = fitting.law(&logs, &curve.weights);
                curve.within([law.c1.ln() / sharpness, law.c2.ln() / sharpness], 1.0)
            };
            let shape = Sharp { sharpness: sharpness.ln(), ends: curves.iter().map(ends).collect() };
            let squares = shape.squares(curves);
            (shape, squares)
        };
        let first = FIRST.into_iter().map(with).min_by(|a, b| a.1.total_cmp(&b.1));
        first.map_or(Sharp { sharpness: 0.0, ends: Vec::new() }, |(shape, _)| shape.again(curves))
    }

    fn again(&self, curves: &[Curve]) -> Sharp {
        nearest(self.clone(), |shape| shape.squares(curves), |shape, damping| shape.stepped(curves, damping))
    }

    fn log(&self, curve: usize, size: f64) -> f64 {
        self.at(curve, size).0
    }

    fn number(&self, _: usize) -> f64 {
        self.sharpness.exp()
    }

    fn critical(&self, curve: usize) -> f64 {
        let [linear, floor] = self.ends[curve];
        (linear - floor).exp()
    }
}

impl Sharp {
    /// A damped step of Gauss and Newton. Curves share the sharpness alone, so that each has two equations of its own once that is known.
    fn stepped(&self, curves: &[Curve], damping: f64) -> Sharp {
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
            curve.within([0, 1].map(|end| self.ends[number][end] + step(of_right[end] - sharper * of_with[end])), 1.0)
        };
        Sharp {
            sharpness: (self.sharpness + sharper).clamp(RANGE.0.ln(), RANGE.1.ln()),
            ends: curves.iter().enumerate().map(end).collect(),
        }
    }

    /// Log steps of a curve at a log batch size, and the share of its linear end in them.
    fn at(&self, curve: usize, size: f64) -> (f64, f64) {
        let (sharpness, [linear, floor]) = (self.sharpness.exp(), self.ends[curve]);
        let (above, share) = with_one(sharpness * (linear - size - floor));
        (floor + above / sharpness, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves of batch sizes 2 to 1,024 with critical batch sizes 128 and 32, without noise.
    fn curves(sharpness: f64) -> Vec<Curve> {
        let curve = |[linear, floor]: [f64; 2]| {
            let sizes: Vec<f64> = (1..=10).map(|power| f64::from(1 << power).ln()).collect();
            let shape = Sharp { sharpness: sharpness.ln(), ends: vec![[linear.ln(), floor.ln()]] };
            Curve { logs: sizes.iter().map(|&size| shape.log(0, size)).collect(), weights: vec![400.0; sizes.len()], sizes }
        };
        [[25_600.0, 200.0], [32_000.0, 1_000.0]].map(curve).into()
    }

    #[test]
    fn the_sharpness_that_made_the_steps_is_found() {
        for sharpness in [0.6, 1.0, 1.5, 3.3] {
            let shape = Sharp::of(&curves(sharpness));
            let squares = shape.squares(&curves(sharpness));
            let found = [shape.sharpness.exp(), shape.critical(0), shape.critical(1)];
            let near = found.iter().zip([sharpness, 128.0, 32.0]).all(|(found, truth)| (found / truth - 1.0).abs() < 0.01);
            assert!(near && squares < 1e-4, "{sharpness}: {found:?}, {squares}");
        }
    }

    /// With q = 1 the law is the paper's: half of the steps at the critical batch size are each end's.
    #[test]
    fn the_ends_have_equal_shares_at_the_critical_batch_size() {
        let shape = Sharp { sharpness: 0.0, ends: vec![[25_600_f64.ln(), 200_f64.ln()]] };
        let (log, share) = shape.at(0, 128_f64.ln());
        assert!((log.exp() - 400.0).abs() < 1e-9 && (share - 0.5).abs() < 1e-12, "{log} {share}");
    }

    /// Steps that fall in proportion to the batch size have no floor, and do not end in numbers that are none.
    #[test]
    fn a_curve_without_a_floor_has_a_large_critical_batch_size() {
        let mut curves = curves(1.0);
        curves[1].logs = curves[1].sizes.iter().map(|size| 10.0 - size).collect();
        let shape = Sharp::of(&curves);
        let squares = shape.squares(&curves);
        assert!(shape.critical(1) > 1e5 && (shape.critical(0) / 128.0 - 1.0).abs() < 0.02 && squares < 0.01, "{shape:?} {squares}");
    }
}

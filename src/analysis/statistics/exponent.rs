//! Whether steps fall in proportion to the batch size: the law K ≈ c1/B^a + c2 with an exponent a that is fitted too. The paper's law has a = 1.

use super::estimate::Estimate;
use super::fit::{Point, different};
use super::least_squares::LeastSquares;
use crate::statistics::{QUANTILE, student};

/// Points that are needed: one more than the law has parameters.
const FEWEST_POINTS: usize = 4;

/// Exponents that are tried: from one to the other, in so many steps. Between two of them the squares have one minimum at most.
const TRIED: (f64, f64, usize) = (0.1, 4.0, 39);
const WIDTH: f64 = (TRIED.1 - TRIED.0) / TRIED.2 as f64;

/// The exponent of the points of one sparsity, by least squares of log K in the middles of their intervals; of means with known standard errors by
/// squares over their variances. None where fewer than four batch sizes were measured.
///
/// The interval has the exponents whose least squares are at most (1 + t²/(n − 3)) times the least of all, with the 97.5th percentile t of Student's
/// distribution of n − 3 degrees of freedom: the profile likelihood of a normal scatter of log K. Squares that the width of the points' intervals
/// makes are allowed too, so that no exponent is exact; of means with known standard errors 1.96², the limit of the profile likelihood of one number.
/// Of two allowances the larger counts, so that intervals of few points are wide. A limit that is not within 0.1 to 4 is 0 or ∞.
pub fn exponent(points: &[Point]) -> Option<Estimate> {
    if different(points) < FEWEST_POINTS {
        return None;
    }
    let weights: Option<Vec<f64>> = points.iter().map(|point| (point.by_seeds > 0.0).then(|| point.variance().recip())).collect();
    let squares = |exponent: f64| squares_with(points, exponent, weights.as_deref());
    let (value, tried) = least_by_exponent(squares);
    let at = |place: usize| TRIED.0 + WIDTH * place as f64;
    let count = tried.len() - 1;
    let freedom = points.len() - 3;
    let rounding = if weights.is_some() { QUANTILE * QUANTILE } else { points.iter().map(|point| point.variance()).sum() };
    let least = squares(value);
    let most = least + (least * student(freedom).powi(2) / freedom as f64).max(rounding);
    // Where the squares pass the limit, between an exponent inside and one outside.
    let border = |mut inside: f64, mut outside: f64| {
        for _ in 0..20 {
            let middle = (inside + outside) / 2.0;
            if squares(middle) <= most { inside = middle } else { outside = middle }
        }
        inside
    };
    let below = (0..=count).rev().find(|&place| at(place) < value && tried[place] > most);
    let above = (0..=count).find(|&place| at(place) > value && tried[place] > most);
    Some(Estimate {
        value,
        low: below.map_or(0.0, |place| border(value, at(place))),
        high: above.map_or(f64::INFINITY, |place| border(value, at(place))),
    })
}

/// The exponent with the least squares, and the squares of those that are tried first.
pub(super) fn least_by_exponent(squares: impl Fn(f64) -> f64) -> (f64, Vec<f64>) {
    let (first, _, count) = TRIED;
    let at = |place: usize| first + WIDTH * place as f64;
    let tried: Vec<f64> = (0..=count).map(at).map(&squares).collect();
    let coarse = (0..=count).min_by(|a, b| tried[*a].total_cmp(&tried[*b])).unwrap_or(0);
    // Between the neighbours of the best of these lies the best of all: thirds narrow it down.
    let (mut low, mut high) = (at(coarse.saturating_sub(1)), at((coarse + 1).min(count)));
    for _ in 0..20 {
        let third = (high - low) / 3.0;
        if squares(low + third) < squares(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    let narrowed = (low + high) / 2.0;
    (if tried[coarse] <= squares(narrowed) { at(coarse) } else { narrowed }, tried)
}

/// The least squares of log K about c1/B^a + c2, with this exponent a; weighted where the points have weights.
pub(super) fn squares_with(points: &[Point], exponent: f64, weights: Option<&[f64]>) -> f64 {
    let (inverse, logs): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.batch_size.powf(-exponent), point.middle())).unzip();
    let equal = vec![1.0; points.len()];
    let weights = weights.unwrap_or(&equal);
    let law = LeastSquares::new(inverse.clone()).law(&logs, weights);
    let squares = inverse.iter().zip(&logs).map(|(inverse, log)| (log - (law.c1 * inverse + law.c2).ln()).powi(2));
    squares.zip(weights).map(|(square, weight)| weight * square).sum()
}

/// The least squares of log K about a power law, c1/B^a with any exponent; weighted where the points have weights.
pub(super) fn squares_of_power(points: &[Point], weights: Option<&[f64]>) -> f64 {
    let root = |place: usize| weights.map_or(1.0, |weights| weights[place].sqrt());
    let scaled = |value: fn(&Point) -> f64| points.iter().enumerate().map(|(place, point)| root(place) * value(point)).collect::<Vec<_>>();
    let ones = scaled(|_| 1.0);
    let line = without(&scaled(|point| point.batch_size.ln()), &[&ones]);
    let left = without(&scaled(|point| point.middle()), &[&ones, &line]);
    product(&left, &left)
}

/// The quadratic term of log K against log B, by least squares with Student's t, and no less than the steps within their intervals, or the standard
/// errors of means, may move it: above 0 where the returns of larger batches diminish, 0 for a power law. None of fewer than four batch sizes.
pub fn curvature(points: &[Point]) -> Option<Estimate> {
    if different(points) < FEWEST_POINTS {
        return None;
    }
    // Columns that are orthogonal to those before, so that each term is fitted by itself.
    let logs: Vec<f64> = points.iter().map(|point| point.batch_size.ln()).collect();
    let ones = vec![1.0; points.len()];
    let line = without(&logs, &[&ones]);
    let square = without(&line.iter().map(|x| x * x).collect::<Vec<_>>(), &[&ones, &line]);
    let steps: Vec<f64> = points.iter().map(|point| point.middle()).collect();
    let squares = product(&square, &square);
    let value = product(&square, &steps) / squares;
    let left = without(&steps, &[&ones, &line, &square]);
    let freedom = points.len() - 3;
    let scatter = student(freedom) * (product(&left, &left) / freedom as f64 / squares).sqrt();
    let weighted = || square.iter().zip(points);
    let rounding = weighted().map(|(weight, point)| weight.abs() * (3.0 * point.rounding()).sqrt()).sum::<f64>() / squares;
    let errors = QUANTILE * weighted().map(|(weight, point)| weight * weight * point.by_seeds).sum::<f64>().sqrt() / squares;
    let margin = scatter.max(rounding + errors);
    Some(Estimate { value, low: value - margin, high: value + margin })
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A column less its parts along others, which are orthogonal.
fn without(column: &[f64], others: &[&[f64]]) -> Vec<f64> {
    let mut left = column.to_vec();
    for other in others {
        let part = product(&left, other) / product(other, other);
        left.iter_mut().zip(*other).for_each(|(left, other)| *left -= part * other);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(exponent: f64, c2: f64, sizes: &[u32]) -> Vec<Point> {
        sizes.iter().map(|&size| Point::new((size, (1e6 / f64::from(size).powf(exponent) + c2).round() as u32), 1)).collect()
    }

    /// Exponents that are tried, and others between them; steps are rounded to whole ones.
    #[test]
    fn the_exponent_of_a_law_is_found() {
        let sizes = [2, 8, 32, 128, 512, 2048];
        for truth in [0.5, 0.52, 0.8, 0.83, 0.92, 1.0, 1.02, 1.27, 1.3] {
            let found = exponent(&points(truth, 500.0, &sizes)).unwrap();
            assert!((found.value - truth).abs() < 0.01 && found.holds(found.value) && found.holds(truth), "{truth}: {found:?}");
            assert!(found.high - found.low < 0.05, "{found:?}");
        }
        let exact = exponent(&Point::all(&[(2, 8000), (4, 4000), (8, 2000), (16, 1000)], 1)).unwrap();
        assert!((exact.value - 1.0).abs() < 1e-3 && exact.holds(exact.value), "{exact:?}");
    }

    /// A power law has none, whatever its exponent; the steps of a floor have.
    #[test]
    fn curvature_tells_a_floor_from_a_power_law() {
        let sizes = [2, 8, 32, 128, 512, 2048];
        let of = |exponent: f64, c2: f64| curvature(&points(exponent, c2, &sizes)).unwrap();
        assert!(of(0.8, 0.0).holds(0.0) && of(0.8, 0.0).high - of(0.8, 0.0).low < 0.01, "{:?}", of(0.8, 0.0));
        assert!(of(1.0, 5000.0).low > 0.02, "{:?}", of(1.0, 5000.0));
        let equal = curvature(&Point::all(&[(2, 64), (8, 64), (32, 64), (128, 64)], 64)).unwrap();
        assert!(equal.low < -0.1 && equal.high > 0.1, "{equal:?}");
    }

    /// Means whose standard errors differ tenfold: the noisy end says little, whatever it happens to be.
    #[test]
    fn errors_of_means_widen_what_few_of_them_say() {
        let sizes = [2, 8, 32, 128, 512, 2048];
        let with = |error: f64, last: f64| {
            let mut points = points(1.0, 500.0, &sizes);
            points.iter_mut().for_each(|point| (point.above, point.by_seeds) = (point.steps, error * error));
            (points[5].above, points[5].steps, points[5].by_seeds) =
                (points[5].steps * last, points[5].steps * last, 100.0 * error * error);
            points
        };
        let [exact, noisy, moved] = [(1e-4, 1.0), (0.05, 1.0), (0.05, 1.5)].map(|(error, last)| with(error, last));
        let width = |estimate: Estimate| estimate.high - estimate.low;
        let [one, two, three] = [&exact, &noisy, &moved].map(|points| exponent(points).unwrap());
        assert!(width(one) < 0.01 && width(two) > 0.05 && three.holds(1.0), "{one:?} {two:?} {three:?}");
        let [one, two, three] = [&exact, &noisy, &moved].map(|points| curvature(points).unwrap());
        assert!(width(two) > width(one) + 0.01 && three.holds(one.value), "{one:?} {two:?} {three:?}");
    }

    #[test]
    fn few_points_have_none_and_a_floor_alone_any() {
        assert_eq!(exponent(&points(1.0, 500.0, &[2, 4, 8])), None);
        let flat = exponent(&Point::all(&[(2, 100), (4, 103), (8, 98), (16, 101), (32, 99)], 1)).unwrap();
        assert_eq!((flat.low, flat.high), (0.0, f64::INFINITY));
    }
}

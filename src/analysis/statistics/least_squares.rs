//! The law K = c1/B + c2, and the law of the least squares of log K.

/// The curve K = c1/B + c2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// c1, in steps × examples.
    pub c1: f64,
    /// c2, in steps.
    pub c2: f64,
}

impl Law {
    /// K at a batch size.
    pub fn steps(self, batch_size: f64) -> f64 {
        self.c1 / batch_size + self.c2
    }
}

/// Intervals between the values of log b = log(c1/c2) that are scanned.
const SCAN: usize = 48;

/// The least squares of log K at some batch sizes: what all sets of steps at these batch sizes share.
///
/// K = s·(b/B + 1) with b = c1/c2: for a given b the best log s is a mean, so the search has one dimension. log b is scanned, then the slope of the
/// squares is brought to zero about the best of the scan (Newton's method, within the neighbours of the best). The two ends, c2 = 0 and c1 = 0, are
/// tried by themselves.
pub(super) struct LeastSquares {
    /// 1/B of each point.
    inverse: Vec<f64>,
    /// The first log b of the scan.
    first: f64,
    /// From one log b of the scan to the next.
    width: f64,
    /// log(b/B + 1), `[SCAN + 1][points]`.
    terms: Vec<f64>,
}

impl LeastSquares {
    /// The least squares at points with these 1/B.
    pub fn new(inverse: Vec<f64>) -> LeastSquares {
        let (small, large) = inverse.iter().fold((f64::MAX, 0.0_f64), |(small, large), &inverse| (small.min(inverse), large.max(inverse)));
        // A term a thousand times smaller than the other at every measured batch size cannot be told from none.
        let (first, last) = ((1e-3 / large).ln(), (1e3 / small).ln());
        let width = (last - first) / SCAN as f64;
        let scanned = (0..=SCAN).map(|place| (first + width * place as f64).exp());
        let terms = scanned.flat_map(|b| inverse.iter().map(move |inverse| (b * inverse).ln_1p())).collect();
        LeastSquares { inverse, first, width, terms }
    }

    /// The law for these log K, each with a weight: the inverse of its variance.
    pub fn law(&self, logs: &[f64], weights: &[f64]) -> Law {
        let scanned = self.terms.chunks_exact(self.inverse.len()).map(|terms| scaled(terms.iter().copied(), logs, weights).0);
        let best = scanned.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place);
        let b = self.flat(self.first + self.width * best as f64, logs, weights).exp();
        let (inner, scale) = scaled(self.inverse.iter().map(|inverse| (b * inverse).ln_1p()), logs, weights);
        let (no_floor, c1) = scaled(self.inverse.iter().map(|inverse| inverse.ln()), logs, weights);
        let (floor_alone, c2) = scaled(self.inverse.iter().map(|_| 0.0), logs, weights);
        if no_floor <= inner && no_floor <= floor_alone {
            Law { c1, c2: 0.0 }
        } else if floor_alone <= inner {
            Law { c1: 0.0, c2 }
        } else {
            Law { c1: scale * b, c2: scale }
        }
    }

    /// The law for these log K, with equal weights.
    pub fn unweighted(&self, logs: &[f64]) -> Law {
        self.law(logs, &vec![1.0; logs.len()])
    }

    /// The log b next to `best` at which the squares have no slope.
    fn flat(&self, best: f64, logs: &[f64], weights: &[f64]) -> f64 {
        const MOST: usize = 40;
        let count: f64 = weights.iter().sum();
        let (mut low, mut high, mut at) = (best - self.width, best + self.width, best);
        for _ in 0..MOST {
            // p = (b/B) / (b/B + 1) is the slope of log(b/B + 1), and q = p·(1 − p) the slope of p. Sums of weights times p, p², q, the difference of
            // log K, and the difference times p and q.
            let (b, mut sums) = (at.exp(), [0.0; 6]);
            for ((inverse, log), weight) in self.inverse.iter().zip(logs).zip(weights) {
                let ratio = b * inverse;
                let (difference, p) = (log - ratio.ln_1p(), ratio / (1.0 + ratio));
                let q = p * (1.0 - p);
                for (sum, value) in sums.iter_mut().zip([p, p * p, q, difference, difference * p, difference * q]) {
                    *sum += weight * value;
                }
            }
            let [p, p_squared, q, difference, difference_p, difference_q] = sums;
            let mean = difference / count;
            // Half of the first and second derivative of the squares by log b.
            let slope = mean * p - difference_p;
            let curvature = p_squared - p * p / count + mean * q - difference_q;
            if slope > 0.0 {
                high = at;
            } else {
                low = at;
            }
            let newton = at - slope / curvature;
            let next = if curvature > 0.0 && newton > low && newton < high { newton } else { (low + high) / 2.0 };
            let moved = (next - at).abs();
            at = next;
            if moved < 1e-9 {
                break;
            }
        }
        at
    }
}

/// The squares that the best scale of a curve leaves, and this scale. `terms` are the logarithms of the curve at each point.
fn scaled(terms: impl Iterator<Item = f64>, logs: &[f64], weights: &[f64]) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for ((term, log), weight) in terms.zip(logs).zip(weights) {
        let difference = log - term;
        sum += weight * difference;
        squares += weight * difference * difference;
    }
    let mean = sum / weights.iter().sum::<f64>();
    (squares - sum * mean, mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a law are fitted by that law, whichever of its terms is missing, and weights move the law toward the points that have them.
    #[test]
    fn a_law_is_found_again() {
        let sizes: Vec<f64> = (1..=10).map(|power| f64::from(1 << power)).collect();
        let fitting = LeastSquares::new(sizes.iter().map(|size| size.recip()).collect());
        for law in [(3000.0, 20.0), (3000.0, 0.0), (0.0, 20.0), (1e6, 3.0)].map(|(c1, c2)| Law { c1, c2 }) {
            let logs: Vec<f64> = sizes.iter().map(|&size| law.steps(size).ln()).collect();
            let found = fitting.unweighted(&logs);
            assert!((found.c1 - law.c1).abs() <= 1e-7 * law.c1 && (found.c2 - law.c2).abs() <= 1e-7 * law.c2, "{found:?} for {law:?}");
        }
        let law = Law { c1: 3000.0, c2: 20.0 };
        let bent: Vec<f64> = sizes.iter().map(|&size| law.steps(size).ln() + if size == 1024.0 { 0.5 } else { 0.0 }).collect();
        let floor = |last: f64| fitting.law(&bent, &[vec![1.0; 9], vec![last]].concat()).c2;
        assert!((floor(1e-9) / 20.0 - 1.0).abs() < 1e-6 && floor(1.0) > 21.0 && floor(9.0) > floor(1.0));
    }

    /// No other law near the one found has less squares, however the steps scatter.
    #[test]
    fn no_law_nearby_has_less_squares() {
        let sizes: Vec<f64> = (1..=8).map(|power| f64::from(1 << power)).collect();
        let fitting = LeastSquares::new(sizes.iter().map(|size| size.recip()).collect());
        for number in 0..200_u32 {
            // Scatter by a fixed pattern of each number.
            let scatter = |place: usize| (f64::from(number + 1) * (place as f64 + 1.7) * 12.9898).sin();
            let logs: Vec<f64> = sizes.iter().enumerate().map(|(place, size)| (500.0 / size + 30.0).ln() + 0.4 * scatter(place)).collect();
            let weights: Vec<f64> = (0..sizes.len()).map(|place| 1.5 + scatter(place + 20)).collect();
            let squares = |law: Law| {
                let left =
                    sizes.iter().zip(&logs).zip(&weights).map(|((&size, log), weight)| weight * (log - law.steps(size).ln()).powi(2));
                left.sum::<f64>()
            };
            let found = fitting.law(&logs, &weights);
            let least = squares(found);
            for (c1, c2) in [(1.001, 1.0), (0.999, 1.0), (1.0, 1.001), (1.0, 0.999), (1.01, 0.99), (0.99, 1.01), (1.2, 0.9), (0.8, 1.2)] {
                let other = Law { c1: found.c1 * c1, c2: found.c2 * c2 };
                assert!(squares(other) >= least - 1e-12, "{number}: {other:?} is nearer than {found:?}");
            }
        }
    }
}

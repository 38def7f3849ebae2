//! The law c1/B + c2 beside others, by Akaike's information criterion corrected for few points (AICc; Hurvich and Tsai, 1989).

use super::exponent::{least_by_exponent, squares_of_power, squares_with};
use super::fit::{Point, different};
use crate::readable::called;

called! {
    /// A law of steps against batch size B, named by its formula.
    Rival {
        /// The paper's law.
        Paper = "c1/B + c2",
        /// The paper's law with an exponent that is fitted too.
        FreeExponent = "c1/B^a + c2",
        /// A power law, without a floor.
        Power = "c1/B^a",
        /// The paper's law with an exponent of a half.
        Root = "c1/√B + c2",
    }
}

impl Rival {
    /// Numbers that are fitted, the variance of log steps among them.
    fn parameters(self) -> f64 {
        if self == Rival::FreeExponent { 4.0 } else { 3.0 }
    }

    /// The criterion of points: the lower, the better. None of fewer than six batch sizes.
    pub fn criterion(self, points: &[Point]) -> Option<f64> {
        let count = points.len() as f64;
        if different(points) < FEWEST_POINTS {
            return None;
        }
        // Steps are known no better than to their intervals, nor to a millionth.
        let squares = self.squares(points, None).max(points.iter().map(|point| point.rounding()).sum()).max(1e-12 * count);
        Some(count * (squares / count).ln() + self.penalty(count))
    }

    /// The criterion of means, whose logarithms have variances by seeds, and the squares of what is left over these variances. A scatter beyond
    /// these variances, that of uneven tuning, is fitted too and counts as a parameter. None of fewer than six batch sizes.
    pub fn criterion_of_means(self, points: &[Point]) -> Option<(f64, f64)> {
        if different(points) < FEWEST_POINTS {
            return None;
        }
        let weights = |scatter: f64| points.iter().map(|point| 1.0 / (point.by_seeds + scatter).max(1e-12)).collect::<Vec<f64>>();
        let likelihood = |scatter: f64| {
            let weights = weights(scatter);
            self.squares(points, Some(&weights)) - weights.iter().map(|weight| weight.ln()).sum::<f64>()
        };
        // Deviations from a thousandth to one, in steps of a fifth, and none.
        let scatters = (0..=38).map(|step| (1e-3 * 1.2_f64.powi(step)).powi(2)).chain([0.0]);
        let least = scatters.map(likelihood).fold(f64::INFINITY, f64::min);
        Some((least + self.penalty(points.len() as f64), self.squares(points, Some(&weights(0.0)))))
    }

    /// Degrees of freedom of the squares of so many means.
    pub fn freedom(self, means: usize) -> usize {
        means + 1 - self.parameters() as usize
    }

    /// The least squares of the law.
    fn squares(self, points: &[Point], weights: Option<&[f64]>) -> f64 {
        let with = |exponent: f64| squares_with(points, exponent, weights);
        match self {
            Rival::Paper => with(1.0),
            Rival::FreeExponent => with(least_by_exponent(with).0),
            Rival::Power => squares_of_power(points, weights),
            Rival::Root => with(0.5),
        }
    }

    fn penalty(self, count: f64) -> f64 {
        let parameters = self.parameters();
        2.0 * parameters + 2.0 * parameters * (parameters + 1.0) / (count - parameters - 1.0)
    }
}

/// Batch sizes of which laws with four parameters can be compared.
const FEWEST_POINTS: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::means::beyond_chi_squared;
    use super::*;

    /// Curves with a scatter of 1 % that each law makes: the criterion prefers it.
    #[test]
    fn the_law_that_made_the_steps_is_preferred() {
        let made = |exponent: f64, c2: f64| {
            let point = |power: u32| {
                let noise = 1.0 + 0.01 * f64::from(power * 7 % 5) - 0.02;
                let steps = (1e6 / f64::from(1 << power).powf(exponent) + c2) * noise;
                Point { batch_size: f64::from(1 << power), above: steps, steps, by_seeds: 2e-4 }
            };
            (1..11).map(point).collect::<Vec<_>>()
        };
        for (exponent, c2, best) in
            [(1.0, 3000.0, Rival::Paper), (0.75, 3000.0, Rival::FreeExponent), (0.8, 0.0, Rival::Power), (0.5, 3e4, Rival::Root)]
        {
            let points = made(exponent, c2);
            let of = |rival: Rival| rival.criterion(&points).unwrap();
            assert!(Rival::ALL.into_iter().all(|rival| rival == best || of(best) < of(rival)), "{best:?}: {:?}", Rival::ALL.map(of));
            // With the standard errors known, the right law also explains what is left, and the others do not.
            let known = |rival: Rival| rival.criterion_of_means(&points).unwrap();
            let chance = |rival: Rival| beyond_chi_squared(known(rival).1, rival.freedom(10));
            assert!(
                Rival::ALL.into_iter().all(|rival| rival == best || known(best).0 < known(rival).0),
                "{best:?}: {:?}",
                Rival::ALL.map(known)
            );
            assert!(chance(best) > 0.05 && chance(if best == Rival::Root { Rival::Paper } else { Rival::Root }) < 0.01, "{best:?}");
        }
        assert_eq!(Rival::Paper.criterion(&made(1.0, 10.0)[..5]), None);
    }
}

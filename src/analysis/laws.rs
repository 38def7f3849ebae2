//! The law c1/B + c2 beside others, by Akaike's information criterion corrected for few points (AICc; Hurvich and Tsai, 1989).

use super::exponent::{exponent, squares_of_power, squares_with};
use super::fit::{Point, different};

/// A law of steps against batch size B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// c1/B + c2.
    Paper,
    /// c1/B^a + c2.
    FreeExponent,
    /// c1/B^a.
    Power,
    /// c1/√B + c2.
    Root,
}

impl Rival {
    /// Every law, the paper's first.
    pub const ALL: [Rival; 4] = [Rival::Paper, Rival::FreeExponent, Rival::Power, Rival::Root];

    /// The law's formula.
    pub fn name(self) -> &'static str {
        match self {
            Rival::Paper => "c1/B + c2",
            Rival::FreeExponent => "c1/B^a + c2",
            Rival::Power => "c1/B^a",
            Rival::Root => "c1/√B + c2",
        }
    }

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
        let squares = match self {
            Rival::Paper => squares_with(points, 1.0),
            Rival::FreeExponent => squares_with(points, exponent(points)?.value),
            Rival::Power => squares_of_power(points),
            Rival::Root => squares_with(points, 0.5),
        };
        // Steps are known no better than to their intervals, nor to a millionth.
        let squares = squares.max(points.iter().map(|point| point.variance()).sum()).max(1e-12 * count);
        let parameters = self.parameters();
        Some(count * (squares / count).ln() + 2.0 * parameters + 2.0 * parameters * (parameters + 1.0) / (count - parameters - 1.0))
    }
}

/// Batch sizes of which laws with four parameters can be compared.
const FEWEST_POINTS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Curves with a scatter of 1 % that each law makes: the criterion prefers it.
    #[test]
    fn the_law_that_made_the_steps_is_preferred() {
        let made = |exponent: f64, c2: f64| {
            let point = |power: u32| {
                let noise = 1.0 + 0.01 * f64::from(power * 7 % 5) - 0.02;
                let steps = (1e6 / f64::from(1 << power).powf(exponent) + c2) * noise;
                Point { batch_size: f64::from(1 << power), above: steps, steps }
            };
            (1..11).map(point).collect::<Vec<_>>()
        };
        for (exponent, c2, best) in
            [(1.0, 3000.0, Rival::Paper), (0.75, 3000.0, Rival::FreeExponent), (0.8, 0.0, Rival::Power), (0.5, 3e4, Rival::Root)]
        {
            let points = made(exponent, c2);
            let of = |rival: Rival| rival.criterion(&points).unwrap();
            assert!(Rival::ALL.into_iter().all(|rival| rival == best || of(best) < of(rival)), "{best:?}: {:?}", Rival::ALL.map(of));
        }
        assert_eq!(Rival::Paper.criterion(&made(1.0, 10.0)[..5]), None);
    }
}

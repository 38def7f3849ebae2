//! A number with its interval, and the random numbers of resamples.

use crate::statistics::student;

/// Share of resamples that a 95 % interval leaves out on each side.
const TAIL: f64 = 0.025;

/// Shares of simulations with known truth in which the intervals held it (`make coverage`): the least and the most, but for those that
/// docs/results.md names.
pub const COVERED: (f64, f64) = (0.93, 0.97);

/// A number with its 95 % interval. Limits may be infinite; they are NaN where there is no interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number itself: of a fit or a mean.
    pub value: f64,
    /// Lower limit: of a fit the 2.5th percentile of its resamples.
    pub low: f64,
    /// Upper limit: the 97.5th percentile.
    pub high: f64,
}

impl Estimate {
    /// No number.
    pub const NONE: Estimate = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN };

    /// From the resamples of a number. Without an interval where the number, or more of the resamples than lie outside of it, are not numbers: a
    /// ratio of two infinite ones.
    pub(super) fn new(value: f64, mut resampled: Vec<f64>) -> Self {
        let undefined = resampled.iter().filter(|resampled| resampled.is_nan()).count();
        if value.is_nan() || undefined as f64 > TAIL * resampled.len() as f64 {
            return Estimate { value, ..Estimate::NONE };
        }
        resampled.sort_unstable_by(f64::total_cmp);
        let percentile = |share: f64| resampled.get((share * (resampled.len() - 1) as f64).round() as usize).copied().unwrap_or(value);
        // With few points the percentiles may leave out the number itself.
        Estimate { value, low: percentile(TAIL), high: percentile(1.0 - TAIL) }.about(value)
    }

    /// Geometric mean, with the limits of Student's t over logarithms. One value has no interval, and values that are not above 0 have no mean: then
    /// NaN.
    pub fn geometric(values: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = values.map(f64::ln).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (count - 1.0);
        let margin = student(logs.len().saturating_sub(1)) * (variance / count).sqrt();
        Estimate { value: mean.exp(), low: (mean - margin).exp(), high: (mean + margin).exp() }
    }

    /// The product with an independent estimate: margins of logarithms add up by their squares.
    pub fn times(self, other: Estimate) -> Self {
        let value = self.value * other.value;
        let margin = |limit: fn(&Estimate) -> f64| (limit(&self) / self.value).ln().hypot((limit(&other) / other.value).ln());
        Estimate { value, low: value * (-margin(|estimate| estimate.low)).exp(), high: value * margin(|estimate| estimate.high).exp() }
    }

    /// The product with a number above 0 that is known.
    pub fn scaled(self, by: f64) -> Self {
        Estimate { value: self.value * by, low: self.low * by, high: self.high * by }
    }

    /// The interval of this estimate about another number `value`: a limit that would leave `value` out is moved to `value`.
    pub fn about(self, value: f64) -> Self {
        let (low, high) = (if self.low > value { value } else { self.low }, if self.high < value { value } else { self.high });
        Estimate { value, low, high }
    }

    /// An interval about this number that is at least as wide as `margin` in logarithms on both sides.
    pub fn no_narrower(self, margin: f64) -> Self {
        let [lower, upper] = [-margin, margin].map(|margin| self.value * margin.exp());
        Estimate { low: self.about(lower).low, high: self.about(upper).high, ..self }
    }

    /// Whether the interval holds a number.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The least and the largest of some numbers.
pub fn ends(numbers: impl IntoIterator<Item = f64>) -> (f64, f64) {
    numbers.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| (least.min(number), most.max(number)))
}

/// The 97.5th percentile of Student's t for degrees of freedom that are no whole number: on a straight line in their inverse.
pub(super) fn student_between(freedom: f64) -> f64 {
    let below = freedom.max(1.0).floor();
    let [least, most] = [0, 1].map(|more| student(below as usize + more));
    let part = (1.0 - below / freedom.max(1.0)) * (below + 1.0);
    least + (most - least) * part
}

/// A standard normal number that is a function of a counter (Box and Muller, 1958).
pub(super) fn normal(counter: u64) -> f64 {
    (-2.0 * (1.0 - uniform(2 * counter)).ln()).sqrt() * (std::f64::consts::TAU * uniform(2 * counter + 1)).cos()
}

/// A uniform number below 1 that is a function of a counter.
pub(super) fn uniform(counter: u64) -> f64 {
    (scramble(counter) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A counter's hash (the finaliser of SplitMix64; Steele, Lea and Flood, 2014). No recorded result depends on it.
pub(super) fn scramble(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! The paper's law K ≈ c1/B + c2 fitted to measured steps-to-result (Lee et al., ICLR 2021, section 4.1).

/// Resamples of the bootstrap.
pub const RESAMPLES: u32 = 2_000;

/// Points a fit needs: one more than it has parameters.
const FEWEST_POINTS: usize = 3;

/// Local slope of log K against log B below which scaling is called linear.
pub const LINEAR_SLOPE: f64 = -0.95;

/// Exponents a of K = c1/B^a + c2 with which scaling is called linear: twice the batch takes 1.74 to 2.38 times fewer steps where c2 does not count.
pub const LINEAR_EXPONENTS: (f64, f64) = (0.8, 1.25);

/// Local slope above which data parallelism is called maximal.
pub const MAXIMAL_SLOPE: f64 = -0.05;

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
    /// From the resamples of a number. Without an interval where the number, or more of the resamples than lie outside of it, are not numbers: a
    /// ratio of two infinite ones.
    fn new(value: f64, mut resampled: Vec<f64>) -> Self {
        let undefined = resampled.iter().filter(|resampled| resampled.is_nan()).count();
        if value.is_nan() || undefined as f64 > 0.025 * resampled.len() as f64 {
            return Estimate { value, low: f64::NAN, high: f64::NAN };
        }
        resampled.sort_unstable_by(f64::total_cmp);
        let percentile = |share: f64| resampled.get((share * (resampled.len() - 1) as f64).round() as usize).copied().unwrap_or(value);
        // With few points the percentiles may leave out the number itself.
        Estimate { value, low: percentile(0.025), high: percentile(0.975) }.about(value)
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

    /// Another number that its interval is of too: a limit gives way where it would leave the number out.
    pub fn about(self, value: f64) -> Self {
        let (low, high) = (if self.low > value { value } else { self.low }, if self.high < value { value } else { self.high });
        Estimate { value, low, high }
    }

    /// Whether the interval holds a number.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Where a batch size lies on a fitted curve, by the curve's local slope d log K / d log B = −1/(1 + B/B_crit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// Slope below [`LINEAR_SLOPE`]: twice the batch, half the steps.
    Linear,
    /// A slope between the two: a larger batch saves steps, but fewer than its factor.
    Diminishing,
    /// Slope above [`MAXIMAL_SLOPE`]: a larger batch saves no steps.
    Maximal,
}

impl Regime {
    /// The paper's words for it.
    pub fn name(self) -> &'static str {
        match self {
            Regime::Linear => "linear scaling",
            Regime::Diminishing => "diminishing returns",
            Regime::Maximal => "maximal data parallelism",
        }
    }
}

/// K ≈ c1/B + c2 with c1, c2 ≥ 0, by least squares of log K.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// c1, in steps × examples.
    pub c1: Estimate,
    /// c2, in steps: the floor that no batch size goes below.
    pub c2: Estimate,
    /// Critical batch size c1/c2: where the two terms are equal, so K* is twice its floor and the local slope is −1/2. Infinite where
    /// no floor shows, 0 where nothing but a floor does.
    pub critical: Estimate,
    /// Points fitted.
    pub points: usize,
    /// Root mean square of the residuals of log K, with n − 2 degrees of freedom.
    pub deviation: f64,
    /// (c1, c2) of each resample.
    resamples: Vec<Law>,
}

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

impl Fit {
    /// Fits (batch size, K*) points of one sparsity.
    ///
    /// Intervals are percentiles of [`RESAMPLES`] resamples (the parametric bootstrap; Efron, 1979), always the same ones: normal numbers of the
    /// residuals' deviation, stretched by Student's t over the normal's quantile for how few points there are, are added to log K of the fitted
    /// curve, and the law is fitted again. The residuals themselves, drawn with replacement, would be too few to say how far K* may scatter.
    ///
    /// # Errors
    /// Why there is no fit, as a clause, where fewer than three different batch sizes were measured.
    pub fn new(measured: &[(u32, u32)]) -> Result<Fit, String> {
        let mut sizes: Vec<u32> = measured.iter().map(|point| point.0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() < FEWEST_POINTS {
            return Err(format!("a fit needs {FEWEST_POINTS} batch sizes with a result, and there are {}", sizes.len()));
        }
        let (inverse, logs) = coordinates(measured);
        let law = least_squares(&inverse, &logs);
        let fitted: Vec<f64> = inverse.iter().map(|inverse| (law.c1 * inverse + law.c2).ln()).collect();
        let residuals: Vec<f64> = logs.iter().zip(&fitted).map(|(log, fitted)| log - fitted).collect();
        let freedom = measured.len() - 2;
        let deviation = (residuals.iter().map(|residual| residual * residual).sum::<f64>() / freedom as f64).sqrt();
        let stretched = deviation * student(freedom) / 1.96;
        let mut counter = 0;
        let mut draw = || {
            counter += 1;
            stretched * normal(counter)
        };
        let mut resample = || least_squares(&inverse, &fitted.iter().map(|fitted| fitted + draw()).collect::<Vec<_>>());
        let resamples: Vec<Law> = (0..RESAMPLES).map(|_| resample()).collect();
        let estimate = |of: fn(Law) -> f64| Estimate::new(of(law), resamples.iter().copied().map(of).collect());
        let (c1, c2, critical) = (estimate(|law| law.c1), estimate(|law| law.c2), estimate(|law| law.c1 / law.c2));
        Ok(Fit { c1, c2, critical, points: measured.len(), deviation, resamples })
    }

    /// The critical batch size of (batch size, K*) points, without an interval. NaN or infinite where they have none.
    pub fn critical_of(measured: &[(u32, u32)]) -> f64 {
        let (inverse, logs) = coordinates(measured);
        let law = least_squares(&inverse, &logs);
        law.c1 / law.c2
    }

    /// A number that follows from the fitted curve.
    pub fn of_law(&self, of: impl Fn(Law) -> f64) -> Estimate {
        Estimate::new(of(self.law()), self.resamples.iter().map(|law| of(*law)).collect())
    }

    fn law(&self) -> Law {
        Law { c1: self.c1.value, c2: self.c2.value }
    }

    /// K at a batch size, by the fit.
    pub fn steps(&self, batch_size: f64) -> Estimate {
        self.of_law(|law| law.steps(batch_size))
    }

    /// The regime at a batch size, where every critical batch size in the interval gives the same one.
    pub fn regime(&self, batch_size: f64) -> Option<Regime> {
        let by = |critical: f64| {
            let slope = -1.0 / (1.0 + batch_size / critical);
            if slope < LINEAR_SLOPE {
                Regime::Linear
            } else if slope > MAXIMAL_SLOPE {
                Regime::Maximal
            } else {
                Regime::Diminishing
            }
        };
        let regime = by(self.critical.low);
        (regime == by(self.critical.high)).then_some(regime)
    }

    /// The largest batch size with linear scaling and the smallest with maximal data parallelism: B_crit/19 and 19·B_crit.
    pub fn borders(&self) -> (Estimate, Estimate) {
        let at = |slope: f64| self.critical.scaled(-1.0 / slope - 1.0);
        (at(LINEAR_SLOPE), at(MAXIMAL_SLOPE))
    }

    /// c1 of this fit over c1 of another of independent measurements (sparse over dense: the shift the paper's theory predicts where
    /// scaling is linear).
    pub fn c1_over(&self, other: &Fit) -> Estimate {
        self.over(other, |law| law.c1)
    }

    /// c2 of this fit over c2 of another of independent measurements.
    pub fn c2_over(&self, other: &Fit) -> Estimate {
        self.over(other, |law| law.c2)
    }

    /// The critical batch size of this fit over that of another of independent measurements.
    pub fn critical_over(&self, other: &Fit) -> Estimate {
        self.over(other, |law| law.c1 / law.c2)
    }

    /// K at a batch size by this fit over that by another of independent measurements.
    pub fn steps_over(&self, other: &Fit, batch_size: f64) -> Estimate {
        self.over(other, |law| law.steps(batch_size))
    }

    /// Every number of resamples is taken twice, so the other's are taken in reverse: the resamples of two fits are independent.
    ///
    /// The resamples of each fit are stretched for its own few points. The difference of two numbers has more degrees of freedom than either, by
    /// Welch's estimate (1947) and at most those of both, so that the logarithms of ratios are drawn together by what is too much. But the deviation
    /// about a fit through three points, of one degree, is too uncertain for that estimate: in simulations it made the ratio's interval too narrow.
    fn over(&self, other: &Fit, of: impl Fn(Law) -> f64) -> Estimate {
        let value = of(self.law()) / of(other.law());
        let (a, b) = (self.deviation.powi(2), other.deviation.powi(2));
        let (of_a, of_b) = (self.points - 2, other.points - 2);
        let welch = (a + b).powi(2) / (a * a / (of_a + 2) as f64 + b * b / (of_b + 2) as f64) - 2.0;
        let stretched = a * student(of_a).powi(2) + b * student(of_b).powi(2);
        let narrower = match of_a.min(of_b) {
            ..2 => 1.0,
            _ => (student_between(welch.min((of_a + of_b) as f64)) * ((a + b) / stretched).sqrt()).min(1.0),
        };
        let ratio = |(this, other): (&Law, &Law)| {
            let ratio = of(*this) / of(*other);
            let is_plain = |number: f64| number > 0.0 && number.is_finite();
            if is_plain(ratio) && is_plain(value) && narrower.is_finite() { value * (ratio / value).powf(narrower) } else { ratio }
        };
        Estimate::new(value, self.resamples.iter().zip(other.resamples.iter().rev()).map(ratio).collect())
    }
}

/// The exponent of a power law y ∝ x^e, by least squares of log y against log x, with the limits of Student's t. None for fewer than three points,
/// and where all x are equal or a number is not above 0.
pub fn slope(points: &[(f64, f64)]) -> Option<Estimate> {
    let logs: Vec<(f64, f64)> = points.iter().map(|point| (point.0.ln(), point.1.ln())).collect();
    let freedom = logs.len().checked_sub(2).filter(|&freedom| freedom > 0)?;
    let count = logs.len() as f64;
    let (mean_x, mean_y) = (logs.iter().map(|point| point.0).sum::<f64>() / count, logs.iter().map(|point| point.1).sum::<f64>() / count);
    let squares: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let value = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let left: f64 = logs.iter().map(|(x, y)| (y - mean_y - value * (x - mean_x)).powi(2)).sum();
    let margin = student(freedom) * (left / freedom as f64 / squares).sqrt();
    value.is_finite().then_some(Estimate { value, low: value - margin, high: value + margin })
}

/// 1/B and log K of each point.
fn coordinates(measured: &[(u32, u32)]) -> (Vec<f64>, Vec<f64>) {
    measured.iter().map(|&(size, steps)| (1.0 / f64::from(size.max(1)), f64::from(steps.max(1)).ln())).unzip()
}

/// K = s·(b/B + 1) with b = c1/c2: for a given b the best log s is a mean, so the search has one dimension. log b is scanned, then
/// narrowed by golden sections; the two ends, c2 = 0 and c1 = 0, are tried by themselves.
pub(super) fn least_squares(inverse: &[f64], logs: &[f64]) -> Law {
    let count = logs.len() as f64;
    // The best scale for a shape given by its two terms, and the squares that are left.
    let solve = |b: f64, floor: f64| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (inverse, log) in inverse.iter().zip(logs) {
            let difference = log - (b * inverse + floor).ln();
            sum += difference;
            squares += difference * difference;
        }
        let mean = sum / count;
        (squares - sum * mean, mean.exp())
    };
    let (small, large) = inverse.iter().fold((f64::MAX, 0.0_f64), |(small, large), &inverse| (small.min(inverse), large.max(inverse)));
    // A term a thousand times smaller than the other at every measured batch size cannot be told from none.
    let (first, last) = ((1e-3 / large).ln(), (1e3 / small).ln());
    const SCAN: usize = 48;
    let width = (last - first) / SCAN as f64;
    let squares = |log_b: f64| solve(log_b.exp(), 1.0).0;
    let best = (0..=SCAN).map(|i| first + width * i as f64).min_by(|a, b| squares(*a).total_cmp(&squares(*b))).unwrap_or(first);
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (best - width, best + width);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (squares(left), squares(right));
    for _ in 0..30 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = squares(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = squares(right);
        }
    }
    let b = ((low + high) / 2.0).exp();
    let ((inner, scale), (no_floor, c1), (floor_alone, c2)) = (solve(b, 1.0), solve(1.0, 0.0), solve(0.0, 1.0));
    if no_floor <= inner && no_floor <= floor_alone {
        Law { c1, c2: 0.0 }
    } else if floor_alone <= inner {
        Law { c1: 0.0, c2 }
    } else {
        Law { c1: scale * b, c2: scale }
    }
}

/// The 97.5th percentile of Student's t.
pub(super) fn student(freedom: usize) -> f64 {
    const FEW: [f64; 12] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
    FEW.get(freedom.max(1) - 1).copied().unwrap_or(1.96 + 2.4 / freedom as f64)
}

/// The same for degrees of freedom that are no whole number: on a straight line in their inverse.
fn student_between(freedom: f64) -> f64 {
    let below = freedom.max(1.0).floor();
    let [least, most] = [0, 1].map(|more| student(below as usize + more));
    let part = (1.0 - below / freedom.max(1.0)) * (below + 1.0);
    least + (most - least) * part
}

/// A standard normal number that is a function of a counter (Box and Muller, 1958).
fn normal(counter: u64) -> f64 {
    (-2.0 * (1.0 - uniform(2 * counter)).ln()).sqrt() * (std::f64::consts::TAU * uniform(2 * counter + 1)).cos()
}

/// A uniform number below 1 that is a function of a counter.
pub(super) fn uniform(counter: u64) -> f64 {
    (scramble(counter) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A counter's hash (the finaliser of SplitMix64; Steele, Lea and Flood, 2014). No recorded result depends on it.
fn scramble(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

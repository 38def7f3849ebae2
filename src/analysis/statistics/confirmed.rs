//! Steps of points that were trained again with fresh seeds: plain numbers in, estimates with intervals out.
//!
//! The point that one half of the seeds chooses is measured on the other half, both ways round ([`crate::statistics`]). A training that did not reach
//! the goal within its limit, or became infeasible, took more steps than that: it is never dropped.

use super::estimate::Estimate;
use super::fit::{FEWEST_STEPS, Point, expected};
use crate::statistics::{BEYOND_LIMIT, QUANTILE, by_each_other, chosen, crossed, fair_coins, student};

/// A training that reached the goal after more than the first number of steps, and after the second at the latest; none that failed.
pub type Reached = Option<(f64, f64)>;

/// The quantile of a normal number that 9 of 10 lie below.
const NINE_OF_TEN: f64 = 1.2816;

/// A cell's steps, measured by trainings with fresh seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmed {
    /// The points that the even and the odd seeds chose, by their places.
    pub chosen: [usize; 2],
    /// One training a seed: each of the point that the other half of the seeds chose.
    pub trainings: Vec<Reached>,
    /// Median steps; infinite where half of the trainings failed.
    pub median: Estimate,
    /// Geometric mean of the steps, as a log-normal distribution has it of which failures are the part beyond the limit; not a number where more than
    /// half failed.
    pub mean: Estimate,
    /// Steps by which 9 of 10 trainings are there, of that distribution; infinite where more than 1 of 10 failed.
    pub nine_of_ten: Estimate,
    /// The share of trainings that failed.
    pub failures: Estimate,
    /// Log steps to be expected of each training, by that distribution.
    logs: Vec<f64>,
    /// The standard error of their mean over that of as many numbers known exactly.
    wider: f64,
    /// The part of that factor that is of halves which choose each other's point.
    by_each_other: f64,
}

impl Confirmed {
    /// From the trainings of each point, by seed; every point with the same seeds. `limit` is the number of steps after which a training was given
    /// up. None where there is no point, or fewer than four seeds.
    pub fn new(points: &[Vec<Reached>], limit: f64) -> Option<Confirmed> {
        let steps = |reached: &Reached| reached.map_or(f64::INFINITY, |(_, steps)| steps);
        let chosen = chosen(&points.iter().map(|point| point.iter().map(steps).collect()).collect::<Vec<_>>(), limit)?;
        let trainings = crossed(points, chosen);
        let seeds = trainings.len();
        let failed = trainings.iter().filter(|training| training.is_none()).count();
        let mut normal = Normal::new(&trainings, limit, chosen[0] != chosen[1]);
        let by_each_other = by_each_other(points.len());
        normal.wider *= by_each_other;
        let failures = share(failed, seeds);
        let mean = if 2 * failed > seeds { Estimate::NONE } else { normal.mean() };
        let nine_of_ten = match normal.nine_of_ten() {
            within if failed == 0 => within,
            // More than 1 of 10 fail for sure.
            _ if failures.low > 0.1 => Estimate { value: f64::INFINITY, low: limit, high: f64::INFINITY },
            // More than 1 of 10 may fail in truth, or fewer, where it is the trainings' luck that so many failed.
            Estimate { value, low, .. } => {
                let value = if 10 * failed > seeds { f64::INFINITY } else { value };
                Estimate { value, low: low.min(limit), high: f64::INFINITY }
            }
        };
        Some(Confirmed {
            chosen,
            median: median(&trainings),
            mean,
            nine_of_ten,
            failures,
            logs: normal.logs,
            wider: normal.wider,
            by_each_other,
            trainings,
        })
    }

    /// The geometric mean of these steps over those of another cell, paired by seed: cells share their seeds. Failures have no pair; then the two
    /// means are taken as independent, which makes the interval wider. None where a cell has no mean.
    pub fn over(&self, other: &Confirmed) -> Option<Estimate> {
        if self.mean.value.is_nan() || other.mean.value.is_nan() {
            return None;
        }
        if [self, other].iter().any(|cell| cell.failures.value > 0.0) {
            let Estimate { value, low, high } = other.mean;
            return Some(self.mean.times(Estimate { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low }));
        }
        let ratios = self.logs.iter().zip(&other.logs).map(|(own, other)| (own - other).exp());
        let Estimate { value, low, high } = Estimate::geometric(ratios);
        let wider = self.wider.max(other.wider);
        Some(Estimate { value, low: value * (low / value).powf(wider), high: value * (high / value).powf(wider) })
    }

    /// Log steps of each training by seed, failures as what is to be expected of them.
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }

    /// The standard error of the logarithm of the mean, stretched by Student's t for how few seeds there are.
    pub fn error(&self) -> f64 {
        (self.mean.high / self.mean.low).ln() / 2.0 / QUANTILE
    }

    /// By how much the logarithm of the mean moves where seeds are drawn again: `uniforms`, numbers below 1 that all cells share, draw from each half
    /// of the seeds as many as the half has. The move is stretched by the same factors as `error`, but for the factor of the choice (`of_choice`).
    pub fn resampled(&self, uniforms: &[f64]) -> f64 {
        let count = self.logs.len();
        let moved = |parity: usize| {
            let half: Vec<f64> = self.logs.iter().skip(parity).step_by(2).copied().collect();
            let size = half.len() as f64;
            let draws = uniforms.iter().skip(parity).step_by(2).take(half.len());
            let drawn: f64 = draws.map(|uniform| half[(uniform * size) as usize]).sum();
            // Drawn numbers scatter about their own mean, by one degree of freedom less than there are.
            (drawn - half.iter().sum::<f64>()) / count as f64 * (size / (size - 1.0)).sqrt()
        };
        (moved(0) + moved(1)) * self.wider / self.by_each_other * student(count - 2) / QUANTILE
    }

    /// The variance of the logarithm of the mean that no other cell shares: what halves that choose each other's point add, as each cell chooses
    /// its own.
    pub fn of_choice(&self) -> f64 {
        self.error().powi(2) * (1.0 - self.by_each_other.powi(-2))
    }
}

/// The steps at which the mean error over seeds reaches a goal: of the first evaluation that finds it. `errors` has those of each seed at its
/// evaluations, every `every` steps; all seeds have equally many. The interval goes from the last evaluation at which the lower limit of the mean
/// (Student's t) is above the goal to the one after the last at which the upper limit is, infinite where there is none: of many evaluations near the
/// goal a few lie below it by luck.
pub fn mean_error(errors: &[Vec<f64>], every: f64, goal: f64) -> Estimate {
    let (seeds, evaluations) = (errors.len() as f64, errors.iter().map(Vec::len).min().unwrap_or(0));
    let of = |evaluation: usize| {
        let mean = errors.iter().map(|errors| errors[evaluation]).sum::<f64>() / seeds;
        let squares = errors.iter().map(|errors| (errors[evaluation] - mean).powi(2)).sum::<f64>();
        (mean, student(errors.len().saturating_sub(1)) * (squares / (seeds - 1.0) / seeds).sqrt())
    };
    let means: Vec<(f64, f64)> = (0..evaluations).map(of).collect();
    let steps = |evaluation: Option<usize>| evaluation.map_or(f64::INFINITY, |evaluation| every * (evaluation + 1) as f64);
    let value = steps(means.iter().position(|(mean, _)| *mean <= goal));
    let above = means.iter().rposition(|(mean, margin)| mean - margin > goal);
    let is_sure = |(mean, margin): &(f64, f64)| mean + margin <= goal;
    let first_sure = means.iter().rposition(|mean| !is_sure(mean)).map_or(0, |last| last + 1);
    let high = steps((first_sure < evaluations).then_some(first_sure));
    Estimate { value, low: above.map_or(0.0, |above| steps(Some(above))), high }.about(value)
}

/// The means of the numbers of even and of odd seeds.
pub(super) fn means_of_halves(logs: &[f64]) -> [f64; 2] {
    [0, 1].map(|parity| {
        let half = logs.iter().skip(parity).step_by(2);
        half.clone().sum::<f64>() / half.count() as f64
    })
}

/// A normal distribution of log steps that are known to intervals.
struct Normal {
    mean: f64,
    deviation: f64,
    logs: Vec<f64>,
    /// Trainings.
    count: f64,
    freedom: usize,
    wider: f64,
}

impl Normal {
    /// The most likely distribution (EM; Dempster, Laird and Rubin, 1977). Halves that measure different points have means of their own.
    fn new(trainings: &[Reached], limit: f64, differ: bool) -> Normal {
        let intervals: Vec<Point> = trainings
            .iter()
            .map(|reached| {
                let (above, steps) = reached.unwrap_or((limit, f64::INFINITY));
                Point { batch_size: 1.0, above: above.max(FEWEST_STEPS), steps, by_seeds: 0.0 }
            })
            .collect();
        let count = trainings.len() as f64;
        let freedom = trainings.len() - 1 - usize::from(differ);
        let start = |reached: &Reached| reached.map_or((BEYOND_LIMIT * limit).ln(), |(above, steps)| ((above + steps) / 2.0).ln());
        let mut logs: Vec<f64> = trainings.iter().map(start).collect();
        let mut variances = vec![0.0; logs.len()];
        let (mut means, mut deviation) = ([0.0; 2], 0.0);
        for _ in 0..100 {
            means = if differ { means_of_halves(&logs) } else { [logs.iter().sum::<f64>() / count; 2] };
            let squares = logs.iter().enumerate().map(|(seed, log)| (log - means[seed % 2]).powi(2)).sum::<f64>();
            let found = ((squares + variances.iter().sum::<f64>()) / count).sqrt();
            // Equal steps still lie somewhere in their intervals.
            let least = intervals.iter().map(|point| point.rounding()).sum::<f64>() / count;
            let before = deviation;
            deviation = found.max((least / 4.0).sqrt()).max(1e-6);
            for (seed, point) in intervals.iter().enumerate() {
                (logs[seed], variances[seed]) = expected(*point, means[seed % 2], deviation);
            }
            if (deviation / before - 1.0).abs() < 1e-6 {
                break;
            }
        }
        // A training whose log steps are known only within an interval counts as less than one training: `known` is the sum of these counts.
        let known: f64 = variances.iter().map(|variance| (1.0 - variance / deviation / deviation).max(0.0)).sum();
        let mean = if differ { (means[0] + means[1]) / 2.0 } else { means[0] };
        // The most likely deviation is that of a sample. Divided by the degrees of freedom in each turn above, what is not known would grow with it.
        let deviation = deviation * (count / freedom as f64).sqrt();
        Normal { mean, deviation, logs, count, freedom, wider: (count / known.max(1.0)).sqrt() }
    }

    fn mean(&self) -> Estimate {
        let margin = student(self.freedom) * self.deviation / self.count.sqrt() * self.wider;
        Estimate { value: self.mean.exp(), low: (self.mean - margin).exp(), high: (self.mean + margin).exp() }
    }

    /// Limits of a normal quantile (Natrella, 1963: an approximation to the non-central t).
    fn nine_of_ten(&self) -> Estimate {
        let known = self.count / self.wider / self.wider;
        let a = 1.0 - QUANTILE * QUANTILE / 2.0 / self.freedom as f64;
        let b = NINE_OF_TEN * NINE_OF_TEN - QUANTILE * QUANTILE / known;
        let root = (NINE_OF_TEN * NINE_OF_TEN - a * b).sqrt();
        let at = |times: f64| (self.mean + times * self.deviation).exp();
        Estimate { value: at(NINE_OF_TEN), low: at((NINE_OF_TEN - root) / a), high: at((NINE_OF_TEN + root) / a) }
    }
}

/// The median with its interval by order statistics, between which it is interpolated (Hettmansperger and Sheather, 1986): of any distribution.
fn median(trainings: &[Reached]) -> Estimate {
    let mut sorted: Vec<(f64, f64)> = trainings.iter().map(|reached| reached.unwrap_or((f64::INFINITY, f64::INFINITY))).collect();
    sorted.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let all = sorted.len();
    let between = |a: f64, b: f64, part: f64| if b.is_finite() { (a.ln() * (1.0 - part) + b.ln() * part).exp() } else { b };
    let middle = |(above, steps): (f64, f64)| (above + steps) / 2.0;
    let value = between(middle(sorted[(all - 1) / 2]), middle(sorted[all / 2]), 0.5);
    // The share of samples whose median lies between the d-th number and the d-th from above.
    let chances: Vec<f64> = fair_coins(all).collect();
    let covered = |depth: usize| 1.0 - 2.0 * chances[..depth].iter().sum::<f64>();
    let Some(depth) = (1..=all / 2).rev().find(|&depth| covered(depth) >= 0.95) else {
        return Estimate { value, low: 0.0, high: f64::INFINITY };
    };
    let (wide, narrow) = (covered(depth), covered(depth + 1));
    let share = (wide - 0.95) / (wide - narrow);
    let part = (all - depth) as f64 * share / (depth as f64 + (all - 2 * depth) as f64 * share);
    let high = if part > 0.0 { between(sorted[all - depth].1, sorted[all - depth - 1].1, part) } else { sorted[all - depth].1 };
    // Towards the median from a failure on there is no number between.
    let high = if sorted[all - depth].1.is_infinite() { f64::INFINITY } else { high };
    Estimate { value, low: between(sorted[depth - 1].0.max(FEWEST_STEPS), sorted[depth].0.max(FEWEST_STEPS), part), high }
}

/// A share of so many with Wilson's interval (1927).
fn share(found: usize, all: usize) -> Estimate {
    let (share, all) = (found as f64 / all as f64, all as f64);
    let square = QUANTILE * QUANTILE / all;
    let middle = (share + square / 2.0) / (1.0 + square);
    let margin = QUANTILE * (share * (1.0 - share) / all + square / 4.0 / all).sqrt() / (1.0 + square);
    Estimate { value: share, low: (middle - margin).max(0.0), high: (middle + margin).min(1.0) }.about(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(steps: &[f64]) -> Vec<Reached> {
        steps.iter().map(|&steps| (steps > 0.0).then_some((steps - 10.0, steps))).collect()
    }

    /// The even seeds favour the first point, the odd ones the second: each is measured where it did not win.
    #[test]
    fn a_point_is_measured_on_the_seeds_that_did_not_choose_it() {
        let points = [reached(&[100.0, 400.0, 110.0, 410.0, 120.0, 420.0]), reached(&[300.0, 200.0, 310.0, 210.0, 320.0, 220.0])];
        let found = Confirmed::new(&points, 2000.0).unwrap();
        assert_eq!(found.chosen, [0, 1]);
        assert_eq!(found.trainings, reached(&[300.0, 400.0, 310.0, 410.0, 320.0, 420.0]));
        assert!((found.mean.value / 349.0 - 1.0).abs() < 0.02 && found.median.holds(350.0), "{found:?}");
    }

    /// Failures count: a point whose seeds half fail is not chosen for its few quick ones, and 4 of 16 failures are no 9 of 10.
    #[test]
    fn failures_are_steps_beyond_the_limit() {
        let quick: Vec<f64> = (0..16).map(|seed| if seed / 2 % 2 == 0 { 100.0 } else { 0.0 }).collect();
        let slow: Vec<f64> = (0..16).map(|seed| if seed < 12 { 300.0 + 10.0 * f64::from(seed) } else { 0.0 }).collect();
        let found = Confirmed::new(&[reached(&quick), reached(&slow)], 1000.0).unwrap();
        assert_eq!(found.chosen, [1, 1]);
        assert!((found.failures.value, found.failures.low > 0.09, found.failures.high < 0.53) == (0.25, true, true), "{found:?}");
        assert!(found.nine_of_ten.value.is_infinite() && found.nine_of_ten.low == 1000.0);
        let without = Confirmed::new(&[reached(&slow[..12])], 1000.0).unwrap();
        assert!(found.median.value > without.median.value && found.mean.value > 1.2 * without.mean.value, "{found:?} {without:?}");
        let all = Confirmed::new(&[reached(&[0.0; 16])], 1000.0).unwrap();
        assert!(all.median.value.is_infinite() && all.mean.value.is_nan() && all.over(&found).is_none(), "{all:?}");
    }

    /// Trainings that all end at one evaluation are known to that interval, no better.
    #[test]
    fn equal_steps_are_not_exact() {
        let found = Confirmed::new(&[reached(&[100.0; 16])], 400.0).unwrap();
        assert!(found.mean.low < found.mean.high && found.median.low <= 90.0 && found.median.high >= 100.0, "{found:?}");
        assert!(found.failures.value == 0.0 && found.failures.high > 0.1);
        assert_eq!((Confirmed::new(&[reached(&[100.0; 3])], 400.0), Confirmed::new(&[], 400.0)), (None, None));
    }

    /// Trainings that reach the goal at their first evaluation took one step at least.
    #[test]
    fn steps_before_the_first_evaluation_have_a_mean() {
        let found = Confirmed::new(&[(0..8).map(|seed| Some((0.0, if seed < 6 { 32.0 } else { 64.0 }))).collect()], 128.0).unwrap();
        assert!(found.mean.low > 1.0 && found.mean.high < 64.0 && found.mean.value > 4.0, "{found:?}");
        let at_once = Confirmed::new(&[vec![Some((0.0, 1.0)); 8]], 4.0).unwrap();
        assert!((0.5..=1.0).contains(&at_once.mean.value), "{at_once:?}");
    }

    /// The limits are order statistics by the binomial distribution, also where the chance of the first one is too small for a number.
    #[test]
    fn the_median_of_many_trainings_has_an_interval() {
        for (all, [depth, most]) in [(32, [10, 11]), (2_000, [956, 957])] {
            let steps: Vec<f64> = (1..=all).map(f64::from).collect();
            let Estimate { value, low, high } = median(&steps.iter().map(|&steps| Some((steps, steps))).collect::<Vec<_>>());
            let found = [low, f64::from(all + 1) - high];
            assert!(found.iter().all(|limit| (f64::from(depth)..f64::from(most)).contains(limit)), "{all}: {low} to {high}");
            assert!((value - f64::from(all + 1) / 2.0).abs() < 0.01);
        }
    }

    /// Errors of seeds that fall at their own speeds: the mean reaches the goal between theirs.
    #[test]
    fn the_mean_error_reaches_the_goal_with_an_interval() {
        let errors: Vec<Vec<f64>> = [400.0, 450.0, 500.0, 550.0]
            .iter()
            .map(|speed| (1..=100).map(|evaluation| speed / f64::from(10 * evaluation)).collect())
            .collect();
        let found = mean_error(&errors, 10.0, 1.0);
        assert!(found.value == 480.0 && (300.0..400.0).contains(&found.low) && (560.0..600.0).contains(&found.high), "{found:?}");
        // One evaluation below the goal by luck, long before.
        let lucky: Vec<Vec<f64>> = errors
            .iter()
            .map(|errors| errors.iter().enumerate().map(|(place, &error)| if place == 9 { 0.9 } else { error }).collect())
            .collect();
        assert_eq!(mean_error(&lucky, 10.0, 1.0).high, found.high);
        let never = mean_error(&errors, 10.0, 0.1);
        assert_eq!(never, Estimate { value: f64::INFINITY, low: 1000.0, high: f64::INFINITY });
    }

    /// Seeds that are slow in one cell are slow in the other: their ratio is known better than either.
    #[test]
    fn ratios_are_paired_by_seed() {
        let own: Vec<f64> = (0..16).map(|seed| 500.0 + 30.0 * f64::from(seed * 7 % 16)).collect();
        let other: Vec<f64> = own.iter().enumerate().map(|(seed, steps)| 2.0 * steps + (seed % 3) as f64).collect();
        let [own, other] = [own, other].map(|steps| Confirmed::new(&[reached(&steps)], 9000.0).unwrap());
        let ratio = other.over(&own).unwrap();
        assert!(
            (ratio.value / 2.0 - 1.0).abs() < 0.01 && ratio.high / ratio.low < 1.02 && own.mean.high / own.mean.low > 1.1,
            "{ratio:?} {:?}",
            own.mean
        );
    }
}

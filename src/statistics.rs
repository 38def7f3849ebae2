//! Steps of several points that were trained with the same seeds, as plain numbers: which point each half of the seeds chooses, how narrowly the mean
//! is known, and how many seeds make it narrow enough. Where the numbers come from it does not know.
//!
//! The best point of a search was lucky, and so was the best of a few points with as many seeds each: what a point is chosen by must not measure it.
//! So the seeds are halved; the point that one half chooses is measured on the other half, both ways round (cross-fitting).

/// [`by_each_other`] of several points, in simulations of equal ones.
const BY_EACH_OTHER: f64 = 1.08;

/// Seeds that a mean begins with where it is to reach a precision, and after which points are compared first.
const FIRST_SEEDS: u32 = 8;
/// The fewest seeds that are added at once.
const MORE_SEEDS: u32 = 4;

/// A point is dropped where, of so many pairs of equal points, one point at most would be slower with as many seeds.
const PAIRS: f64 = 256.0;

/// Seeds of which a mean is made, at least.
pub const FEWEST_SEEDS: usize = 4;

/// Steps that stand for a training that failed, in times the limit, where its steps must be a number.
pub const BEYOND_LIMIT: f64 = 1.5;

/// The 97.5th percentile of a normal distribution: the quantile of a 95 % interval.
pub const QUANTILE: f64 = 1.96;

/// The 97.5th percentile of Student's t.
pub fn student(freedom: usize) -> f64 {
    const FEW: [f64; 12] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179];
    // Of many degrees of freedom a series in their inverse (Abramowitz and Stegun, 1964, 26.7.5) has three digits behind the point.
    let inverse = 1.0 / freedom.max(1) as f64;
    FEW.get(freedom.max(1) - 1).copied().unwrap_or(QUANTILE + inverse * (2.3724 + inverse * (2.8225 + inverse * 2.556)))
}

/// How often a number of Student's t lies as far from 0 as `t`, on either side (Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4). What is less than
/// 1e-12 cannot be told from 0.
pub fn beyond_student(t: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The terms of the series, each the one before times the squared cosine and an odd number over the even one beside it, or the other way round.
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, if freedom > 1 { cosine } else { 0.0 }) } else { (1.0, 1.0) };
    for number in ((2 + usize::from(is_odd))..freedom.saturating_sub(1)).step_by(2) {
        term *= cosine * cosine * (number - 1) as f64 / number as f64;
        sum += term;
    }
    let within = if is_odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// The points that the even and the odd seeds choose, by their places: those whose median over every second seed is the least, by the sum of the two
/// in the middle, then by the mean of all with failures at the limit. `points` has the steps of each by seed, infinite ones of a training that
/// failed. None where there is no point or a point has fewer than four seeds.
pub fn chosen(points: &[Vec<f64>], limit: f64) -> Option<[usize; 2]> {
    let seeds = points.iter().map(Vec::len).min().filter(|&seeds| seeds >= FEWEST_SEEDS)?;
    let choose = |parity: usize| {
        let half = |point: &Vec<f64>| point.iter().take(seeds).skip(parity).step_by(2).copied().collect();
        best(points.iter().map(half).enumerate(), limit)
    };
    Some([choose(0)?, choose(1)?])
}

/// The place of the point with the least median of its steps, by the sum of the two in the middle, then with the least mean, failures at the limit.
fn best(points: impl Iterator<Item = (usize, Vec<f64>)>, limit: f64) -> Option<usize> {
    let rank = |(place, mut steps): (usize, Vec<f64>)| {
        steps.sort_unstable_by(f64::total_cmp);
        let middle = steps[(steps.len() - 1) / 2] + steps[steps.len() / 2];
        (middle, steps.iter().map(|steps| steps.min(limit)).sum::<f64>(), place)
    };
    points.map(rank).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(.., place)| place)
}

/// How many seeds each point is to have, of `most`, where points that are plainly slower get no more: after 8 seeds, and again after twice as many, a
/// point is dropped that took more steps than the best one with nearly all of these seeds (the sign test, by seed; a race of Birattari et al., 2002).
/// Where the points still in play do not have the seeds of the next comparison, that is how many they are to have. `points` and `limit` as in
/// [`chosen`].
pub fn seeds_in_play(points: &[Vec<f64>], limit: f64, most: u32) -> Vec<u32> {
    let mut dropped = vec![None; points.len()];
    let mut looked = FIRST_SEEDS;
    while looked < most {
        let seeds = looked as usize;
        let in_play = || (0..points.len()).filter(|&place| dropped[place].is_none());
        if in_play().any(|place| points[place].len() < seeds) {
            break;
        }
        let Some(best) = best(in_play().map(|place| (place, points[place][..seeds].to_vec())), limit) else { break };
        let slower = |place: usize| points[place].iter().zip(&points[best]).take(seeds).filter(|(own, best)| own > best).count();
        let plain = plainly_slower(seeds);
        let losers: Vec<usize> = in_play().filter(|&place| slower(place) >= plain).collect();
        losers.into_iter().for_each(|place| dropped[place] = Some(looked));
        looked = looked.saturating_mul(2);
    }
    dropped.into_iter().map(|dropped| dropped.unwrap_or(looked.min(most))).collect()
}

/// The least number of `seeds` with which of two equal points the one is the slower one in at most 1 of 256 pairs.
fn plainly_slower(seeds: usize) -> usize {
    let mut beyond = 0.0;
    for (quicker, chance) in fair_coins(seeds).enumerate() {
        beyond += chance;
        if beyond * PAIRS > 1.0 + 1e-9 {
            return seeds - quicker + 1;
        }
    }
    0
}

/// The chances that 0, 1, 2 … of so many fair coins show heads. They come from their logarithms: the first chance of over a thousand coins is less
/// than the least number.
pub fn fair_coins(count: usize) -> impl Iterator<Item = f64> {
    let mut log_chance = -(count as f64) * std::f64::consts::LN_2;
    (0..=count).map(move |heads| {
        let chance = libm::exp(log_chance);
        log_chance += libm::log((count - heads) as f64 / (heads + 1) as f64);
        chance
    })
}

/// The places of the points that a cell is measured by, of points with so many `seeds`: those with the most. The others were dropped for being
/// plainly slower ([`seeds_in_play`]), or their seeds are still to come.
pub fn in_play(seeds: &[usize]) -> Vec<usize> {
    let most = seeds.iter().max();
    (0..seeds.len()).filter(|&place| Some(&seeds[place]) == most).collect()
}

/// By how much the standard error of a mean is larger where two halves choose each other's point, of so many points, than of as many independent
/// trainings: a point that one half chose and the other did not was slower there, and both halves are measured by such points.
pub fn by_each_other(points: usize) -> f64 {
    if points > 1 { BY_EACH_OTHER } else { 1.0 }
}

/// A value for each seed, of the point that the other half of the seeds chose: of `points`, by point and seed, and their places `chosen` by the even
/// and the odd seeds. As many as the point with the fewest has.
pub fn crossed<T: Copy>(points: &[Vec<T>], chosen: [usize; 2]) -> Vec<T> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|seed| points[chosen[1 - seed % 2]][seed]).collect()
}

/// Half the width of the 95 % interval of the mean logarithm of the steps of the chosen points; infinite where more than half of their trainings
/// failed, or there are too few. Points that were dropped ([`in_play`]) take no part. `points` and `limit` as in [`chosen`].
pub fn half_width(points: &[Vec<f64>], limit: f64) -> f64 {
    let seeds: Vec<usize> = points.iter().map(Vec::len).collect();
    let points: Vec<Vec<f64>> = in_play(&seeds).into_iter().map(|place| points[place].clone()).collect();
    let Some(chosen) = chosen(&points, limit) else { return f64::INFINITY };
    let steps = crossed(&points, chosen);
    let seeds = steps.len();
    if 2 * steps.iter().filter(|steps| steps.is_infinite()).count() > seeds {
        return f64::INFINITY;
    }
    let logs: Vec<f64> = steps.iter().map(|steps| libm::log(steps.min(BEYOND_LIMIT * limit))).collect();
    let halves = if chosen[0] == chosen[1] { 1 } else { 2 };
    // Halves that measure different points have means of their own.
    let squares: f64 = (0..halves)
        .map(|half| {
            let of_half: Vec<f64> = logs.iter().skip(half).step_by(halves).copied().collect();
            let mean = of_half.iter().sum::<f64>() / of_half.len() as f64;
            of_half.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>()
        })
        .sum();
    let freedom = seeds - halves;
    student(freedom) * (squares / freedom as f64 / seeds as f64).sqrt() * by_each_other(points.len())
}

/// How many seeds a mean has or is to have next: the first few, then more, until the half-width of so many seeds is at most `precision`, or `most`
/// are spent. `half_width` is none of seeds that are not all trained yet.
pub fn seeds(precision: f64, most: u32, half_width: impl Fn(u32) -> Option<f64>) -> u32 {
    let mut seeds = FIRST_SEEDS.min(most);
    // A quarter more each time, so that many seeds take few looks; an even number, for halves of equal size.
    while seeds < most && half_width(seeds).is_some_and(|width| width > precision) {
        seeds = (seeds + MORE_SEEDS.max(seeds / 8 * 2)).min(most);
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first point's steps are 100 and 121 in turns; the second point is slower.
    fn points(seeds: usize) -> Vec<Vec<f64>> {
        let steps = |slow: f64| (0..seeds).map(|seed| if seed / 2 % 2 == 0 { 100.0 * slow } else { 121.0 * slow }).collect();
        vec![steps(1.0), steps(2.0)]
    }

    #[test]
    fn half_widths_are_those_of_student() {
        let alone = &points(16)[..1];
        // Half of log 1.21 is the deviation, but for one degree of freedom.
        let expected = student(15) * 1.1_f64.ln() / 15_f64.sqrt();
        assert!((half_width(alone, 1e3) / expected - 1.0).abs() < 1e-3, "{}", half_width(alone, 1e3));
        assert!((half_width(&points(16), 1e3) / expected / BY_EACH_OTHER - 1.0).abs() < 1e-3);
        assert!(half_width(&points(64), 1e3) < half_width(alone, 1e3) / 1.8);
        let mut failed = points(16)[..1].to_vec();
        failed[0][0] = f64::INFINITY;
        assert!((2.0..20.0).contains(&(half_width(&failed, 500.0) / expected)));
        failed[0].iter_mut().skip(7).for_each(|steps| *steps = f64::INFINITY);
        assert_eq!((half_width(&failed, 500.0), half_width(&points(3), 500.0)), (f64::INFINITY, f64::INFINITY));
    }

    /// Against tables (Fisher and Yates, 1963), and against the quantiles.
    #[test]
    fn tails_are_those_of_student() {
        for (t, freedom, chance) in [(63.657, 1, 0.01), (9.925, 2, 0.01), (12.924, 3, 0.001), (3.355, 8, 0.01), (4.073, 15, 0.001)] {
            assert!((beyond_student(t, freedom) / chance - 1.0).abs() < 2e-3, "{t} {freedom}: {}", beyond_student(t, freedom));
        }
        for freedom in 1..200 {
            assert!((beyond_student(student(freedom), freedom) / 0.05 - 1.0).abs() < 2e-3, "{freedom}");
        }
        assert_eq!((beyond_student(0.0, 5), beyond_student(f64::INFINITY, 5)), (1.0, 0.0));
    }

    #[test]
    fn points_that_are_slower_with_nearly_all_seeds_are_dropped() {
        assert_eq!([8, 16, 32, 64].map(plainly_slower), [8, 14, 24, 44]);
        // Slower with 7 of the first 8 seeds and 14 of 16; with each; as fast; failed with each, as does no other.
        let best = |seeds: usize| (0..seeds).map(|seed| 100.0 + (seed % 5) as f64).collect::<Vec<f64>>();
        let times = |slow: f64, seeds: usize| best(seeds).into_iter().map(|steps| steps * slow).collect::<Vec<f64>>();
        let mut mostly = times(1.1, 40);
        (mostly[0], mostly[9]) = (90.0, 90.0);
        let points =
            |seeds: [usize; 4]| vec![mostly[..seeds[0]].to_vec(), times(1.3, seeds[1]), best(seeds[2]), vec![f64::INFINITY; seeds[3]]];
        for (have, expected) in [
            ([0, 8, 8, 8], [8, 8, 8, 8]),
            ([8, 8, 8, 8], [16, 8, 16, 8]),
            ([16, 8, 16, 8], [16, 8, 32, 8]),
            ([16, 8, 32, 8], [16, 8, 40, 8]),
            ([40, 40, 40, 40], [16, 8, 40, 8]),
        ] {
            assert_eq!(seeds_in_play(&points(have), 500.0, 40), expected, "{have:?}");
        }
        assert_eq!(seeds_in_play(&points([8, 8, 8, 8]), 500.0, 8), [8; 4]);
        assert_eq!(in_play(&[16, 8, 40, 8]), [2]);
        assert_eq!(in_play(&[40, 40, 40, 40]), [0, 1, 2, 3]);
        assert_eq!(in_play(&[16, 8, 12, 8]), [0], "seeds of the one that is not dropped are still to come");
        assert!(in_play(&[]).is_empty() && seeds_in_play(&[], 500.0, 16).is_empty());
    }

    #[test]
    fn seeds_are_added_until_the_mean_is_narrow_or_all_are_spent() {
        let width = |seeds: u32| Some(1.0 / f64::from(seeds).sqrt());
        assert_eq!([0.5, 0.3, 0.2, 0.1].map(|precision| seeds(precision, 64, width)), [8, 12, 30, 64]);
        assert_eq!([4, 10, 1_000].map(|most| seeds(0.01, most, width)), [4, 10, 1_000]);
        // Seeds that are not trained yet come first.
        assert_eq!(seeds(0.01, 64, |seeds| (seeds < 16).then_some(1.0)), 16);
    }
}

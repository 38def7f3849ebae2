//! Sparse networks beside the dense one.

use std::collections::HashSet;

use super::claim::{ABOUT_FOUR, Claim, PAPERS_RATIOS, SPARSEST, TWO_TO_FOUR};
use super::finding::{Finding, Said, Tails, fitted, times, words};
use crate::analysis::statistics::{Estimate, Fit, Fitted, ends, slope_of_known};
use crate::analysis::studies::{StudyResults, has_trials};
use crate::optimizer::OptimizerName;
use crate::readable::{digits, some};
use crate::records::{Cell, Trial};
use crate::statistics::QUANTILE;

/// Batch sizes that two fitted curves are compared at, at the fewest: as many as a fit needs.
const FEWEST_COMMON: usize = 3;

/// How many batch sizes two sparsities share, in words.
fn common(number: usize) -> String {
    let number = if number == 0 { "no batch size".to_owned() } else { some(number, "batch size") };
    format!("{number} at which both sparsities have a result")
}

/// Findings of each sparsity's steps over the dense network's; none where the dense network was not measured.
pub fn of_steps(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    let Some(dense) = fits.iter().find(|fitted| fitted.sparsity == 0.0) else { return Vec::new() };
    let of = |sparse: &Fitted| {
        let (steps, critical) = (|bounds| steps(sparse, dense, bounds), |bounds| critical(sparse, dense, bounds));
        let mut said = vec![
            (Claim::MoreSteps, steps(ABOVE_ONE)),
            (Claim::RatioFalls, falls(sparse, dense)),
            (Claim::CriticalBatchSize, critical(ABOVE_ONE)),
        ];
        if sparse.sparsity == SPARSEST {
            said.extend([(Claim::Times, steps(PAPERS_RATIOS)), (Claim::TwoToFour, steps(TWO_TO_FOUR))]);
            let is_momentum = study.results.workload.optimizer == OptimizerName::Momentum.name();
            said.extend(is_momentum.then(|| (Claim::FourTimes, critical(ABOUT_FOUR))));
        }
        said.into_iter().map(|(claim, said)| Finding::new(claim, sparse.sparsity, said)).collect::<Vec<_>>()
    };
    fits.iter().filter(|fitted| fitted.sparsity > 0.0).flat_map(of).collect()
}

/// How many trials of each sparsity are good, beside those of the dense network where that was measured.
pub fn of_trials(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    let has_dense = fits.iter().any(|fitted| fitted.sparsity == 0.0);
    let sparsities = || fits.iter().map(|fitted| fitted.sparsity);
    let sparse = sparsities().filter(|&sparsity| has_dense && sparsity > 0.0);
    let fewer = sparse.map(|sparsity| Finding::new(Claim::GoodRegion, sparsity, region(study, sparsity)));
    fewer.chain(sparsities().map(|sparsity| Finding::new(Claim::RegionGrows, sparsity, region_grows(study, sparsity)))).collect()
}

/// Whether the ratios of steps, by those of the fitted curves at the batch sizes measured at both sparsities, lie between bounds.
fn steps(sparse: &Fitted, dense: &Fitted, bounds: (f64, f64)) -> Said {
    let (of_sparse, of_dense, tails, measured) = both(sparse, dense)?;
    let ratios: Vec<Estimate> = measured.iter().map(|&(size, _)| of_sparse.steps_over(of_dense, size)).collect();
    let (inside, outside): (Vec<f64>, Vec<f64>) = ratios.iter().map(|&ratio| within(tails, ratio, bounds)).unzip();
    // By the law all other ratios lie between the two at the ends, each of which may fail by chance.
    let fails = (2.0 * outside[0].min(outside[outside.len() - 1])).min(1.0);
    Ok((extremes(&measured, &ratios), inside.into_iter().fold(0.0, f64::max), fails))
}

/// The bounds of a ratio that lies above 1.
const ABOVE_ONE: (f64, f64) = (1.0, f64::INFINITY);

/// The doubts that a ratio lies between two bounds, of which the upper one may be infinite, and that it lies outside of them.
fn within(tails: Tails, ratio: Estimate, (least, most): (f64, f64)) -> (f64, f64) {
    let (above, below) = (tails.above(ratio, least), tails.below(ratio, least));
    if most.is_infinite() { (above, below) } else { (above.max(tails.below(ratio, most)), below.min(tails.above(ratio, most))) }
}

/// Two fits with the tails of what follows from both, and the ratios of steps, at least [`FEWEST_COMMON`], by batch size.
type Both<'a> = (&'a Fit, &'a Fit, Tails, Vec<(f64, f64)>);

/// The fits of a sparse and the dense network; or that a fit is missing, or too few batch sizes are common.
fn both<'a>(sparse: &'a Fitted, dense: &'a Fitted) -> Result<Both<'a>, String> {
    let (of_sparse, of_dense, ratios) = (fitted(sparse)?, fitted(dense)?, sparse.ratios(dense));
    if ratios.len() < FEWEST_COMMON {
        return Err(common(ratios.len()));
    }
    Ok((of_sparse, of_dense, Tails::of_both(of_sparse, of_dense), ratios))
}

/// The smallest and the largest ratio of the fits in words, and of the cells themselves, as measured.
fn extremes(measured: &[(f64, f64)], ratios: &[Estimate]) -> String {
    let of = |limit: fn(&Estimate) -> f64| ends(ratios.iter().map(limit));
    let ((low, high), least, most) = (of(|ratio| ratio.value), of(|ratio| ratio.low).0, of(|ratio| ratio.high).1);
    let (few, many) = ends(measured.iter().map(|point| point.1));
    let [low, high, least, most, few, many] = [low, high, least, most, few, many].map(|value| digits(value, 3));
    format!(
        "by the fits {low} to {high} times as many at {}, intervals within {least} to {most}; by the cells themselves {few} to {many} times",
        some(ratios.len(), "batch size")
    )
}

/// Whether the ratio of steps falls as batches grow, by the ratios of the cells themselves: no law has a part in it.
fn falls(sparse: &Fitted, dense: &Fitted) -> Said {
    let number = sparse.ratios(dense).len();
    let trend = sparse.trend(dense).ok_or_else(|| common(number))?;
    let measured = format!("as B to the power of {}, over {}", words(trend), some(number, "batch size"));
    let tails = Tails(number - 2);
    Ok((measured, tails.below(trend, 0.0), tails.above(trend, 0.0)))
}

/// Whether the ratio of the critical batch sizes lies between bounds.
fn critical(sparse: &Fitted, dense: &Fitted, bounds: (f64, f64)) -> Said {
    let (of_sparse, of_dense, tails, _) = both(sparse, dense)?;
    let ratio = of_sparse.critical_over(of_dense);
    let (holds, fails) = within(tails, ratio, bounds);
    Ok((times(ratio, "the dense one's"), holds, fails))
}

/// Trials that reached the goal within the race's factor times K*, sparse over dense. Of two cells whose races had several factors, within the
/// smaller.
fn region(study: &StudyResults, sparsity: f64) -> Said {
    let grid = study.grid();
    let reached = |size: u32, sparsity: f64| grid.cell(size, sparsity).filter(|cell| cell.best().is_some());
    let pairs = grid.batch_sizes.iter().filter_map(|&size| Some((reached(size, sparsity)?, reached(size, 0.0)?)));
    let pairs: Vec<(&Cell, &Cell)> = pairs.collect();
    known(study, pairs.iter().flat_map(|pair| [pair.0, pair.1]))?;
    let counted = |(sparse, dense): &(&Cell, &Cell)| {
        let most = race(study, sparse).min(race(study, dense));
        let ([of_sparse, of_dense], differ) = ([good(sparse, most), good(dense, most)], differing(sparse, dense, most));
        // The variance of the logarithm of the ratio of good trials. The cells share their points: only points that are good in one of them count.
        (of_sparse / of_dense, (differ + 1.0) / (of_sparse * of_dense))
    };
    let (ratios, variances): (Vec<f64>, Vec<f64>) = pairs.iter().map(counted).unzip();
    let count = ratios.len() as f64;
    let ratio = Estimate::geometric(ratios.iter().copied()).no_narrower(QUANTILE * (variances.iter().sum::<f64>() / count / count).sqrt());
    if ratios.len() < 2 || ratio.low.is_nan() {
        return Err(common(ratios.len()));
    }
    let measured = format!("{} times as many as of the dense one, over {}", words(ratio), some(ratios.len(), "batch size"));
    let tails = Tails(ratios.len() - 1);
    Ok((measured, tails.below(ratio, 1.0), tails.above(ratio, 1.0)))
}

/// Whether more trials are good at larger batch sizes.
fn region_grows(study: &StudyResults, sparsity: f64) -> Said {
    let cells: Vec<&Cell> = study.reached(sparsity).collect();
    known(study, cells.iter().copied())?;
    let most = cells.iter().map(|cell| race(study, cell)).fold(f64::INFINITY, f64::min);
    let counts: Vec<f64> = cells.iter().map(|cell| good(cell, most)).collect();
    let points: Vec<(f64, f64)> = cells.iter().zip(&counts).map(|(cell, good)| (f64::from(cell.key.batch_size), *good)).collect();
    // The variance of the logarithm of a cell's number of good trials, which is a binomial number among all trials of the cell.
    let variance = |(cell, good): (&&Cell, &f64)| 1.0 / (good + 0.5) - 1.0 / (cell.trials.len() as f64 + 1.0);
    let variances: Vec<f64> = cells.iter().zip(&counts).map(variance).collect();
    let slope = slope_of_known(&points, &variances).ok_or_else(|| format!("{} with a result", some(points.len(), "batch size")))?;
    let (few, many) = ends(counts.iter().copied());
    let measured =
        format!("{few} to {many} good trials a cell, as B to the power of {}, over {}", words(slope), some(points.len(), "batch size"));
    let tails = Tails(points.len().saturating_sub(2));
    Ok((measured, tails.above(slope, 0.0), tails.below(slope, 0.0)))
}

/// Says why good trials cannot be counted, where they cannot.
fn known<'a>(study: &StudyResults, cells: impl Iterator<Item = &'a Cell> + Clone) -> Result<(), String> {
    let mut numbers = cells.clone().map(|cell| cell.trials.len());
    let first = numbers.next();
    if !has_trials(&study.results) {
        return Err("the trials are not known".to_owned());
    }
    if numbers.any(|number| Some(number) != first) {
        return Err("cells of several numbers of trials".to_owned());
    }
    if cells.clone().any(|cell| study.hides_others(cell)) {
        return Err("the race ended at K*".to_owned());
    }
    Ok(())
}

/// How many times K* a cell's race goes on for; infinite without a race.
fn race(study: &StudyResults, cell: &Cell) -> f64 {
    study.race_of(cell).factor().unwrap_or(f64::INFINITY)
}

/// The trials of a cell that reached the goal within `times` its K*. Trials that reached it later, up to the race's next evaluation, do not count.
fn good_trials(cell: &Cell, times: f64) -> impl Iterator<Item = &Trial> {
    let most = cell.steps_to_result().filter(|_| times.is_finite()).map_or(f64::INFINITY, |least| times * f64::from(least));
    cell.trials.iter().filter(move |trial| trial.steps.is_some_and(|steps| f64::from(steps) <= most))
}

fn good(cell: &Cell, times: f64) -> f64 {
    good_trials(cell, times).count() as f64
}

/// Points that are good in one of two cells alone.
fn differing(one: &Cell, other: &Cell, times: f64) -> f64 {
    let [in_one, in_other] = [one, other].map(|cell| good_trials(cell, times).map(|trial| trial.index).collect::<HashSet<_>>());
    in_one.symmetric_difference(&in_other).count() as f64
}

//! Sparse networks beside the dense one.

use super::super::fit::{Estimate, slope};
use super::super::fits::Fitted;
use super::super::others::has_trials;
use super::super::studies::StudyResults;
use super::claim::Claim;
use super::claim::PAPERS_RATIOS;
use super::finding::{Finding, Verdict, fitted, words};
use crate::config::Race;
use crate::readable::{digits, some};
use crate::records::Cell;

/// What a ratio needs, in the singular.
const WITH_RESULT: &str = "batch size at which both sparsities have a result";

/// What each sparsity says beside the dense network; nothing where that was not measured.
pub fn findings(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    let Some(dense) = fits.iter().find(|fitted| fitted.sparsity == 0.0) else { return Vec::new() };
    let each = |sparse: &Fitted| {
        let mut found = vec![
            more_steps(study, sparse, dense),
            ratio_falls(study, sparse.sparsity),
            critical(sparse, dense),
            region(study, sparse.sparsity),
        ];
        found.extend((sparse.sparsity == PAPERS_RATIOS.0).then(|| times(study, sparse, dense)));
        found
    };
    fits.iter().filter(|fitted| fitted.sparsity > 0.0).flat_map(each).collect()
}

/// The ratios of the fitted curves, at the batch sizes measured at both sparsities.
fn ratios(study: &StudyResults, claim: Claim, sparse: &Fitted, dense: &Fitted) -> Result<Vec<Estimate>, Finding> {
    let (of_sparse, of_dense) =
        (fitted(claim, sparse)?, fitted(claim, dense).map_err(|none| Finding { sparsity: sparse.sparsity, ..none })?);
    let ratios: Vec<Estimate> =
        study.grid().ratios(sparse.sparsity, 0.0).into_iter().map(|point| of_sparse.steps_over(of_dense, f64::from(point.0))).collect();
    if ratios.is_empty() {
        let measured = format!("no {WITH_RESULT}");
        return Err(Finding { claim, sparsity: sparse.sparsity, measured, verdict: Verdict::Undecided });
    }
    Ok(ratios)
}

/// The smallest and the largest of them in words, and those of the cells themselves.
fn extremes(study: &StudyResults, sparsity: f64, ratios: &[Estimate]) -> String {
    let of = |limit: fn(&Estimate) -> f64| {
        ratios.iter().map(limit).fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((low, high), least, most) = (of(|ratio| ratio.value), of(|ratio| ratio.low).0, of(|ratio| ratio.high).1);
    let measured = study.grid().ratios(sparsity, 0.0).into_iter().map(|point| point.1);
    let (few, many) = measured.fold((f64::MAX, f64::MIN), |(few, many), ratio| (few.min(ratio), many.max(ratio)));
    let [low, high, least, most, few, many] = [low, high, least, most, few, many].map(|value| digits(value, 3));
    format!(
        "by the fits {low} to {high} times as many at {}, intervals within {least} to {most}; by the cells themselves {few} to {many} times",
        some(ratios.len(), "batch size")
    )
}

fn more_steps(study: &StudyResults, sparse: &Fitted, dense: &Fitted) -> Finding {
    let (claim, sparsity) = (Claim::MoreSteps, sparse.sparsity);
    match ratios(study, claim, sparse, dense) {
        Err(none) => none,
        Ok(ratios) => {
            let holds = ratios.iter().all(|ratio| ratio.low > 1.0);
            let verdict = Verdict::of(holds, ratios.iter().any(|ratio| ratio.high < 1.0));
            Finding { claim, sparsity, measured: extremes(study, sparsity, &ratios), verdict }
        }
    }
}

fn times(study: &StudyResults, sparse: &Fitted, dense: &Fitted) -> Finding {
    let (claim, (sparsity, least, most)) = (Claim::Times, PAPERS_RATIOS);
    match ratios(study, claim, sparse, dense) {
        Err(none) => none,
        Ok(ratios) => {
            let holds = ratios.iter().all(|ratio| ratio.low >= least && ratio.high <= most);
            let verdict = Verdict::of(holds, ratios.iter().any(|ratio| ratio.high < least || ratio.low > most));
            Finding { claim, sparsity, measured: extremes(study, sparsity, &ratios), verdict }
        }
    }
}

fn ratio_falls(study: &StudyResults, sparsity: f64) -> Finding {
    let claim = Claim::RatioFalls;
    let points: Vec<(f64, f64)> = study.grid().ratios(sparsity, 0.0).into_iter().map(|(size, ratio)| (f64::from(size), ratio)).collect();
    match slope(&points) {
        None => Finding { claim, sparsity, measured: some(points.len(), WITH_RESULT), verdict: Verdict::Undecided },
        Some(slope) => {
            let measured = format!("the ratio changes as B to the power of {}, over {}", words(slope), some(points.len(), "batch size"));
            Finding { claim, sparsity, measured, verdict: Verdict::of(slope.high < 0.0, slope.low > 0.0) }
        }
    }
}

fn critical(sparse: &Fitted, dense: &Fitted) -> Finding {
    let (claim, sparsity) = (Claim::CriticalBatchSize, sparse.sparsity);
    let both =
        fitted(claim, sparse).and_then(|of_sparse| Ok((of_sparse, fitted(claim, dense).map_err(|none| Finding { sparsity, ..none })?)));
    match both {
        Err(none) => none,
        Ok((of_sparse, of_dense)) => {
            let ratio = of_sparse.critical_over(of_dense);
            let measured = super::finding::times(ratio, "the dense one's");
            Finding { claim, sparsity, measured, verdict: Verdict::of(ratio.low >= 1.0, ratio.high < 1.0) }
        }
    }
}

/// Trials that reached the goal before the race ended, sparse over dense. Of two cells whose races had several lengths, those within the shorter one.
fn region(study: &StudyResults, sparsity: f64) -> Finding {
    let claim = Claim::GoodRegion;
    let grid = study.grid();
    let pairs =
        || grid.ratios(sparsity, 0.0).into_iter().filter_map(|point| Some((grid.cell(point.0, sparsity)?, grid.cell(point.0, 0.0)?)));
    let undecided = |measured: String| Finding { claim, sparsity, measured, verdict: Verdict::Undecided };
    if !has_trials(&study.results) {
        return undecided("the trials are not known".to_owned());
    }
    if pairs().any(|(sparse, dense)| sparse.trials.len() != dense.trials.len()) {
        return undecided("cells of several numbers of trials".to_owned());
    }
    if pairs().any(|(sparse, dense)| study.hides_others(sparse) || study.hides_others(dense)) {
        return undecided("the race ended at K*".to_owned());
    }
    let good = |cell: &Cell, race: Race| {
        let last = cell.steps_to_result().and_then(|best| race.last_step(best, study.results.workload.evaluate_every));
        cell.trials.iter().filter_map(|trial| trial.steps).filter(|&steps| last.is_none_or(|last| steps <= last)).count() as f64
    };
    let ratio = |(sparse, dense): (&Cell, &Cell)| {
        let race = shorter(study.race_of(sparse), study.race_of(dense));
        good(sparse, race) / good(dense, race)
    };
    let ratios: Vec<f64> = pairs().map(ratio).collect();
    let ratio = Estimate::geometric(ratios.iter().copied());
    if ratios.len() < 2 || ratio.low.is_nan() {
        return undecided(some(ratios.len(), WITH_RESULT));
    }
    let measured = format!("{} times as many as of the dense one, over {}", words(ratio), some(ratios.len(), "batch size"));
    Finding { claim, sparsity, measured, verdict: Verdict::of(ratio.high < 1.0, ratio.low > 1.0) }
}

/// The race that ends first, of two after the same number of steps.
fn shorter(one: Race, other: Race) -> Race {
    match (one.factor(), other.factor()) {
        (Some(of_one), Some(of_other)) if of_one <= of_other => one,
        (Some(_), None) => one,
        _ => other,
    }
}

//! Sparse networks beside the dense one.

use super::super::fit::{Estimate, slope};
use super::super::fits::Fitted;
use super::super::studies::StudyResults;
use super::claim::Claim;
use super::claim::PAPERS_RATIOS;
use super::finding::{Finding, Verdict, fitted, words};
use crate::readable::{digits, some};
use crate::records::Status;

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
        let measured = "no batch size measured at both sparsities".to_owned();
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
        None => Finding {
            claim,
            sparsity,
            measured: format!("{} measured at both sparsities", some(points.len(), "batch size")),
            verdict: Verdict::Undecided,
        },
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

/// Trials that reached the goal before the race ended, sparse over dense.
fn region(study: &StudyResults, sparsity: f64) -> Finding {
    let claim = Claim::GoodRegion;
    let grid = study.grid();
    let pairs =
        || grid.ratios(sparsity, 0.0).into_iter().filter_map(|point| Some((grid.cell(point.0, sparsity)?, grid.cell(point.0, 0.0)?)));
    let undecided = |measured: String| Finding { claim, sparsity, measured, verdict: Verdict::Undecided };
    if pairs().any(|(sparse, dense)| study.hides_others(sparse) || study.hides_others(dense)) {
        return undecided("the race ended at K*".to_owned());
    }
    let ratios: Vec<f64> =
        pairs().map(|(sparse, dense)| sparse.count(Status::Complete) as f64 / dense.count(Status::Complete) as f64).collect();
    let ratio = Estimate::geometric(ratios.iter().copied());
    if ratios.len() < 2 || ratio.low.is_nan() {
        return undecided(format!("{} measured at both sparsities", some(ratios.len(), "batch size")));
    }
    let measured = format!("{} times as many as of the dense one, over {}", words(ratio), some(ratios.len(), "batch size"));
    Finding { claim, sparsity, measured, verdict: Verdict::of(ratio.high < 1.0, ratio.low > 1.0) }
}

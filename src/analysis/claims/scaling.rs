//! How steps-to-result scale with the batch size.

use super::super::fit::{Fit, Regime};
use super::super::fits::Fitted;
use super::super::studies::StudyResults;
use super::claim::Claim;
use super::claim::PAPERS_BATCH_SIZES;
use super::finding::{Finding, Verdict, fitted, words};
use crate::readable::count;

/// The three regimes at each sparsity.
pub fn findings(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    let claims = [Claim::Linear, Claim::Diminishing, Claim::Maximal];
    let each = |of| claims.into_iter().map(move |claim| fitted(claim, of).map_or_else(|none| none, |fit| finding(study, claim, of, fit)));
    fits.iter().flat_map(each).collect()
}

fn finding(study: &StudyResults, claim: Claim, of: &Fitted, fit: &Fit) -> Finding {
    let sparsity = of.sparsity;
    let points = study.grid().measured(sparsity);
    let sizes: Vec<u32> = points.iter().map(|point| point.0).collect();
    let (smallest, largest) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let regimes: Vec<Option<Regime>> = sizes.iter().map(|&size| of.regime(size)).collect();
    let (last_linear, first_maximal) = fit.borders();
    let (low, high) = PAPERS_BATCH_SIZES;
    let has = |own: Regime| regimes.contains(&Some(own));
    let (holds, fails, measured) = match claim {
        Claim::Linear => {
            let shown = match of.exponent {
                None => "not known of fewer than 4 batch sizes".to_owned(),
                Some(any) if any.low == 0.0 && any.high.is_infinite() => "not determined".to_owned(),
                Some(exponent) => words(exponent),
            };
            let measured =
                format!("linear below {}; smallest batch size measured: {}; exponent {shown}", words(last_linear), count(smallest));
            (has(Regime::Linear), sizes.contains(&low) && last_linear.high < f64::from(low) || of.is_not_linear(), measured)
        }
        Claim::Maximal => {
            let measured = format!("maximal above {}; largest batch size measured: {}", words(first_maximal), count(largest));
            (has(Regime::Maximal), sizes.contains(&high) && first_maximal.low > f64::from(high), measured)
        }
        _ => {
            let is_whole = sizes.contains(&low) && sizes.contains(&high);
            let is_outside = |size: &u32| f64::from(*size) < last_linear.low || f64::from(*size) > first_maximal.high;
            let fails = is_whole && sizes.iter().all(is_outside);
            let measured =
                format!("critical batch size {}; K* scatters by {:.1} % about the fit", words(fit.critical), 100.0 * fit.deviation);
            (has(Regime::Diminishing), fails, measured)
        }
    };
    Finding { claim, sparsity, measured, verdict: Verdict::of(holds, fails) }
}

//! An optimizer beside SGD.

use super::super::fits::Fitted;
use super::super::studies::StudyResults;
use super::claim::Claim;
use super::finding::{Finding, Verdict, fitted, times, words};
use crate::readable::count;

/// What each sparsity that was measured with both optimizers says.
pub fn findings(study: &StudyResults, fits: &[Fitted], sgd: (&StudyResults, &[Fitted])) -> Vec<Finding> {
    let pairs = fits.iter().filter_map(|here| Some((here, sgd.1.iter().find(|other| other.sparsity == here.sparsity)?)));
    pairs.flat_map(|(here, of_sgd)| [fewer_steps([study, sgd.0], here, of_sgd), larger_critical(here, of_sgd)]).collect()
}

fn fewer_steps(studies: [&StudyResults; 2], here: &Fitted, sgd: &Fitted) -> Finding {
    let (claim, sparsity) = (Claim::FewerThanSgd, here.sparsity);
    let (own, others) = match (fitted(claim, here), fitted(claim, sgd)) {
        (Ok(own), Ok(others)) => (own, others),
        (Err(none), _) | (_, Err(none)) => return none,
    };
    let [sizes, of_sgd] = studies.map(|study| study.grid().measured(sparsity).into_iter().map(|point| point.0).collect::<Vec<_>>());
    let common = sizes.into_iter().filter(|size| of_sgd.contains(size)).max();
    let Some(size) = common else {
        return Finding { claim, sparsity, measured: "no batch size measured with both".to_owned(), verdict: Verdict::Undecided };
    };
    let ratio = own.steps_over(others, f64::from(size));
    let measured = format!("{} times as many at batch size {}", words(ratio), count(size));
    Finding { claim, sparsity, measured, verdict: Verdict::of(ratio.high < 1.0, ratio.low > 1.0) }
}

fn larger_critical(here: &Fitted, sgd: &Fitted) -> Finding {
    let (claim, sparsity) = (Claim::BeyondSgd, here.sparsity);
    let (own, others) = match (fitted(claim, here), fitted(claim, sgd)) {
        (Ok(own), Ok(others)) => (own, others),
        (Err(none), _) | (_, Err(none)) => return none,
    };
    let ratio = own.critical_over(others);
    Finding { claim, sparsity, measured: times(ratio, "SGD's"), verdict: Verdict::of(ratio.low > 1.0, ratio.high < 1.0) }
}

//! The paper's claims beside what a study measured: Lee, Ajanthan, Torr and Jaggi (ICLR 2021).
//!
//! Each claim has a rule that decides it from intervals: it holds, it does not, or it cannot be said. `claim` has the claims' and the rules' words;
//! `scaling`, `sparsity`, `search` and `optimizers` apply the rules.

mod claim;
mod optimizers;
mod scaling;
mod search;
mod sparsity;

pub use claim::{Claim, PAPERS_SPARSITIES, papers_batch_sizes};

use super::fit::{Estimate, Fit};
use super::fits::Fitted;
use super::studies::StudyResults;
use crate::readable::{count, digits};

/// What a study says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its intervals lie where the claim says.
    Holds,
    /// Its intervals lie where the claim excludes.
    DoesNotHold,
    /// Its intervals allow both, or what the rule needs was not measured.
    Undecided,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Undecided => "cannot be said",
        }
    }

    /// Of two conditions, of which intervals fulfil one at most.
    fn of(holds: bool, fails: bool) -> Verdict {
        match (holds, fails) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::DoesNotHold,
            (false, false) => Verdict::Undecided,
        }
    }
}

/// A claim at one sparsity of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: Claim,
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// The numbers that decide it, with 95 % intervals; or what is missing.
    pub measured: String,
    /// What they say of it.
    pub verdict: Verdict,
}

/// What a study says of the paper's claims, claim by claim and sparsity by sparsity. `sgd` is the study that differs from it by its
/// optimizer alone, SGD, where there is one, with its fits. Empty where no sparsity was measured at enough batch sizes for a fit.
pub fn claims(study: &StudyResults, fits: &[Fitted], sgd: Option<(&StudyResults, &[Fitted])>) -> Vec<Finding> {
    if study.measures_alone() || fits.iter().all(|fitted| fitted.fit.is_err()) {
        return Vec::new();
    }
    let mut found = scaling::findings(study, fits);
    found.extend(sparsity::findings(study, fits));
    found.extend(search::findings(study, fits));
    found.extend(sgd.into_iter().flat_map(|sgd| optimizers::findings(study, fits, sgd)));
    found.sort_by_key(|finding| finding.claim);
    found
}

/// A sparsity's fit, or the finding that there is none.
fn fitted(claim: Claim, of: &Fitted) -> Result<&Fit, Finding> {
    of.fit.as_ref().map_err(|why| Finding { claim, sparsity: of.sparsity, measured: format!("no fit: {why}"), verdict: Verdict::Undecided })
}

/// An estimate with its interval in words.
fn words(estimate: Estimate) -> String {
    let number = |value: f64| match value {
        infinite if infinite.is_infinite() => "∞".to_owned(),
        whole if (1e3..1e9).contains(&whole) => count(whole.round() as u32),
        value => digits(value, 3).replace('-', "−"),
    };
    format!("{} ({} to {})", number(estimate.value), number(estimate.low), number(estimate.high))
}

/// A ratio to `other` in words.
fn times(ratio: Estimate, other: &str) -> String {
    // Both may be infinite where no floor shows.
    if ratio.low.is_nan() { format!("its ratio to {other} is not determined") } else { format!("{} times {other}", words(ratio)) }
}

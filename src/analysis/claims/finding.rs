//! What a study says of one claim, and the words for the numbers behind it.

use super::super::fit::{Estimate, Fit};
use super::super::fits::Fitted;
use super::claim::Claim;
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

    /// The verdict; intervals fulfil one of `holds` and `fails` at most.
    pub(super) fn of(holds: bool, fails: bool) -> Verdict {
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

/// A sparsity's fit, or the finding that there is none.
pub(super) fn fitted(claim: Claim, of: &Fitted) -> Result<&Fit, Finding> {
    of.fit.as_ref().map_err(|why| Finding { claim, sparsity: of.sparsity, measured: format!("no fit: {why}"), verdict: Verdict::Undecided })
}

/// An estimate with its interval in words.
pub(super) fn words(estimate: Estimate) -> String {
    let number = |value: f64| match value {
        infinite if infinite.is_infinite() => "∞".to_owned(),
        whole if (1e3..1e9).contains(&whole) => count(whole.round() as u32),
        value => digits(value, 3).replace('-', "−"),
    };
    format!("{} ({} to {})", number(estimate.value), number(estimate.low), number(estimate.high))
}

/// A ratio to `other` in words.
pub(super) fn times(ratio: Estimate, other: &str) -> String {
    // Two infinite critical batch sizes have no ratio.
    if ratio.low.is_nan() { format!("its ratio to {other} is not determined") } else { format!("{} times {other}", words(ratio)) }
}

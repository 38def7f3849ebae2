//! Findings of a study on one claim, and the words for the numbers behind them.

use super::claim::Claim;
use crate::analysis::statistics::{Estimate, Fit, Fitted};
use crate::readable::{called, digits, rough, some};
use crate::statistics::{beyond_student, student};

called! {
    /// The verdict of a study on a claim.
    Verdict {
        /// The claim's intervals lie where the claim says.
        Holds = "holds",
        /// The claim's intervals lie where the claim excludes.
        DoesNotHold = "does not hold",
        /// The claim's intervals allow both, or what the rule needs was not measured.
        Undecided = "cannot be said",
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
    /// Verdict of the numbers on the claim.
    pub verdict: Verdict,
    /// How often chance alone would put the numbers as far from the border of the claim, by their intervals; none where nothing was measured.
    pub doubt: Option<f64>,
    /// Whether the verdict stands by Holm's rule (1979) among all verdicts of a report.
    pub stands: bool,
    /// Whether the finding rests on confirmed steps, not on K* or the trials of the search.
    pub confirmed: bool,
}

/// The doubt below which a claim is decided: that of a 95 % interval.
pub const DOUBT: f64 = 0.05;

/// A rule's result of a study: the numbers in words, and the doubts that the claim holds and that it does not, of which at most one is below 5 %;
/// or words for what the rule lacks.
pub(super) type Said = Result<(String, f64, f64), String>;

impl Finding {
    /// The finding of a claim by its rule.
    pub(super) fn new(claim: Claim, sparsity: f64, said: Said) -> Finding {
        let verdict = match said {
            Ok((_, holds, _)) if holds < DOUBT => Verdict::Holds,
            Ok((_, _, fails)) if fails < DOUBT => Verdict::DoesNotHold,
            _ => Verdict::Undecided,
        };
        let doubt = said.as_ref().ok().map(|(_, holds, fails)| holds.min(*fails));
        let measured = said.map_or_else(|missing| missing, |(measured, ..)| measured);
        Finding { claim, sparsity, measured, verdict, doubt, stands: false, confirmed: false }
    }
}

/// The tails of Student's t, of so many degrees of freedom, by which an interval was made.
#[derive(Clone, Copy)]
pub(super) struct Tails(pub usize);

impl Tails {
    /// The tails of numbers that follow from two fits, of which the less certain one decides.
    pub(super) fn of_both(one: &Fit, other: &Fit) -> Tails {
        Tails(one.freedom.min(other.freedom))
    }

    /// The doubt that a number lies above a bound: below 5 % where its whole 95 % interval does. On a logarithmic scale if both are above 0.
    pub(super) fn above(self, number: Estimate, bound: f64) -> f64 {
        self.beyond(number.value, number.low, bound)
    }

    /// The doubt that a number lies below a bound.
    pub(super) fn below(self, number: Estimate, bound: f64) -> f64 {
        if bound > 0.0 && number.low >= 0.0 {
            self.beyond(1.0 / number.value, 1.0 / number.high, 1.0 / bound)
        } else {
            self.beyond(-number.value, -number.high, -bound)
        }
    }

    /// The doubt that a number with the lower limit of its 95 % interval lies above a bound.
    fn beyond(self, value: f64, limit: f64, bound: f64) -> f64 {
        let [value, limit, bound] = if bound > 0.0 && limit >= 0.0 { [value, limit, bound].map(f64::ln) } else { [value, limit, bound] };
        if limit.is_nan() || value <= bound || !limit.is_finite() {
            return 1.0;
        }
        // An infinite value has no distance to the bound: the limit alone decides whether the doubt is just below or just above 5 %.
        let distance = if value.is_infinite() { if limit > bound { 1.01 } else { 0.99 } } else { (value - bound) / (value - limit) };
        let doubt = beyond_student(student(self.0) * distance, self.0);
        // The quantile has three digits: on which side of 5 % the doubt lies is the interval's word.
        if distance > 1.0 { doubt.min(DOUBT * 0.999) } else { doubt.max(DOUBT) }
    }
}

/// A sparsity's fit, or that there is none.
pub(super) fn fitted(of: &Fitted) -> Result<&Fit, String> {
    of.fit.as_ref().map_err(|why| format!("no fit: {why}"))
}

/// Marks the verdicts that stand by Holm's rule: of m statements in order of their doubts, the first of which m times, the second m − 1 times its
/// doubt and so on is below 5 %.
pub fn holm<'a>(findings: impl Iterator<Item = &'a mut Finding>) {
    let mut findings: Vec<(f64, &mut Finding)> = findings.filter_map(|finding| Some((finding.doubt?, finding))).collect();
    findings.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = findings.len();
    for (number, (doubt, finding)) in findings.into_iter().enumerate() {
        if doubt * (count - number) as f64 >= DOUBT {
            break;
        }
        finding.stands = true;
    }
}

/// How many verdicts there are, how many chance would give among so many statements, and how many stand.
pub fn by_chance<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let counted: Vec<&Finding> = findings.filter(|finding| finding.doubt.is_some()).collect();
    let decided = counted.iter().filter(|finding| finding.verdict != Verdict::Undecided);
    let stand = decided.clone().filter(|finding| finding.stands).count();
    format!(
        "{} of {} are decided. Chance alone would decide about {} of so many: each has 5 in 100. {} {} by Holm's rule too, which makes any wrong one among \
         all unlikely; the others are marked {ALONE}.",
        decided.count(),
        some(counted.len(), "statement"),
        digits(DOUBT * counted.len() as f64, 2),
        stand,
        if stand == 1 { "stands" } else { "stand" }
    )
}

/// Words beside a verdict that does not stand by Holm's rule.
const ALONE: &str = "(95 % alone)";

impl Finding {
    /// The verdict in words.
    pub fn says(&self) -> String {
        let alone = if self.stands || self.verdict == Verdict::Undecided { String::new() } else { format!(" {ALONE}") };
        self.verdict.name().to_owned() + &alone
    }
}

/// An estimate with its interval in words, each in two digits.
pub fn words(estimate: Estimate) -> String {
    let number = |value: f64| if value.is_infinite() { "∞".to_owned() } else { rough(value).replace('-', "−") };
    format!("{} ({} to {})", number(estimate.value), number(estimate.low), number(estimate.high))
}

/// A ratio to `other` in words.
pub(super) fn times(ratio: Estimate, other: &str) -> String {
    // Two infinite critical batch sizes have no ratio.
    if ratio.low.is_nan() { format!("its ratio to {other} is not determined") } else { format!("{} times {other}", words(ratio)) }
}

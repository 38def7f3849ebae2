//! What a study says of the paper's claims.

use maud::{Markup, html};

use super::super::claims::{Claim, Finding, Verdict};
use super::table::table;

const HEADING: [&str; 5] = ["claim", "where", "sparsity", "measured", "verdict"];

/// A row for each claim and sparsity, and the rules.
pub fn claims(findings: &[Finding]) -> Markup {
    let row = |finding: &Finding| {
        vec![
            finding.claim.words().to_owned(),
            finding.claim.place().to_owned(),
            finding.sparsity.to_string(),
            finding.measured.clone(),
            finding.verdict.name().to_owned(),
        ]
    };
    html! {
        p {
            "Each claim is decided by a rule from 95 % intervals, in brackets. " b { (Verdict::Undecided.name()) }
            ": the intervals allow both, or what the rule needs was not measured."
        }
        (table(&HEADING, &findings.iter().map(row).collect::<Vec<_>>()))
        details {
            summary { "The rules" }
            ul {
                @for claim in Claim::ALL.into_iter().filter(|claim| findings.iter().any(|finding| finding.claim == *claim)) {
                    li { b { (claim.words()) } ": " (claim.rule()) "." }
                }
            }
        }
    }
}

//! What a study says of the paper's claims.

use maud::{Markup, html};

use crate::analysis::claims::{Claim, Finding, Verdict, by_chance};

/// A row for each claim and sparsity, and the rules.
pub fn claims(findings: &[Finding]) -> Markup {
    html! {
        p {
            "Each claim is decided by a rule from 95 % intervals, in brackets. " b { (Verdict::Undecided.name()) }
            ": the intervals allow both, or what the rule needs was not measured. " (by_chance(findings.iter()))
        }
        div.wide {
            table.words {
                thead { tr { th { "claim" } th { "sparsity" } th { "measured" } th { "verdict" } } }
                tbody {
                    @for (number, finding) in findings.iter().enumerate() {
                        tr {
                            td {
                                // Once for all sparsities.
                                @if number == 0 || findings[number - 1].claim != finding.claim {
                                    (finding.claim.words()) " (" (finding.claim.place()) ")"
                                }
                            }
                            td { (finding.sparsity) }
                            td { (finding.measured) }
                            td { (finding.says()) }
                        }
                    }
                }
            }
        }
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

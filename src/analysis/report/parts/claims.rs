//! Part of the page on the paper's claims: a study's verdicts.

use super::super::document::Block;
use super::super::rows::Rows;
use super::super::table::Table;
use crate::analysis::claims::{Claim, Finding, Verdict, by_chance};

/// A row for each claim and sparsity, and the rules.
pub fn claims(findings: &[Finding]) -> Vec<Block<'static>> {
    let text = format!(
        "Each claim is decided by a rule from 95 % intervals, in brackets. __{}__: the intervals allow both, or what the rule needs was not measured. {}",
        Verdict::Undecided.name(),
        by_chance(findings.iter())
    );
    vec![
        Block::Text(text),
        Block::Words(verdicts(findings)),
        Block::Fold(String::new(), "The rules".to_owned(), vec![Block::List(rules(findings.iter()))]),
    ]
}

/// A row for each claim and sparsity; a claim's words stand once for all sparsities.
pub fn verdicts(findings: &[Finding]) -> Table {
    let is_first = |number: usize| number == 0 || findings[number - 1].claim != findings[number].claim;
    let words = |claim: Claim| format!("{} ({})", claim.words(), claim.place());
    Rows::new("claims", findings.iter().enumerate())
        .column("claim", |&(number, finding)| if is_first(number) { words(finding.claim) } else { String::new() })
        .column("sparsity", |(_, finding)| finding.sparsity.to_string())
        .column("measured", |(_, finding)| finding.measured.clone())
        .column("verdict", |(_, finding)| finding.says())
        .table()
}

/// The rules by which these findings were decided.
pub fn rules<'a>(findings: impl Iterator<Item = &'a Finding> + Clone) -> Vec<String> {
    let is_used = |claim: &Claim| findings.clone().any(|finding| finding.claim == *claim);
    Claim::ALL
        .iter()
        .copied()
        .filter(is_used)
        .map(|claim| format!("__{}__: {}. A sceptic: {}.", claim.words(), claim.rule(), claim.objection()))
        .collect()
}

//! Tables of studies' verdicts on the paper's claims, and of critical batch sizes.

use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;

/// A row a claim and sparsity.
pub(super) fn claims(sections: &[Section]) -> Table {
    Rows::of("claims", sections, |section| &section.claims)
        .column("claim", |(_, finding)| finding.claim.words().to_owned())
        .column("place", |(_, finding)| finding.claim.place().to_owned())
        .column("sparsity", |(_, finding)| finding.sparsity.to_string())
        .column("measured", |(_, finding)| finding.measured.clone())
        .column("verdict", |(_, finding)| finding.verdict.name().to_owned())
        .column("by_chance", |(_, finding)| optional(finding.doubt))
        .column("steps", |(_, finding)| if finding.confirmed { "confirmed" } else { "K*" }.to_owned())
        .column("holm", |(_, finding)| if finding.stands { "stands".to_owned() } else { String::new() })
        .table()
}

/// A row a sparsity and definition of the critical batch size.
pub(super) fn critical(sections: &[Section]) -> Table {
    Rows::of("critical", sections, |section| &section.critical)
        .column("sparsity", |(_, one)| one.sparsity.to_string())
        .column("definition", |(_, one)| one.definition.name().to_owned())
        .estimate("critical_batch_size", |(_, one)| Some(one.estimate))
        .column("from", |(_, one)| one.from.clone())
        .column("source", |(_, one)| one.definition.source().to_owned())
        .table()
}

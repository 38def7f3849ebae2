//! What studies say of the paper's claims, and of critical batch sizes.

use super::fields::{limits, words};
use crate::analysis::claims::Finding;
use crate::analysis::critical::Critical;
use crate::analysis::page::Section;
use crate::analysis::table::Table;

/// Columns of the table of claims.
const CLAIMS: [&str; 6] = ["study", "claim", "place", "sparsity", "measured", "verdict"];

/// Columns of the table of critical batch sizes.
const CRITICAL: [&str; 8] =
    ["study", "sparsity", "definition", "critical_batch_size", "critical_batch_size_low", "critical_batch_size_high", "from", "source"];

/// A row a claim and sparsity.
pub(super) fn claims(sections: &[Section]) -> Table {
    Table { name: "claims", heading: words(&CLAIMS), rows: sections.iter().flat_map(|section| claim_rows(section)).collect() }
}

/// A row a sparsity and definition of the critical batch size.
pub(super) fn critical(sections: &[Section]) -> Table {
    Table { name: "critical", heading: words(&CRITICAL), rows: sections.iter().flat_map(|section| critical_rows(section)).collect() }
}

fn claim_rows(section: &Section) -> Vec<Vec<String>> {
    let row = |finding: &Finding| {
        let Finding { claim, sparsity, measured, verdict } = finding;
        let words = [claim.words(), claim.place(), measured, verdict.name()].map(str::to_owned);
        let [claim, place, measured, verdict] = words;
        vec![section.study.slug.clone(), claim, place, sparsity.to_string(), measured, verdict]
    };
    section.claims.iter().map(row).collect()
}

fn critical_rows(section: &Section) -> Vec<Vec<String>> {
    let row = |one: &Critical| {
        let mut row = vec![section.study.slug.clone(), one.sparsity.to_string(), one.definition.name().to_owned()];
        row.extend(limits(Some(one.estimate)));
        row.extend([one.from.clone(), one.definition.source().to_owned()]);
        row
    };
    section.critical.iter().map(row).collect()
}

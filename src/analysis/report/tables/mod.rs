//! The tables of all studies, with numbers in full precision. A table's columns and rows stand in one file, by what it is of.

mod confirmed;
mod findings;
mod smoothness;
mod study;
mod trials;
mod work;

use std::collections::BTreeMap;

use super::section::Section;
use super::table::Table;
use crate::optimizer::Metaparameter;

/// The tables of all studies: what they are of, their cells, fits and trials, the best trials' curves, what fewer trials would have found and what
/// cells took; and, where there are any, their confirmations and confirmed steps, what they say of the paper's claims, their measurements along
/// training and what the theory makes of them.
pub fn tables(sections: &[Section], goals: &[f64], digests: &BTreeMap<String, String>) -> Vec<Table> {
    let shown = metaparameters(sections);
    let always = [
        study::studies(sections, digests),
        study::cells(sections, &shown),
        study::fits(sections),
        trials::trials(sections, &shown),
        trials::curves(sections),
        trials::fewer_trials(sections),
        work::work(sections),
    ];
    let where_there_are_rows = [
        trials::confirmations(sections, &shown),
        confirmed::confirmed(sections),
        confirmed::variances(sections),
        confirmed::fits(sections),
        confirmed::laws(sections),
        confirmed::controls(sections),
        findings::critical(sections),
        work::times(sections),
        work::within_budgets(sections),
        work::other_goals(sections, goals),
        findings::claims(sections),
        smoothness::measurements(sections),
        smoothness::theory(sections),
    ];
    always.into_iter().chain(where_there_are_rows.into_iter().filter(|table| !table.rows.is_empty())).collect()
}

/// The metaparameters that any trial has.
fn metaparameters(sections: &[Section]) -> Vec<Metaparameter> {
    let trials = || sections.iter().flat_map(|section| section.study.results.trials());
    Metaparameter::ALL.iter().copied().filter(|&name| trials().any(|trial| trial.metaparameters.get(name).is_some())).collect()
}

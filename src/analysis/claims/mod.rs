//! The paper's claims beside what a study measured: Lee, Ajanthan, Torr and Jaggi (ICLR 2021).
//!
//! Each claim has a rule that decides it from intervals: it holds, it does not, or it cannot be said. `claim` has the claims' and the rules'
//! words, `finding` what a study says of one; `scaling`, `sparsity`, `search` and `optimizers` apply the rules.

mod claim;
mod finding;
mod optimizers;
mod scaling;
mod search;
mod sparsity;

pub use claim::{Claim, PAPERS_SPARSITIES, papers_batch_sizes};
pub use finding::{Finding, Verdict, by_chance, holm, words};

use super::fits::Fitted;
use super::studies::StudyResults;

/// What a study says of the paper's claims, claim by claim and sparsity by sparsity. `sgd` is the study that differs from it by its
/// optimizer alone, SGD, where there is one, with its fits. Empty where no sparsity was measured at enough batch sizes for a fit.
pub fn claims(study: &StudyResults, fits: &[Fitted], sgd: Option<(&StudyResults, &[Fitted])>) -> Vec<Finding> {
    if study.measures_alone() || fits.iter().all(|fitted| fitted.fit.is_err()) {
        return Vec::new();
    }
    let mut found = scaling::findings(study, fits);
    found.extend(sparsity::findings(study, fits));
    found.extend(search::findings(study, fits));
    found.extend(sgd.into_iter().flat_map(|sgd| optimizers::findings(study, sgd)));
    found.sort_by_key(|finding| finding.claim);
    found
}

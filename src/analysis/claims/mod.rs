//! The paper's claims beside what a study measured: Lee, Ajanthan, Torr and Jaggi (ICLR 2021).
//!
//! Each claim has a rule that decides it from intervals: it holds, it does not, or it cannot be said. `claim` has the claims' and the rules'
//! words, `finding` what a study says of one; `scaling`, `sparsity`, `search` and `optimizers` apply the rules.

use crate::analysis::statistics::{Fitted, confirmed_beside, confirmed_cells, confirmed_fits, least_beside, papers_steps};
use crate::analysis::studies::{StudyResults, is_of_dps};
use crate::optimizer::OptimizerName;
use crate::results::Results;

mod claim;
mod finding;
mod optimizers;
mod scaling;
mod search;
mod sparsity;

/// The optimizers of the paper.
pub const PAPERS_OPTIMIZERS: [OptimizerName; 3] = [OptimizerName::Sgd, OptimizerName::Momentum, OptimizerName::Nesterov];

pub use claim::{Claim, PAPERS_SPARSITIES, papers_batch_sizes};
pub use finding::{Finding, Verdict, by_chance, holm, words};

/// Whether a study is of a data set, network and optimizer of the paper. A study that another program measured counts as one, whatever names it has.
pub fn is_papers(results: &Results) -> bool {
    let workload = &results.workload;
    !is_of_dps(results) || papers_steps(workload).is_some() && PAPERS_OPTIMIZERS.iter().any(|name| name.name() == workload.optimizer)
}

/// The findings of a study on the paper's claims, claim by claim and sparsity by sparsity. `sgd` is the study that differs from `study` by its
/// optimizer alone, which is SGD, if there is such a study. The list is empty where no sparsity has a fit, for a workload that is not the paper's,
/// and for a study that is run for its measurements alone. A finding of confirmed steps replaces the finding of K* on the same claim and sparsity.
pub fn claims(study: &StudyResults, fits: &[Fitted], sgd: Option<&StudyResults>) -> Vec<Finding> {
    if study.measures_alone() || !is_papers(&study.results) || fits.iter().all(|fitted| fitted.fit.is_err()) {
        return Vec::new();
    }
    let cells = confirmed_cells(study);
    let fits_confirmed: Vec<Fitted> = confirmed_fits(&cells).into_iter().map(|confirmed| confirmed.fitted).collect();
    let by_fits = |fits: &[Fitted]| [scaling::findings(fits), sparsity::of_steps(study, fits)].concat();
    let (mut found, mut confirmed) = (by_fits(fits), by_fits(&fits_confirmed));
    if let Some(sgd) = sgd {
        found.extend(least_beside(study, sgd).iter().flat_map(optimizers::findings));
        confirmed.extend(confirmed_beside(&cells, &confirmed_cells(sgd), |sparsity| sparsity).iter().flat_map(optimizers::findings));
    }
    // A statement is decided once, and what K* says is told beside it.
    for least in &mut found {
        let is_same = |other: &&Finding| other.claim == least.claim && other.sparsity == least.sparsity && other.doubt.is_some();
        if let Some(better) = confirmed.iter().find(is_same) {
            let measured = format!("by confirmed steps: {}; by K*: {}: {}", better.measured, least.measured, least.verdict.name());
            *least = Finding { measured, confirmed: true, ..better.clone() };
        }
    }
    found.extend(sparsity::of_trials(study, fits));
    found.extend(search::findings(study, fits));
    found.sort_by_key(|finding| finding.claim);
    found
}

//! Records that results have: those of others lack much of what dps records.

use crate::results::Results;

/// Whether dps measured these results.
pub fn is_of_dps(results: &Results) -> bool {
    !results.environment.program_version.is_empty()
}

/// Whether the results say which trials were run: the metaparameters of each.
pub fn has_trials(results: &Results) -> bool {
    is_of_dps(results) || results.trials().any(|trial| trial.metaparameters.iter().next().is_some())
}

/// Whether the results have the trials' evaluations.
pub fn has_curves(results: &Results) -> bool {
    is_of_dps(results) || results.trials().any(|trial| !trial.curve.is_empty())
}

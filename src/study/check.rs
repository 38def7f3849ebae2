//! Checks of a study before anything is measured or written.

use std::sync::Arc;

use crate::data::{Facts, ImageShape};
use crate::network::Network;
use crate::pruning::kept_parameters;
use crate::settings::Configuration;
use crate::{Error, Result, results};

/// The network of a study of such data, once it is checked that its layers fit the images and that its masks keep anything.
///
/// # Errors
/// [`Error::Configuration`], naming the layer that does not fit, the sparsities that keep nothing, or a split or configuration that cannot be.
pub fn check(configuration: &Configuration, facts: &Facts) -> Result<Arc<Network>> {
    let study = &configuration.study;
    let refuse = |problems| Error::Configuration { path: configuration.source.clone(), problems };
    check_length(configuration, &configuration.text)?;
    facts.check_split(study.data.validation_fraction).map_err(|problem| refuse(vec![problem]))?;
    let ImageShape { height, width, channels } = facts.shape;
    let network = Network::of(&study.workload.network, [height, width, channels], facts.classes);
    let network = network.map_err(|problem| refuse(vec![format!("workload.network: {problem}")]))?;
    let keeps = |sparsity: f64| kept_parameters(&network, sparsity, study.pruning.biases);
    // Parameters that no sparsity removes are no reason to train.
    let exempt = keeps(1.0);
    let parameters = network.parameters() - exempt;
    let problem = |sparsity: &f64| {
        format!(
            "grid.sparsities: expected a sparsity at which a parameter of {parameters} is kept, found {sparsity}, which keeps none; lower it"
        )
    };
    let problems: Vec<String> = study.grid.sparsities.iter().filter(|&&sparsity| keeps(sparsity) == exempt).map(problem).collect();
    if problems.is_empty() { Ok(Arc::new(network)) } else { Err(refuse(problems)) }
}

/// Checks that a result file has room for a configuration's text.
///
/// # Errors
/// [`Error::Configuration`].
pub(super) fn check_length(configuration: &Configuration, text: &str) -> Result<()> {
    if text.len() <= results::LONGEST_CONFIGURATION {
        return Ok(());
    }
    let problem = format!(
        "expected a configuration of at most {} bytes with all its keys, which is what a result file has room for, found {}; give it fewer layers, \
         batch sizes or sparsities",
        results::LONGEST_CONFIGURATION,
        text.len()
    );
    Err(Error::Configuration { path: configuration.source.clone(), problems: vec![problem] })
}

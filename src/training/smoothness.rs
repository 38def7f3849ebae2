//! The smoothness of several trials at one step: each is measured by the group that trains it, while all ranks listen for a signal to stop.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::conductor::Conductor;
use super::groups::Groups;
use super::probe::Probe;
use super::votes::Votes;
use crate::Result;
use crate::backend::Backend;
use crate::pruning::Mask;
use crate::records::Measurement;

/// Where a lane of this rank's group is measured.
pub struct Site {
    /// The lane's trial.
    pub trial: usize,
    /// Steps that it has taken.
    pub step: u32,
    /// The trial's mask.
    pub mask: Rc<Mask>,
    /// The trial's weights: `[parameters]`.
    pub weights: Vec<f32>,
    /// The trial's weights one step later, where a step follows.
    pub next: Option<Vec<f32>>,
}

impl Site {
    /// The sites `from`, each followed by the step that ends at the same trial's site in `to`. A lane that the step broke has no site there, and is
    /// left out.
    pub fn steps(from: Vec<Site>, to: Vec<Site>) -> Vec<Site> {
        let mut ends: BTreeMap<usize, Vec<f32>> = to.into_iter().map(|site| (site.trial, site.weights)).collect();
        from.into_iter().filter_map(|site| Some(Site { next: Some(ends.remove(&site.trial)?), ..site })).collect()
    }
}

/// Measures `trials`, those of this rank's group at their `sites`, and lets all ranks know; in the order of `trials`, none of a trial without a
/// site. Every rank must call it, with the same trials.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) where the study is to stop, on all ranks. The device's.
pub fn measure(
    probe: &Probe,
    backend: &mut impl Backend,
    groups: &Groups,
    trials: &[usize],
    sites: &[Site],
    conductor: &mut dyn Conductor,
) -> Result<Vec<Option<Measurement>>> {
    // The group that has most to measure says how many votes are cast, and one more: a pass may be interrupted after the last vote of a measurement.
    let mut votes = Votes::new(groups.most_of_one(trials) * probe.votes() + 1, conductor);
    let mut measure = |trial: usize| match sites.iter().find(|site| site.trial == trial) {
        Some(Site { step, mask, weights, next, .. }) => {
            probe.measure(backend, *step, weights, next.as_deref(), mask, &mut || votes.cast()).map(Some)
        }
        None => Ok(None),
    };
    let mine: Result<Vec<Option<Measurement>>> =
        trials.iter().filter(|&&trial| groups.trains(trial)).map(|&trial| measure(trial)).collect();
    groups.share(trials, &votes.cast_rest(mine)?)
}

//! Where in its searched range a metaparameter lies.

use crate::optimizer::{Range, Scale};
use crate::records::Trial;
use crate::search::Search;

/// Share of a searched range, in u, at each end that counts as its edge.
pub const EDGE: f64 = 0.05;

/// Whether a searched metaparameter of a trial lies within [`EDGE`] of a limit of its range.
pub fn at_edge(search: &Search, trial: &Trial) -> bool {
    let mut places = search.ranges().filter_map(|(name, range)| share(&range, trial.metaparameters.get(name)?));
    places.any(|share| !(EDGE..=1.0 - EDGE).contains(&share))
}

/// Where in its range a value lies, 0 at the lower limit: the inverse of the search's maps, but for the direction of
/// reverse-log. None where the range has no width or the scale no such value.
pub fn share(range: &Range, value: f64) -> Option<f64> {
    let position = |value: f64| match range.scale {
        Scale::Integer | Scale::Linear => value,
        Scale::Log => value.log10(),
        Scale::ReverseLog => -(1.0 - value).log10(),
    };
    let share = (position(value) - position(range.min)) / (position(range.max) - position(range.min));
    share.is_finite().then_some(share)
}

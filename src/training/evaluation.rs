//! Evaluations that end once it is decided that a lane misses the goal, the examples likeliest to be wrong coming first.
//!
//! A lane changes little between two evaluations: what it classified wrongly, or barely rightly, when it last saw it, is where its errors
//! are now. In the order of their last margins, a lane near the goal shows that it misses it on little more examples than it may get wrong; in a
//! fixed order it takes nearly the whole set. A lane at the goal has been seen whole, whatever the order, so no trial's steps depend on it.

use crate::Result;
use crate::backend::{Backend, EVALUATION_BLOCK, Set};

/// An evaluation's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    /// Examples classified wrongly among those seen.
    pub errors: u32,
    /// Examples seen: all, unless the errors exceeded the limit before the end.
    pub examples: u32,
}

/// Evaluates the lanes numbered `which` on the validation set, each until its errors exceed `limit`. `margins` are those of each lane, by example,
/// when it last saw it (empty before its first evaluation), and are brought up to date. A lane is done at the first block of examples after which
/// its errors exceed the limit; what a device looked at beyond that leaves no trace.
///
/// # Errors
/// The device's.
pub fn decide<B: Backend>(
    backend: &mut B,
    lanes: &B::Lanes,
    which: &[usize],
    limit: u32,
    margins: &mut [Vec<f32>],
) -> Result<Vec<Evaluation>> {
    let count = backend.examples(Set::Validation);
    let orders: Vec<Vec<u32>> = margins.iter_mut().map(|margins| hardest_first(margins, count)).collect();
    let mut outcomes = vec![Evaluation { errors: 0, examples: 0 }; which.len()];
    let mut pending: Vec<usize> = (0..which.len()).collect();
    let mut next = 0;
    while next < count && !pending.is_empty() {
        // No lane can be decided on fewer examples than the errors it still lacks.
        let lacking = pending.iter().map(|&lane| (limit + 1 - outcomes[lane].errors) as usize).min().unwrap_or(0);
        let stride = lacking.next_multiple_of(EVALUATION_BLOCK).max(backend.stride(pending.len()));
        let range = next..(next + stride).min(count);
        let lists: Vec<u32> = pending.iter().flat_map(|&lane| &orders[lane][range.clone()]).copied().collect();
        let here: Vec<usize> = pending.iter().map(|&lane| which[lane]).collect();
        let found = backend.margins(lanes, &here, Set::Validation, &lists)?;
        for (&lane, found) in pending.iter().zip(found.chunks_exact(range.len())) {
            let (outcome, order) = (&mut outcomes[lane], &orders[lane][range.clone()]);
            for (order, found) in order.chunks(EVALUATION_BLOCK).zip(found.chunks(EVALUATION_BLOCK)) {
                if outcome.errors > limit {
                    break;
                }
                outcome.errors += found.iter().filter(|margin| margin.is_sign_negative()).count() as u32;
                outcome.examples += found.len() as u32;
                order.iter().zip(found).for_each(|(&example, &margin)| margins[lane][example as usize] = margin);
            }
        }
        pending.retain(|&lane| outcomes[lane].errors <= limit);
        next = range.end;
    }
    Ok(outcomes)
}

/// Examples by their margins, the lowest first, those of equal ones in the order of the set.
fn hardest_first(margins: &mut Vec<f32>, count: usize) -> Vec<u32> {
    margins.resize(count, 0.0);
    let ascending = |margin: f32| {
        let bits = margin.to_bits();
        if margin.is_sign_negative() { !bits } else { bits | 1 << 31 }
    };
    // One word an example, to be compared at once: its margin, then its number.
    let mut keys: Vec<u64> = margins.iter().zip(0_u64..).map(|(&margin, example)| u64::from(ascending(margin)) << 32 | example).collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| key as u32).collect()
}

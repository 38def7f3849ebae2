//! Evaluations that end once it is decided that a lane misses the goal, the examples likeliest to be wrong coming first.
//!
//! A lane changes little between two evaluations: most of its errors are among the examples that it classified wrongly, or barely rightly, at the
//! last evaluation. So each lane sees the examples in the order of its last margins. A lane that narrowly misses the goal then shows the miss on
//! little more examples than it may get wrong; in a fixed order the lane would see nearly the whole set. A lane at the goal sees the whole set in any
//! order, so no trial's steps depend on the order.

use std::ops::Range;

use crate::Result;
use crate::backend::{Backend, EVALUATION_BLOCK, EvaluationSet};

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
    let count = backend.examples(EvaluationSet::Validation);
    let mut orders: Vec<HardestFirst> = margins.iter_mut().map(|margins| HardestFirst::new(margins, count)).collect();
    let mut outcomes = vec![Evaluation { errors: 0, examples: 0 }; which.len()];
    let mut pending: Vec<usize> = (0..which.len()).collect();
    let mut next = 0;
    while next < count && !pending.is_empty() {
        // No lane can be decided on fewer examples than the errors it still lacks.
        let lacking = pending.iter().map(|&lane| (limit + 1 - outcomes[lane].errors) as usize).min().unwrap_or(0);
        let stride = lacking.next_multiple_of(EVALUATION_BLOCK).max(backend.stride(pending.len()));
        let range = next..(next + stride).min(count);
        let mut lists = Vec::with_capacity(pending.len() * range.len());
        pending.iter().for_each(|&lane| orders[lane].append(range.clone(), &mut lists));
        let here: Vec<usize> = pending.iter().map(|&lane| which[lane]).collect();
        let found = backend.margins(lanes, &here, EvaluationSet::Validation, &lists)?;
        for ((&lane, order), found) in pending.iter().zip(lists.chunks_exact(range.len())).zip(found.chunks_exact(range.len())) {
            let outcome = &mut outcomes[lane];
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

/// Examples by their margins, the lowest first, those of equal ones in the order of the set. They are sorted as far as they are asked for: most
/// lanes are decided on their first few hundred examples.
struct HardestFirst {
    /// One word an example, to be compared at once: its margin, then its number.
    keys: Vec<u64>,
}

impl HardestFirst {
    /// The order by `margins`, one for each of `count` examples; zeros where there are none yet.
    fn new(margins: &mut Vec<f32>, count: usize) -> HardestFirst {
        margins.resize(count, 0.0);
        let ascending = |margin: f32| {
            let bits = margin.to_bits();
            if margin.is_sign_negative() { !bits } else { bits | 1 << 31 }
        };
        HardestFirst { keys: margins.iter().zip(0_u64..).map(|(&margin, example)| u64::from(ascending(margin)) << 32 | example).collect() }
    }

    /// Appends the examples at the places in `range` to `to`. Ranges must be asked for in order, each beginning where the one before ended.
    fn append(&mut self, range: Range<usize>, to: &mut Vec<u32>) {
        let rest = &mut self.keys[range.start..];
        if range.len() < rest.len() {
            rest.select_nth_unstable(range.len());
        }
        rest[..range.len()].sort_unstable();
        to.extend(rest[..range.len()].iter().map(|&key| key as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_order_are_those_of_a_whole_sort() {
        // NaNs, infinities, both zeros and many equal margins.
        let special = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
        let mut margins: Vec<f32> = (0..999_u32).map(|i| f32::from((i.wrapping_mul(2_654_435_761) >> 24) as u8) - 100.0).collect();
        margins.iter_mut().step_by(97).zip(special).for_each(|(margin, special)| *margin = special);
        let mut expected: Vec<u32> = (0..999).collect();
        expected.sort_by(|&a, &b| margins[a as usize].total_cmp(&margins[b as usize]));
        for stride in [1, 64, 500, 998, 999] {
            let (mut order, mut found) = (HardestFirst::new(&mut margins.clone(), 999), Vec::new());
            for start in (0..999).step_by(stride) {
                order.append(start..(start + stride).min(999), &mut found);
            }
            assert_eq!(found, expected, "{stride} at a time");
        }
    }

    #[test]
    fn examples_that_nobody_asked_for_are_not_sorted() {
        let mut margins: Vec<f32> = (0..6000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32).collect();
        let mut order = HardestFirst::new(&mut margins, 6000);
        order.append(0..64, &mut Vec::new());
        let (asked, rest) = order.keys.split_at(64);
        assert!(asked.is_sorted() && asked.iter().max() < rest.iter().min());
        let descents = rest.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(descents > 1000, "{descents} of 5,935 neighbours are out of order");
    }
}

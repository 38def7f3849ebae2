//! The section `[confirm]`.

use std::ops::Bound::Included;

use crate::config::key::{flag, key};
use crate::config::kind::{List, Number, OneOf, Whole};
use crate::config::names::names;
use crate::config::reader::Section;
use crate::config::section::section;

/// Points, and seeds of a point, at most.
const MOST_POINTS: u32 = 1_000;
const MOST_SEEDS: u32 = 10_000;
/// Half of an interval's width at most: a factor of 22,000.
const MOST_PRECISION: f64 = 10.0;
/// Times a cell's steps-to-result at most.
const MOST_TIMES: f64 = 1e6;

section! {
    /// Trains the best metaparameter points of each cell again, once the cell's trials are measured, with seeds that no trial has. So it is known how
    /// many steps a point takes, and with what scatter. Without the section nothing is confirmed.
    ///
    /// No key of it changes a record of a trial or takes part in the digest of a study: a study that is measured can be confirmed afterwards.
    #[derive(Debug, Clone, PartialEq)]
    "confirm" Confirm: Default {
        /// Points of each cell that are confirmed: those of the trials that reached the goal in the fewest steps. With `execution.race = true` seldom
        /// more than one trial does; a race of 1.25 or more has others.
        points: u32 = 3 => key(Whole::between(1, MOST_POINTS), "3").see("how-it-works.md#confirmation"),
        /// Whether the points of the cells next to a cell, at the next smaller and the next larger measured batch size and sparsity, are confirmed in
        /// it too, although its own trials of them may have been late. So a cell in which few trials reached the goal in time has more points.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        neighbours: bool = false => flag().see("how-it-works.md#confirmation"),
        /// Trainings of each point, each with a fresh seed. They are the same seeds for all points and cells.
        seeds: u32 = 16 => key(Whole::between(1, MOST_SEEDS), "16"),
        /// Half the width of the 95 % interval of the mean logarithm of the steps at which no more seeds are added, so 0.1 for about 10 %: each point
        /// of a cell is trained with 8 seeds, then with some more at a time, until the mean is known that well or all `seeds` are spent. 0: all of
        /// them.
        #[serde(skip_serializing_if = "is_zero")]
        precision: f64 = 0.0 => key(Number::real((Included(0.0), Included(MOST_PRECISION))), "0.1").see("how-it-works.md#confirmation"),
        /// Whether points that are plainly slower get no more seeds: those that, after 8, 16, 32 … seeds, took more steps than the best point with
        /// nearly all of them. A study that drops points goes on doing so.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        drop_slower: bool = false => flag().see("how-it-works.md#confirmation"),
        /// Most steps of such a training, in times the cell's steps-to-result.
        limit: f64 = 4.0 => key(Number::real((Included(1.0), Included(MOST_TIMES))), "4"),
        /// Steps between two evaluations of such a training; 0: those of the trials or, where it is less, a fiftieth of the cell's steps-to-result,
        /// and at least 1. Evaluations further apart miss the goal where the error only touches it, and so find more steps. A cell that has
        /// confirmations keeps theirs.
        evaluate_every: u32 = 0 => key(Whole::or_zero_for("automatic"), "0"),
        /// Whether such trainings go on to the limit after they have reached the goal, with evaluations of the whole validation set. So it is also
        /// known when the mean error over the seeds reaches the goal. It costs several times as much; `limit = 2` mostly is enough.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        mean_error: bool = false => flag().see("how-it-works.md#confirmation"),
        /// Random numbers that a fresh seed draws anew. The others are those of the point's own trial.
        vary: Vec<Varied> = vec![Varied::Weights, Varied::Order] => key(List::of("names", 2, OneOf::any()), "[\"weights\", \"order\"]"),
    }
}

names! {
    /// Random numbers that a fresh seed may draw anew.
    Varied {
        /// The initial weights, and so the mask.
        Weights = "weights",
        /// The order of the training examples, also where all trials share one.
        Order = "order",
    }
}

/// Whether `precision` is its default, which is not written, so that the text of studies older than the key stays the same.
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Confirm {
    /// Takes in what another run of the study asked for: the more points and seeds, the narrower interval, and the higher limit.
    pub fn join(&mut self, other: &Confirm) {
        self.neighbours |= other.neighbours;
        self.points = self.points.max(other.points);
        self.seeds = self.seeds.max(other.seeds);
        // 0 asks for all seeds, which is more than any interval does.
        self.precision = self.precision.min(other.precision);
        // Seeds that a point has stay, and a point that was dropped stays dropped.
        self.drop_slower |= other.drop_slower;
        self.limit = self.limit.max(other.limit);
    }

    /// The only random numbers that a fresh seed draws anew; none where it draws all anew.
    pub fn varies_alone(&self) -> Option<Varied> {
        self.vary.first().copied().filter(|_| self.vary.len() < Varied::ALL.len())
    }

    /// Whether a fresh seed draws this anew.
    pub fn varies(&self, what: Varied) -> bool {
        self.vary.contains(&what)
    }
}

/// Reads the section. `Some(None)`: the configuration has no such section. `None`: the section has problems, which are noted.
pub(super) fn read(mut section: Section) -> Option<Option<Confirm>> {
    let draft = Draft::read(&mut section);
    if section.is_absent() {
        return Some(None);
    }
    let mut confirm = draft.complete()?;
    // One study has one text, in whatever order they are named.
    confirm.vary.sort_by_key(|&varied| varied as u8);
    Some(Some(confirm))
}

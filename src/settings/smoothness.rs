//! The section `[smoothness]`.

use crate::config::key::{flag, key};
use crate::config::kind::Whole;
use crate::config::reader::Section;
use crate::config::section::section;

/// Points of a step at most.
const MOST_POINTS: u32 = 1_000;

section! {
    /// Measures the loss surface along training, for the paper's figures 4 and 6. Every measurement passes over the training set `points` + 2 times,
    /// and changes no step that is taken. Without the section nothing is measured.
    ///
    /// Measured are the gradient's local Lipschitz constant, the loss, and the norm and variance of the gradient over the training set (Lee et al.,
    /// ICLR 2021, section 4.2 and appendix C; McCandlish et al., 2018).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    "smoothness" Smoothness {
        /// Steps between two measurements. The steps measured are those that end at a multiple of it, as in the authors' public code.
        every: u32 => key(Whole::count(), "100"),
        /// Whether the first step is measured too. It is the only one that begins at untrained weights.
        start: bool = false => flag(),
        /// Trials of each cell that are measured: trials 0 to n - 1; 0: all of them.
        trials: u32 = 0 => key(Whole::or_zero_for("all of them"), "0"),
        /// Points of a step at which the gradient is compared with that at its start. They are γ = 1/points, 2/points … 1 of the step.
        points: u32 = 10 => key(Whole::between(1, MOST_POINTS), "10"),
        /// Whether γ = 1, the end of the step, is among the points, as in equation 11 of the paper. The authors' public code leaves it out.
        whole_step: bool = true => flag(),
        /// Training examples that are measured on, the first n; 0: all of them, as in the paper.
        examples: u32 = 0 => key(Whole::or_zero_for("all of them"), "0"),
    }
}

/// How many of `all` a count of the configuration means: the first `count`, 0 meaning all of them.
pub fn first_of(count: u32, all: u64) -> u64 {
    if count == 0 { all } else { all.min(count.into()) }
}

/// Reads the section. `Some(None)`: the configuration has no such section. `None`: the section has problems, which are noted.
pub(super) fn read(mut section: Section) -> Option<Option<Smoothness>> {
    let draft = Draft::read(&mut section);
    if section.is_absent() {
        return Some(None);
    }
    if (draft.points, draft.whole_step) == (Some(1), Some(false)) {
        let sentence = "expected true where smoothness.points = 1, found false, which leaves no point to measure at; change one of the two";
        section.problem_among("whole_step", &["points"], sentence);
    }
    draft.complete().map(Some)
}

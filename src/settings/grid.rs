//! The section `[grid]`.

use std::cmp::Ordering;
use std::ops::Bound::{Excluded, Included};

use crate::config::key::key;
use crate::config::kind::{List, Number, Whole};
use crate::config::reader::Section;
use crate::config::section::section;

/// Most batch sizes, and most sparsities, of a study.
const MOST_VALUES: usize = 1_000;
/// Most examples of a batch: 1,024 times the largest of the paper.
const MOST_BATCH: u32 = 1 << 24;
/// Most cells of a study; a larger grid is measured as several studies.
const MOST_CELLS: usize = 10_000;
/// Most trials of a cell.
pub const MOST_TRIALS: u32 = 100_000;

section! {
    /// Every batch size with every sparsity is a cell. The paper's grid: batch sizes 2, 4, 8 … 16384, sparsities 0, 0.5, 0.7 and 0.9.
    #[derive(Debug, Clone, PartialEq)]
    "grid" Grid {
        /// Examples of a batch, over all ranks.
        batch_sizes: Vec<u32> => key(List::of("batch sizes", MOST_VALUES, Whole::between(1, MOST_BATCH)), "[16, 64, 256]"),
        /// Fractions of the parameters that are removed before training.
        sparsities: Vec<f64> => key(List::of("sparsities", MOST_VALUES, Number::fraction((Included(0.0), Excluded(1.0)))), "[0, 0.5, 0.9]"),
        /// Trials of each cell; the paper has 100.
        trials: u32 => key(Whole::between(1, MOST_TRIALS), "100"),
    }
}

impl Grid {
    /// Takes in the cells of `other`: batch sizes and sparsities of both, each in ascending order.
    pub fn join(&mut self, other: &Grid) {
        self.batch_sizes = ascending(self.batch_sizes.iter().chain(&other.batch_sizes).copied(), u32::cmp);
        self.sparsities = ascending(self.sparsities.iter().chain(&other.sparsities).copied(), f64::total_cmp);
    }
}

/// Values in ascending order, each once.
pub fn ascending<T: PartialEq>(values: impl IntoIterator<Item = T>, order: impl FnMut(&T, &T) -> Ordering) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable_by(order);
    values.dedup();
    values
}

/// Values in the order in which they come first, each once.
pub fn each_once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known: Vec<T> = Vec::new();
    for value in values {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    known
}

/// Reads the section.
pub(super) fn read(mut section: Section) -> Option<Grid> {
    let draft = Draft::read(&mut section);
    if let (Some(sizes), Some(sparsities)) = (&draft.batch_sizes, &draft.sparsities)
        && sizes.len() * sparsities.len() > MOST_CELLS
    {
        let found = sizes.len() * sparsities.len();
        let sentence =
            format!("expected at most {MOST_CELLS} cells, found {found}; give fewer batch sizes or sparsities, and others their own file");
        section.problem_among("batch_sizes", &["sparsities"], &sentence);
        return None;
    }
    draft.complete()
}

//! Heat map of the K* that fewer trials would have found (K* is a minimum over trials).

use super::figure::{Figure, Part};
use super::heat::heat;
use crate::analysis::statistics::FewerTrials;
use crate::analysis::studies::StudyResults;
use crate::readable::count;
use crate::records::Cell;

/// K* of n of a cell's trials over that of all, against n, a row a cell. A race that ended at K* hides what the
/// other trials would have found. None where that holds of all cells that reached the goal, or none has two trials.
pub fn fewer(study: &StudyResults) -> Option<Figure> {
    let levels = |cell: &Cell| {
        let trials = FewerTrials::new(cell);
        let all = cell.trials.len();
        // Two numbers an octave, and all trials.
        let numbers = (0..).map(|half| f64::exp2(f64::from(half) / 2.0).round() as usize).take_while(|&number| number < all);
        let mut numbers: Vec<usize> = numbers.chain([all]).collect();
        numbers.dedup();
        let ends: Vec<usize> = numbers.iter().skip(1).copied().chain([all + all.div_ceil(8)]).collect();
        let level = |(number, next): (usize, usize)| {
            let of = |share| trials.quantile(number, share).map_or("not known".to_owned(), count);
            let words = format!(
                "{}: steps that {number} of its trials find: {} in the median, {} to {} in 95 %",
                cell.key,
                of(0.5),
                of(0.025),
                of(0.975)
            );
            (number..next, trials.quantile(number, 0.5), words)
        };
        numbers.into_iter().zip(ends).map(level).collect()
    };
    let chart = heat(study, "K* of fewer trials", &|cell| !study.hides_others(cell), &levels)?;
    let caption = "K* of n of a cell's trials, drawn at random, over K* of all of them: the median over all choices, against n; a panel a sparsity, \
                   a row a batch size. A cell that is not dark well before its right end says that more trials may find fewer steps. Grey: half of \
                   the choices hold no trial that is known to reach the goal.";
    Some(Figure::new(("fewer-trials", "What fewer trials would have found"), caption, "fewer-trials", &[Part::Trials], chart))
}

//! The fewest steps found so far against the number of trials that were run, in their order.

use super::figure::{Figure, Part};
use super::heat::heat;
use crate::analysis::studies::StudyResults;
use crate::readable::count;
use crate::records::Cell;

/// The fewest steps of a cell's first n trials over K*, a row a cell; none where no cell of two trials reached the goal.
pub fn so_far(study: &StudyResults) -> Option<Figure> {
    let levels = |cell: &Cell| {
        let (found, all) = (improvements(cell), cell.trials.len());
        let first = found.first().map_or(all, |first| first.0);
        let words = format!("{}: no trial known to reach the goal before trial {first}", cell.key);
        let before = (first > 1).then_some((1..first, None, words));
        let ends = found.iter().skip(1).map(|next| next.0).chain([all + 1]);
        let level = |(&(number, steps), to): (&(usize, u32), usize)| {
            let words = format!("{}: {} steps in the first {number} of {all} trials", cell.key, count(steps));
            (number..to, Some(steps), words)
        };
        before.into_iter().chain(found.iter().zip(ends).map(level)).collect()
    };
    let chart = heat(study, "fewest steps so far", &|_| true, &levels)?;
    let caption = "The fewest steps of a cell's first n trials over those of all of them, against n: a panel a sparsity, a row a batch size. Grey: \
                   no trial before is known to reach the goal. A cell that becomes dark far right found its K* late, and might have found fewer \
                   steps with more trials.";
    Some(Figure::new(("so-far", "The search, trial by trial"), caption, "trials", &[Part::Trials], chart))
}

/// The trials that reached the goal in fewer steps than all before them: how many trials there were with it, and its steps.
fn improvements(cell: &Cell) -> Vec<(usize, u32)> {
    let mut found: Vec<(usize, u32)> = Vec::new();
    for (place, trial) in cell.trials.iter().enumerate() {
        if let Some(steps) = trial.steps.filter(|&steps| found.last().is_none_or(|best| steps < best.1)) {
            found.push((place + 1, steps));
        }
    }
    found
}

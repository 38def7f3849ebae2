//! Steps-to-result at other goals.

use super::super::document::Block;
use super::super::numbers::{ABSENT, NOT_MEASURED};
use super::steps::crossed;
use crate::analysis::statistics::{Bounds, threshold};
use crate::analysis::studies::{StudyResults, is_of_dps};
use crate::readable::count;

/// A table for each goal; what cannot be known is a bound.
pub fn goals(study: &StudyResults, goals: &[f64]) -> Vec<Block<'static>> {
    if !is_of_dps(&study.results) {
        return vec![Block::Note("A table of steps has no evaluations: of other goals than its own nothing is known.".to_owned())];
    }
    let grid = study.grid();
    let field = |size: u32, sparsity: f64, threshold: u32| match grid.cell(size, sparsity) {
        None => NOT_MEASURED.to_owned(),
        Some(cell) => match Bounds::new(study, cell, threshold) {
            Bounds { low: None, .. } => ABSENT.to_owned(),
            Bounds { low: Some(low), high: Some(high) } if low == high => count(high),
            Bounds { low: Some(low), high: Some(high) } => format!("{} to {}", count(low), count(high)),
            Bounds { low: Some(low), high: None } => format!("at least {}", count(low)),
        },
    };
    let unread = |problem| Block::Text(format!("The goal's rule is not known, as the configuration cannot be read: {problem}"));
    let mut blocks: Vec<Block> = study.configuration.as_ref().err().map(unread).into_iter().collect();
    for (goal, threshold) in goals.iter().filter_map(|&goal| Some((goal, threshold(study, goal)?))) {
        let examples = count(study.results.workload.validation_examples);
        blocks.push(Block::Heading(4, format!("Validation error ≤ {goal}: at most {} of {examples} examples wrong", count(threshold))));
        blocks.push(Block::Table(crossed("goal", &grid.batch_sizes, &grid.sparsities, |size, sparsity| field(size, sparsity, threshold))));
    }
    blocks.push(Block::Note(format!(
        "From the recorded evaluations. The trials were trained towards the study's own goal ({}): none went on after it reached that, a race ended others, \
         and an evaluation that could no longer reach it stopped early. So of many cells no more than bounds are known: at least so many steps, or between two \
         numbers. {ABSENT} no trial can have reached this goal within the step budget; {NOT_MEASURED} not measured.",
        study.results.workload.goal_error
    )));
    blocks
}

//! Steps-to-result at other goals.

use maud::{Markup, html};

use super::table::{ABSENT, table};
use crate::analysis::statistics::{Bounds, threshold};
use crate::analysis::studies::StudyResults;
use crate::readable::count;

/// A table for each goal; what cannot be known is a bound.
pub fn goals(study: &StudyResults, goals: &[f64]) -> Markup {
    let grid = study.grid();
    let field = |size: u32, sparsity: f64, threshold: u32| match grid.cell(size, sparsity) {
        None => "·".to_owned(),
        Some(cell) => match Bounds::new(study, cell, threshold) {
            Bounds { low: None, .. } => ABSENT.to_owned(),
            bounds @ Bounds { low: Some(low), high } => match (bounds.exact(), high) {
                (Some(steps), _) => count(steps),
                (None, Some(high)) => format!("{} to {}", count(low), count(high)),
                (None, None) => format!("at least {}", count(low)),
            },
        },
    };
    html! {
        @if let Err(problem) = &study.configuration {
            p { "The goal's rule is not known, as the configuration cannot be read: " (problem) }
        }
        @for &goal in goals {
            @if let Some(threshold) = threshold(study, goal) {
                h4 { "Validation error ≤ " (goal) ": at most " (count(threshold)) " of " (count(study.results.workload.validation_examples)) " examples wrong" }
                (table(
                    &["batch size".to_owned()].into_iter().chain(grid.sparsities.iter().map(|sparsity| format!("sparsity {sparsity}"))).collect::<Vec<_>>(),
                    &grid.batch_sizes.iter().map(|&size| {
                        [count(size)].into_iter().chain(grid.sparsities.iter().map(|&sparsity| field(size, sparsity, threshold))).collect()
                    }).collect::<Vec<_>>(),
                ))
            }
        }
        p.faint {
            "From the recorded evaluations. The trials were trained towards the study's own goal (" (study.results.workload.goal_error)
            "): none went on after it reached that, a race ended others, and an evaluation that could no longer reach it stopped early. So of many cells no "
            "more than bounds are known: at least so many steps, or between two numbers. " (ABSENT) " no trial can have reached this goal within the step "
            "budget; · not measured."
        }
    }
}

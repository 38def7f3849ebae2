//! Where in the search space the best trials lie.

use super::super::figures;
use super::super::fit::slope;
use super::super::fits::Fitted;
use super::super::others::is_of_dps;
use super::super::studies::StudyResults;
use super::super::warnings::at_edge;
use super::claim::Claim;
use super::finding::{Finding, Verdict, words};
use crate::readable::{count, some};
use crate::records::Cell;

/// The best learning rates against the batch size, and best trials at the edges, at each sparsity.
pub fn findings(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    fits.iter().flat_map(|fitted| [learning_rate(study, fitted.sparsity), inside(study, fitted.sparsity)]).collect()
}

/// The cells of a sparsity that have a best trial.
fn cells(study: &StudyResults, sparsity: f64) -> impl Iterator<Item = &Cell> {
    study.results.cells.iter().filter(move |cell| cell.key.sparsity == sparsity && cell.best().is_some())
}

fn learning_rate(study: &StudyResults, sparsity: f64) -> Finding {
    let claim = Claim::LearningRate;
    let best = |cell: &Cell| {
        let best = cell.best()?;
        Some((f64::from(cell.key.batch_size), figures::learning_rate(best)?, figures::effective_rate(best)))
    };
    let points: Vec<(f64, f64, Option<f64>)> = cells(study, sparsity).filter_map(best).collect();
    // All cells share the trials that were drawn. If the same one is best in all of them, no slope can be estimated.
    if points.len() > 1 && points.iter().all(|point| point.1 == points[0].1) {
        let measured = format!("the same learning rate is the best at all {}", some(points.len(), "batch size"));
        return Finding { claim, sparsity, measured, verdict: Verdict::Undecided };
    }
    let Some(of_rate) = slope(&points.iter().map(|point| (point.0, point.1)).collect::<Vec<_>>()) else {
        let measured = format!("{} with a best learning rate", some(points.len(), "batch size"));
        return Finding { claim, sparsity, measured, verdict: Verdict::Undecided };
    };
    let effective: Option<Vec<(f64, f64)>> = points.iter().map(|point| Some((point.0, point.2?))).collect();
    let effective = effective
        .and_then(|points| slope(&points))
        .map_or(String::new(), |of_effective| format!("; the effective rate η/(1 − m) as B to the power of {}", words(of_effective)));
    let measured = format!("it changes as B to the power of {}, over {}{effective}", words(of_rate), some(points.len(), "batch size"));
    Finding { claim, sparsity, measured, verdict: Verdict::of(of_rate.low > 0.0, of_rate.high < 0.0) }
}

fn inside(study: &StudyResults, sparsity: f64) -> Finding {
    let claim = Claim::Inside;
    let Ok(configuration) = &study.configuration else {
        let why = if is_of_dps(&study.results) { "the configuration in the file cannot be read" } else { "the search space is not known" };
        let measured = why.to_owned();
        return Finding { claim, sparsity, measured, verdict: Verdict::Undecided };
    };
    let is_at_edge = |cell: &&Cell| cell.best().is_some_and(|best| at_edge(&configuration.search, best));
    let (all, at_edge): (usize, Vec<String>) =
        (cells(study, sparsity).count(), cells(study, sparsity).filter(is_at_edge).map(|cell| count(cell.key.batch_size)).collect());
    let where_it_is = if at_edge.is_empty() { String::new() } else { format!(": batch size {}", at_edge.join(", ")) };
    let measured = format!("at an edge in {} of {}{where_it_is}", at_edge.len(), some(all, "cell"));
    Finding { claim, sparsity, measured, verdict: Verdict::of(all > 0 && at_edge.is_empty(), !at_edge.is_empty()) }
}

//! Where in the search space the best trials lie.

use super::claim::Claim;
use super::finding::{Finding, Said, Tails, words};
use crate::analysis::statistics::{Fitted, at_edge, effective_rate, learning_rate as rate_of, slope};
use crate::analysis::studies::{StudyResults, is_of_dps};
use crate::readable::{count, some};
use crate::records::{Cell, Trial};

/// The best learning rates against the batch size, and best trials at the edges, at each sparsity.
pub fn findings(study: &StudyResults, fits: &[Fitted]) -> Vec<Finding> {
    let both = |sparsity| [(Claim::LearningRate, learning_rate(study, sparsity)), (Claim::Inside, inside(study, sparsity))];
    fits.iter().flat_map(|fitted| both(fitted.sparsity).map(|(claim, said)| Finding::new(claim, fitted.sparsity, said))).collect()
}

fn learning_rate(study: &StudyResults, sparsity: f64) -> Said {
    let best = |cell: &Cell| {
        let best = cell.best()?;
        Some((f64::from(cell.key.batch_size), rate_of(best)?, effective_rate(best)))
    };
    let points: Vec<(f64, f64, Option<f64>)> = study.reached(sparsity).filter_map(best).collect();
    // All cells share the trials that were drawn. If the same one is best in all of them, no slope can be estimated.
    if points.len() > 1 && points.iter().all(|point| point.1 == points[0].1) {
        return Err(format!("the same learning rate is the best at all {}", some(points.len(), "batch size")));
    }
    let of_rate = slope(&points.iter().map(|point| (point.0, point.1)).collect::<Vec<_>>())
        .ok_or_else(|| format!("{} with a best learning rate", some(points.len(), "batch size")))?;
    let also = |what: &str, points: Option<Vec<(f64, f64)>>| {
        let slope = points.and_then(|points| slope(&points));
        slope.map_or(String::new(), |slope| format!("; {what} as B to the power of {}", words(slope)))
    };
    let effective = also("the effective rate η/(1 − m)", points.iter().map(|point| Some((point.0, point.2?))).collect());
    // With the theory's constant learning rate the product K* · η/(1 − m) would fall with the batch size as K* does.
    let travelled =
        |cell: &Cell| Some((f64::from(cell.key.batch_size), f64::from(cell.steps_to_result()?) * effective_rate(cell.best()?)?));
    let travelled = also("K*·η/(1 − m)", study.reached(sparsity).map(travelled).collect());
    let measured =
        format!("it changes as B to the power of {}, over {}{effective}{travelled}", words(of_rate), some(points.len(), "batch size"));
    let tails = Tails(points.len().saturating_sub(2));
    Ok((measured, tails.above(of_rate, 0.0), tails.below(of_rate, 0.0)))
}

fn inside(study: &StudyResults, sparsity: f64) -> Said {
    let why = if is_of_dps(&study.results) { "the configuration in the file cannot be read" } else { "the search space is not known" };
    let search = &study.configuration.as_ref().map_err(|_| why.to_owned())?.search;
    // Several trials may share the cell's K*: each of them may be the best one.
    let best = |cell: &Cell| {
        let least = cell.steps_to_result();
        cell.trials.iter().filter(|trial| trial.steps.is_some() && trial.steps == least).cloned().collect::<Vec<_>>()
    };
    let measured: Vec<(u32, Vec<Trial>)> = study.reached(sparsity).map(|cell| (cell.key.batch_size, best(cell))).collect();
    let sizes = measured.iter().filter(|(_, best)| best.iter().any(|trial| at_edge(search, trial)));
    let sizes: Vec<String> = sizes.map(|(size, _)| count(*size)).collect();
    let mut points: Vec<&Trial> = Vec::new();
    for trial in measured.iter().flat_map(|(_, best)| best) {
        if points.iter().all(|other| other.metaparameters != trial.metaparameters) {
            points.push(trial);
        }
    }
    let drawn = || study.reached(sparsity).flat_map(|cell| &cell.trials);
    let share = drawn().filter(|trial| at_edge(search, trial)).count() as f64 / drawn().count().max(1) as f64;
    let found = points.iter().filter(|trial| at_edge(search, trial)).count();
    let where_it_is = if sizes.is_empty() { String::new() } else { format!(": batch size {}", sizes.join(", ")) };
    let measured = format!(
        "at an edge in {} of {}{where_it_is}; {found} of {}, where {:.0} % of all points drawn lie at one",
        sizes.len(),
        some(measured.len(), "cell"),
        some(points.len(), "best point"),
        100.0 * share
    );
    let (fewer, more) = (at_most(found, points.len(), share), at_most(points.len() - found, points.len(), 1.0 - share));
    Ok((measured, (2.0 * fewer).min(1.0), (2.0 * more).min(1.0)))
}

/// The chance of at most so many of `all` independent events, each with a chance `share`.
fn at_most(found: usize, all: usize, share: f64) -> f64 {
    let mut chance = (1.0 - share).powi(all as i32);
    let mut sum = chance;
    for number in 1..=found {
        chance *= (all + 1 - number) as f64 / number as f64 * share / (1.0 - share);
        sum += chance;
    }
    if sum.is_nan() { 1.0 } else { sum.min(1.0) }
}

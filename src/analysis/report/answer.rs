//! A study's answer in three sentences: its critical batch sizes, what sparsity costs, and the weakest point of the evidence.

use super::section::Section;
use crate::analysis::claims::words;
use crate::analysis::statistics::{Estimate, Fit, Fitted, half_width};
use crate::analysis::studies::has_trials;
use crate::readable::{count, digits, some};

/// The three sentences; none of a study without fits.
pub fn answer(section: &Section) -> Vec<String> {
    if section.study.measures_alone() || section.fits.is_empty() {
        return Vec::new();
    }
    // Confirmed steps answer where they are there for all that K* answers.
    let by_confirmed: Vec<&Fitted> = section.confirmed_fits.iter().map(|confirmed| &confirmed.fitted).collect();
    let by_least: Vec<&Fitted> = section.fits.iter().filter(|fitted| fitted.fit.is_ok()).collect();
    let has_dense = |fits: &[&Fitted]| fits.iter().any(|fitted| fitted.sparsity == 0.0) && fits.len() > 1;
    let is_confirmed = !by_confirmed.is_empty() && (has_dense(&by_confirmed) || !has_dense(&by_least));
    let fits = if is_confirmed { by_confirmed } else { by_least };
    vec![critical(&fits, is_confirmed), cost(&fits), format!("The weakest point: {}.", weakest(section, &fits, is_confirmed))]
}

fn critical(fits: &[&Fitted], is_confirmed: bool) -> String {
    if fits.is_empty() {
        return "The critical batch size is not known: a fit needs three batch sizes with a result.".to_owned();
    }
    let fitted = |fitted: &&Fitted| Some(format!("{} at sparsity {}", words(fitted.fit.as_ref().ok()?.critical), fitted.sparsity));
    let sizes: Vec<String> = fits.iter().filter_map(fitted).collect();
    let ratio = fits.iter().rev().find_map(|fitted| Some((fitted.sparsity, fitted.critical_ratio?)));
    let ratio = match ratio {
        Some((_, ratio)) if ratio.low.is_nan() => "; their ratio is not determined".to_owned(),
        Some((sparsity, ratio)) => {
            format!(
                "; at sparsity {sparsity} it is {} times the dense one's, {}, with a half-width of {} in logarithms",
                words(ratio),
                compared(ratio),
                half(ratio)
            )
        }
        None => String::new(),
    };
    let steps = if is_confirmed { "confirmed steps" } else { "K*" };
    format!("By {steps}, the critical batch size c1/c2 is {}{ratio}.", sizes.join(", "))
}

fn half(ratio: Estimate) -> String {
    let half = half_width(ratio);
    if half.is_finite() { digits(half, 2) } else { "∞".to_owned() }
}

fn compared(ratio: Estimate) -> &'static str {
    match ratio {
        Estimate { low, .. } if low > 1.0 => "so larger",
        Estimate { high, .. } if high < 1.0 => "so smaller",
        _ => "which can be told from neither a larger nor a smaller one",
    }
}

fn cost(fits: &[&Fitted]) -> String {
    let dense = fits.iter().find(|fitted| fitted.sparsity == 0.0);
    let sparsest = fits.last().filter(|fitted| fitted.sparsity > 0.0);
    let at_ends = || -> Option<(f64, [(f64, Estimate); 2])> {
        let (sparse, dense) = (sparsest?, dense?);
        let (of_sparse, of_dense): (&Fit, &Fit) = (sparse.fit.as_ref().ok()?, dense.fit.as_ref().ok()?);
        let ratios = sparse.ratios(dense);
        let ends = [ratios.first()?.0, ratios.last()?.0];
        Some((sparse.sparsity, ends.map(|size| (size, of_sparse.steps_over(of_dense, size)))))
    };
    match at_ends() {
        Some((sparsity, ratios)) => {
            let at = |(size, ratio): (f64, Estimate)| format!("{} times at batch size {}", words(ratio), count(size as u64));
            let [first, last] = ratios.map(at);
            format!("At sparsity {sparsity} the goal takes, of the dense network's steps, {first} and {last}.")
        }
        None => "What sparsity costs in steps is not known: no sparse network is fitted beside the dense one.".to_owned(),
    }
}

/// The first of what may be wrong, the gravest first.
fn weakest(section: &Section, fits: &[&Fitted], is_confirmed: bool) -> String {
    let study = section.study;
    let cells = &study.results.cells;
    if !has_trials(&study.results) {
        return "the trials behind these steps are not known".to_owned();
    }
    if !is_confirmed {
        let trials = cells.iter().map(|cell| cell.trials.len()).max().unwrap_or(0);
        return format!(
            "K* is the least of up to {}, each a point and a seed at once, so that every number here has luck in it; dps-train confirm measures how much",
            some(trials, "training")
        );
    }
    let reached = cells.iter().filter(|cell| cell.steps_to_result().is_some()).count();
    let known = section.confirmed.iter().filter(|cell| !cell.confirmed.mean.value.is_nan()).count();
    if known < reached {
        return format!("{} of {} with a K* have no confirmed mean", count((reached - known) as u64), some(reached, "cell"));
    }
    let off = section.confirmed_fits.iter().min_by(|a, b| a.goodness.total_cmp(&b.goodness)).filter(|fit| fit.goodness < 0.05);
    if let Some(off) = off {
        return format!(
            "the means of sparsity {} lie farther from the law than their errors allow (goodness of the fit {}): points are tuned unevenly, by about {} %, or \
             the law is another one",
            off.fitted.sparsity,
            digits(off.goodness, 2),
            digits(100.0 * off.tuning, 2)
        );
    }
    let alone = section.confirmed.iter().filter(|cell| cell.points.len() == 1).count();
    if alone > 0 {
        return format!(
            "{alone} of {} had one point to confirm, where another search may find a better one",
            some(known, "confirmed cell")
        );
    }
    let beyond = |fitted: &&&Fitted| {
        let sizes = fitted.points.first().zip(fitted.points.last());
        let critical = fitted.fit.as_ref().map_or(f64::NAN, |fit| fit.critical.value);
        sizes.is_some_and(|(first, last)| critical < first.batch_size || critical > last.batch_size)
    };
    if let Some(beyond) = fits.iter().find(beyond) {
        return format!("the critical batch size at sparsity {} lies beyond the batch sizes that were measured", beyond.sparsity);
    }
    "one goal, one split of the data and one set of searched points, which all cells share".to_owned()
}

//! A study's answer in three sentences: its critical batch sizes, what sparsity costs, and the weakest point of the evidence with what would mend it.

use std::collections::BTreeMap;

use super::numbers::compared;
use super::section::{Answer, Section};
use super::weakness::{HOLDS, weakest};
use crate::analysis::claims::words;
use crate::analysis::statistics::{ConfirmedFit, Estimate, Fit, Fitted, Middle, answering, core_hours, has_least_core_hours, means};
use crate::analysis::studies::is_of_dps;
use crate::readable::{count, rough, shell, some};
use crate::records::CellKey;

/// Letters of a file's digest that are shown.
const DIGEST: usize = 16;

/// The file that a study's several files are merged into.
const MERGED: &str = "RESULT.h5";

/// The high end of a ratio's interval over its low end from which on the ratio is not determined.
const WIDEST: f64 = 1e3;

/// The answer of a study whose files have the SHA-256 `digests`, by their names.
pub fn answer(section: &Section, digests: &BTreeMap<String, String>) -> Answer {
    if section.study.measures_alone() || section.fits.is_empty() {
        return Answer::default();
    }
    let (fits, is_confirmed) = answering(section.fits, &section.confirmed_fits);
    let confirmed = is_confirmed.then_some(&section.confirmed_fits[..]);
    let has_failures = section.confirmed.iter().any(|cell| cell.confirmed.failures.value > 0.0);
    // Without failures means do not rest on how long these would have taken.
    let with_medians = confirmed.filter(|_| has_failures).unwrap_or_default();
    let medians: Vec<&Fitted> = with_medians.iter().filter_map(|fit| fit.of_medians.as_ref()).collect();
    let file = file(section);
    let weakest = weakest(section, &fits, is_confirmed, &file);
    let cost = weakest.hours.map_or(String::new(), |hours| format!(", in about {}", in_words(hours)));
    let merge = merge(section);
    let merged = match &merge {
        _ if !weakest.mended.contains(MERGED) => String::new(),
        Some(merge) => format!("; {MERGED} is what {merge} makes"),
        None => format!("; {MERGED} is one of these files, which cannot be merged, and its cells alone"),
    };
    let mended = format!("The weakest point: {}; {}{cost}{merged}.", weakest.point, weakest.mended);
    let evidence = evidence(section, digests, is_confirmed);
    let files = shell(&section.study.sources);
    let after_merge = |command: String| match &merge {
        Some(merge) if command.contains(MERGED) => format!("{merge} && {command}"),
        _ => command,
    };
    let again = |cell: Option<CellKey>| match cell.filter(|_| is_of_dps(&section.study.results)) {
        Some(CellKey { batch_size, sparsity }) if file != MERGED || merge.is_some() => {
            format!("Check: `{}`.", after_merge(format!("dps-train replay {file} --batch-size {batch_size} --sparsity {sparsity}")))
        }
        _ => format!("Check: `dps-report {files}`."),
    };
    let at_end = |largest: bool| {
        let fit = fits.last()?;
        let point = if largest { fit.points.last()? } else { fit.points.first()? };
        Some(CellKey { batch_size: point.batch_size as u32, sparsity: fit.sparsity })
    };
    let checks = [again(at_end(false)), again(at_end(true)), format!("Check: `dps-report {files} --strict`.")];
    Answer {
        sentences: vec![
            critical(&fits, confirmed, &medians) + &without_fit(section, &fits, is_confirmed),
            cost_of_sparsity(&fits, &medians),
            mended,
        ],
        checks: checks.map(|check| format!("{check} {evidence}")).to_vec(),
        next: weakest.command.filter(|command| merge.is_some() || !command.contains(MERGED)).map(after_merge),
    }
}

/// The result file in a command of dps-train, which takes one file: the study's only file or, where there are several, the merged one.
fn file(section: &Section) -> String {
    match section.study.sources.as_slice() {
        one @ [_] => shell(one),
        _ => MERGED.to_owned(),
    }
}

/// The command that makes one file of a study's several; none where there is one, or where they cannot be put together.
fn merge(section: &Section) -> Option<String> {
    let sources = &section.study.sources;
    (sources.len() > 1 && section.study.mergeable).then(|| format!("dps-train merge {} -o {MERGED}", shell(sources)))
}

/// The files of a study with their digests, and the core-hours behind its answer.
fn evidence(section: &Section, digests: &BTreeMap<String, String>, is_confirmed: bool) -> String {
    let known: Vec<&str> = section.study.sources.iter().filter_map(|source| digests.get(source)?.get(..DIGEST)).collect();
    let files = if known.is_empty() { String::new() } else { format!("The file's SHA-256 begins {}. ", known.join(", ")) };
    if !is_of_dps(&section.study.results) {
        return format!("{files}Others measured it.");
    }
    let least = if has_least_core_hours(section.study) { "at least " } else { "" };
    let [search, confirmations] = core_hours(section.study).map(|hours| format!("{least}{}", in_words(hours)));
    let confirmed = if is_confirmed { format!("; confirmations: {confirmations}") } else { String::new() };
    format!("{files}Search: {search}{confirmed}.")
}

/// An amount of work in words.
fn in_words(hours: f64) -> String {
    let minutes = 60.0 * hours;
    if minutes < 0.1 {
        format!("{} core-seconds", rough(60.0 * minutes))
    } else if hours < 1.0 {
        format!("{} core-minutes", rough(minutes))
    } else {
        format!("{} core-hours", rough(hours))
    }
}

/// A critical batch size in words; where a limit is not known, what would say it.
fn size(fitted: &Fitted) -> Option<String> {
    let critical = fitted.fit.as_ref().ok()?.critical;
    let (first, last) = (fitted.points.first()?, fitted.points.last()?);
    let is_least = first.batch_size <= 1.0;
    let [first, last] = [first, last].map(|point| count(point.batch_size as u64));
    let says = match (critical.low > 0.0, critical.high.is_finite()) {
        (true, true) => words(critical),
        (true, false) => format!("more than {} (add batch sizes above {last})", rough(critical.low)),
        (false, true) if is_least => format!("less than {}", rough(critical.high)),
        (false, true) => format!("less than {} (add batch sizes below {first})", rough(critical.high)),
        (false, false) if is_least => format!("not determined (add batch sizes above {last})"),
        (false, false) => format!("not determined (add batch sizes below {first} and above {last})"),
    };
    Some(format!("{says} at sparsity {}", fitted.sparsity))
}

/// The critical batch sizes, of confirmed steps where there are `confirmed` fits; their ratio also by `medians`, where means rest on how long failed
/// trainings are taken to be.
fn critical(fits: &[&Fitted], confirmed: Option<&[ConfirmedFit]>, medians: &[&Fitted]) -> String {
    if fits.is_empty() {
        return "The critical batch size is not known: a fit needs three batch sizes with a result.".to_owned();
    }
    let sizes: Vec<String> = fits.iter().filter_map(|fitted| size(fitted)).collect();
    let ratio = fits.iter().rev().find_map(|fitted| Some((fitted, fitted.critical_ratio?)));
    let ratio = ratio.map_or(String::new(), |(fitted, ratio)| {
        let by_medians = by_medians(fitted, medians).unwrap_or_default();
        if !is_known(ratio) {
            return format!("; their ratio is not determined{by_medians}");
        }
        let by_exponent = confirmed.and_then(by_exponent).map_or(String::new(), |ratio| {
            format!(" by this law; by c1/B^a + c2, whose exponent is fitted at each sparsity, {}", of_dense(ratio))
        });
        let (sparsity, law) = (fitted.sparsity, compared(ratio, "larger", "smaller"));
        format!("; at sparsity {sparsity} it is {} times the dense one's, {law}{by_exponent}{by_medians}", words(ratio))
    });
    let steps = if confirmed.is_some() { "confirmed steps" } else { "K*" };
    format!("By {steps}, the critical batch size c1/c2 is {}{ratio}.", sizes.join(", "))
}

/// Sentences on the sparsities of which there is no fit, where there is one of others.
fn without_fit(section: &Section, fits: &[&Fitted], is_confirmed: bool) -> String {
    let without = section.fits.iter().filter(|of| !fits.is_empty() && fits.iter().all(|fitted| fitted.sparsity != of.sparsity));
    let sentence = |of: &Fitted| {
        let confirmed = means(&section.confirmed, of.sparsity, Middle::Mean).len();
        let (known, what) = if is_confirmed { (confirmed, "confirmed steps") } else { (of.points.len(), "a result") };
        let (sparsity, sizes) = (of.sparsity, some(of.points.len() + of.left_out.len(), "batch size"));
        match known {
            _ if of.points.is_empty() => format!(" At sparsity {sparsity} no trial of {sizes} reached the goal."),
            0 => format!(" At sparsity {sparsity} none of {sizes} has {what}."),
            1 => format!(" At sparsity {sparsity} one of {sizes} has {what}; a fit needs three."),
            _ => format!(" At sparsity {sparsity} {known} of {sizes} have {what}; a fit needs three."),
        }
    };
    without.map(sentence).collect()
}

/// Whether a ratio of critical batch sizes is determined.
fn is_known(ratio: Estimate) -> bool {
    ratio.low > 0.0 && ratio.high < WIDEST * ratio.low
}

/// A critical batch size over the dense network's, in words.
fn of_dense(ratio: Estimate) -> String {
    if !is_known(ratio) {
        return "it is not determined".to_owned();
    }
    format!("{} times, {}", words(ratio), compared(ratio, "larger", "smaller"))
}

/// The ratio of the critical batch sizes of a sparsity by `medians`, with the batch sizes that have a mean and no median.
fn by_medians(of_means: &Fitted, medians: &[&Fitted]) -> Option<String> {
    let of_medians = medians.iter().find(|medians| medians.sparsity == of_means.sparsity)?;
    let ratio = of_dense(of_medians.critical_ratio?);
    let is_left_out = |size: &f64| of_medians.points.iter().all(|point| point.batch_size != *size);
    let left_out = of_means.points.iter().map(|point| point.batch_size).filter(is_left_out);
    let left_out: Vec<String> = left_out.map(|size| count(size as u64)).collect();
    let without = if left_out.is_empty() { String::new() } else { format!(" (without batch size {})", left_out.join(", ")) };
    Some(format!("; by medians{without}, which do not rest on how long failed trainings would have taken, {ratio}"))
}

/// Where the law c1/B + c2 does not hold for some sparsity, the sparsest network's ratio of critical batch sizes with fitted exponents.
fn by_exponent(confirmed: &[ConfirmedFit]) -> Option<Estimate> {
    let is_off = confirmed.iter().any(|fit| fit.goodness < HOLDS);
    confirmed.iter().rev().filter(|_| is_off).find_map(|fit| fit.bent?.critical_ratio).filter(|ratio| !ratio.low.is_nan())
}

/// The steps of the sparsest network that shares batch sizes with the dense one, over those of the dense network.
fn cost_of_sparsity(fits: &[&Fitted], medians: &[&Fitted]) -> String {
    let dense = fits.iter().find(|fitted| fitted.sparsity == 0.0);
    let mut sparse = fits.iter().filter(|fitted| fitted.sparsity > 0.0);
    let at_ends = |sparse: &&Fitted| {
        let (of_sparse, of_dense): (&Fit, &Fit) = (sparse.fit.as_ref().ok()?, dense?.fit.as_ref().ok()?);
        let ratios = sparse.ratios(dense?);
        let mut ends = vec![ratios.first()?.0, ratios.last()?.0];
        ends.dedup();
        let by_fits: Vec<(f64, Estimate)> = ends.into_iter().map(|size| (size, of_sparse.steps_over(of_dense, size))).collect();
        Some((sparse.sparsity, by_fits, trend(sparse, dense?, medians)))
    };
    match sparse.clone().rev().find_map(at_ends) {
        Some((sparsity, ratios, trend)) => {
            let at = |(number, (size, ratio)): (usize, (f64, Estimate))| {
                let of_dense = if number == 0 { " the dense network's steps" } else { "" };
                format!("{} times{of_dense} at batch size {}", words(ratio), count(size as u64))
            };
            let ratios = ratios.into_iter().enumerate().map(at).collect::<Vec<_>>().join(" and ");
            format!("By the fits, the network of sparsity {sparsity} takes {ratios}{trend}.")
        }
        None => {
            let why = match (dense.is_some(), sparse.next().is_some()) {
                (true, true) => "no sparse network has a result at a batch size of the dense one",
                (true, false) => "it has no fit of a sparse network",
                (false, _) => "it has no fit of the dense network",
            };
            format!("What sparsity costs in steps this study alone does not say: {why}.")
        }
    }
}

/// How the measured ratios of steps go with the batch size, where their interval says, and those of medians.
fn trend(sparse: &Fitted, dense: &Fitted, medians: &[&Fitted]) -> String {
    let Some(trend) = sparse.trend(dense).filter(|trend| trend.low > 0.0 || trend.high < 0.0) else { return String::new() };
    let goes = if trend.low > 0.0 { "rises" } else { "falls" };
    let median = |fitted: &Fitted| medians.iter().find(|medians| medians.sparsity == fitted.sparsity);
    let of_medians = median(sparse).zip(median(dense)).and_then(|(sparse, dense)| sparse.trend(dense));
    let of_medians = of_medians.map_or(String::new(), |trend| {
        let decided = if trend.low > 0.0 || trend.high < 0.0 { "" } else { ", which is undecided" };
        format!(", by medians {}{decided}", words(trend))
    });
    format!(
        "; by a line through the measured ratios, which rests on no law of the steps, the ratio {goes} as batches grow: as the batch size to the \
         power of {}{of_medians}",
        words(trend)
    )
}

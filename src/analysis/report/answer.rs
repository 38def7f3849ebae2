//! A study's answer in three sentences: its critical batch sizes, what sparsity costs, and the weakest point of the evidence with what would mend it.

use std::collections::BTreeMap;

use super::numbers::compared;
use super::section::{Answer, Section};
use crate::analysis::claims::words;
use crate::analysis::statistics::{
    ConfirmedFit, Estimate, Fit, Fitted, ShapedFit, answering, core_hours, core_hours_of, has_least_core_hours,
};
use crate::analysis::studies::{has_trials, is_of_dps};
use crate::readable::{count, digits, rough, shell, some};
use crate::records::{self, Cell, CellKey, Status, Wanted};
use crate::settings::{self, Confirm};
use crate::statistics::FEWEST_SEEDS;

/// Letters of a file's digest that are shown.
const DIGEST: usize = 16;

/// The file that a study's several files are merged into.
const MERGED: &str = "RESULT.h5";

/// Steps of a training with a fresh seed over K*, where no cell says.
const USUAL_LUCK: f64 = 1.5;

/// The high end of a ratio's interval over its low end from which on the ratio is not determined.
const WIDEST: f64 = 1e3;

/// Times K* up to which a higher limit of confirmations is worth a try: trainings that take longer do not come.
const FARTHEST: f64 = 16.0;

/// Times K* to which a race leaves points enough to confirm in most cells.
const WIDE_RACE: f64 = 3.0;

/// The answer of a study whose files have the SHA-256 `digests`, by their names.
pub fn answer(section: &Section, digests: &BTreeMap<String, String>) -> Answer {
    if section.study.measures_alone() || section.fits.is_empty() {
        return Answer::default();
    }
    let (fits, is_confirmed) = answering(section.fits, &section.confirmed_fits);
    let weakest = weakest(section, &fits, is_confirmed);
    let cost = weakest.hours.map_or(String::new(), |hours| format!(", in about {}", in_words(hours)));
    let merge = merge(section);
    let merged = match &merge {
        _ if !weakest.mended.contains(MERGED) => String::new(),
        Some(merge) => format!("; {MERGED} is what {merge} makes"),
        None => format!("; {MERGED} is one of these files, which cannot be merged, and its cells alone"),
    };
    let mended = format!("The weakest point: {}; {}{cost}{merged}.", weakest.point, weakest.mended);
    let evidence = evidence(section, digests, is_confirmed);
    let (file, files) = (file(section), shell(&section.study.sources));
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
        sentences: vec![critical(&fits, is_confirmed.then_some(&section.confirmed_fits[..])), cost_of_sparsity(&fits), mended],
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
    if hours < 1.0 { format!("{} core-minutes", rough(60.0 * hours)) } else { format!("{} core-hours", rough(hours)) }
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

/// The critical batch sizes, of confirmed steps where there are `confirmed` fits.
fn critical(fits: &[&Fitted], confirmed: Option<&[ConfirmedFit]>) -> String {
    if fits.is_empty() {
        return "The critical batch size is not known: a fit needs three batch sizes with a result.".to_owned();
    }
    let sizes: Vec<String> = fits.iter().filter_map(|fitted| size(fitted)).collect();
    let ratio = fits.iter().rev().find_map(|fitted| Some((fitted.sparsity, fitted.critical_ratio?)));
    let is_known = |ratio: &Estimate| ratio.low > 0.0 && ratio.high < WIDEST * ratio.low;
    let ratio = match ratio {
        Some((_, ratio)) if !is_known(&ratio) => "; their ratio is not determined".to_owned(),
        Some((sparsity, ratio)) => {
            let of_law = |ratio: Estimate| compared(ratio, "larger", "smaller");
            let by_exponent = confirmed.and_then(by_exponent).map_or(String::new(), |ratio| {
                let says =
                    if is_known(&ratio) { format!("{} times, {}", words(ratio), of_law(ratio)) } else { "it is not determined".to_owned() };
                format!(" by this law; by c1/B^a + c2, whose exponent is fitted at each sparsity, {says}")
            });
            format!("; at sparsity {sparsity} it is {} times the dense one's, {}{by_exponent}", words(ratio), of_law(ratio))
        }
        None => String::new(),
    };
    let steps = if confirmed.is_some() { "confirmed steps" } else { "K*" };
    format!("By {steps}, the critical batch size c1/c2 is {}{ratio}.", sizes.join(", "))
}

/// Where the law c1/B + c2 does not hold for some sparsity, the sparsest network's ratio of critical batch sizes with fitted exponents.
fn by_exponent(confirmed: &[ConfirmedFit]) -> Option<Estimate> {
    let is_off = confirmed.iter().any(|fit| fit.goodness < HOLDS);
    confirmed.iter().rev().filter(|_| is_off).find_map(|fit| fit.bent?.critical_ratio).filter(|ratio| !ratio.low.is_nan())
}

/// The steps of the sparsest network that shares batch sizes with the dense one, over those of the dense network.
fn cost_of_sparsity(fits: &[&Fitted]) -> String {
    let dense = fits.iter().find(|fitted| fitted.sparsity == 0.0);
    let mut sparse = fits.iter().filter(|fitted| fitted.sparsity > 0.0);
    let at_ends = |sparse: &&Fitted| {
        let (of_sparse, of_dense): (&Fit, &Fit) = (sparse.fit.as_ref().ok()?, dense?.fit.as_ref().ok()?);
        let ratios = sparse.ratios(dense?);
        let mut ends = vec![ratios.first()?.0, ratios.last()?.0];
        ends.dedup();
        let by_fits: Vec<(f64, Estimate)> = ends.into_iter().map(|size| (size, of_sparse.steps_over(of_dense, size))).collect();
        Some((sparse.sparsity, by_fits, trend(sparse, dense?)))
    };
    match sparse.clone().rev().find_map(at_ends) {
        Some((sparsity, ratios, trend)) => {
            let at = |(size, ratio): (f64, Estimate)| format!("{} times at batch size {}", words(ratio), count(size as u64));
            let ratios = ratios.into_iter().map(at).collect::<Vec<_>>().join(" and ");
            format!("By the fits, at sparsity {sparsity} the goal takes, of the dense network's steps, {ratios}{trend}.")
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

/// How the measured ratios of steps go with the batch size, where their interval says.
fn trend(sparse: &Fitted, dense: &Fitted) -> String {
    let Some(trend) = sparse.trend(dense).filter(|trend| trend.low > 0.0 || trend.high < 0.0) else { return String::new() };
    let goes = if trend.low > 0.0 { "rise" } else { "fall" };
    format!("; whatever the law, the measured ratios {goes} as batches grow: as the batch size to the power of {}", words(trend))
}

/// The goodness of a fit below which its law is said not to hold.
const HOLDS: f64 = 0.05;

/// The least goodness of a fit that is told: the errors of means are themselves known from few seeds.
const LEAST_GOODNESS: f64 = 0.001;

/// A weak point of the evidence.
struct Weakness {
    /// The weak point, in words.
    point: String,
    /// The measurement that would mend the point, in words.
    mended: String,
    /// Core-hours that this measurement would take, about; none where that is not known.
    hours: Option<f64>,
    /// The command that starts this measurement.
    command: Option<String>,
}

impl Weakness {
    fn new(point: impl Into<String>, mended: impl Into<String>, hours: Option<f64>, command: Option<String>) -> Weakness {
        Weakness { point: point.into(), mended: mended.into(), hours, command }
    }
}

/// Whether a law whose shape is fitted too holds for all sparsities, in words. Empty where none is fitted.
fn by_other_laws(fits: &[ConfirmedFit]) -> String {
    let of = |law: &str, of: fn(&ConfirmedFit) -> Option<ShapedFit>| {
        let least = fits.iter().filter_map(|fit| Some(of(fit)?.goodness)).reduce(f64::min)?;
        Some(format!("{law} {}", if least < HOLDS { "does not hold either" } else { "holds" }))
    };
    let laws = [of("one with a fitted sharpness", |fit| fit.sharp), of("one with a fitted exponent", |fit| fit.bent)];
    let laws: Vec<String> = laws.into_iter().flatten().collect();
    if laws.is_empty() { String::new() } else { format!(" ({})", laws.join(", ")) }
}

/// The first of what may be wrong, the gravest first.
fn weakest(section: &Section, fits: &[&Fitted], is_confirmed: bool) -> Weakness {
    let study = section.study;
    let cells = &study.results.cells;
    if !is_of_dps(&study.results) {
        let (point, mended) = match has_trials(&study.results) {
            true => {
                ("others measured these steps, and their points cannot be trained again here", "a study of one's own could confirm them")
            }
            false => ("the trials behind these steps are not known", "a study of one's own would show them"),
        };
        return Weakness::new(point, mended, None, Some("dps-train init NEW.toml".to_owned()));
    }
    if cells.iter().all(|cell| cell.steps_to_result().is_none()) {
        let mended = "dps-train pilot proposes a goal, steps and search ranges that reach it";
        return Weakness::new("no trial reached the goal", mended, None, None);
    }
    let file = file(section);
    let configured = study.configuration.as_ref().ok();
    let asked = configured.filter(|study| study.confirm.is_some());
    let confirmed_as = configured.and_then(|study| study.confirm.as_ref());
    let limit = confirmed_as.map_or(1.0, |confirm| confirm.limit);
    let usual = Confirm::default();
    let Confirm { points, seeds, .. } = *confirmed_as.unwrap_or(&usual);
    // A study that is measured again, or grows, is confirmed too.
    let whole: f64 = core_hours(study).iter().sum();
    // `slower` is confirmed steps over K* in the geometric mean; a cell's luck is K* over its confirmed steps.
    let lucks: Vec<f64> = section.confirmed.iter().filter_map(|cell| cell.luck).map(|luck| luck.value).filter(|luck| *luck > 0.0).collect();
    let slower = match lucks.len() {
        0 => USUAL_LUCK,
        known => (-lucks.iter().map(|luck| luck.ln()).sum::<f64>() / known as f64).exp(),
    };
    let confirming = |cells: &mut dyn Iterator<Item = &Cell>| {
        let complete = |cell: &Cell| cell.trials.iter().filter(|trial| trial.steps.is_some()).count().min(points as usize);
        let of = |cell: &Cell| core_hours_of(study, cell, f64::from(seeds) * complete(cell) as f64, slower);
        Some(cells.filter_map(of).sum::<f64>()).filter(|hours| *hours > 0.0)
    };
    let confirm = format!("dps-train confirm {file}");
    let is_known = |cell: &&Cell| section.confirmed.iter().any(|one| one.key == cell.key && !one.confirmed.mean.value.is_nan());
    let reached = || cells.iter().filter(|cell| cell.steps_to_result().is_some());
    let (all, known) = (reached().count(), reached().filter(is_known).count());
    let is_trained = |cell: &Cell| asked.is_some_and(|study| records::is_confirmed(cell, cells, study));
    // More trials keep those that are there.
    let trials = cells.iter().map(|cell| cell.trials.len()).max().unwrap_or(1).max(1);
    let more = format!("dps-train {file} --trials {}", 2 * trials);
    let unknown = || reached().filter(|cell| !is_known(cell));
    let unconfirmed = format!("{} of {} with a K* have no confirmed mean", count((all - known) as u64), some(all, "cell"));
    if known < all && unknown().all(is_trained) {
        // All trainings that the study asks for are there, and confirming it again would train none.
        let at_limit = |cell: &Cell| cell.confirmations.iter().filter(|one| one.run.status == Status::Incomplete).count() as f64;
        let higher = FARTHEST.min(4.0 * limit);
        let (why, command, hours) = if (seeds as usize) < FEWEST_SEEDS {
            let command = format!("{confirm} --set confirm.seeds={}", usual.seeds);
            ("too few seeds for a mean", command, confirming(&mut unknown()))
        } else if higher > limit && unknown().any(|cell| at_limit(cell) > 0.0) {
            let hours = unknown().filter_map(|cell| core_hours_of(study, cell, at_limit(cell), higher)).sum();
            ("more than half of their trainings failed", format!("{confirm} --set confirm.limit={higher}"), Some(hours))
        } else {
            ("more than half of their trainings failed, so that K* is of points that seldom reach the goal", more, Some(whole))
        };
        return Weakness::new(format!("{unconfirmed}: {why}"), format!("{command} may give one"), hours, Some(command));
    }
    if !is_confirmed && known < all {
        let all = some(trials, "training");
        let point = format!("K* is the least of up to {all}, each a point and a seed at once, so that every number here has luck in it");
        return Weakness::new(point, "dps-train confirm would measure how much", confirming(&mut cells.iter()), Some(confirm));
    }
    if known < all {
        return Weakness::new(unconfirmed, "dps-train confirm would measure them", confirming(&mut unknown()), Some(confirm));
    }
    if fits.is_empty() {
        let mended = format!("more batch sizes (dps-train {file} --batch-size B,…) would give a fit");
        return Weakness::new("no sparsity has results at enough batch sizes for a fit", mended, None, None);
    }
    // A further trial may have fewer steps, and so end the race of the others sooner: then fewer points are left to confirm, not more.
    let race = configured.and_then(|study| study.execution.race.factor()).filter(|&factor| factor < WIDE_RACE);
    // Points of the cells next to a cell that lack trainings there: how many, and the core-hours of all their seeds, as if no point were dropped.
    let of_neighbours = asked.map(|asked| {
        let confirm = asked.confirm.clone().map(|confirm| Confirm { neighbours: true, ..confirm });
        let with = settings::Study { confirm, ..asked.clone() };
        let missing = |cell: &Cell| {
            let wanted = Wanted::of(cell, cells, &with)?;
            let known = wanted.among(&cell.confirmations);
            let of_point = |point: u32| {
                let asked = wanted.trainings.iter().filter(|training| training.point == point).count();
                let had = known.iter().filter(|one| one.training.point == point).count();
                if had < asked { (seeds as usize).saturating_sub(had) } else { 0 }
            };
            let missing = wanted.points().map(of_point).sum::<usize>() as f64;
            Some((missing, core_hours_of(study, cell, missing, slower)?))
        };
        cells.iter().filter_map(missing).fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    });
    let (more_points, hours, command) = if let Some((missing, hours)) = of_neighbours
        && missing > 0.0
    {
        let command = format!("{confirm} --set confirm.neighbours=true --set confirm.drop_slower=true");
        let what = "confirming the points of each cell's neighbours in it too, with fewer seeds and hours where they are plainly slower";
        (format!("{what} ({command}),"), hours, command)
    } else if let Some(race) = race {
        let wider = format!("dps-train {file} --set execution.race={WIDE_RACE} --output OTHER.h5");
        (
            format!("a race to {WIDE_RACE} times K*, not {race}, which has more points to confirm ({wider}),"),
            whole * WIDE_RACE / race,
            wider,
        )
    } else {
        (format!("twice as many trials ({more})"), whole, more)
    };
    let off = section.confirmed_fits.iter().min_by(|a, b| a.goodness.total_cmp(&b.goodness)).filter(|fit| fit.goodness < HOLDS);
    if let Some(off) = off {
        let point = format!(
            "the means of sparsity {} lie farther from the law than their errors allow (goodness of the fit {}): points are tuned unevenly, by about {} \
             %, or the law is another one{}",
            off.fitted.sparsity,
            if off.goodness < LEAST_GOODNESS { format!("below {LEAST_GOODNESS}") } else { digits(off.goodness, 2) },
            rough(100.0 * off.tuning),
            by_other_laws(&section.confirmed_fits)
        );
        return Weakness::new(point, format!("{more_points} would leave less to luck"), Some(hours), Some(command));
    }
    let alone = section.confirmed.iter().filter(|cell| cell.points.len() == 1).count();
    let has_others = |cell: &Cell| cell.trials.iter().filter(|trial| trial.steps.is_some()).count() > 1;
    if points == 1 && cells.iter().any(has_others) {
        let command = format!("{confirm} --set confirm.points={}", usual.points);
        let hours = core_hours(study)[1] * f64::from(usual.points - 1);
        let point = "one point of each cell was confirmed, where another of its points may be the better one";
        return Weakness::new(point, format!("more points would show it ({command})"), Some(hours), Some(command));
    }
    if alone > 0 {
        let known = some(known, "confirmed cell");
        let point = format!("{alone} of {known} had one point to confirm, where another search may find a better one");
        return Weakness::new(point, format!("{more_points} would show it"), Some(hours), Some(command));
    }
    let beyond = |fitted: &&Fitted| {
        let (first, last) = (fitted.points.first()?.batch_size, fitted.points.last()?.batch_size);
        let Estimate { value, low, high } = fitted.critical()?;
        let (below, above) = ((value < first).then_some(first / 2.0), (value > last).then_some(2.0 * last));
        Some((fitted.sparsity, below.or(above)?, high < first || low > last))
    };
    if let Some((sparsity, size, is_sure)) = fits.iter().find_map(beyond) {
        let size = size.max(1.0) as u32;
        let command = format!("dps-train {file} --batch-size {size}");
        let hours = whole / cells.len().max(1) as f64 * study.grid().sparsities.len() as f64;
        let lies = if is_sure { "lies" } else { "may lie" };
        let point = format!("the critical batch size at sparsity {sparsity} {lies} beyond the batch sizes that were measured");
        return Weakness::new(point, format!("batch size {} would show it ({command})", count(size)), Some(hours), Some(command));
    }
    // Data with a validation set of their own have no split.
    let (examples, others, key) = match study.results.workload.training_examples {
        Some(_) => {
            let first = configured.map_or(trials as u32, |study| study.trials().end);
            ("validation set", "other points", format!("search.first_trial={first}"))
        }
        None => {
            let seed = configured.map_or(0, |study| study.data.split_seed);
            ("split of the data", "another split", format!("data.split_seed={}", if seed == 0 { 1 } else { seed - 1 }))
        }
    };
    let command = format!("dps-train {file} --set {key} --output OTHER.h5");
    let point = format!("one goal, one {examples} and one set of searched points, which all cells share");
    Weakness::new(point, format!("the same study with {others} ({command}) would show it"), Some(whole), Some(command))
}

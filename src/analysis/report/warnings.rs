//! Warnings: why a cell's result may be wrong or missing.

use std::fmt;

use crate::analysis::statistics::{EDGE, FewerTrials, Fitted, share};
use crate::analysis::studies::{CLOSE, Grid, StudyResults, has_trials, is_of_dps};
use crate::optimizer::{Metaparameter, Range};
use crate::readable::{count, digits, have, some};
use crate::records::{Cell, CellKey, Status, Trial, Wanted};
use crate::results::Results;
use crate::search::Search;
use crate::settings::{Race, ascending, each_once};

/// Trials of a cell that must have reached the goal, or in a race stayed feasible, so that no warning is given.
const FEWEST_TRIALS: usize = 3;

/// Evaluations up to K* below which a warning names their interval.
const FEWEST_INTERVALS: u32 = 8;

/// Trials of a cell below which a study is said to have few.
const USUAL_TRIALS: usize = 8;

/// A kind of problem, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// One sentence; of the first cell, where it is of cells.
    pub sentence: String,
    /// The cells that it is of; none where it is of the study.
    pub cells: Vec<CellKey>,
}

/// The sentence, with the places of all cells but the first, sparsity by sparsity.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        let others = self.cells.get(1..).unwrap_or_default();
        if others.is_empty() {
            return Ok(());
        }
        let of = |sparsity: f64| {
            let sizes: Vec<String> = others.iter().filter(|key| key.sparsity == sparsity).map(|key| count(key.batch_size)).collect();
            let word = if sizes.len() == 1 { "batch size" } else { "batch sizes" };
            format!("{word} {} at sparsity {sparsity}", sizes.join(", "))
        };
        let sparsities = ascending(others.iter().map(|key| key.sparsity), f64::total_cmp);
        let places: Vec<String> = sparsities.into_iter().map(of).collect();
        write!(f, " Likewise at {}: {}.", some(others.len(), "further cell"), places.join("; "))
    }
}

/// One warning a kind of problem: fresh seeds that draw a part anew, layers without a weight, cells that are missing, half confirmed or reached no
/// goal, whose best point lies at an edge of the search space, that too few trials decided, or whose K* still falls with the number of trials.
pub fn warnings(study: &StudyResults, fits: &[Fitted]) -> Vec<Warning> {
    let mut found = study.notes.clone();
    let is_of_dps = is_of_dps(&study.results);
    match &study.configuration {
        Err(_) if !is_of_dps => {}
        Err(problem) => found.push(format!(
            "The configuration in the file cannot be read ({problem}): edges of the search space and missing cells are unchecked."
        )),
        Ok(_) => {
            let missing: Vec<String> = study.missing().iter().map(place).collect();
            if !missing.is_empty() {
                found.push(format!("Not measured yet: batch size {}.", missing.join(", ")));
            }
        }
    }
    let is_confirmed = study.results.cells.iter().any(|cell| !cell.confirmations.is_empty());
    if let Some(fresh) = study.varies_alone().filter(|_| is_confirmed) {
        found.push(format!(
            "Fresh seeds drew only the {fresh} anew (confirm.vary): confirmed steps scatter less than those of new trainings, so that their intervals and \
             those of their fits are too narrow."
        ));
    }
    let lacking = study.lacking_trials().count();
    if lacking > 0 {
        let cells = some(study.results.cells.len(), "cell");
        found.push(format!("Trials are still to come: {lacking} of {cells} measured {} fewer than the study has.", have(lacking)));
    }
    let has_trials = has_trials(&study.results);
    if !study.results.complete && study.configuration.is_err() {
        found.push("The study is not finished: cells, trials or confirmations are still to come.".to_owned());
    }
    found.extend(dead_layers(&study.results));
    found.extend(fits.iter().filter_map(wrong_law));
    found.extend(few_intervals(study));
    found.extend(number_of_trials(study));
    found.extend(warmed_up_late(study));
    let mut of_cells: Vec<(Kind, CellKey, String)> = Vec::new();
    for cell in &study.results.cells {
        let mut tell = |kind, words| of_cells.push((kind, cell.key, words));
        let to_confirm = study.configuration.as_ref().ok().and_then(|configured| Wanted::of(cell, &study.results.cells, configured));
        if let Some(wanted) = to_confirm.filter(|wanted| !wanted.are_in(cell)) {
            let (found, all) = (wanted.among(&cell.confirmations).len(), some(wanted.trainings.len(), "training"));
            let words =
                format!("{found} of the {all} that the configuration asks for confirm it so far; dps-train confirm trains the others.");
            tell(Kind::Unconfirmed, words);
        }
        match cell.best() {
            None if study.measures_alone() => {}
            None => {
                let (steps, [incomplete, infeasible]) =
                    (count(study.results.workload.max_steps), [Status::Incomplete, Status::Infeasible].map(|status| cell.count(status)));
                let words = format!("no trial reached the goal within {steps} steps ({incomplete} incomplete, {infeasible} infeasible).");
                tell(Kind::Unreached, words);
            }
            // A table does not say how many trials were run.
            Some(_) if !has_trials => {}
            Some(best) => {
                let edges = study.configuration.as_ref().map(|study| edges(&study.search, &cell.trials, best)).unwrap_or_default();
                edges.into_iter().for_each(|(kind, words)| tell(kind, words));
                few_trials(study, cell).into_iter().for_each(|words| tell(Kind::FewTrials, words));
                still_falls(study, cell).into_iter().for_each(|words| tell(Kind::StillFalls, words));
            }
        }
    }
    found.into_iter().map(|sentence| Warning { sentence, cells: Vec::new() }).chain(together(of_cells)).collect()
}

/// A cell in a list of cells.
fn place(key: &CellKey) -> String {
    format!("{} at sparsity {}", key.batch_size, key.sparsity)
}

/// Kind of fault that a cell may have. Cells with the same fault share a sentence.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unconfirmed,
    Unreached,
    /// A best value at the lower or the upper edge of its range, or the lowest or the highest of all.
    Edge(Metaparameter, &'static str),
    FewTrials,
    StillFalls,
}

/// A warning for each kind.
fn together(of_cells: Vec<(Kind, CellKey, String)>) -> Vec<Warning> {
    let warning = |kind: Kind| {
        let alike = || of_cells.iter().filter(|(other, _, _)| *other == kind);
        let (_, key, words) = alike().next()?;
        let sentence = format!("Batch size {}, sparsity {}: {words}", key.batch_size, key.sparsity);
        Some(Warning { sentence, cells: alike().map(|(_, key, _)| *key).collect() })
    };
    each_once(of_cells.iter().map(|(kind, _, _)| *kind)).into_iter().filter_map(warning).collect()
}

/// The warning about a sparsity whose steps do not follow the law that is fitted.
fn wrong_law(fitted: &Fitted) -> Option<String> {
    let exponent = fitted.exponent.filter(|_| fitted.fit.is_ok() && fitted.is_not_linear())?;
    let [value, low, high] = [exponent.value, exponent.low, exponent.high].map(|value| digits(value, 3));
    Some(format!(
        "Sparsity {}: steps do not fall as c1/B + c2 says. In c1/B^a + c2 the exponent a is {value} [{low} … {high}], which excludes 1: the critical batch size is that of a law that does not hold.",
        fitted.sparsity
    ))
}

/// The warning about cells whose K* is so few evaluations that it is hardly known.
fn few_intervals(study: &StudyResults) -> Option<String> {
    let every = study.grid().every;
    let advice = if is_of_dps(&study.results) { " A smaller evaluate_every would say more." } else { "" };
    let steps: Vec<u32> =
        study.results.cells.iter().filter_map(Cell::steps_to_result).filter(|steps| steps / FEWEST_INTERVALS < every).collect();
    let least = *steps.iter().min()?;
    let one = if steps.len() == 1 { "that is" } else { "one of them" };
    // Steps of 1 are as fine as can be.
    (every > 1).then(|| {
        format!(
            "{} reached the goal within fewer than {FEWEST_INTERVALS} evaluations, {one} within {}: K* is known to {every} steps alone, which is {:.0} % of \
             it.{advice}",
            some(steps.len(), "cell"),
            least.div_ceil(every),
            100.0 * f64::from(every) / f64::from(least)
        )
    })
}

/// The warning about cells whose best trial ended before its warm-up did: the schedule behind it was never tried.
fn warmed_up_late(study: &StudyResults) -> Option<String> {
    let is_late = |cell: &&Cell| {
        cell.best().is_some_and(|best| {
            let warmup = best.metaparameters.get(Metaparameter::WarmupSteps).unwrap_or(0.0);
            best.steps.is_some_and(|steps| f64::from(steps) < warmup)
        })
    };
    let late: Vec<String> = study.results.cells.iter().filter(is_late).map(|cell| place(&cell.key)).collect();
    (!late.is_empty()).then(|| {
        format!(
            "The best trial ended inside its warm-up at batch size {}: its learning rate was never reached. Shorten search.warmup_steps.",
            late.join(", ")
        )
    })
}

/// The warning about how many trials all cells have. K* is the least of the trials' steps, so it falls with their number; a race that ends at K*
/// hides by how much.
fn number_of_trials(study: &StudyResults) -> Vec<String> {
    let reached = || study.results.cells.iter().filter(|cell| cell.steps_to_result().is_some());
    if !has_trials(&study.results) || reached().next().is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let numbers = || reached().map(|cell| cell.trials.len());
    let least = numbers().min().unwrap_or(0);
    if least < USUAL_TRIALS {
        let cells = if numbers().all(|number| number == least) { "Cells" } else { "Some cells" };
        found.push(format!(
            "{cells} have {}, fewer than {USUAL_TRIALS}: K* is the least of their steps, and more trials may find fewer. The paper takes 100.",
            some(least, "trial")
        ));
    }
    let hidden = reached().filter(|cell| study.hides_others(cell)).count();
    if hidden > 0 {
        let all = match hidden {
            all if all == reached().count() => "All cells' races end".to_owned(),
            1 => "The race of 1 cell ends".to_owned(),
            several => format!("The races of {} cells end", count(several as u64)),
        };
        found.push(format!(
            "{all} at K*, which hides what fewer trials would have found: whether more would lower K* is not known (a race to 3 K* shows it)."
        ));
    }
    found
}

/// A sentence for each sparsity at which trials have a dead layer. A trial's mask is the same at every batch size.
pub fn dead_layers(results: &Results) -> Vec<String> {
    let of_sparsity = |&sparsity: &f64| {
        let cells = results.cells.iter().filter(|cell| cell.key.sparsity == sparsity);
        let trials = &cells.max_by_key(|cell| cell.trials.len())?.trials;
        let dead = trials.iter().filter(|trial| trial.dead_layers > 0).count();
        (dead > 0)
            .then(|| format!("Sparsity {sparsity}: trials with a dead layer (pruning left it no weight): {dead} of {}.", trials.len()))
    };
    Grid::new(results).sparsities.iter().filter_map(of_sparsity).collect()
}

/// Which searched metaparameters of the best trial lie within [`EDGE`] of a limit of their range, in the search's own scale, or beyond those of all
/// other trials.
fn edges(search: &Search, trials: &[Trial], best: &Trial) -> Vec<(Kind, String)> {
    let edge = |(name, range): (Metaparameter, Range)| {
        let value = best.metaparameters.get(name)?;
        let share = share(&range, value)?;
        let (is_low, is_high) = (share < EDGE, share > 1.0 - EDGE);
        let found = format!("the best {}, {}, ", name.name().replace('_', " "), name.show(value));
        if is_low || is_high {
            let (side, limit) = if is_low { ("lower", range.min) } else { ("upper", range.max) };
            let words = format!("{found}lies at the {side} edge of its range ({limit}); the true K* may be lower, widen the range.");
            return Some((Kind::Edge(name, side), words));
        }
        let others = || trials.iter().filter(|trial| trial.index != best.index).filter_map(|trial| trial.metaparameters.get(name));
        let extreme = match (others().any(|other| other < value), others().any(|other| other > value)) {
            (true, true) | (false, false) => return None,
            (true, false) => "highest",
            (false, true) => "lowest",
        };
        Some((
            Kind::Edge(name, extreme),
            format!("{found}is the {extreme} that any trial had; the true K* may be lower, take more trials."),
        ))
    };
    search.ranges().filter_map(edge).collect()
}

/// The warning about a cell that too few trials decided. A race that ends with its winner leaves the trials that stayed feasible to be counted.
fn few_trials(study: &StudyResults, cell: &Cell) -> Option<String> {
    let trials = cell.trials.len();
    let (feasible, complete) = (trials - cell.count(Status::Infeasible), cell.count(Status::Complete));
    let (good, did, why) = match study.race_of(cell) {
        Race::Until(1.0) => {
            (feasible, "stayed feasible".to_owned(), " (a race ends with its winner, so complete trials cannot be counted)")
        }
        Race::Until(factor) => (complete, format!("reached the goal within {factor} K*"), ""),
        Race::Off => (complete, "reached the goal".to_owned(), ""),
    };
    (good < FEWEST_TRIALS).then(|| format!("only {good} of {trials} trials {did}, fewer than {FEWEST_TRIALS}{why}."))
}

/// The warning about a cell whose K* a quarter of the random halves of its trials are far from. A race that ends before [`CLOSE`] K* hides that.
fn still_falls(study: &StudyResults, cell: &Cell) -> Option<String> {
    let (trials, least) = (cell.trials.len(), cell.steps_to_result()?);
    let race = study.race_of(cell);
    if trials < 2 || study.hides_close(cell) {
        return None;
    }
    let close = CLOSE * f64::from(least) + f64::from(study.results.workload.evaluate_every);
    let found = match FewerTrials::new(cell).quantile(trials / 2, 0.75) {
        Some(steps) if f64::from(steps) <= close => return None,
        Some(steps) => format!("{} steps or more", count(steps)),
        None => match race.factor() {
            Some(factor) => format!("none within {factor} K*"),
            None => "none".to_owned(),
        },
    };
    Some(format!(
        "of random halves of the {trials} trials, one in four finds {found}, where all of them find {}; more trials may find fewer.",
        count(least)
    ))
}

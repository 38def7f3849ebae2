//! The weakest point of a study's evidence, and the measurement that would mend it.

use super::section::Section;
use crate::analysis::statistics::{ConfirmedFit, Estimate, Fitted, ShapedFit, core_hours, core_hours_of};
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::readable::{count, digits, have, rough, some};
use crate::records::{self, Cell, Status, Wanted};
use crate::settings::{Confirm, Study, Varied};
use crate::statistics::FEWEST_SEEDS;

/// The goodness of a fit below which its law is said not to hold.
pub(super) const HOLDS: f64 = 0.05;

/// The least goodness of a fit that is told: the standard errors of means are themselves known from few seeds.
const LEAST_GOODNESS: f64 = 0.001;

/// Steps of a training with a fresh seed over K*, where no cell says.
const USUAL_LUCK: f64 = 1.5;

/// Times K* up to which a higher limit of confirmations is worth a try: trainings that take longer do not come.
const FARTHEST: f64 = 16.0;

/// Times K* to which a race leaves points enough to confirm in most cells.
const WIDE_RACE: f64 = 3.0;

/// A weak point of the evidence.
pub(super) struct Weakness {
    /// The weak point, in words.
    pub point: String,
    /// The measurement that would mend the point, in words.
    pub mended: String,
    /// Core-hours that this measurement would take, about; none where that is not known.
    pub hours: Option<f64>,
    /// The command that starts this measurement.
    pub command: Option<String>,
}

impl Weakness {
    fn new(
        point: impl Into<String>,
        mended: impl Into<String>,
        hours: impl Into<Option<f64>>,
        command: impl Into<Option<String>>,
    ) -> Weakness {
        Weakness { point: point.into(), mended: mended.into(), hours: hours.into(), command: command.into() }
    }
}

/// The first of what may be wrong with a study's answer by `fits`, the gravest first. `file` is the study's result file in a command of dps-train.
pub(super) fn weakest(section: &Section, fits: &[&Fitted], is_confirmed: bool, file: &str) -> Weakness {
    if let Some(weakness) = measured_by_others(section.study) {
        return weakness;
    }
    let evidence = Evidence::new(section, file);
    evidence
        .never_reached()
        .or_else(|| evidence.without_means())
        .or_else(|| evidence.unconfirmed(is_confirmed))
        .or_else(|| evidence.of_seeds_in_part(is_confirmed))
        .or_else(|| evidence.without_fit(fits))
        .or_else(|| evidence.off_the_law())
        .or_else(|| evidence.one_point_confirmed())
        .or_else(|| evidence.one_point_to_confirm())
        .or_else(|| evidence.beyond_sizes(fits))
        .unwrap_or_else(|| evidence.shared_by_cells())
}

/// Others' results, which dps-train cannot add to.
fn measured_by_others(study: &StudyResults) -> Option<Weakness> {
    if is_of_dps(&study.results) {
        return None;
    }
    let (point, mended) = match has_trials(&study.results) {
        true => ("others measured these steps, and their points cannot be trained again here", "a study of one's own could confirm them"),
        false => ("the trials behind these steps are not known", "a study of one's own would show them"),
    };
    Some(Weakness::new(point, mended, None, "dps-train init NEW.toml".to_owned()))
}

/// A study's cells and confirmations, with what all sentences on its weak points need.
struct Evidence<'s> {
    section: &'s Section<'s>,
    cells: &'s [Cell],
    /// The study's result file in a command.
    file: &'s str,
    /// The study's configuration, where it is known.
    configured: Option<&'s Study>,
    /// The confirmations that the configuration asks for, or the usual ones.
    confirm: Confirm,
    /// Steps of a training with a fresh seed over K*: to the goal, in the geometric mean, or to the limit where trainings go on after the goal.
    times: f64,
    /// Core-hours of all that was measured. A study that is measured again, or grows, is confirmed too.
    whole: f64,
}

impl<'s> Evidence<'s> {
    fn new(section: &'s Section<'s>, file: &'s str) -> Evidence<'s> {
        let study = section.study;
        let configured = study.configuration.as_ref().ok();
        let confirm = configured.and_then(|study| study.confirm.clone()).unwrap_or_default();
        // A cell's luck is K* over its confirmed steps.
        let lucks: Vec<f64> =
            section.confirmed.iter().filter_map(|cell| cell.luck).map(|luck| luck.value).filter(|luck| *luck > 0.0).collect();
        let times = match lucks.len() {
            _ if confirm.mean_error => confirm.limit,
            0 => USUAL_LUCK,
            known => (-lucks.iter().map(|luck| luck.ln()).sum::<f64>() / known as f64).exp(),
        };
        let whole = core_hours(study).iter().sum();
        Evidence { section, cells: &study.results.cells, file, configured, confirm, times, whole }
    }

    /// The configuration, where it asks for confirmations.
    fn confirming(&self) -> Option<&'s Study> {
        self.configured.filter(|study| study.confirm.is_some())
    }

    /// The command that confirms the study.
    fn confirm_command(&self) -> String {
        format!("dps-train confirm {}", self.file)
    }

    /// Trials of the cell that has most.
    fn trials(&self) -> usize {
        self.cells.iter().map(|cell| cell.trials.len()).max().unwrap_or(1).max(1)
    }

    /// The command that measures twice as many trials. These keep those that are there.
    fn more_trials(&self) -> String {
        format!("dps-train {} --trials {}", self.file, 2 * self.trials())
    }

    /// The core-hours of some trainings with fresh seeds of a cell, which end at so many times K*.
    fn hours(&self, cell: &Cell, trainings: f64, times: f64) -> Option<f64> {
        core_hours_of(self.section.study, cell, trainings, times)
    }

    /// The core-hours of confirming cells; none where they are not known.
    fn hours_to_confirm<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> Option<f64> {
        let Confirm { points, seeds, .. } = self.confirm;
        let complete = |cell: &Cell| cell.trials.iter().filter(|trial| trial.steps.is_some()).count().min(points as usize);
        let of = |cell: &Cell| self.hours(cell, f64::from(seeds) * complete(cell) as f64, self.times);
        Some(cells.filter_map(of).sum::<f64>()).filter(|hours| *hours > 0.0)
    }

    /// The cells in which a trial reached the goal.
    fn reached(&self) -> impl Iterator<Item = &'s Cell> {
        self.cells.iter().filter(|cell| cell.steps_to_result().is_some())
    }

    /// The cells that have K* and no mean of confirmed steps.
    fn unknown(&self) -> impl Iterator<Item = &'s Cell> {
        let confirmed = &self.section.confirmed;
        let is_known = |cell: &Cell| confirmed.iter().any(|one| one.key == cell.key && !one.confirmed.mean.value.is_nan());
        self.reached().filter(move |cell| !is_known(cell))
    }

    /// How many cells lack a mean, in words; none where none does.
    fn unconfirmed_cells(&self) -> Option<String> {
        let unknown = self.unknown().count();
        let all = || some(self.reached().count(), "cell");
        let words = || format!("{} of {} with a K* {} no confirmed mean", count(unknown as u64), all(), have(unknown));
        (unknown > 0).then(words)
    }

    fn never_reached(&self) -> Option<Weakness> {
        let mended = "dps-train pilot proposes a goal, steps and search ranges that reach it";
        self.reached().next().is_none().then(|| Weakness::new("no trial reached the goal", mended, None, None))
    }

    /// All trainings that the study asks for are there, but some cell has no mean: confirming the study again would train none.
    fn without_means(&self) -> Option<Weakness> {
        let unconfirmed = self.unconfirmed_cells()?;
        let is_trained = |cell: &Cell| self.confirming().is_some_and(|study| records::is_confirmed(cell, self.cells, study));
        if !self.unknown().all(is_trained) {
            return None;
        }
        let at_limit = |cell: &Cell| cell.confirmations.iter().filter(|one| one.run.status == Status::Incomplete).count() as f64;
        let higher = FARTHEST.min(4.0 * self.confirm.limit);
        let confirm = self.confirm_command();
        let (why, command, hours) = if (self.confirm.seeds as usize) < FEWEST_SEEDS {
            let command = format!("{confirm} --set confirm.seeds={}", Confirm::default().seeds);
            ("too few seeds for a mean", command, self.hours_to_confirm(self.unknown()))
        } else if higher > self.confirm.limit && self.unknown().any(|cell| at_limit(cell) > 0.0) {
            let hours = self.reached().filter_map(|cell| self.hours(cell, at_limit(cell), higher)).sum();
            ("more than half of the trainings failed there", format!("{confirm} --set confirm.limit={higher}"), Some(hours))
        } else {
            let why = "more than half of the trainings failed there, so that K* is of points that seldom reach the goal";
            (why, self.more_trials(), Some(self.whole))
        };
        Some(Weakness::new(format!("{unconfirmed}: {why}"), format!("{command} may give one"), hours, command))
    }

    fn unconfirmed(&self, is_confirmed: bool) -> Option<Weakness> {
        let unconfirmed = self.unconfirmed_cells()?;
        let command = self.confirm_command();
        if is_confirmed {
            return Some(Weakness::new(
                unconfirmed,
                "dps-train confirm would measure them",
                self.hours_to_confirm(self.unknown()),
                command,
            ));
        }
        let all = some(self.trials(), "training");
        let point = format!("K* is the least of up to {all}, each a point and a seed at once, so that every number here has luck in it");
        Some(Weakness::new(point, "dps-train confirm would measure how much", self.hours_to_confirm(self.cells.iter()), command))
    }

    /// Seeds that draw a part of a training's random numbers anew.
    fn of_seeds_in_part(&self, is_confirmed: bool) -> Option<Weakness> {
        let fresh = self.section.study.varies_alone().filter(|_| is_confirmed)?;
        let point = format!(
            "fresh seeds drew only the {fresh} anew, so that steps scatter less than those of new trainings, and intervals are too narrow"
        );
        let both = Varied::ALL.map(|varied| format!("\"{varied}\"")).join(", ");
        let command = format!("{} --set 'confirm.vary=[{both}]' -o CONFIRMED.h5", self.confirm_command());
        Some(Weakness::new(
            point,
            format!("seeds that draw both ({command}) would show how wide they are"),
            self.hours_to_confirm(self.reached()),
            command,
        ))
    }

    fn without_fit(&self, fits: &[&Fitted]) -> Option<Weakness> {
        let mended = || format!("more batch sizes (dps-train {} --batch-size B,…) would give a fit", self.file);
        fits.is_empty().then(|| Weakness::new("no sparsity has results at enough batch sizes for a fit", mended(), None, None))
    }

    fn off_the_law(&self) -> Option<Weakness> {
        let fits = &self.section.confirmed_fits;
        let off: Vec<&ConfirmedFit> = fits.iter().filter(|fit| fit.goodness < HOLDS).collect();
        let said = |goodness: f64| if goodness < LEAST_GOODNESS { format!("below {LEAST_GOODNESS}") } else { digits(goodness, 2) };
        let of_each = |of: &dyn Fn(&ConfirmedFit) -> String| off.iter().map(|fit| of(fit)).collect::<Vec<_>>().join(", ");
        let (sparsities, goodness) = (of_each(&|fit| fit.fitted.sparsity.to_string()), of_each(&|fit| said(fit.goodness)));
        let point = format!(
            "the means of sparsity {sparsities} lie farther from the law than their standard errors allow (goodness of the fit {goodness}): points are tuned \
             unevenly, by about {} %, or the law is another one{}",
            rough(100.0 * off.first()?.tuning),
            by_other_laws(fits)
        );
        let (more_points, hours, command) = self.more_points();
        Some(Weakness::new(point, format!("{more_points} would leave less to luck"), hours, command))
    }

    fn one_point_confirmed(&self) -> Option<Weakness> {
        let usual = Confirm::default().points;
        let (missing, hours) = self.missing(Confirm { points: usual, ..self.confirm.clone() });
        if missing == 0.0 || !self.reached().all(has_one_point) {
            return None;
        }
        let command = format!("{} --set confirm.points={usual}", self.confirm_command());
        let point = "one point of each cell was confirmed, where another of its points may be the better one";
        Some(Weakness::new(point, format!("more points would show it ({command})"), hours, command))
    }

    fn one_point_to_confirm(&self) -> Option<Weakness> {
        let alone = self.reached().filter(|cell| has_one_point(cell)).count();
        if alone == 0 {
            return None;
        }
        let known = some(self.reached().count(), "confirmed cell");
        let point = format!("{alone} of {known} had one point to confirm, where another search may find a better one");
        let (more_points, hours, command) = self.more_points();
        Some(Weakness::new(point, format!("{more_points} would show it"), hours, command))
    }

    fn beyond_sizes(&self, fits: &[&Fitted]) -> Option<Weakness> {
        let beyond = |fitted: &&Fitted| {
            let (first, last) = (fitted.points.first()?.batch_size, fitted.points.last()?.batch_size);
            let Estimate { value, low, high } = fitted.critical()?;
            let is_new = |size: &f64| *size >= 1.0 && !self.section.study.grid().batch_sizes.contains(&(*size as u32));
            let below = (value < first).then_some(first / 2.0).filter(is_new);
            let above = (value > last).then_some(2.0 * last).filter(is_new);
            Some((fitted.sparsity, below.or(above)?, high < first || low > last))
        };
        let (sparsity, size, is_sure) = fits.iter().find_map(beyond)?;
        let size = size as u32;
        let command = format!("dps-train {} --batch-size {size}", self.file);
        let hours = self.whole / self.cells.len().max(1) as f64 * self.section.study.grid().sparsities.len() as f64;
        let lies = if is_sure { "lies" } else { "may lie" };
        let point = format!("the critical batch size at sparsity {sparsity} {lies} beyond the batch sizes that were measured");
        Some(Weakness::new(point, format!("batch size {} would show it ({command})", count(size)), hours, command))
    }

    fn shared_by_cells(&self) -> Weakness {
        // Data with a validation set of their own have no split.
        let (examples, others, key) = match self.section.study.results.workload.training_examples {
            Some(_) => {
                let first = self.configured.map_or(self.trials() as u32, |study| study.trials().end);
                ("validation set", "other points", format!("search.first_trial={first}"))
            }
            None => {
                let seed = self.configured.map_or(0, |study| study.data.split_seed);
                ("split of the data", "another split", format!("data.split_seed={}", if seed == 0 { 1 } else { seed - 1 }))
            }
        };
        let command = format!("dps-train {} --set {key} --output OTHER.h5", self.file);
        let point = format!("one goal, one {examples} and one set of searched points, which all cells share");
        Weakness::new(point, format!("the same study with {others} ({command}) would show it"), self.whole, command)
    }

    /// The measurement that would bring more points to confirm: in words, its core-hours, and its command.
    fn more_points(&self) -> (String, f64, String) {
        let (missing, hours) = self.missing(Confirm { neighbours: true, ..self.confirm.clone() });
        if missing > 0.0 {
            let command = format!("{} --set confirm.neighbours=true --set confirm.drop_slower=true", self.confirm_command());
            let what =
                "confirming the points of each cell's neighbours in it too, with fewer seeds and hours where they are plainly slower";
            return (format!("{what} ({command}),"), hours, command);
        }
        // A further trial may have fewer steps, and so end the race of the others sooner: then fewer points are left to confirm, not more.
        let cuts_trials = self.cells.iter().any(|cell| cell.count(Status::Censored) > 0);
        let race = self.configured.and_then(|study| study.execution.race.factor()).filter(|&factor| cuts_trials && factor < WIDE_RACE);
        if let Some(race) = race {
            let wider = format!("dps-train {} --set execution.race={WIDE_RACE} --output OTHER.h5", self.file);
            let what = format!("a race to {WIDE_RACE} times K*, not {race}, which has more points to confirm ({wider}),");
            return (what, self.whole * WIDE_RACE / race, wider);
        }
        let more = self.more_trials();
        (format!("twice as many trials ({more})"), self.whole, more)
    }

    /// Trainings that cells lack of the confirmations `with`, and the core-hours of all seeds of their points, as if no point were dropped.
    fn missing(&self, with: Confirm) -> (f64, f64) {
        let Some(asked) = self.confirming() else { return (0.0, 0.0) };
        let with = Study { confirm: Some(with), ..asked.clone() };
        let missing = |cell: &Cell| {
            let wanted = Wanted::of(cell, self.cells, &with)?;
            let known = wanted.among(&cell.confirmations);
            let of_point = |point: u32| {
                let asked = wanted.trainings.iter().filter(|training| training.point == point).count();
                let had = known.iter().filter(|one| one.training.point == point).count();
                if had < asked { (self.confirm.seeds as usize).saturating_sub(had) } else { 0 }
            };
            let missing = wanted.points().map(of_point).sum::<usize>() as f64;
            Some((missing, self.hours(cell, missing, self.times)?))
        };
        self.cells.iter().filter_map(missing).fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }
}

/// Whether a cell was confirmed at one point alone.
fn has_one_point(cell: &Cell) -> bool {
    cell.confirmed_points().len() == 1
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

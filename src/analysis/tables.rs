//! Tables for other programs, with numbers in full precision.

use super::budget::{Budget, Least, budgets};
use super::claims::Finding;
use super::critical::Critical;
use super::fewer::FewerTrials;
use super::fit::{Estimate, Regime};
use super::fits::{EnoughTrials, Fitted, Shift, decays};
use super::goals::{Bounds, threshold};
use super::others::{has_curves, has_trials, is_of_dps};
use super::page::Section;
use super::smoothness::{Along, Measured, Smooth, Surface};
use super::studies::StudyResults;
use super::timing::Timed;
use super::work::{computed, to_end, to_goal};
use crate::config::Metaparameter;
use crate::records::{Cell, CellKey, CurvePoint, Measurement, Status, Trial};
use crate::results::Environment;

/// Rows of text under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, fit for a file's name.
    pub name: &'static str,
    /// Names of its columns.
    pub heading: Vec<String>,
    /// Its rows, each as long as the heading; an empty field is a number that does not exist.
    pub rows: Vec<Vec<String>>,
}

/// Columns of the theory's table, each with its limits. A ratio is sparse over dense. What is taken along the training is a mean or a median.
const THEORY: [&str; 24] = [
    "start_loss",
    "last_loss",
    "decrease",
    "start_variance",
    "along_variance",
    "last_variance",
    "along_lipschitz",
    "squared_rates",
    "decrease_ratio",
    "start_variance_ratio",
    "along_variance_ratio",
    "last_variance_ratio",
    "along_lipschitz_ratio",
    "squared_rates_ratio",
    "searched_squared_rates_ratio",
    "predicted_c1_ratio",
    "fitted_c1_ratio",
    "predicted_c2_ratio",
    "fitted_c2_ratio",
    "shift",
    "start_noise_scale",
    "median_noise_scale",
    "last_noise_scale",
    "critical_batch_size",
];

/// Columns of the table of work: computed, and by two rules.
const WORK: [&str; 12] = [
    "study",
    "batch_size",
    "sparsity",
    "example_gradients",
    "validation_examples",
    "to_goal_example_gradients_low",
    "to_goal_validation_examples_low",
    "to_goal_example_gradients_high",
    "to_goal_validation_examples_high",
    "to_end_example_gradients",
    "to_end_validation_examples",
    "seconds",
];

/// The steps-to-result of a cell that has not been measured.
const TO_COME: &str = "·";

/// Columns of the table of claims.
const CLAIMS: [&str; 6] = ["study", "claim", "place", "sparsity", "measured", "verdict"];

/// Columns of the table of critical batch sizes.
const CRITICAL: [&str; 8] =
    ["study", "sparsity", "definition", "critical_batch_size", "critical_batch_size_low", "critical_batch_size_high", "from", "source"];

/// Columns of the table of bounds of steps-to-result at other goals.
const GOALS: [&str; 7] = ["study", "batch_size", "sparsity", "goal_error", "goal_threshold", "steps_to_result_low", "steps_to_result_high"];

/// Columns of the table of errors within fixed budgets.
const BUDGETS: [&str; 7] = ["study", "batch_size", "sparsity", "budget", "amount", "best_errors_low", "best_errors_high"];

/// The tables of all studies: what they are of, their cells, fits and trials, the best trials' curves, what fewer trials would have found and what
/// cells took; and, where there are any, of what they say of the paper's claims, of their measurements along training and of what the theory makes of
/// them.
pub fn tables(sections: &[Section], goals: &[f64]) -> Vec<Table> {
    let shown = metaparameters(sections);
    let names = || shown.iter().map(|name| name.name());
    let studies = [
        "study",
        "files",
        "dataset",
        "network",
        "optimizer",
        "schedule",
        "goal_error",
        "goal_threshold",
        "validation_examples",
        "test_examples",
        "max_steps",
        "evaluate_every",
        "parameters",
        "criterion",
        "shuffle",
        "race",
        "data_sha256",
        "program_version",
        "device",
    ];
    let cells = ["study", "batch_size", "sparsity", "steps_to_result", "regime", "trials"];
    let cells =
        cells.into_iter().chain(Status::ALL.map(Status::name)).chain(["best_trial"]).chain(names()).chain(["test_error", "seconds"]);
    let fits = [
        "study",
        "sparsity",
        "points",
        "left_out",
        "c1",
        "c1_low",
        "c1_high",
        "c2",
        "c2_low",
        "c2_high",
        "critical_batch_size",
        "critical_batch_size_low",
        "critical_batch_size_high",
        "deviation",
        "enough_trials",
        "c1_over_dense",
        "c1_over_dense_low",
        "c1_over_dense_high",
        "c2_over_dense",
        "c2_over_dense_low",
        "c2_over_dense_high",
        "shift",
        "shift_low",
        "shift_high",
        "shift_points",
        "no_fit_because",
    ];
    let trials = ["study", "batch_size", "sparsity", "trial", "status", "steps", "steps_run", "best_errors"];
    let trials = trials.into_iter().chain(names()).chain(["parameters_kept", "mask_hash", "dead_layers", "seconds"]);
    let curves = ["study", "batch_size", "sparsity", "trial", "step", "training_loss", "errors", "examples"];
    type Rows<'a> = &'a dyn Fn(&StudyResults, &[Fitted]) -> Vec<Vec<String>>;
    let rows = |of: Rows| sections.iter().flat_map(|section| of(section.study, section.fits)).collect();
    let fewer = ["study", "batch_size", "sparsity", "trials", "steps_to_result", "steps_to_result_low", "steps_to_result_high"];
    let smoothness = [
        "study",
        "batch_size",
        "sparsity",
        "trial",
        "step",
        "lipschitz",
        "loss",
        "gradient_norm",
        "squared_norms",
        "variance",
        "noise_scale",
    ];
    let estimates = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    let time = ["study", "batch_size", "sparsity", "ranks", "threads", "device", "steps_to_result"].map(str::to_owned).into_iter();
    let time = time.chain(["step_seconds", "seconds", "core_seconds"].iter().flat_map(|name| estimates(name)));
    let theory = ["study", "batch_size", "sparsity", "along_training", "trials", "measurements"].map(str::to_owned).into_iter();
    let theory = theory.chain(THEORY.iter().flat_map(|name| estimates(name)));
    let tables = vec![
        Table { name: "studies", heading: words(&studies), rows: rows(&|study, _| vec![self::study(study)]) },
        Table { name: "cells", heading: cells.map(str::to_owned).collect(), rows: rows(&|study, fits| self::cells(study, fits, &shown)) },
        Table { name: "fits", heading: words(&fits), rows: rows(&self::fits) },
        Table { name: "trials", heading: trials.map(str::to_owned).collect(), rows: rows(&|study, _| self::trials(study, &shown)) },
        Table { name: "curves", heading: words(&curves), rows: rows(&|study, _| self::curves(study)) },
        Table { name: "fewer-trials", heading: words(&fewer), rows: rows(&|study, _| self::fewer_trials(study)) },
        Table { name: "work", heading: words(&WORK), rows: rows(&|study, _| self::work(study)) },
        Table { name: "critical", heading: words(&CRITICAL), rows: sections.iter().flat_map(self::criticals).collect() },
        Table { name: "time", heading: time.collect(), rows: sections.iter().flat_map(self::timing).collect() },
        Table { name: "budgets", heading: words(&BUDGETS), rows: rows(&|study, _| self::within_budgets(study)) },
        Table { name: "goals", heading: words(&GOALS), rows: rows(&|study, _| self::other_goals(study, goals)) },
        Table { name: "claims", heading: words(&CLAIMS), rows: sections.iter().flat_map(self::claims).collect() },
        Table { name: "smoothness", heading: words(&smoothness), rows: rows(&|study, _| self::measurements(study)) },
        Table { name: "theory", heading: theory.collect(), rows: sections.iter().flat_map(self::theory).collect() },
    ];
    tables
        .into_iter()
        .filter(|table| {
            !["critical", "time", "budgets", "goals", "claims", "smoothness", "theory"].contains(&table.name) || !table.rows.is_empty()
        })
        .collect()
}

/// The metaparameters that any trial has.
fn metaparameters(sections: &[Section]) -> Vec<Metaparameter> {
    let trials = || sections.iter().flat_map(|section| &section.study.results.cells).flat_map(|cell| &cell.trials);
    Metaparameter::ALL.iter().copied().filter(|&name| trials().any(|trial| trial.metaparameters.get(name).is_some())).collect()
}

/// The beginning of a row that belongs to a cell.
fn of_cell(study: &StudyResults, key: CellKey) -> Vec<String> {
    vec![study.slug.clone(), key.batch_size.to_string(), key.sparsity.to_string()]
}

/// What a study is of, and where it was run; several places are joined by semicolons.
fn study(study: &StudyResults) -> Vec<String> {
    let workload = &study.results.workload;
    let configured = study.configuration.as_ref().ok();
    let of_all = |of: fn(&Environment) -> &String| {
        let mut texts: Vec<&str> = study.environments.iter().map(|environment| of(environment).as_str()).collect();
        texts.dedup();
        texts.join("; ")
    };
    // Of what others measured 0 stands for what they do not say.
    let known = |number: u32| optional(Some(number).filter(|&number| number > 0 || is_of_dps(&study.results)));
    let race = configured.map(|study| study.execution.race.factor().map_or("false".to_owned(), |factor| factor.to_string()));
    vec![
        study.slug.clone(),
        study.sources.join("; "),
        workload.dataset.clone(),
        workload.network.clone(),
        workload.optimizer.clone(),
        workload.schedule.clone(),
        workload.goal_error.to_string(),
        known(workload.goal_threshold),
        known(workload.validation_examples),
        known(workload.test_examples),
        known(workload.max_steps),
        known(workload.evaluate_every),
        known(workload.parameters),
        optional(configured.map(|study| study.pruning.criterion)),
        optional(configured.map(|study| study.pruning.shuffle)),
        optional(race),
        of_all(|environment| &environment.data_digest),
        of_all(|environment| &environment.program_version),
        of_all(|environment| &environment.device),
    ]
}

fn cells(study: &StudyResults, fits: &[Fitted], shown: &[Metaparameter]) -> Vec<Vec<String>> {
    let (has_trials, is_of_dps) = (has_trials(&study.results), is_of_dps(&study.results));
    let row = |cell: &Cell| {
        let best = cell.best().filter(|_| has_trials);
        let fit = fits.iter().find(|fitted| fitted.sparsity == cell.key.sparsity).and_then(|fitted| fitted.fit.as_ref().ok());
        let mut row = of_cell(study, cell.key);
        row.push(optional(cell.steps_to_result()));
        row.push(fit.map_or(String::new(), |fit| fit.regime(f64::from(cell.key.batch_size)).map_or("undecided", Regime::name).to_owned()));
        row.push(optional(has_trials.then_some(cell.trials.len())));
        row.extend(Status::ALL.map(|status| optional(has_trials.then(|| cell.count(status)))));
        row.push(optional(best.map(|trial| trial.index)));
        row.extend(shown.iter().map(|&name| optional(best.and_then(|trial| trial.metaparameters.get(name)))));
        row.push(optional(study.results.workload.test_error(cell)));
        row.push(optional(is_of_dps.then_some(cell.seconds)));
        row
    };
    let width = 9 + Status::ALL.len() + shown.len();
    // Of a cell that is still to come nothing but its place is known.
    let to_come = |key: &CellKey| {
        let mut row = of_cell(study, *key);
        row.extend([TO_COME, "", "0"].map(str::to_owned));
        row.resize(width, String::new());
        row
    };
    let mut rows: Vec<(CellKey, Vec<String>)> = study.results.cells.iter().map(|cell| (cell.key, row(cell))).collect();
    rows.extend(study.missing().iter().map(|key| (*key, to_come(key))));
    rows.sort_by(|(a, _), (b, _)| a.sparsity.total_cmp(&b.sparsity).then(a.batch_size.cmp(&b.batch_size)));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn fits(study: &StudyResults, fits: &[Fitted]) -> Vec<Vec<String>> {
    let row = |fitted: &Fitted| {
        let fit = fitted.fit.as_ref().ok();
        let left_out: Vec<String> = fitted.left_out.iter().map(u32::to_string).collect();
        let mut row = vec![study.slug.clone(), fitted.sparsity.to_string(), optional(fit.map(|fit| fit.points)), left_out.join(" ")];
        row.extend([fit.map(|fit| fit.c1), fit.map(|fit| fit.c2), fit.map(|fit| fit.critical)].into_iter().flat_map(limits));
        row.push(optional(fit.map(|fit| fit.deviation)));
        row.push(fitted.enough_trials.map_or(String::new(), EnoughTrials::name));
        row.extend(limits(fitted.c1_ratio));
        row.extend(limits(fitted.c2_ratio));
        row.extend(limits(fitted.shift.map(Shift::estimate)));
        row.push(optional(fitted.shift.map(|shift| shift.points)));
        row.push(fitted.fit.as_ref().err().cloned().unwrap_or_default());
        row
    };
    fits.iter().map(row).collect()
}

fn trials(study: &StudyResults, shown: &[Metaparameter]) -> Vec<Vec<String>> {
    let is_of_dps = is_of_dps(&study.results);
    let own = |field: String| if is_of_dps { field } else { String::new() };
    let row = |(key, trial): (CellKey, &Trial)| {
        let mut row = of_cell(study, key);
        row.push(trial.index.to_string());
        // The fewest errors of a whole evaluation: others have bounds.
        let all = study.results.workload.validation_examples;
        let best_errors = trial.curve.iter().filter(|point| point.examples == all).map(|point| point.errors).min();
        row.extend([trial.status.name().to_owned(), optional(trial.steps), trial.steps_run.to_string(), optional(best_errors)]);
        row.extend(shown.iter().map(|&name| optional(trial.metaparameters.get(name))));
        let kept = Some(trial.parameters_kept).filter(|&kept| kept > 0 || is_of_dps);
        row.extend([optional(kept), own(format!("{:016x}", trial.mask_hash)), own(trial.dead_layers.to_string())]);
        row.push(own(trial.seconds.to_string()));
        row
    };
    if !has_trials(&study.results) {
        return Vec::new();
    }
    study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial))).map(row).collect()
}

/// The evaluations of each cell's best trial, those that the figures of curves show. Where examples are fewer than the validation set's, errors are a
/// lower bound.
fn curves(study: &StudyResults) -> Vec<Vec<String>> {
    let row = |(key, trial, point): (CellKey, &Trial, &CurvePoint)| {
        let mut row = of_cell(study, key);
        row.extend([trial.index.to_string(), point.step.to_string(), point.loss.to_string()]);
        row.extend([point.errors.to_string(), point.examples.to_string()]);
        row
    };
    let best = study.results.cells.iter().filter_map(|cell| Some((cell.key, cell.best()?)));
    best.flat_map(|(key, best)| best.curve.iter().map(move |point| (key, best, point))).map(row).collect()
}

/// A row for each number of trials: the median of what so many find, and the limits between which 95 % of choices lie; empty beyond what is known.
fn fewer_trials(study: &StudyResults) -> Vec<Vec<String>> {
    let rows = |cell: &Cell| {
        let trials = FewerTrials::new(cell);
        let row = |count: usize| {
            let mut row = of_cell(study, cell.key);
            row.push(count.to_string());
            row.extend([0.5, 0.025, 0.975].map(|share| optional(trials.quantile(count, share))));
            row
        };
        (1..=cell.trials.len()).map(row).collect::<Vec<_>>()
    };
    let cells = study.results.cells.iter().filter(|cell| has_trials(&study.results) && cell.steps_to_result().is_some());
    cells.flat_map(rows).collect()
}

/// What each cell took, and what two rules would have taken with the configured step budget.
fn work(study: &StudyResults) -> Vec<Vec<String>> {
    let workload = &study.results.workload;
    let row = |cell: &Cell| {
        let (cells, budget) = (std::slice::from_ref(cell), workload.max_steps);
        let (done, goal, end) = (computed(cells), to_goal(workload, cells, budget), to_end(workload, cells, budget));
        let mut row = of_cell(study, cell.key);
        row.extend(
            [done, goal.low, goal.high, end.high].into_iter().flat_map(|work| [work.gradients.to_string(), work.validation.to_string()]),
        );
        row.push(optional(is_of_dps(&study.results).then_some(cell.seconds)));
        row
    };
    study.results.cells.iter().filter(|_| has_curves(&study.results)).map(row).collect()
}

/// A row a claim and sparsity.
fn claims(section: &Section) -> Vec<Vec<String>> {
    let row = |finding: &Finding| {
        let Finding { claim, sparsity, measured, verdict } = finding;
        let words = [claim.words(), claim.place(), measured, verdict.name()].map(str::to_owned);
        let [claim, place, measured, verdict] = words;
        vec![section.study.slug.clone(), claim, place, sparsity.to_string(), measured, verdict]
    };
    section.claims.iter().map(row).collect()
}

/// A row a sparsity and definition of the critical batch size.
fn criticals(section: &Section) -> Vec<Vec<String>> {
    let row = |one: &Critical| {
        let mut row = vec![section.study.slug.clone(), one.sparsity.to_string(), one.definition.name().to_owned()];
        row.extend(limits(Some(one.estimate)));
        row.extend([one.from.clone(), one.definition.source().to_owned()]);
        row
    };
    section.critical.iter().map(row).collect()
}

/// A row a cell that reached the goal.
fn timing(section: &Section) -> Vec<Vec<String>> {
    let row = |timed: &Timed| {
        let mut row = of_cell(section.study, timed.key);
        row.extend([timed.ranks.to_string(), timed.threads.to_string(), timed.device.clone(), timed.steps.to_string()]);
        row.extend([timed.step_seconds, timed.seconds, timed.core_seconds].into_iter().flat_map(|estimate| limits(Some(estimate))));
        row
    };
    section.times.iter().map(row).collect()
}

/// A row a cell and goal. Without a lower limit no trial can have reached the goal within the step budget; without an upper one none is known to
/// have.
fn other_goals(study: &StudyResults, goals: &[f64]) -> Vec<Vec<String>> {
    let thresholds = goals.iter().filter_map(|&goal| Some((goal, threshold(study, goal)?)));
    let row = |cell: &Cell, goal: f64, threshold: u32| {
        let Bounds { low, high } = Bounds::new(study, cell, threshold);
        let mut row = of_cell(study, cell.key);
        row.extend([goal.to_string(), threshold.to_string(), optional(low), optional(high)]);
        row
    };
    thresholds.flat_map(|(goal, threshold)| study.results.cells.iter().map(move |cell| row(cell, goal, threshold))).collect()
}

/// A row a cell and budget within which it has an evaluation; without an upper limit none of those was of the whole validation set.
fn within_budgets(study: &StudyResults) -> Vec<Vec<String>> {
    let row = |cell: &Cell, budget: Budget| {
        let Least { low, high } = Least::new(study, cell, budget.steps(cell.key.batch_size))?;
        let mut row = of_cell(study, cell.key);
        row.extend([budget.unit().to_owned(), budget.amount().to_string(), low.to_string(), optional(high)]);
        Some(row)
    };
    budgets(study).into_iter().flat_map(|budget| study.results.cells.iter().filter_map(move |cell| row(cell, budget))).collect()
}

fn measurements(study: &StudyResults) -> Vec<Vec<String>> {
    let row = |(key, trial, found): (CellKey, u32, &Measurement)| {
        let mut row = of_cell(study, key);
        row.extend([trial.to_string(), found.step.to_string()]);
        row.push(optional(found.lipschitz));
        let values = [found.loss, found.gradient_norm, found.squared_norms, found.variance(), found.noise_scale()];
        row.extend(values.map(|value| optional(Some(value).filter(|value| value.is_finite()))));
        row
    };
    let trials = study.results.cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| (cell.key, trial)));
    trials.flat_map(|(key, trial)| trial.measurements.iter().map(move |found| (key, trial.index, found))).map(row).collect()
}

/// Two rows a cell: one with means along the training, one with medians.
fn theory(section: &Section) -> Vec<Vec<String>> {
    let decays = decays(section.study);
    let row = |smooth: &Smooth, number: usize, along: Along| {
        let of = |surface: Option<&Surface<Estimate>>, value: fn(&Surface<Estimate>) -> Estimate| surface.map(value);
        let here = |value| of(smooth.along.get(number), value);
        let over = smooth.over_dense.as_ref().and_then(|both| both.get(number));
        let ratio = |value| of(over, value);
        let fitted = |value: fn(Measured) -> Option<Estimate>| smooth.measured.and_then(value);
        let [start_noise, median_noise, last_noise] = smooth.noise_scale.map(Some);
        let estimates = [
            here(|surface| surface.start_loss),
            here(|surface| surface.last_loss),
            here(|surface| surface.decrease),
            here(|surface| surface.start_variance),
            here(|surface| surface.variance),
            here(|surface| surface.last_variance),
            here(|surface| surface.lipschitz),
            here(|surface| surface.squared_rates),
            ratio(|surface| surface.decrease),
            ratio(|surface| surface.start_variance),
            ratio(|surface| surface.variance),
            ratio(|surface| surface.last_variance),
            ratio(|surface| surface.lipschitz),
            ratio(|surface| surface.squared_rates),
            fitted(|measured| measured.squared_rates_ratio),
            over.map(|over| smooth.predicted_c1(over)),
            fitted(|measured| measured.c1_ratio),
            ratio(|surface| surface.decrease).filter(|_| decays),
            fitted(|measured| measured.c2_ratio),
            fitted(|measured| measured.shift.map(Shift::estimate)),
            start_noise,
            median_noise,
            last_noise,
            fitted(|measured| measured.critical),
        ];
        let mut row = of_cell(section.study, smooth.key);
        row.extend([along.name().to_owned(), smooth.trials.to_string(), smooth.measurements.to_string()]);
        row.extend(estimates.into_iter().flat_map(limits));
        row
    };
    let both = |smooth| Along::ALL.into_iter().enumerate().map(move |(number, along)| row(smooth, number, along));
    section.smoothness.iter().flat_map(both).collect()
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A number with its limits; empty where one does not exist.
fn limits(estimate: Option<Estimate>) -> [String; 3] {
    let of = |value: fn(Estimate) -> f64| optional(estimate.map(value).filter(|value| !value.is_nan()));
    [of(|estimate| estimate.value), of(|estimate| estimate.low), of(|estimate| estimate.high)]
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

impl Table {
    /// Comma-separated values with a heading (RFC 4180).
    ///
    /// # Errors
    /// The library's words.
    pub fn csv(&self) -> Result<Vec<u8>, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.heading).map_err(|error| error.to_string())?;
        for row in &self.rows {
            writer.write_record(row).map_err(|error| error.to_string())?;
        }
        writer.into_inner().map_err(|error| error.to_string())
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let line = |fields: &mut dyn Iterator<Item = String>| format!("| {} |\n", fields.collect::<Vec<_>>().join(" | "));
        let field = |text: &String| {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('\\', "\\\\").replace('|', "\\|");
            escaped.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mut text = line(&mut self.heading.iter().map(|name| name.replace('_', " ")));
        text += &line(&mut self.heading.iter().map(|_| "---".to_owned()));
        text.extend(self.rows.iter().map(|row| line(&mut row.iter().map(field))));
        text
    }
}

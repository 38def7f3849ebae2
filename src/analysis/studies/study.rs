//! Result files put together: those of one study become one, as the parts of a job array are.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::grid::Grid;
use super::known::is_of_dps;
use crate::data::{DataSource, DatasetName};
use crate::pruning::{CriterionName, Pruning};
use crate::readable::{count, first_line, some};
use crate::records::{self, Cell, CellKey, Confirmation, Status, Trial};
use crate::results::{Environment, Results, WorkloadSummary};
use crate::settings::{self, Convolutions, Race, Varied, each_once};

/// Keys in which files of one study may differ: its grid, what its confirmations draw anew, and how the work was run.
const BESIDE_THE_STUDY: [&str; 4] = [settings::CELL_KEYS[0], settings::CELL_KEYS[1], "confirm", "execution"];

/// Keys at most by which studies of one name are told apart.
const MOST_KEYS: usize = 4;

/// Steps this many times K* are still called close to it.
pub const CLOSE: f64 = 1.2;

/// The section of measurements along training.
const SMOOTHNESS: &str = "smoothness";

/// The key that tells studies apart first.
const GOAL: &str = "workload.goal_error";

/// The results of one study, put together from its files.
#[derive(Debug, Clone)]
pub struct StudyResults {
    /// The study's short name, unique in the report, fit for a file's name.
    pub slug: String,
    /// Words by which the study differs from others of its name, where there are any: the keys in which they differ, or its files.
    pub apart: Option<String>,
    /// The study's results, cells of all its files together, by sparsity, then batch size.
    pub results: Results,
    /// Names of its files.
    pub sources: Vec<String>,
    /// The environments of its files that differ from each other.
    pub environments: Vec<Environment>,
    /// Where each cell was measured, as a place among those environments.
    measured_in: Vec<(CellKey, usize)>,
    /// Cells of several files: the measurements that are not among the results, each with its place.
    measured_again: Vec<(Cell, usize)>,
    /// The configuration as data, with the grids of all files; or why it cannot be read.
    pub configuration: Result<settings::Study, String>,
    /// The races of its files that differ from each other; a configuration has one.
    pub races: Vec<Race>,
    /// Whether `dps-train merge` makes one file of its files.
    pub mergeable: bool,
    /// Warnings about how its files were put together.
    pub notes: Vec<String>,
}

/// Puts results of the same workload, pruning, search, split and trials a cell, by the same release of this program, together; the grid and how the
/// work was run may differ. Where a cell is in several files, the one with the most trials is kept, of such the one with the most confirmations, of
/// such the one with the longest race, of equals the first. Confirmations are those of the first file whose fresh
/// seeds draw all random numbers anew, or where there is none of the first that asks for some; others are kept where their seeds draw the same anew,
/// and beside the study's cells where they draw something else.
pub fn gather(files: Vec<(String, Results)>) -> Vec<StudyResults> {
    let mut parts: Vec<Vec<StudyResults>> = Vec::new();
    for part in files.into_iter().map(StudyResults::of_file) {
        match parts.iter_mut().find(|known| known[0].is_of(&part, &BESIDE_THE_STUDY)) {
            Some(known) => known.push(part),
            None => parts.push(vec![part]),
        }
    }
    let joined = |mut parts: Vec<StudyResults>| {
        parts.sort_by_key(|part| part.varies_alone().is_some());
        parts.into_iter().reduce(|mut study, part| {
            study.join(part);
            study
        })
    };
    let mut studies: Vec<StudyResults> = parts.into_iter().filter_map(joined).collect();
    let names: Vec<String> = studies.iter().map(StudyResults::name).collect();
    let keys = told_apart(&studies, &names);
    for ((study, name), keys) in studies.iter_mut().zip(&names).zip(&keys) {
        if names.iter().filter(|other| *other == name).count() > 1 {
            study.apart = Some(keys.clone().unwrap_or_else(|| study.sources.join(", ")));
        }
    }
    let mut taken = HashSet::new();
    for (study, keys) in studies.iter_mut().zip(keys) {
        study.results.cells.sort_by(|a, b| a.key.by_sparsity(&b.key));
        // A file is complete by its own grid, which may be a part of the study's.
        if let Ok(configured) = &study.configuration {
            study.results.complete = records::all_finished(&study.results.cells, configured);
        }
        let workload = &study.results.workload;
        let pruning = study.pruning_name();
        let name = slug(&[&workload.dataset, &workload.network, &workload.optimizer, &pruning, &keys.unwrap_or_default()]);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        study.slug = std::iter::once(name.clone()).chain(numbered).find(|name| taken.insert(name.clone())).unwrap_or(name);
    }
    studies
}

/// For each study the keys that tell it from others of its name, with its values. None where those are none or many, or do not tell it from all of
/// them.
fn told_apart(studies: &[StudyResults], names: &[String]) -> Vec<Option<String>> {
    let mut words = vec![None; studies.len()];
    for name in each_once(names) {
        let places: Vec<usize> = (0..names.len()).filter(|&place| names[place] == *name).collect();
        let configured: Option<Vec<&settings::Study>> = places.iter().map(|&place| studies[place].configuration.as_ref().ok()).collect();
        let found = configured.map_or_else(Vec::new, |configured| keys_of(&configured));
        for (place, word) in places.iter().zip(&found) {
            words[*place] = word.clone().filter(|_| found.iter().filter(|other| *other == word).count() == 1);
        }
    }
    words
}

/// For each of some studies the keys that tell them apart, with its values: the goal first, and no more keys than are needed. None where those
/// are none or many.
fn keys_of(studies: &[&settings::Study]) -> Vec<Option<String>> {
    let values = |one: &&settings::Study| {
        let differences = studies.iter().flat_map(|other| settings::differences(one, other, &BESIDE_THE_STUDY));
        differences.map(|difference| (difference.key, difference.left)).collect()
    };
    let all: Vec<BTreeMap<String, String>> = studies.iter().map(values).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let kinds = |chosen: &[&String]| {
        let of = |values: &BTreeMap<String, String>| chosen.iter().map(|key| values.get(*key).cloned()).collect::<Vec<_>>();
        all.iter().map(of).collect::<BTreeSet<_>>().len()
    };
    let (goal, others): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(|key| *key == GOAL);
    let mut chosen = [goal, others].concat();
    let needed = kinds(&chosen);
    // Keys that tell no two studies apart beside the others are left out, the last ones first.
    for place in (0..chosen.len()).rev() {
        let key = chosen.remove(place);
        if kinds(&chosen) < needed {
            chosen.insert(place, key);
        }
    }
    let word = |values: &BTreeMap<String, String>, key: &String| {
        // The keys of most sections name what they are of by themselves.
        let name = key.split_once('.').map_or(key.as_str(), |(section, name)| if section == SMOOTHNESS { key } else { name });
        let name = name.replace(['_', '.'], " ");
        Some(match values.get(key)?.as_str() {
            // A study may be without this section; of others a key that a configuration does not have stands for its default.
            settings::ABSENT if key.starts_with(SMOOTHNESS) => format!("without {SMOOTHNESS}"),
            settings::ABSENT => format!("default {name}"),
            value => format!("{name} {}", value.trim_matches('"')),
        })
    };
    let is_short = (1..=MOST_KEYS).contains(&chosen.len());
    let words = |values| chosen.iter().map(|key| word(values, key)).collect::<Option<Vec<_>>>().map(|words| words.join(", "));
    all.iter().map(|values| words(values).filter(|_| is_short)).collect()
}

impl StudyResults {
    /// The study of a file alone.
    fn of_file((source, results): (String, Results)) -> StudyResults {
        let configuration = settings::recorded(&source, &results.configuration, &[]);
        let configuration = match is_of_dps(&results) {
            true => configuration.map(|loaded| loaded.study).map_err(|error| first_line(&error.to_string())),
            false => Err("dps did not measure it".to_owned()),
        };
        let environments = vec![results.environment.clone()];
        let measured_in = results.cells.iter().map(|cell| (cell.key, 0)).collect();
        StudyResults {
            slug: String::new(),
            apart: None,
            results,
            sources: vec![source],
            environments,
            measured_in,
            measured_again: Vec::new(),
            races: configuration.iter().map(|study| study.execution.race).collect(),
            configuration,
            mergeable: true,
            notes: Vec::new(),
        }
    }

    /// The only random numbers that the fresh seeds of confirmations draw anew; none where they draw all anew, or nothing is to be confirmed.
    pub fn varies_alone(&self) -> Option<Varied> {
        self.configuration.as_ref().ok()?.confirm.as_ref()?.varies_alone()
    }

    /// The study of a report that this one is a control of: the first that has the same settings but for how it prunes, one with the usual pruning
    /// before others. None where this study is itself that one, or no other differs by its pruning alone.
    pub fn original<'a>(&self, studies: impl Iterator<Item = &'a StudyResults> + Clone) -> Option<&'a StudyResults> {
        let same = studies.filter(|other| self.is_of(other, &[&BESIDE_THE_STUDY[..], &["pruning"]].concat()));
        let original = same.clone().find(|other| other.pruning_name().is_empty()).or_else(|| same.clone().next())?;
        (!self.is_of(original, &BESIDE_THE_STUDY)).then_some(original)
    }

    /// The keys of `pruning` in which this study differs from another, with the values of both.
    pub fn pruned_otherwise(&self, other: &StudyResults) -> String {
        let (Ok(this), Ok(that)) = (&self.configuration, &other.configuration) else { return String::new() };
        let differences = settings::differences(this, that, &BESIDE_THE_STUDY);
        differences.iter().map(|found| format!("`{}` ({}, there {})", found.key, found.left, found.right)).collect::<Vec<_>>().join(" and ")
    }

    /// The pruning in words; none of the usual one, SNIP, or where the configuration does not say.
    pub fn pruning_name(&self) -> String {
        self.configuration.as_ref().map_or(String::new(), |study| of_pruning(&study.pruning))
    }

    /// Whether the study was run for its measurements along training alone: its goal is no error at all, so that no trial ends early.
    pub fn measures_alone(&self) -> bool {
        let measured = self.results.trials().any(|trial| !trial.measurements.is_empty());
        measured && self.results.workload.goal_threshold == 0 && self.results.cells.iter().all(|cell| cell.best().is_none())
    }

    /// Examples of the training set; none where a share of data of one's own was held out, of which the file has the size alone.
    pub fn training_examples(&self) -> Option<u32> {
        let workload = &self.results.workload;
        // Files of one's own may stand for a data set with a name.
        let is_published = self.configuration.as_ref().is_ok_and(|study| study.data.source == DataSource::Original);
        let named = || workload.dataset.parse::<DatasetName>().ok()?.spec().training.checked_sub(workload.validation_examples);
        workload.training_examples.or_else(|| named().filter(|_| is_published))
    }

    /// How many training examples smoothness was measured on, and how many there are; none where the configuration does not say.
    pub fn measured_on(&self) -> Option<(f64, f64)> {
        let study = self.configuration.as_ref().ok()?;
        let held_out = study.data.validation_fraction;
        let split = (f64::from(self.results.workload.validation_examples) * (1.0 / held_out - 1.0)).round();
        match (study.smoothness.as_ref()?.examples, self.training_examples().map(f64::from)) {
            (0, all) => all.or(Some(split)).map(|all| (all, all)),
            (some, Some(all)) => Some((f64::from(some).min(all), all)),
            // How many are left is known roughly, by the rounded share that was held out.
            (some, None) => Some((f64::from(some), split.max(f64::from(some)))),
        }
    }

    /// By how much of the variance of one example's gradient the squared gradient of the examples measured on exceeds the whole training set's, on
    /// average.
    pub fn sampling(&self) -> f64 {
        self.measured_on().map_or(0.0, |(some, all)| 1.0 / some - 1.0 / all)
    }

    /// The workload in a line, without its goal; unique in the report but for files of one name.
    pub fn name(&self) -> String {
        let workload = &self.results.workload;
        // A table of steps names no network, and may have several goals under one name.
        let goal = if workload.network.is_empty() { format!("goal {}", workload.goal_error) } else { String::new() };
        let apart = self.apart.as_ref().map_or(String::new(), |words| format!(" ({words})"));
        workload_name(workload, &goal, &self.pruning_name()) + &apart
    }

    /// The goal in words.
    pub fn goal(&self) -> String {
        let workload = &self.results.workload;
        match workload.validation_examples {
            0 => format!("{}, as its files or the command line have it", workload.goal_error),
            examples => format!("{} (at most {} of {} wrong)", self.goal_in_short(), count(workload.goal_threshold), count(examples)),
        }
    }

    /// The goal in a title. What others measured may be of another error, or a loss.
    pub fn goal_in_short(&self) -> String {
        let workload = &self.results.workload;
        let what = if workload.validation_examples == 0 { "the goal" } else { "validation error ≤" };
        format!("{what} {}", workload.goal_error)
    }

    /// Where a cell was measured.
    pub fn environment(&self, key: CellKey) -> &Environment {
        let place = self.measured_in.iter().find(|(other, _)| *other == key).map(|(_, place)| *place);
        place.and_then(|place| self.environments.get(place)).unwrap_or(&self.results.environment)
    }

    /// Every measurement of a cell with where it was: those of the results, and those of the same cells in other files on other ranks, threads or
    /// devices.
    pub fn measurements(&self) -> impl Iterator<Item = (&Cell, &Environment)> {
        let again = self.measured_again.iter().filter_map(|(cell, place)| Some((cell, self.environments.get(*place)?)));
        let elsewhere = again.filter(move |(cell, environment)| environment.machine() != self.environment(cell.key).machine());
        self.results.cells.iter().map(|cell| (cell, self.environment(cell.key))).chain(elsewhere)
    }

    /// The cells of all its files: those of the results, then those that several files have.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        self.results.cells.iter().chain(self.measured_again.iter().map(|(cell, _)| cell))
    }

    /// The cells of a sparsity that reached the goal.
    pub fn reached(&self, sparsity: f64) -> impl Iterator<Item = &Cell> {
        self.results.cells.iter().filter(move |cell| cell.key.sparsity == sparsity && cell.best().is_some())
    }

    /// The study's cells as a grid.
    pub fn grid(&self) -> Grid<'_> {
        Grid::new(&self.results)
    }

    /// The race in which a cell's trials ran. Where its trials were cut off before the end that the configuration says, as in a part of another race
    /// or by the step budget, it is known from them.
    pub fn race_of(&self, cell: &Cell) -> Race {
        let said = self.configuration.as_ref().map_or(Race::Off, |study| study.execution.race);
        let is_cut = |trial: &&Trial| match trial.status {
            Status::Censored => true,
            Status::Incomplete => said.factor().is_some(),
            Status::Complete | Status::Infeasible => false,
        };
        let cut = cell.trials.iter().filter(is_cut).map(|trial| trial.steps_run).min();
        let (Some(best), Some(cut)) = (cell.steps_to_result(), cut) else { return said };
        match said.last_step(best, self.results.workload.evaluate_every) {
            Some(last) if last <= cut => said,
            // Trials ran up to the step `cut`: the race's factor is `cut` over `best`, rounded up to hundredths.
            _ => Race::Until((100.0 * f64::from(cut) / f64::from(best)).ceil().max(100.0) / 100.0),
        }
    }

    /// Whether a cell's race ended at its steps-to-result, which hides what the other trials would have found.
    pub fn hides_others(&self, cell: &Cell) -> bool {
        self.race_of(cell) == Race::Until(1.0)
    }

    /// Whether a cell's race ended so soon that it hides which other trials would have come within 20 % of its steps-to-result.
    pub fn hides_close(&self, cell: &Cell) -> bool {
        self.race_of(cell).factor().is_some_and(|factor| factor < CLOSE)
    }

    /// Cells of the configured grid that have not been measured.
    pub fn missing(&self) -> Vec<CellKey> {
        let Ok(configuration) = &self.configuration else { return Vec::new() };
        let grid = &configuration.grid;
        let measured = self.grid();
        let keys =
            grid.sparsities.iter().flat_map(|&sparsity| grid.batch_sizes.iter().map(move |&batch_size| CellKey { batch_size, sparsity }));
        keys.filter(|key| measured.cell(key.batch_size, key.sparsity).is_none()).collect()
    }

    /// Measured cells that have fewer trials than the study.
    pub fn lacking_trials(&self) -> impl Iterator<Item = &Cell> {
        let trials = self.configuration.as_ref().map_or(0, |study| study.grid.trials as usize);
        self.results.cells.iter().filter(move |cell| cell.trials.len() < trials)
    }

    /// Whether another study is the same one but for the keys in `ignored`.
    fn is_of(&self, other: &StudyResults, ignored: &[&str]) -> bool {
        let same = match (&self.configuration, &other.configuration) {
            // A report may set a race beside full runs: their steps-to-result are the same.
            (Ok(this), Ok(that)) => settings::differences(this, that, ignored).is_empty(),
            _ => self.results.configuration == other.results.configuration,
        };
        let releases = |study: &StudyResults| {
            let convolutions = study.configuration.as_ref().map_or(Convolutions::Direct, |study| study.execution.convolutions);
            study.results.environment.releases(convolutions)
        };
        same && releases(self) == releases(other) && self.results.workload == other.results.workload
    }

    fn join(&mut self, mut other: StudyResults) {
        self.environments = each_once(self.environments.drain(..).chain(other.environments.iter().cloned()));
        let (mut otherwise, mut left_out) = (Vec::new(), 0);
        if let (Ok(this), Ok(that)) = (&self.configuration, &other.configuration) {
            otherwise = settings::contradictions(this, that);
            self.mergeable &= otherwise.is_empty();
            otherwise.retain(settings::Difference::is_of_confirmations);
        }
        let of_other_kind = !otherwise.is_empty();
        // An unjoined study has one environment.
        let place = self.environments.iter().position(|one| *one == other.results.environment).unwrap_or(0);
        let mut hidden: Vec<CellKey> = Vec::new();
        let known = |study: &StudyResults, cell: &Cell| {
            let confirmations = if of_other_kind { 0 } else { cell.confirmations.len() };
            (cell.trials.len(), confirmations, study.race_of(cell).factor().unwrap_or(f64::INFINITY))
        };
        for mut cell in std::mem::take(&mut other.results.cells) {
            let key = cell.key;
            let Some(at) = self.results.cells.iter().position(|here| here.key == key) else {
                if of_other_kind && !cell.confirmations.is_empty() {
                    self.measured_again.push((cell.clone(), place));
                    cell.confirmations.clear();
                    left_out += 1;
                }
                self.results.cells.push(cell);
                self.measured_in.push((key, place));
                continue;
            };
            let knows_more = known(&other, &cell) > known(self, &self.results.cells[at]);
            let here = &mut self.results.cells[at];
            if here.steps_to_result() != cell.steps_to_result() || here.trials.len() != cell.trials.len() {
                self.notes.push(format!(
                    "{key} is in several files with different results: the one with the most trials is shown, of such the one with the most \
                     confirmations, then with the longest race, of equals the first."
                ));
            }
            let mut place = place;
            if knows_more {
                std::mem::swap(here, &mut cell);
                if of_other_kind {
                    std::mem::swap(&mut here.confirmations, &mut cell.confirmations);
                }
                if let Some((_, kept)) = self.measured_in.iter_mut().find(|(other, _)| *other == key) {
                    std::mem::swap(kept, &mut place);
                }
            }
            let is_shown = |one: &Confirmation| here.confirmations.iter().any(|shown| shown.training == one.training);
            if !of_other_kind && !cell.confirmations.iter().all(is_shown) {
                hidden.push(key);
            }
            self.measured_again.push((cell, place));
        }
        if let Some((first, others)) = hidden.split_first() {
            let others = if others.is_empty() { "has".to_owned() } else { format!("and {} have", some(others.len(), "further cell")) };
            self.notes.push(format!(
                "{first} {others} confirmations in another file, which are not shown: dps-train merge puts all of them together."
            ));
        }
        if let (Ok(this), Ok(that)) = (&mut self.configuration, &other.configuration) {
            this.grid.join(&that.grid);
            if !of_other_kind {
                this.join_confirmations(that);
            }
            if let Ok(text) = settings::canonical(this) {
                self.results.configuration = text;
            }
        }
        self.races = each_once(self.races.drain(..).chain(other.races));
        if left_out > 0 {
            let differ: Vec<String> = otherwise.iter().map(|found| found.between(&self.sources[0], "this one")).collect();
            self.notes.push(format!(
                "The confirmations of {} in {} are left out, as they are of another kind ({}).",
                some(left_out, "cell"),
                other.sources.join(", "),
                differ.join("; ")
            ));
        }
        self.results.complete &= other.results.complete;
        self.sources.extend(other.sources);
    }
}

/// Names joined into one that is fit for a file's.
fn slug(names: &[&str]) -> String {
    let joined: String =
        names.join("-").chars().take(80).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = joined.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "study".to_owned() } else { words.join("-") }
}

/// The pruning in words, as [`pruning_name`] has them.
fn of_pruning(&Pruning { criterion, shuffle, reinitialise, .. }: &Pruning) -> String {
    pruning_name(criterion, [shuffle, reinitialise])
}

/// The pruning in words; none of the usual one, SNIP. `controls` says whether its masks are shuffled, and its weights drawn anew.
pub fn pruning_name(criterion: CriterionName, controls: [bool; 2]) -> String {
    let words = ["shuffled", "weights drawn anew"];
    let used: Vec<&str> = controls.into_iter().zip(words).filter(|(is_used, _)| *is_used).map(|(_, words)| words).collect();
    let name = if criterion == CriterionName::Snip && used.is_empty() { String::new() } else { format!("{criterion} pruning") };
    joined(&[&[name.as_str()], used.as_slice()].concat())
}

/// The workload and the pruning of results in a line, without the goal.
pub fn results_name(results: &Results) -> String {
    let pruning = settings::recorded("", &results.configuration, &[]).map_or(String::new(), |kept| of_pruning(&kept.study.pruning));
    workload_name(&results.workload, "", &pruning)
}

/// The workload in a line, with a goal and a pruning where they are to be said.
fn workload_name(workload: &WorkloadSummary, goal: &str, pruning: &str) -> String {
    let schedule = if workload.schedule.is_empty() { String::new() } else { format!("{} learning rate", workload.schedule) };
    joined(&[&workload.dataset, &workload.network, &workload.optimizer, &schedule, goal, pruning])
}

/// Words that are there, with commas between.
pub fn joined(words: &[&str]) -> String {
    words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

//! The layout of Shallue et al.'s published data (JMLR 20, 2019), as `analysis::shallue` writes it too:
//! `dataset/model/optimizer/batch_size/study.json` and below it `trial_id/metadata.json` and `trial_id/measurements.csv`.
//!
//! The published data have no goal and no sparsity. An export of ours has both, in an object `dps`, and gives the same steps-to-result again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::shallue::{CONFIRMATIONS, their_name};
use super::{MOST_BYTES, cell, excess, results, trial};
use crate::analysis::studies::{joined, pruning_name};
use crate::error::short;
use crate::optimizer::Metaparameter;
use crate::pruning::CriterionName;
use crate::records::{CellKey, CurvePoint, Status, Trial};
use crate::results::{Results, WorkloadSummary};
use crate::storage::read_regular;
use crate::{Error, Result};

/// A folder that has a file of this name is the folder of one batch size.
const STUDY: &str = "study.json";

/// Folders from a data set down to a batch size.
const DEPTH: usize = 4;

/// A sentence on a file.
type Found<T> = std::result::Result<T, (PathBuf, String)>;

/// The rule by which a trial is complete.
enum Goal {
    /// At most so many of so many validation examples wrong: an export of ours.
    Count(u32, u32),
    /// A validation error below this goal: the rule of Shallue et al.
    Below(f64),
}

/// Reads every study below a folder, by name; those of one data set, network, optimizer and goal are one. `goal` is the validation error to get below
/// where the data have none of their own.
///
/// # Errors
/// [`Error::Results`] where there is no study, a file cannot be read or is not what it should be, or a goal is needed.
pub fn read_layout(folder: &Path, goal: Option<f64>) -> Result<Vec<Results>> {
    let read = || {
        let folder = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
        let mut places = Vec::new();
        collect(&folder, DEPTH, &mut places)?;
        if places.is_empty() {
            return Err((folder, format!("expected result files, or a folder in the layout of Shallue et al., found no {STUDY} in it")));
        }
        let mut found: Vec<Results> = Vec::new();
        for place in places {
            // Confirmations are no trials of the search.
            if json(&place.join(STUDY))?["dps"][CONFIRMATIONS] == true {
                continue;
            }
            let (key, workload, trials) = read_cell(&place, goal)?;
            let (cell, every) = (cell(key, trials), workload.evaluate_every);
            let of = |workload: &WorkloadSummary| WorkloadSummary { evaluate_every: 0, max_steps: 0, ..workload.clone() };
            match found.iter_mut().find(|one| of(&one.workload) == of(&workload)) {
                Some(one) => {
                    one.workload.evaluate_every = one.workload.evaluate_every.min(every);
                    one.workload.max_steps = one.workload.max_steps.max(workload.max_steps);
                    one.cells.push(cell);
                }
                None => found.push(results(workload, vec![cell])),
            }
        }
        excess(&found).map_or(Ok(found), |problem| Err((folder, problem)))
    };
    read().map_err(|(path, problem)| Error::Results { path, problem })
}

/// The folders at or below one, so many levels down, that hold a study.
fn collect(folder: &Path, levels: usize, places: &mut Vec<PathBuf>) -> Found<()> {
    if folder.join(STUDY).is_file() {
        places.push(folder.to_owned());
        return Ok(());
    }
    if levels > 0 {
        for below in folders(folder)? {
            collect(&below, levels - 1, places)?;
        }
    }
    Ok(())
}

/// The folders in a folder, by name, and by number where the names are numbers.
fn folders(folder: &Path) -> Found<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>).map_err(|error| unreadable(folder, &error))?;
    let mut below: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    below.sort_by_key(|path| (number_of(path), path.clone()));
    Ok(below)
}

fn number_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// A cell with what it is of.
fn read_cell(place: &Path, goal: Option<f64>) -> Found<(CellKey, WorkloadSummary, Vec<Trial>)> {
    let path = place.join(STUDY);
    let study = json(&path)?;
    let refused = |what: &str| (path.clone(), format!("expected {what}, found {}", short(&study.to_string(), 60)));
    let ours = study.get("dps");
    // The published data name a study by its folders.
    let folder = |up: usize| place.ancestors().nth(up).and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = |key: &str, up: usize| study[key].as_str().map(str::to_owned).or_else(|| folder(up)).unwrap_or_default();
    let sparsity = ours.map_or(Some(0.0), |ours| ours["sparsity"].as_f64().filter(|sparsity| (0.0..=1.0).contains(sparsity)));
    let sparsity = sparsity.ok_or_else(|| refused("dps.sparsity from 0 to 1"))?;
    let key = CellKey {
        batch_size: whole(&study["batch_size"]).filter(|&size| size > 0).ok_or_else(|| refused("a batch_size, a whole number from 1"))?,
        sparsity,
    };
    let (dataset, model, optimizer) = (name("dataset", 3), name("model", 2), name("optimizer", 1));
    let mut workload = WorkloadSummary { dataset, network: model, optimizer, ..WorkloadSummary::default() };
    let goal = match (ours, goal) {
        (Some(ours), _) => {
            let number = |key: &str| ours[key].as_f64().filter(|number| (0.0..=1.0).contains(number));
            let examples = whole(&ours["validation_examples"]).filter(|&examples| examples > 0);
            let (error, strict, examples) = (|| Some((number("goal_error")?, number("strict_goal_error")?, examples?)))()
                .ok_or_else(|| refused("dps.goal_error, dps.strict_goal_error and dps.validation_examples"))?;
            let dashed = |name: &str| name.replace('_', "-");
            workload.dataset = dashed(&workload.dataset);
            let network = workload.network.strip_suffix(&format!("_sparsity_{sparsity}")).unwrap_or(&workload.network);
            let criterion = ours["pruning"].as_str().and_then(|name| name.parse().ok()).unwrap_or(CriterionName::Snip);
            let pruning = pruning_name(criterion, ["masks_shuffled", "weights_drawn_anew"].map(|key| ours[key] == true));
            workload.network = joined(&[&dashed(network), &pruning]);
            workload.optimizer =
                if workload.optimizer == "nesterov_momentum" { "nesterov".to_owned() } else { dashed(&workload.optimizer) };
            workload.schedule = ours["schedule"].as_str().unwrap_or_default().to_owned();
            workload.goal_error = error;
            workload.validation_examples = examples;
            workload.goal_threshold = (strict * f64::from(examples)).floor() as u32;
            Goal::Count(workload.goal_threshold, examples)
        }
        (None, Some(goal)) => {
            workload.goal_error = goal;
            Goal::Below(goal)
        }
        (None, None) => {
            return Err((
                path,
                "expected a goal, found none, as in all data in this layout that dps did not export; give --goal ERROR".to_owned(),
            ));
        }
    };
    let mut trials = Vec::new();
    for place in folders(place)? {
        let index =
            number_of(&place).ok_or_else(|| (place.clone(), "expected a folder a trial, named by its number; remove others".to_owned()))?;
        trials.push(read_trial(&place, index, &goal)?);
    }
    let apart = |trial: &Trial| {
        trial.curve.windows(2).map(|pair| pair[1].step - pair[0].step).chain(trial.curve.first().map(|point| point.step)).min()
    };
    workload.evaluate_every = trials.iter().filter_map(apart).filter(|&apart| apart > 0).min().unwrap_or(0);
    let last = trials.iter().map(|trial| trial.steps_run).max().unwrap_or(0);
    workload.max_steps = whole(&study["train_steps"]).unwrap_or(last);
    if let Goal::Below(_) = goal {
        // Published data do not say on how many examples errors were counted, which every evaluation of ours records: the curves are dropped.
        trials.iter_mut().for_each(|trial| trial.curve.clear());
    }
    Ok((key, workload, trials))
}

fn read_trial(place: &Path, index: u32, goal: &Goal) -> Found<Trial> {
    let path = place.join("metadata.json");
    let metadata = json(&path)?;
    let refused = |what: &str| (path.clone(), format!("expected {what}, found {}", short(&metadata.to_string(), 60)));
    let (curve, reached) = read_curve(&place.join("measurements.csv"), goal)?;
    let status = match (goal, metadata["status"].as_str()) {
        (Goal::Count(..), _) => {
            let name = metadata["dps"]["status"].as_str();
            let status = Status::ALL
                .into_iter()
                .find(|status| name == Some(status.name()))
                .ok_or_else(|| refused("how the trial ended as dps.status"))?;
            if metadata["dps"]["steps_to_result"].as_u64() != reached.map(u64::from) || reached.is_some() != (status == Status::Complete) {
                return Err((
                    path,
                    "damaged: its dps.steps_to_result is not what measurements.csv beside it has; export it again".to_owned(),
                ));
            }
            status
        }
        (_, Some("COMPLETE")) if reached.is_some() => Status::Complete,
        (_, Some("COMPLETE")) => Status::Incomplete,
        (_, Some("INFEASIBLE")) => Status::Infeasible,
        (_, Some("INCOMPLETE")) => Status::Censored,
        _ => return Err(refused("the status COMPLETE, INCOMPLETE or INFEASIBLE")),
    };
    let last = curve.last().map_or(0, |point| point.step);
    let steps_run = whole(&metadata["steps"]).unwrap_or(last);
    // By their rule a trial that did not run its course does not count.
    let mut trial = trial(index, status, reached.filter(|_| status == Status::Complete), steps_run);
    trial.parameters_kept = whole(&metadata["dps"]["parameters_kept"]).unwrap_or(0);
    trial.curve = curve;
    for name in Metaparameter::ALL {
        trial.metaparameters.set(name, metadata["parameters"][&their_name(name)].as_f64());
    }
    Ok(trial)
}

/// The evaluations, and the step of the first one that reached the goal.
fn read_curve(path: &Path, goal: &Goal) -> Found<(Vec<CurvePoint>, Option<u32>)> {
    let bytes = read_regular(path, MOST_BYTES).map_err(|error| unreadable(path, &error))?;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let damaged = |problem: String| (path.to_owned(), problem);
    let rows = |error: csv::Error| damaged(format!("expected rows of comma-separated values below a heading ({error})"));
    let heading = reader.headers().map_err(rows)?.clone();
    let place =
        |name: &str| heading.iter().position(|other| other == name).ok_or_else(|| damaged(format!("expected a column {name}, found none")));
    let step = place("step")?;
    let (mut curve, mut reached) = (Vec::<CurvePoint>::new(), None);
    for row in reader.records() {
        let row = row.map_err(rows)?;
        let number = |place: usize| row.get(place).and_then(|field| field.parse::<f64>().ok());
        let count = |place: usize| {
            number(place).filter(|value| value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(value)).map(|value| value as u32)
        };
        let wrong = |name: &str| {
            damaged(format!("expected numbers of {name}, steps ascending, found {:?}", row.iter().take(6).collect::<Vec<_>>().join(",")))
        };
        let step = count(step).filter(|&step| curve.last().is_none_or(|point| point.step < step)).ok_or_else(|| wrong("steps"))?;
        let (errors, examples, is_reached) = match *goal {
            Goal::Count(threshold, all) => {
                let (errors, examples) = (count(place("val/errors")?), count(place("val/examples")?));
                let (errors, examples) =
                    errors.zip(examples).filter(|(_, examples)| *examples <= all).ok_or_else(|| wrong("errors and examples"))?;
                (errors, examples, examples == all && errors <= threshold)
            }
            // An evaluation without a recorded error does not reach the goal.
            Goal::Below(goal) => (0, 0, number(place("val/classification_error")?).is_some_and(|error| error < goal)),
        };
        let loss = place("train/cross_entropy_error").ok().and_then(number).unwrap_or(f64::NAN) as f32;
        curve.push(CurvePoint { step, loss, errors, examples });
        reached = reached.or(Some(step).filter(|_| is_reached));
    }
    Ok((curve, reached))
}

fn json(path: &Path) -> Found<Value> {
    let bytes = read_regular(path, MOST_BYTES).map_err(|error| unreadable(path, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| (path.to_owned(), format!("expected JSON, found something else ({error})")))
}

fn unreadable(path: &Path, error: &std::io::Error) -> (PathBuf, String) {
    (path.to_owned(), format!("it cannot be read ({error}); give a folder in the layout of Shallue et al., all of which may be read"))
}

fn whole(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

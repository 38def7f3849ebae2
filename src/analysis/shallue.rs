//! Results in the layout of Shallue et al.'s published data (JMLR 20, 2019; the folder `batch_science` of google-research), so that what reads theirs
//! reads ours: `dataset/model/optimizer/batch_size/study.json` and below it `trial_id/metadata.json` and `trial_id/measurements.csv`.
//!
//! Shallue's layout has no place for sparsity, so it is part of the model's name. It has no goal, so every trial is there with all its evaluations.
//! Whatever else has no place is in an object `dps`.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::studies::StudyResults;
use crate::config::{self, Metaparameter, Race, Scale, Setting};
use crate::records::{Cell, Status, Trial};
use crate::results::WorkloadSummary;
use crate::storage::{Disk, Storage, make_folder};
use crate::{Error, Result};

/// The columns of `measurements.csv`. A validation error is there for whole evaluations alone; `val/errors` of `val/examples` seen is what was
/// counted.
const COLUMNS: [&str; 6] =
    ["step", "train/cross_entropy_error", "val/classification_error", "test/classification_error", "val/errors", "val/examples"];

/// Writes every cell of the studies below `folder`, and returns how many there are.
///
/// # Errors
/// [`Error::Results`]: a cell's folder is there already, as where two studies differ in what the layout cannot say; a configuration cannot be read;
/// or a file cannot be written.
pub fn shallue(studies: &[StudyResults], folder: &Path) -> Result<usize> {
    let mut cells = 0;
    for study in studies {
        let configuration = study.configuration.as_ref().map_err(|problem| {
            let problem = format!(
                "the configuration of {} cannot be read ({problem}), and the layout needs its search space",
                study.sources.join(", ")
            );
            Error::Results { path: folder.to_owned(), problem }
        })?;
        for cell in &study.results.cells {
            write_cell(cell, &study.results.workload, configuration, folder)?;
            cells += 1;
        }
    }
    Ok(cells)
}

fn write_cell(cell: &Cell, workload: &WorkloadSummary, configuration: &config::Study, folder: &Path) -> Result<()> {
    // What a file says becomes the name of a folder, and nothing else: no path of its own.
    let words =
        |name: &str| -> String { name.chars().take(80).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect() };
    let model = match cell.key.sparsity {
        0.0 => words(&workload.network),
        sparsity => format!("{}_sparsity_{sparsity}", words(&workload.network)),
    };
    // The names that their data have for these.
    let optimizer = if workload.optimizer == "nesterov" { "nesterov_momentum".to_owned() } else { words(&workload.optimizer) };
    let dataset = words(&workload.dataset);
    let place = folder.join(&dataset).join(&model).join(&optimizer).join(cell.key.batch_size.to_string());
    let failed = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "expected no such folder, found one; export into a new folder, and studies that differ in their goal or schedule \
                                             into one each"
                    .to_owned()
            }
            _ => format!("the export could not be written ({error}); choose a folder you may write to, with free space"),
        };
        Error::Results { path: place.clone(), problem }
    };
    let write = |path: &Path, bytes: &[u8]| Disk.create(path).and_then(|file| Disk.append(&file, bytes)).map_err(failed);
    let pretty = |value: &Value| format!("{value:#}\n").into_bytes();
    place.parent().map_or(Ok(()), make_folder).and_then(|()| fs::create_dir(&place)).map_err(failed)?;
    let study = json!({
        "batch_size": cell.key.batch_size,
        "dataset": dataset,
        "model": model,
        "optimizer": optimizer,
        "early_stopping": configuration.execution.race != Race::Off,
        "train_steps": workload.max_steps,
        "parameter_configs": parameter_configs(configuration),
        "dps": {
            "sparsity": cell.key.sparsity,
            "pruning": configuration.pruning.criterion.name(),
            "masks_shuffled": configuration.pruning.shuffle,
            "weights_drawn_anew": configuration.pruning.reinitialise,
            "schedule": workload.schedule,
            "goal_error": workload.goal_error,
            // Shallue's steps-to-result are of errors strictly below a goal; ours of no more errors than the goal allows.
            "strict_goal_error": (f64::from(workload.goal_threshold) + 0.5) / f64::from(workload.validation_examples),
            "validation_examples": workload.validation_examples,
            "steps_to_result": cell.steps_to_result(),
        },
    });
    write(&place.join("study.json"), &pretty(&study))?;
    let best = cell.best().map(|trial| trial.index);
    for trial in &cell.trials {
        let place = place.join(trial.index.to_string());
        fs::create_dir(&place).map_err(failed)?;
        write(&place.join("metadata.json"), &pretty(&metadata(trial)))?;
        let test_errors = cell.test_errors.filter(|_| best == Some(trial.index) && workload.test_examples > 0);
        let measurements = measurements(trial, test_errors, workload).map_err(|problem| failed(io::Error::other(problem)))?;
        write(&place.join("measurements.csv"), &measurements)?;
    }
    Ok(())
}

/// The search space with the names of their layout; a metaparameter that is not searched has one feasible point.
fn parameter_configs(configuration: &config::Study) -> Value {
    let config = |(name, setting): (Metaparameter, Setting)| {
        let value = match setting {
            Setting::Fixed(value) => json!({ "type": "DISCRETE", "feasible_points": [value] }),
            Setting::Range(range) => {
                let (kind, scale) = match range.scale {
                    Scale::Integer => ("INTEGER", ""),
                    Scale::Linear => ("DOUBLE", "LINEAR_SCALE"),
                    Scale::Log => ("DOUBLE", "LOG_SCALE"),
                    Scale::ReverseLog => ("DOUBLE", "REVERSE_LOG_SCALE"),
                };
                json!({ "type": kind, "scale": scale, "min_value": range.min, "max_value": range.max })
            }
        };
        (their_name(name), value)
    };
    Value::Object(configuration.search.settings.iter().map(config).collect::<Map<_, _>>())
}

/// What their layout calls a metaparameter, where it has it.
pub(super) fn their_name(name: Metaparameter) -> String {
    match name {
        Metaparameter::DecaySteps => "learning_rate_decay_steps".to_owned(),
        _ => name.name().to_owned(),
    }
}

/// A trial's `metadata.json`. Theirs is complete once it has run its course: by reaching the goal or by spending its steps; one that a race cut off
/// has not.
fn metadata(trial: &Trial) -> Value {
    let status = match trial.status {
        Status::Complete | Status::Incomplete => "COMPLETE",
        Status::Censored => "INCOMPLETE",
        Status::Infeasible => "INFEASIBLE",
    };
    let number = |name: Metaparameter, value: f64| if name.is_whole() { json!(value as u64) } else { json!(value) };
    let parameters: Map<_, _> = trial.metaparameters.iter().map(|(name, value)| (their_name(name), number(name, value))).collect();
    json!({
        "trial_id": trial.index,
        "status": status,
        "steps": trial.steps_run,
        "parameters": parameters,
        "dps": { "status": trial.status.name(), "steps_to_result": trial.steps, "parameters_kept": trial.parameters_kept },
    })
}

/// A trial's `measurements.csv`, a row an evaluation; the best trial's last has its test error.
fn measurements(trial: &Trial, test_errors: Option<u32>, workload: &WorkloadSummary) -> std::result::Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(|error| error.to_string())?;
    let ratio = |errors: u32, examples: u32| (f64::from(errors) / f64::from(examples)).to_string();
    for point in &trial.curve {
        let whole = point.examples == workload.validation_examples;
        let test = test_errors.filter(|_| trial.steps == Some(point.step));
        writer
            .write_record([
                point.step.to_string(),
                point.loss.to_string(),
                if whole { ratio(point.errors, point.examples) } else { String::new() },
                test.map_or(String::new(), |errors| ratio(errors, workload.test_examples)),
                point.errors.to_string(),
                point.examples.to_string(),
            ])
            .map_err(|error| error.to_string())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

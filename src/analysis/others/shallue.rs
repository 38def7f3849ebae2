//! Results in the layout of Shallue et al.'s published data (JMLR 20, 2019; the folder `batch_science` of google-research), so that what reads theirs
//! reads ours: `dataset/model/optimizer/batch_size/study.json` and below it `trial_id/metadata.json` and `trial_id/measurements.csv`.
//!
//! Shallue's layout has no place for sparsity, so it is part of the model's name. It has no goal, so every trial is there with all its evaluations.
//! Whatever else has no place is in an object `dps`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io, iter};

use serde_json::{Map, Value, json};

use crate::analysis::studies::StudyResults;
use crate::optimizer::{Metaparameter, Scale, Setting};
use crate::records::{Cell, Status, Training, Trial};
use crate::results::WorkloadSummary;
use crate::settings::{self, Race};
use crate::storage::{Disk, Storage, make_folder};
use crate::{Error, Result};

/// The columns of `measurements.csv`. A validation error is there for whole evaluations alone; `val/errors` of `val/examples` seen is what was
/// counted.
const COLUMNS: [&str; 6] =
    ["step", "train/cross_entropy_error", "val/classification_error", "test/classification_error", "val/errors", "val/examples"];

/// The key of a study's object `dps` that says whether its trials are confirmations.
pub(super) const CONFIRMATIONS: &str = "confirmations";

/// Writes every cell of the studies below `folder`, and returns how many there are.
///
/// # Errors
/// [`Error::Results`], before anything is written: a cell's folder is there already, two studies differ in what the layout cannot say, or a
/// configuration cannot be read. Later: a file cannot be written.
pub fn shallue(studies: &[StudyResults], folder: &Path) -> Result<usize> {
    let refuse = |path: &Path, problem: String| Err(Error::Results { path: path.to_owned(), problem });
    let (mut cells, mut exports) = (0, BTreeMap::new());
    for study in studies {
        let sources = study.sources.join(", ");
        let configuration = match &study.configuration {
            Ok(configuration) => configuration,
            Err(problem) => {
                let problem = format!("the configuration of {sources} cannot be read ({problem}), and the layout needs its search space");
                return refuse(folder, problem);
            }
        };
        for cell in &study.results.cells {
            cells += 1;
            let trials = Exported::trials(cell, &study.results.workload, configuration.execution.race);
            for exported in iter::once(trials).chain(Exported::confirmations(cell)) {
                let place = exported.place(cell, &study.results.workload, folder);
                if fs::symlink_metadata(&place).is_ok() {
                    return refuse(&place, "expected no such folder, found one; export into a new folder".to_owned());
                }
                if let Some((other, ..)) = exports.insert(place.clone(), (sources.clone(), exported, cell, study, configuration)) {
                    let problem = format!(
                        "expected one study's cell, found that of {other} and that of {sources}, which the layout cannot tell apart; export each \
                         into a folder of its own"
                    );
                    return refuse(&place, problem);
                }
            }
        }
    }
    for (place, (_, exported, cell, study, configuration)) in &exports {
        write_study(exported, cell, &study.results.workload, configuration, place)?;
    }
    Ok(cells)
}

/// A cell's trials, or its confirmations, which are no trials of the search, as a study in their layout.
struct Exported<'a> {
    /// The ending of the model's name in the layout: empty for trials, `_confirmed` for confirmations.
    suffix: &'static str,
    /// Most steps of a trial, and whether one ends because of another.
    train_steps: u32,
    early_stopping: bool,
    steps_to_result: Option<u32>,
    /// The trials, by their numbers there, each with what it is a confirmation of.
    trials: Vec<(u32, &'a Trial, Option<&'a Training>)>,
    /// The number of the trial whose test errors are known.
    tested: Option<u32>,
}

impl Exported<'_> {
    fn trials<'a>(cell: &'a Cell, workload: &WorkloadSummary, race: Race) -> Exported<'a> {
        Exported {
            suffix: "",
            train_steps: workload.max_steps,
            early_stopping: race != Race::Off,
            steps_to_result: cell.steps_to_result(),
            trials: cell.trials.iter().map(|trial| (trial.index, trial, None)).collect(),
            tested: cell.best().map(|trial| trial.index),
        }
    }

    /// None where nothing is confirmed.
    fn confirmations(cell: &Cell) -> Option<Exported<'_>> {
        let runs = || cell.confirmations.iter().map(|one| &one.run);
        Some(Exported {
            suffix: "_confirmed",
            train_steps: runs().map(|run| run.steps_run).max()?,
            early_stopping: false,
            steps_to_result: runs().filter_map(|run| run.steps).min(),
            trials: (0..).zip(&cell.confirmations).map(|(number, one)| (number, &one.run, Some(&one.training))).collect(),
            tested: None,
        })
    }

    /// The names of the data set, the model and the optimizer in the layout.
    fn names(&self, cell: &Cell, workload: &WorkloadSummary) -> [String; 3] {
        // Words of a file become the name of a folder, and nothing else: no path of their own.
        let words = |name: &str| -> String {
            name.chars().take(80).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
        };
        let model = match cell.key.sparsity {
            0.0 => format!("{}{}", words(&workload.network), self.suffix),
            sparsity => format!("{}_sparsity_{sparsity}{}", words(&workload.network), self.suffix),
        };
        // Shallue et al.'s data call the optimizer `nesterov` by the name `nesterov_momentum`.
        let optimizer = if workload.optimizer == "nesterov" { "nesterov_momentum".to_owned() } else { words(&workload.optimizer) };
        [words(&workload.dataset), model, optimizer]
    }

    /// The folder of a cell's study below `folder`.
    fn place(&self, cell: &Cell, workload: &WorkloadSummary, folder: &Path) -> PathBuf {
        self.names(cell, workload).iter().fold(folder.to_owned(), |path, name| path.join(name)).join(cell.key.batch_size.to_string())
    }
}

fn write_study(exported: &Exported, cell: &Cell, workload: &WorkloadSummary, configuration: &settings::Study, place: &Path) -> Result<()> {
    let [dataset, model, optimizer] = exported.names(cell, workload);
    let failed = |error: io::Error| {
        let problem = format!("the export could not be written ({error}); choose a folder you may write to, with free space");
        Error::Results { path: place.to_owned(), problem }
    };
    let write = |path: &Path, bytes: &[u8]| Disk.create(path).and_then(|file| Disk.append(&file, bytes)).map_err(failed);
    let pretty = |value: &Value| format!("{value:#}\n").into_bytes();
    place.parent().map_or(Ok(()), make_folder).and_then(|()| fs::create_dir(place)).map_err(failed)?;
    let study = json!({
        "batch_size": cell.key.batch_size,
        "dataset": dataset,
        "model": model,
        "optimizer": optimizer,
        "early_stopping": exported.early_stopping,
        "train_steps": exported.train_steps,
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
            "steps_to_result": exported.steps_to_result,
            CONFIRMATIONS: exported.trials.iter().any(|(.., training)| training.is_some()),
        },
    });
    write(&place.join("study.json"), &pretty(&study))?;
    for &(number, trial, training) in &exported.trials {
        let place = place.join(number.to_string());
        fs::create_dir(&place).map_err(failed)?;
        write(&place.join("metadata.json"), &pretty(&metadata(number, trial, training)))?;
        let test_errors = cell.test_errors.filter(|_| exported.tested == Some(number) && workload.test_examples > 0);
        let measurements = measurements(trial, test_errors, workload).map_err(|problem| failed(problem.into()))?;
        write(&place.join("measurements.csv"), &measurements)?;
    }
    Ok(())
}

/// The search space with the names of their layout; a metaparameter that is not searched has one feasible point.
fn parameter_configs(configuration: &settings::Study) -> Value {
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

/// Name of a metaparameter in the layout of Shallue et al., where that has it.
pub(super) fn their_name(name: Metaparameter) -> String {
    match name {
        Metaparameter::DecaySteps => "learning_rate_decay_steps".to_owned(),
        _ => name.name().to_owned(),
    }
}

/// The `metadata.json` of a trial or confirmation. In Shallue et al.'s layout a trial is COMPLETE once it has reached the goal or spent its steps;
/// a trial that a race cut off is INCOMPLETE.
fn metadata(number: u32, trial: &Trial, training: Option<&Training>) -> Value {
    let status = match trial.status {
        Status::Complete | Status::Incomplete => "COMPLETE",
        Status::Censored => "INCOMPLETE",
        Status::Infeasible => "INFEASIBLE",
    };
    let value_of = |name: Metaparameter, value: f64| if name.is_whole() { json!(value as u64) } else { json!(value) };
    let parameters: Map<_, _> = trial.metaparameters.iter().map(|(name, value)| (their_name(name), value_of(name, value))).collect();
    let mut ours = json!({ "status": trial.status.name(), "steps_to_result": trial.steps, "parameters_kept": trial.parameters_kept });
    if let Some(Training { point, number, seeds, evaluate_every }) = training {
        ours["confirmation"] = json!({
            "point": point, "number": number, "weight_seed": seeds.weights, "order_seed": seeds.order, "evaluate_every": evaluate_every,
        });
    }
    json!({
        "trial_id": number,
        "status": status,
        "steps": trial.steps_run,
        "parameters": parameters,
        "dps": ours,
    })
}

/// A trial's `measurements.csv`, a row an evaluation; the best trial's last has its test error.
fn measurements(trial: &Trial, test_errors: Option<u32>, workload: &WorkloadSummary) -> csv::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    let ratio = |errors: u32, examples: u32| (f64::from(errors) / f64::from(examples)).to_string();
    for point in &trial.curve {
        let whole = point.examples == workload.validation_examples;
        let test = test_errors.filter(|_| trial.steps == Some(point.step));
        writer.write_record([
            point.step.to_string(),
            point.loss.to_string(),
            if whole { ratio(point.errors, point.examples) } else { String::new() },
            test.map_or(String::new(), |errors| ratio(errors, workload.test_examples)),
            point.errors.to_string(),
            point.examples.to_string(),
        ])?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

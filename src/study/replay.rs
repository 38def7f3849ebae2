//! Training one trial or confirmation again, from what its result file says alone, with every evaluation counted to its end.

use std::path::Path;
use std::time::Instant;

use super::check::check;
use crate::backend::Device;
use crate::comm::Single;
use crate::data::Dataset;
use crate::readable::{aligned, count};
use crate::records::{Cell, CellKey, CurvePoint, Seeds, Status, Training, Trial};
use crate::results::{Table, TrialRow, WorkloadSummary};
use crate::settings::{Configuration, Race, Workload};
use crate::training::{CellState, CellWork, Conductor, Decision, Groups, Masks, Moment, Run, Workers, measure};
use crate::{Error, Result};

/// A trial that was trained again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The new record, with the errors of whole evaluations. Nothing of the loss surface is measured.
    pub trial: Trial,
    /// A clause for each thing that differs from the record in the file.
    pub differences: Vec<String>,
}

impl Replay {
    /// The evaluations beside those of the record in the file, a line each.
    pub fn table(&self, recorded: &Trial) -> String {
        let heading = ["step", "training loss", "validation error", "errors", "in the file"].map(str::to_owned).to_vec();
        let row = |(number, point): (usize, &CurvePoint)| {
            let CurvePoint { step, loss, errors, examples } = *point;
            let in_file = match recorded.curve.get(number) {
                Some(point) if point.examples < examples => format!("at least {}", count(point.errors)),
                Some(point) => count(point.errors),
                None => "·".to_owned(),
            };
            vec![count(step), format!("{loss:.6}"), format!("{:.4}", point.error()), count(errors), in_file]
        };
        aligned(&[heading].into_iter().chain(self.trial.curve.iter().enumerate().map(row)).collect::<Vec<_>>(), "")
    }

    /// The evaluations as comma-separated values.
    pub fn csv(&self) -> String {
        let row = |point: &CurvePoint| format!("{},{},{},{},{}\n", point.step, point.loss, point.errors, point.examples, point.error());
        let rows: String = self.trial.curve.iter().map(row).collect();
        format!("step,training_loss,validation_errors,validation_examples,validation_error\n{rows}")
    }
}

/// Trains a recorded trial of a cell again, or where `training` names one the confirmation that `recorded` is of, as far as the record goes, on one
/// rank. Its number must be that of a trial of the study. `tell` hears of each stretch of steps.
///
/// # Errors
/// The configuration's, where its network does not fit the data; the device's.
pub fn replay(
    configuration: &Configuration,
    dataset: &Dataset,
    threads: usize,
    device: &impl Device,
    key: CellKey,
    (recorded, training): (&Trial, Option<&Training>),
    tell: &mut dyn FnMut(u32),
) -> Result<Replay> {
    let study = &configuration.study;
    let network = check(configuration, &dataset.facts())?;
    let number = recorded.index;
    let seeds = training.map_or(Seeds::of_trial(number, study.data.order), |training| training.seeds);
    let evaluate_every = training.map_or(study.workload.evaluate_every, |training| training.evaluate_every);
    let workers = Workers { world: &Single, threads, interrupt: || false };
    let mut masks = Masks::new(&network, &study.pruning, workers, Default::default(), Vec::new());
    if key.sparsity > 0.0 {
        let mut scorer = device.scorer(device.backend(&network, dataset, &Single)?)?;
        masks.score(&mut scorer, &[seeds.weights], key.sparsity, dataset.training.len())?;
    }
    // A confirmation may have more steps than a trial.
    let most = if training.is_some() { u32::MAX } else { study.workload.max_steps };
    let last_step = match recorded.status {
        // The evaluation that found its loss not finite.
        Status::Infeasible => (recorded.steps_run / evaluate_every).saturating_add(1).saturating_mul(evaluate_every),
        _ => recorded.steps_run,
    };
    let workload = Workload { max_steps: last_step.min(most), evaluate_every, ..study.workload.clone() };
    let run = Run { metaparameters: study.search.metaparameters(number), seeds };
    let work = CellWork {
        workload: &workload,
        key,
        trials: &[run],
        first: number as usize,
        threshold: study.workload.goal_threshold(dataset.validation.len() as u64) as u32,
        race: Race::Off,
        full_evaluation: true,
        goes_on: training.is_some() && study.confirm.as_ref().is_some_and(|confirm| confirm.mean_error),
        tested: false,
        lanes: 1,
        extended: false,
        interrupt: || false,
        now: Instant::now,
        probe: None,
    };
    let groups = Groups::new(&Single, 1);
    let mut backend = device.backend(&network, dataset, &Single)?;
    let measured = measure(&work, &mut backend, &groups, &masks, CellState::default(), &mut Alone { tell })?;
    let trial = measured.into_iter().flat_map(|cell| cell.trials).next().ok_or(Error::Interrupted)?;
    let differences = differences(key, recorded, &trial);
    Ok(Replay { trial, differences })
}

/// Columns of `/trials` that a replay does not repeat: a race's end, bounds of errors and times.
const NOT_REPEATED: [&str; 3] = ["status", "best_validation_error", "seconds"];

/// Differences between the records of a trial of a cell, but for what a replay does not repeat and for measurements.
fn differences(key: CellKey, recorded: &Trial, found: &Trial) -> Vec<String> {
    let clause = |what: &str, recorded: &str, found: &str| format!("{what}: the file has {recorded}, now {found}");
    let mut differences = Vec::new();
    if recorded.metaparameters != found.metaparameters {
        differences.push(clause("metaparameters", &format!("{:?}", recorded.metaparameters), &format!("{:?}", found.metaparameters)));
    }
    let [was, is] = [recorded, found].map(|trial| TrialRow::new(trial, key, 0, 0, &WorkloadSummary::default()));
    let repeated = was.differences(&is).into_iter().filter(|(column, ..)| !NOT_REPEATED.contains(column));
    differences.extend(repeated.map(|(column, was, is)| clause(column, &was, &is)));
    let broke = |trial: &Trial| trial.status == Status::Infeasible;
    if broke(recorded) != broke(found) {
        differences.push(clause("broke", &broke(recorded).to_string(), &broke(found).to_string()));
    }
    // One point shows that a curve differs; the rest follows from it.
    let differs = |(recorded, found): &(&CurvePoint, &CurvePoint)| {
        let errors_agree =
            if recorded.examples == found.examples { recorded.errors == found.errors } else { recorded.errors <= found.errors };
        recorded.step != found.step || recorded.loss.to_bits() != found.loss.to_bits() || !errors_agree
    };
    if let Some((recorded, found)) = recorded.curve.iter().zip(&found.curve).find(differs) {
        differences.push(clause("the first evaluation that differs", &format!("{recorded:?}"), &format!("{found:?}")));
    }
    differences
}

/// Conductor of a replay: it reports steps, and writes no journal and no checkpoint.
struct Alone<'a> {
    tell: &'a mut dyn FnMut(u32),
}

impl Conductor for Alone<'_> {
    fn moment(&mut self, moment: &Moment) -> Result<Decision> {
        (self.tell)(moment.step);
        Ok(Decision { checkpoint: false, stop: false, steps: u32::MAX, interruptible: false })
    }
}

/// The cell of a batch size and a sparsity among those of the result file at `path`, and its trial of that number, or its best one.
///
/// # Errors
/// [`Error::Results`] that names what the file has.
pub fn find<'c>(path: &Path, cells: &'c [Cell], key: CellKey, number: Option<u32>) -> Result<(&'c Cell, &'c Trial)> {
    let refuse = |problem: String| Error::Results { path: path.to_owned(), problem };
    let Some(cell) = cells.iter().find(|cell| cell.key == key) else {
        let keys: Vec<String> = cells.iter().map(|cell| format!("{} at {}", cell.key.batch_size, cell.key.sparsity)).collect();
        let there = if keys.is_empty() { "no cell".to_owned() } else { format!("batch size {}", keys.join(", ")) };
        return Err(refuse(format!("expected a cell of {key}, found {there}; choose --batch-size and --sparsity among those")));
    };
    let trial = match number {
        Some(number) => cell.trials.iter().find(|trial| trial.index == number),
        None => cell.best(),
    };
    let problem = || match number {
        Some(number) => {
            let (count, first) = (cell.trials.len(), cell.trials.first().map_or(0, |trial| trial.index));
            format!("expected trial {number} of {key}, found {count} trials, from {first}; choose --trial among them")
        }
        None => format!("expected a trial of {key} that reached the goal, found none; choose one with --trial"),
    };
    trial.map(|trial| (cell, trial)).ok_or_else(|| refuse(problem()))
}

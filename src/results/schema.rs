//! The tables of a result file, each declared once: names, types, units, meanings and values of columns, and how a record is read from its row.

use super::attributes::Attributes;
use super::codes::{EndingCode, MaskHash, ShortText, StatusCode};
use super::environment::Environment;
use super::table::{self, table};
use super::workload::WorkloadSummary;
use crate::optimizer::Metaparameters;
use crate::records::{Cell, CellKey, Confirmation, CurvePoint, Ending, Measurement, Seeds, Start, Status, Training, Trial};

/// The attribute `schema` of every result file.
pub(super) const SCHEMA: &str = "dps-results";

/// The attribute `schema_version`: grows when a table, column or attribute changes its name, type or meaning.
pub const SCHEMA_VERSION: u32 = 3;

table!(CellRow, "cells", "One row a finished study cell: one batch size at one sparsity.",
(cell: &Cell, trials_start: u64, workload: &WorkloadSummary) {
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks" => cell.key.batch_size,
    sparsity: f64 ["1"] = "fraction of parameters removed before training" => cell.key.sparsity,
    trials: u32 = "trials measured, the sum of the four counts that follow" => cell.trials.len() as u32,
    complete: u32 = "trials that reached the goal error" => cell.count(Status::Complete) as u32,
    incomplete: u32 = "trials that spent the step budget" => cell.count(Status::Incomplete) as u32,
    infeasible: u32 = "trials whose loss became NaN or infinite" => cell.count(Status::Infeasible) as u32,
    censored: u32 = "trials ended because another had decided the cell; none had reached the goal until then" =>
        cell.count(Status::Censored) as u32,
    steps_to_result: i64 ["steps"] = "K*: fewest steps over the complete trials; -1 where there is none" => or_minus_one(cell.steps_to_result()),
    best_trial: i64 = "the trial with those steps, the lowest number among equals; -1 where there is none" =>
        or_minus_one(cell.best().map(|best| best.index)),
    best_row: i64 = "row of that trial in /trials, and in the columns of /metaparameters; -1 where there is none" =>
        cell.best_place().map_or(-1, |place| (trials_start + place as u64) as i64); place,
    test_errors: i64 ["examples"] = "test examples the best trial gets wrong at its goal step; -1 where not measured" =>
        or_minus_one(cell.test_errors.filter(|_| workload.test_examples > 0)),
    test_error: f64 ["1"] = "the same as a fraction of the test set; NaN where not measured" => or_nan(workload.test_error(cell)),
    seconds: f64 ["s"] = "wall-clock seconds of the cell" => cell.seconds,
});

table!(TrialRow, "trials", "One row a trial: one training run of a cell with one set of metaparameters.",
(trial: &Trial, key: CellKey, cell_row: u32, curves_start: u64, workload: &WorkloadSummary) {
    cell: u32 = "row of /cells it belongs to, from 0" => cell_row; place,
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks" => key.batch_size,
    sparsity: f64 ["1"] = "fraction of parameters removed before training" => key.sparsity,
    trial: u32 = "number in its cell, from 0; also the seed of its initial weights, its mask and, unless all trials share one, its data order" =>
        trial.index,
    status: StatusCode = "complete: goal reached; incomplete: budget spent; infeasible: loss not finite; censored: cell decided by another trial" =>
        StatusCode::of(trial.status),
    steps: i64 ["steps"] = "optimizer steps to the goal; -1 where it was not reached" => or_minus_one(trial.steps),
    steps_run: u32 ["steps"] = "optimizer steps taken in all" => trial.steps_run,
    best_validation_error: f64 ["1"] = "lowest error over evaluations on the whole validation set, a fraction; NaN where there is none" =>
        or_nan(trial.best_errors(workload.validation_examples).map(|least| f64::from(least) / f64::from(workload.validation_examples))),
    final_loss: f64 ["nat"] = "loss of the last evaluation; NaN where there is none" =>
        or_nan(trial.curve.last().map(|point| f64::from(point.loss))),
    parameters_kept: u32 = "parameters left after pruning" => trial.parameters_kept,
    mask_hash: MaskHash = "64-bit hash of the mask" => MaskHash(trial.mask_hash),
    dead_layers: u32 = "layers of which no weight is left" => trial.dead_layers,
    seconds: f64 ["s"] = "its share of its cell's wall-clock seconds, divided evenly among the trials training at the time, up to its last step" =>
        trial.seconds,
    curve_start: u64 = "first row of its evaluations in /curves" => curves_start; place,
    curve_length: u32 = "number of its evaluations" => trial.curve.len() as u32; place,
});

impl TrialRow {
    /// The trial this row, its metaparameters, its evaluations and its measurements describe; the second value says what cannot be.
    pub(super) fn trial(&self, metaparameters: Metaparameters, curve: &[CurveRow], measured: &[MeasurementRow]) -> Result<Trial, String> {
        let &TrialRow { trial: index, steps_run, parameters_kept, mask_hash: MaskHash(mask_hash), dead_layers, seconds, .. } = self;
        let (status, steps) = ended("trial", self.status, self.steps)?;
        let curve = curve.iter().map(CurveRow::point).collect();
        let measurements = measured.iter().map(MeasurementRow::measurement).collect();
        Ok(Trial { index, metaparameters, status, steps, steps_run, parameters_kept, mask_hash, dead_layers, curve, measurements, seconds })
    }
}

table!(ConfirmationRow, "confirmations", "One row a confirmation: a best trial's metaparameters, trained again with fresh seeds. The table is there where any cell is confirmed.",
(confirmation: &Confirmation, key: CellKey, cell_row: u32, curves_start: u64) {
    cell: u32 = "row of /cells it belongs to, from 0" => cell_row; place,
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks" => key.batch_size,
    sparsity: f64 ["1"] = "fraction of parameters removed before training" => key.sparsity,
    point: u32 = "the trial whose metaparameters it has" => confirmation.training.point,
    number: u32 = "number among the confirmations of its point, from 0; those of one number have the same fresh seeds at every point of every cell" =>
        confirmation.training.number,
    weight_seed: u64 = "seed of its initial weights and its mask" => confirmation.training.seeds.weights,
    order_seed: u64 = "seed of its data order" => confirmation.training.seeds.order,
    status: StatusCode = "complete: goal reached; incomplete: not reached within the limit; infeasible: loss not finite" =>
        StatusCode::of(confirmation.run.status),
    steps: i64 ["steps"] = "optimizer steps to the goal; -1 where it was not reached" => or_minus_one(confirmation.run.steps),
    steps_run: u32 ["steps"] = "optimizer steps taken in all; where it is incomplete, the limit" => confirmation.run.steps_run,
    evaluate_every: u32 ["steps"] = "steps between two evaluations: the one before the goal was reached, so many steps earlier, had missed it" =>
        confirmation.training.evaluate_every,
    parameters_kept: u32 = "parameters left after pruning" => confirmation.run.parameters_kept,
    mask_hash: MaskHash = "64-bit hash of the mask" => MaskHash(confirmation.run.mask_hash),
    dead_layers: u32 = "layers of which no weight is left" => confirmation.run.dead_layers,
    seconds: f64 ["s"] = "its share of the wall-clock seconds, divided evenly among those training at the time" => confirmation.run.seconds,
    curve_start: u64 = "first row of its evaluations in /curves, behind those of all trials" => curves_start; place,
    curve_length: u32 = "number of its evaluations" => confirmation.run.curve.len() as u32; place,
});

impl ConfirmationRow {
    /// The confirmation that this row and its evaluations describe, of a trial with those metaparameters; or what cannot be.
    pub(super) fn confirmation(&self, metaparameters: Metaparameters, curve: &[CurveRow]) -> Result<Confirmation, String> {
        let (status, steps) = ended("confirmation", self.status, self.steps)?;
        if status == Status::Censored {
            return Err(format!("{:?} is no status of a confirmation", self.status));
        }
        let &ConfirmationRow { steps_run, parameters_kept, mask_hash: MaskHash(mask_hash), dead_layers, seconds, .. } = self;
        let curve = curve.iter().map(CurveRow::point).collect();
        // The loss surface is measured in the search alone.
        let unmeasured = Trial::new(self.point, metaparameters);
        let seeds = Seeds { weights: self.weight_seed, order: self.order_seed };
        Ok(Confirmation {
            training: Training { point: self.point, number: self.number, seeds, evaluate_every: self.evaluate_every },
            run: Trial { status, steps, steps_run, parameters_kept, mask_hash, dead_layers, curve, seconds, ..unmeasured },
        })
    }
}

table!(CurveRow, "curves", "One row an evaluation; those of a trial or confirmation are consecutive and in order of steps.", (point: &CurvePoint) {
    step: u32 ["steps"] = "optimizer steps taken before it" => point.step,
    loss: f32 ["nat"] = "mean training loss over the batch of the last step, in nats" => point.loss,
    errors: u32 ["examples"] = "validation examples classified wrongly among those seen" => point.errors,
    examples: u32 ["examples"] = "validation examples seen; where not all, the evaluation stopped early and errors is a lower bound" =>
        point.examples,
});

impl CurveRow {
    fn point(&self) -> CurvePoint {
        CurvePoint { step: self.step, loss: self.loss, errors: self.errors, examples: self.examples }
    }
}

table!(MeasurementRow, "smoothness", "One row a measurement of the loss surface; a trial's are consecutive and in order of steps. The table is there where any trial was measured.",
(found: &Measurement, trial_number: u32, key: CellKey, cell_row: u32) {
    cell: u32 = "row of /cells, from 0" => cell_row; place,
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks" => key.batch_size,
    sparsity: f64 ["1"] = "fraction of parameters removed before training" => key.sparsity,
    trial: u32 = "number in its cell, from 0" => trial_number,
    step: u32 ["steps"] = "optimizer steps taken before it" => found.step,
    lipschitz: f64 ["nat"] = "local Lipschitz constant of the gradient along the next step; NaN at a trial's end, and where it is not finite" =>
        or_nan(found.lipschitz),
    loss: f64 ["nat"] = "mean loss over the examples measured on, in nats" => found.loss,
    gradient_norm: f64 ["nat"] = "norm of the mean gradient of the kept parameters" => found.gradient_norm,
    squared_norms: f64 ["nat^2"] = "mean over the examples of the squared norm of each one's gradient" => found.squared_norms,
    variance: f64 ["nat^2"] = "variance of the gradient of one example: squared_norms less the square of gradient_norm" => found.variance(),
    noise_scale: f64 ["examples"] = "gradient noise scale in examples: variance over the square of gradient_norm" => found.noise_scale(),
});

impl MeasurementRow {
    fn measurement(&self) -> Measurement {
        let &MeasurementRow { step, loss, gradient_norm, squared_norms, lipschitz, .. } = self;
        Measurement { step, loss, gradient_norm, squared_norms, lipschitz: (!lipschitz.is_nan()).then_some(lipschitz) }
    }
}

table!(StartRow, "starts", "One row a start of the study, in order of time. They decide no result. The table is there where the program recorded them.",
(start: &Start, host_names_here: ShortText, program_here: ShortText) {
    began: u64 ["microseconds since 1970-01-01T00:00:00Z"] = "microseconds since 1970 in UTC; 0 where that is not known" => start.began,
    number: u32 = "number among the starts of its result file, from 0; of a merged file, each part has its own" => start.number,
    before: EndingCode = "how the start with the number before had ended: first: there was none; finished; stopped: by a signal or the loss of its launcher; rank_lost: also where a rank was stuck or the ranks disagreed; killed: by a signal; failed; unknown: nobody saw it" =>
        EndingCode::of(start.before),
    before_code: i32 = "the number of that signal, or the exit code of that failure; -1 where there is none" => match start.before {
        Ending::Killed(code) | Ending::Failed(code) => code.into(),
        _ => -1,
    },
    ranks: u32 = "ranks; 0 where that is not known" => start.ranks,
    threads: u32 = "threads a rank" => start.threads,
    hosts: u32 = "hosts that the ranks were on; 0 where that is not known" => start.hosts,
    host_names: ShortText = "their names, in order of ranks, with commas between; of many the first ones" => host_names_here,
    program: ShortText = "version and commit of the program" => program_here,
});

impl StartRow {
    /// The start this row describes; or what cannot be.
    pub(super) fn start(&self) -> Result<Start, String> {
        let ending = self.before.value().ok_or_else(|| format!("{:?} is none", self.before))?;
        let before = match (ending, u8::try_from(self.before_code)) {
            (Ending::Killed(_), Ok(signal)) => Ending::Killed(signal),
            (Ending::Failed(_), Ok(code)) => Ending::Failed(code),
            (Ending::Killed(_) | Ending::Failed(_), Err(_)) => {
                return Err(format!("{} is neither a signal nor an exit code", self.before_code));
            }
            (ending, _) => ending,
        };
        let text = |text: &ShortText| String::from_utf8(text.as_bytes().to_vec()).map_err(|_| "a text is not UTF-8".to_owned());
        let (host_names, program) = (text(&self.host_names)?, text(&self.program)?);
        let &StartRow { began, number, ranks, threads, hosts, .. } = self;
        Ok(Start { began, number, before, ranks, threads, hosts, host_names, program })
    }
}

/// How a training ended, and its steps to the goal; or what cannot be.
fn ended(what: &str, status: StatusCode, steps: i64) -> Result<(Status, Option<u32>), String> {
    let found = status.value().ok_or_else(|| format!("{status:?} is no status"))?;
    let count = optional_count(steps)?;
    if count.is_some() != (found == Status::Complete) {
        return Err(format!("a {what} that is {status:?} has {steps} steps to the goal"));
    }
    Ok((found, count))
}

/// A count, or -1 in place of none.
fn or_minus_one(count: Option<u32>) -> i64 {
    count.map_or(-1, i64::from)
}

/// The inverse of [`or_minus_one`].
pub(super) fn optional_count(count: i64) -> Result<Option<u32>, String> {
    match count {
        -1 => Ok(None),
        count => u32::try_from(count).map(Some).map_err(|_| format!("{count} is neither a count nor -1")),
    }
}

/// A value, or NaN in place of none.
fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

/// The tables of the page of results in Markdown, each with the name of its table or group.
pub fn described() -> [(&'static str, String); 8] {
    [
        Environment::described(),
        WorkloadSummary::described(),
        table::described::<CellRow>(),
        table::described::<TrialRow>(),
        table::described::<ConfirmationRow>(),
        table::described::<CurveRow>(),
        table::described::<MeasurementRow>(),
        table::described::<StartRow>(),
    ]
}

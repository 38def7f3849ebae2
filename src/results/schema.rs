//! The tables of a result file: names, columns, units. docs/results.md says the same to readers.

use std::str::FromStr;

use hdf5::H5Type;
use hdf5::types::FixedUnicode;

use super::WorkloadSummary;
use super::codes::{ENDINGS, EndingCode, StatusCode};
use crate::records::{Cell, CurvePoint, Ending, Measurement, Start, Status, Trial};
use crate::search::Metaparameters;

/// The attribute `schema` of every result file.
pub(super) const SCHEMA: &str = "dps-results";

/// The attribute `schema_version`: grows when a column or attribute changes its name, type or meaning.
pub const SCHEMA_VERSION: u32 = 3;

/// Bytes that the text of a configuration may have.
pub const LONGEST_CONFIGURATION: usize = TEXT_BYTES;

/// Bytes a text may have: an attribute in an object's header has at most 64 KiB.
pub(super) const TEXT_BYTES: usize = 32_768;

/// A text as it passes in and out of the file, where it has the length it needs. Texts of variable length would be kept in HDF5's
/// global heap, which has no checksum, and one damaged byte there crashes HDF5 1.10.
pub(super) type Text = FixedUnicode<TEXT_BYTES>;

/// A table of the file: one compound dataset.
pub(super) trait Table: H5Type + Copy {
    /// Path in the file.
    const PATH: &'static str;
    /// What one row is.
    const ROW: &'static str;
    /// One line a column: its name and meaning.
    const COLUMNS: &'static str;
    /// Each column's unit, as netCDF names units; empty of numbers of things, of codes and of texts.
    const UNITS: &'static [&'static str];
    /// Each column's name.
    const NAMES: &'static [&'static str];
    /// Each column's meaning.
    const MEANINGS: &'static [&'static str];

    /// The value of each column as a number; NaN where it has none.
    fn numbers(&self) -> Vec<f64>;

    /// The first column in which two rows differ, in words. NaN equals NaN.
    fn difference(&self, expected: &Self) -> Option<String>;
}

macro_rules! table {
    ($name:ident, $path:literal, $row:literal { $($column:ident: $kind:ty $([$unit:literal])? = $meaning:literal),+ $(,)? }) => {
        #[doc = $row]
        #[derive(Debug, Clone, Copy, H5Type)]
        #[repr(C)]
        pub(super) struct $name { $(#[doc = $meaning] pub $column: $kind),+ }

        impl $crate::results::schema::Table for $name {
            const PATH: &'static str = $path;
            const ROW: &'static str = $row;
            const COLUMNS: &'static str = concat!($(stringify!($column), ": ", $meaning, "\n"),+);
            const UNITS: &'static [&'static str] = &[$(concat!($($unit)?)),+];
            const NAMES: &'static [&'static str] = &[$(stringify!($column)),+];
            const MEANINGS: &'static [&'static str] = &[$($meaning),+];

            fn numbers(&self) -> Vec<f64> {
                vec![$($crate::results::schema::Value::number(self.$column)),+]
            }

            fn difference(&self, expected: &Self) -> Option<String> {
                $(
                    let (found, expected_here) = (format!("{:?}", self.$column), format!("{:?}", expected.$column));
                    if found != expected_here {
                        return Some(format!("{} is {found}, the other tables say {expected_here}", stringify!($column)));
                    }
                )+
                None
            }
        }
    };
}

pub(super) use table;

table!(CellRow, "cells", "One row a finished study cell: one batch size at one sparsity." {
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks",
    sparsity: f64 ["1"] = "fraction of parameters removed before training",
    trials: u32 = "trials measured, the sum of the four counts that follow",
    complete: u32 = "trials that reached the goal error",
    incomplete: u32 = "trials that spent the step budget",
    infeasible: u32 = "trials whose loss became NaN or infinite",
    censored: u32 = "trials ended because another had decided the cell; none had reached the goal until then",
    steps_to_result: i64 ["steps"] = "K*: fewest steps over the complete trials; -1 where there is none",
    best_trial: i64 = "the trial with those steps, the lowest number among equals; -1 where there is none",
    best_row: i64 = "row of that trial in /trials, and in the columns of /metaparameters; -1 where there is none",
    test_errors: i64 ["examples"] = "test examples the best trial gets wrong at its goal step; -1 where not measured",
    test_error: f64 ["1"] = "the same as a fraction of the test set; NaN where not measured",
    seconds: f64 ["s"] = "wall-clock seconds of the cell",
});

table!(TrialRow, "trials", "One row a trial: one training run of a cell with one set of metaparameters." {
    cell: u32 = "row of /cells it belongs to, from 0",
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks",
    sparsity: f64 ["1"] = "fraction of parameters removed before training",
    trial: u32 = "number in its cell, from 0; also the seed of its initial weights, its mask and, unless all trials share one, its data order",
    status: StatusCode = "complete: goal reached; incomplete: budget spent; infeasible: loss not finite; censored: cell decided by another trial",
    steps: i64 ["steps"] = "optimizer steps to the goal; -1 where it was not reached",
    steps_run: u32 ["steps"] = "optimizer steps taken in all",
    best_validation_error: f64 ["1"] = "lowest error over evaluations on the whole validation set, a fraction; NaN where there is none",
    final_loss: f64 ["nat"] = "loss of the last evaluation; NaN where there is none",
    parameters_kept: u32 = "parameters left after pruning",
    mask_hash: u64 = "64-bit hash of the mask",
    dead_layers: u32 = "layers of which no weight is left",
    seconds: f64 ["s"] = "its share of its cell's wall-clock seconds, divided evenly among the trials training at the time, up to its last step",
    curve_start: u64 = "first row of its evaluations in /curves",
    curve_length: u32 = "number of its evaluations",
});

table!(CurveRow, "curves", "One row an evaluation; a trial's are consecutive and in order of steps." {
    step: u32 ["steps"] = "optimizer steps taken before it",
    loss: f32 ["nat"] = "mean training loss over the batch of the last step, in nats",
    errors: u32 ["examples"] = "validation examples classified wrongly among those seen",
    examples: u32 ["examples"] = "validation examples seen; where not all, the evaluation stopped early and errors is a lower bound",
});

table!(MeasurementRow, "smoothness", "One row a measurement of the loss surface; a trial's are consecutive and in order of steps. The table is there where any trial was measured." {
    cell: u32 = "row of /cells, from 0",
    batch_size: u32 ["examples"] = "examples in a batch, over all ranks",
    sparsity: f64 ["1"] = "fraction of parameters removed before training",
    trial: u32 = "number in its cell, from 0",
    step: u32 ["steps"] = "optimizer steps taken before it",
    lipschitz: f64 ["nat"] = "local Lipschitz constant of the gradient along the next step; NaN at a trial's end, and where it is not finite",
    loss: f64 ["nat"] = "mean loss over the examples measured on, in nats",
    gradient_norm: f64 ["nat"] = "norm of the mean gradient of the kept parameters",
    squared_norms: f64 ["nat^2"] = "mean over the examples of the squared norm of each one's gradient",
    variance: f64 ["nat^2"] = "variance of the gradient of one example: squared_norms less the square of gradient_norm",
    noise_scale: f64 ["examples"] = "gradient noise scale in examples: variance over the square of gradient_norm",
});

table!(StartRow, "starts", "One row a start of the study, in order of time. They decide no result. The table is there where the program recorded them." {
    began: u64 ["microseconds since 1970-01-01T00:00:00Z"] = "microseconds since 1970 in UTC; 0 where that is not known",
    number: u32 = "number among the starts of its result file, from 0; of a merged file, each part has its own",
    before: EndingCode = "how the start with the number before had ended: first: there was none; finished; stopped: by a signal or the loss of its launcher; rank_lost: also where a rank was stuck or the ranks disagreed; killed: by a signal; failed; unknown: nobody saw it",
    before_code: i32 = "the number of that signal, or the exit code of that failure; -1 where there is none",
    ranks: u32 = "ranks; 0 where that is not known",
    threads: u32 = "threads a rank",
    hosts: u32 = "hosts that the ranks were on",
    host_names: ShortText = "their names, in order of ranks, with commas between; of many the first ones",
    program: ShortText = "version and commit of the program",
});

/// Bytes of a text in a table.
const SHORT_BYTES: usize = 256;

/// A text in a table.
pub(super) type ShortText = FixedUnicode<SHORT_BYTES>;

/// What a column holds.
pub(super) trait Value {
    /// As a number; NaN of -1, which stands for none, and of texts.
    fn number(self) -> f64;
}

macro_rules! value {
    ($($kind:ty: $value:ident => $number:expr;)+) => { $(impl Value for $kind { fn number(self) -> f64 { let $value = self; $number } })+ };
}

value! {
    u32: value => value.into();
    i32: value => i64::from(value).number();
    u64: value => value as f64;
    i64: value => if value == -1 { f64::NAN } else { value as f64 };
    f32: value => value.into();
    f64: value => value;
    StatusCode: value => value.0.into();
    EndingCode: value => value.0.into();
    ShortText: _value => f64::NAN;
}

/// A count, or -1 in place of none.
fn or_minus_one(count: Option<u32>) -> i64 {
    count.map_or(-1, i64::from)
}

/// A value, or NaN in place of none.
fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn ratio(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole)
}

impl CellRow {
    /// The row of `cell`, whose trials begin at row `trials_start` of /trials.
    pub fn new(cell: &Cell, trials_start: u64, workload: &WorkloadSummary) -> Self {
        let count = |status| cell.count(status) as u32;
        let best = cell.best();
        let place = best.and_then(|best| cell.trials.iter().position(|trial| trial.index == best.index));
        CellRow {
            batch_size: cell.key.batch_size,
            sparsity: cell.key.sparsity,
            trials: cell.trials.len() as u32,
            complete: count(Status::Complete),
            incomplete: count(Status::Incomplete),
            infeasible: count(Status::Infeasible),
            censored: count(Status::Censored),
            steps_to_result: or_minus_one(cell.steps_to_result()),
            best_trial: or_minus_one(best.map(|trial| trial.index)),
            best_row: place.map_or(-1, |place| (trials_start + place as u64) as i64),
            test_errors: or_minus_one(cell.test_errors.filter(|_| workload.test_examples > 0)),
            test_error: or_nan(workload.test_error(cell)),
            seconds: cell.seconds,
        }
    }
}

impl TrialRow {
    /// The row of `trial`, whose cell is row `cell_row` of /cells and whose evaluations begin at row `curve_start` of /curves.
    pub fn new(trial: &Trial, cell: &Cell, cell_row: u32, curve_start: u64, workload: &WorkloadSummary) -> Self {
        let full = trial.curve.iter().filter(|point| point.examples == workload.validation_examples);
        TrialRow {
            cell: cell_row,
            batch_size: cell.key.batch_size,
            sparsity: cell.key.sparsity,
            trial: trial.index,
            status: StatusCode(trial.status as u8),
            steps: or_minus_one(trial.steps),
            steps_run: trial.steps_run,
            best_validation_error: or_nan(full.map(|point| point.errors).min().map(|least| ratio(least, workload.validation_examples))),
            final_loss: or_nan(trial.curve.last().map(|point| f64::from(point.loss))),
            parameters_kept: trial.parameters_kept,
            mask_hash: trial.mask_hash,
            dead_layers: trial.dead_layers,
            seconds: trial.seconds,
            curve_start,
            curve_length: trial.curve.len() as u32,
        }
    }

    /// The trial this row, its metaparameters, its evaluations and its measurements describe; the second value says what cannot be.
    pub fn trial(&self, metaparameters: Metaparameters, curve: &[CurveRow], measurements: &[MeasurementRow]) -> Result<Trial, String> {
        let status = self.status.status().ok_or_else(|| format!("{:?} is no status", self.status))?;
        let steps = optional_count(self.steps)?;
        if steps.is_some() != (status == Status::Complete) {
            return Err(format!("a trial that is {} has {} steps to the goal", status.name(), self.steps));
        }
        Ok(Trial {
            index: self.trial,
            metaparameters,
            status,
            steps,
            steps_run: self.steps_run,
            parameters_kept: self.parameters_kept,
            mask_hash: self.mask_hash,
            dead_layers: self.dead_layers,
            curve: curve.iter().map(CurveRow::point).collect(),
            measurements: measurements.iter().map(MeasurementRow::measurement).collect(),
            seconds: self.seconds,
        })
    }
}

impl CurveRow {
    pub fn new(point: &CurvePoint) -> Self {
        CurveRow { step: point.step, loss: point.loss, errors: point.errors, examples: point.examples }
    }

    fn point(&self) -> CurvePoint {
        CurvePoint { step: self.step, loss: self.loss, errors: self.errors, examples: self.examples }
    }
}

impl StartRow {
    /// The row of a start; none where a text of it is too long.
    pub fn new(start: &Start) -> Option<Self> {
        let number = ENDINGS.iter().position(|ending| ending.name() == start.before.name())?;
        Some(StartRow {
            began: start.began,
            number: start.number,
            before: EndingCode(number as u8),
            before_code: match start.before {
                Ending::Killed(code) | Ending::Failed(code) => code.into(),
                _ => -1,
            },
            ranks: start.ranks,
            threads: start.threads,
            hosts: start.hosts,
            host_names: exactly(&start.host_names)?,
            program: exactly(&start.program)?,
        })
    }

    /// The start this row describes; or what cannot be.
    pub fn start(&self) -> Result<Start, String> {
        let ending = ENDINGS.get(usize::from(self.before.0)).ok_or_else(|| format!("{:?} is none", self.before))?;
        let before = match (*ending, u8::try_from(self.before_code)) {
            (Ending::Killed(_), Ok(signal)) => Ending::Killed(signal),
            (Ending::Failed(_), Ok(code)) => Ending::Failed(code),
            (Ending::Killed(_) | Ending::Failed(_), Err(_)) => {
                return Err(format!("{} is neither a signal nor an exit code", self.before_code));
            }
            (ending, _) => ending,
        };
        let text = |text: &ShortText| String::from_utf8(text.as_bytes().to_vec()).map_err(|_| "a text is not UTF-8".to_owned());
        Ok(Start {
            began: self.began,
            number: self.number,
            before,
            ranks: self.ranks,
            threads: self.threads,
            hosts: self.hosts,
            host_names: text(&self.host_names)?,
            program: text(&self.program)?,
        })
    }
}

/// A text of at most N bytes; none where it has more, or a NUL character.
pub(super) fn exactly<const N: usize>(text: &str) -> Option<FixedUnicode<N>> {
    FixedUnicode::from_str(text).ok().filter(|fixed: &FixedUnicode<N>| fixed.as_bytes() == text.as_bytes())
}

impl MeasurementRow {
    /// The row of a measurement of trial `trial` of `cell`, which is row `cell_row` of /cells.
    pub fn new(measurement: &Measurement, trial: u32, cell: &Cell, cell_row: u32) -> Self {
        let Measurement { step, loss, gradient_norm, squared_norms, lipschitz } = *measurement;
        MeasurementRow {
            cell: cell_row,
            batch_size: cell.key.batch_size,
            sparsity: cell.key.sparsity,
            trial,
            step,
            lipschitz: or_nan(lipschitz),
            loss,
            gradient_norm,
            squared_norms,
            variance: measurement.variance(),
            noise_scale: measurement.noise_scale(),
        }
    }

    fn measurement(&self) -> Measurement {
        let &MeasurementRow { step, loss, gradient_norm, squared_norms, lipschitz, .. } = self;
        Measurement { step, loss, gradient_norm, squared_norms, lipschitz: optional_value(lipschitz) }
    }
}

/// The inverse of [`or_minus_one`].
pub(super) fn optional_count(count: i64) -> Result<Option<u32>, String> {
    match count {
        -1 => Ok(None),
        count => u32::try_from(count).map(Some).map_err(|_| format!("{count} is neither a count nor -1")),
    }
}

/// The inverse of [`or_nan`].
pub(super) fn optional_value(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

//! The tables of schema versions 1 and 2, of which `/cells` and `/trials` had a column for each of the four metaparameters that there were. Version 1
//! did not count dead layers.

use hdf5::{File, H5Type};

use super::codes::StatusCode;
use super::rows::{Found, Rows, optional_table, table as read};
use super::schema::{CellRow, TrialRow, optional_count, optional_value, table};
use crate::config::Metaparameter;
use crate::search::Metaparameters;

table!(SecondCellRow, "cells", "One row a finished study cell: one batch size at one sparsity." {
    batch_size: u32 = "examples in a batch, over all ranks",
    sparsity: f64 = "fraction of parameters removed before training",
    trials: u32 = "trials measured, the sum of the four counts that follow",
    complete: u32 = "trials that reached the goal error",
    incomplete: u32 = "trials that spent the step budget",
    infeasible: u32 = "trials whose loss became NaN or infinite",
    censored: u32 = "trials ended because another had decided the cell; none had reached the goal until then",
    steps_to_result: i64 = "K*: fewest steps over the complete trials; -1 where there is none",
    best_trial: i64 = "the trial with those steps, the lowest number among equals; -1 where there is none",
    best_learning_rate: f64 = "its initial learning rate; NaN where there is none",
    best_momentum: f64 = "its momentum; NaN where there is none",
    best_decay_steps: i64 = "steps over which its learning rate decays; -1 where there are none",
    best_end_learning_rate_factor: f64 = "its final over its initial learning rate; NaN where there is none",
    test_errors: i64 = "test examples the best trial gets wrong at its goal step; -1 where not measured",
    test_error: f64 = "the same as a fraction of the test set; NaN where not measured",
    seconds: f64 = "wall-clock seconds of the cell",
});

/// A table of trials with a column for each of the four metaparameters, and with one for dead layers if it is named.
macro_rules! trials {
    ($name:ident $(, $dead_layers:ident = $meaning:literal)?) => {
        table!($name, "trials", "One row a trial: one training run of a cell with one set of metaparameters." {
            cell: u32 = "row of /cells it belongs to, from 0",
            batch_size: u32 = "examples in a batch, over all ranks",
            sparsity: f64 = "fraction of parameters removed before training",
            trial: u32 = "number in its cell, from 0; also the seed of its initial weights, its mask and, unless all trials share one, its data order",
            learning_rate: f64 = "initial learning rate",
            momentum: f64 = "momentum; NaN where the optimizer has none",
            decay_steps: i64 = "steps over which the learning rate decays; -1 where the schedule is constant",
            end_learning_rate_factor: f64 = "final over initial learning rate; NaN where the schedule is constant",
            status: StatusCode = "complete: goal reached; incomplete: budget spent; infeasible: loss not finite; censored: cell decided by another trial",
            steps: i64 = "optimizer steps to the goal; -1 where it was not reached",
            steps_run: u32 = "optimizer steps taken in all",
            best_validation_error: f64 = "lowest error over evaluations on the whole validation set, a fraction; NaN where there is none",
            final_loss: f64 = "loss of the last evaluation; NaN where there is none",
            parameters_kept: u32 = "parameters left after pruning",
            mask_hash: u64 = "64-bit hash of the mask",
            $($dead_layers: u32 = $meaning,)?
            seconds: f64 = "its share of its cell's wall-clock seconds, divided evenly among the trials training at the time",
            curve_start: u64 = "first row of its evaluations in /curves",
            curve_length: u32 = "number of its evaluations",
        });

        impl $name {
            fn metaparameters(&self) -> Found<Metaparameters> {
                four(self.learning_rate, self.momentum, self.decay_steps, self.end_learning_rate_factor)
            }

            fn row(&self, dead_layers: u32) -> TrialRow {
                TrialRow {
                    cell: self.cell,
                    batch_size: self.batch_size,
                    sparsity: self.sparsity,
                    trial: self.trial,
                    status: self.status,
                    steps: self.steps,
                    steps_run: self.steps_run,
                    best_validation_error: self.best_validation_error,
                    final_loss: self.final_loss,
                    parameters_kept: self.parameters_kept,
                    mask_hash: self.mask_hash,
                    dead_layers,
                    seconds: self.seconds,
                    curve_start: self.curve_start,
                    curve_length: self.curve_length,
                }
            }
        }
    };
}

trials!(FirstTrialRow);
trials!(SecondTrialRow, dead_layers = "layers of which no weight is left");

/// The rows of a file of version 1 as those of the present version; no trial has a dead layer.
pub(super) fn rows_of_first(file: &File, bytes: u64) -> Found<Rows> {
    let trials: Vec<FirstTrialRow> = read(file, bytes)?;
    let metaparameters = trials.iter().map(FirstTrialRow::metaparameters).collect::<Found<_>>()?;
    rows_with(file, bytes, metaparameters, trials.iter().map(|trial| trial.row(0)).collect())
}

/// The rows of a file of version 2, as those of the present version.
pub(super) fn rows_of_second(file: &File, bytes: u64) -> Found<Rows> {
    let trials: Vec<SecondTrialRow> = read(file, bytes)?;
    let metaparameters = trials.iter().map(SecondTrialRow::metaparameters).collect::<Found<_>>()?;
    rows_with(file, bytes, metaparameters, trials.iter().map(|trial| trial.row(trial.dead_layers)).collect())
}

fn rows_with(file: &File, bytes: u64, metaparameters: Vec<Metaparameters>, trials: Vec<TrialRow>) -> Found<Rows> {
    let cells: Vec<SecondCellRow> = read(file, bytes)?;
    let mut first = 0;
    let mut cell = |(row, cell): (usize, &SecondCellRow)| {
        let best = optional_count(cell.best_trial)?.map(|best| first + best as usize);
        first += cell.trials as usize;
        let of_trial = best.map_or(Some(Metaparameters::default()), |best| metaparameters.get(best).copied());
        if of_trial != Some(cell.metaparameters()?) {
            return Err(format!("damaged: row {row} of /cells: its best metaparameters are not its best trial's"));
        }
        Ok(cell.row(best))
    };
    Ok(Rows {
        cells: cells.iter().enumerate().map(&mut cell).collect::<Found<_>>()?,
        trials,
        curves: read(file, bytes)?,
        measurements: optional_table(file, bytes)?,
        metaparameters,
    })
}

fn four(rate: f64, momentum: f64, decay_steps: i64, factor: f64) -> Found<Metaparameters> {
    let mut values = Metaparameters::default();
    values.set(Metaparameter::LearningRate, optional_value(rate));
    values.set(Metaparameter::Momentum, optional_value(momentum));
    values.set(Metaparameter::DecaySteps, optional_count(decay_steps)?.map(f64::from));
    values.set(Metaparameter::EndLearningRateFactor, optional_value(factor));
    Ok(values)
}

impl SecondCellRow {
    fn metaparameters(&self) -> Found<Metaparameters> {
        four(self.best_learning_rate, self.best_momentum, self.best_decay_steps, self.best_end_learning_rate_factor)
    }

    fn row(&self, best: Option<usize>) -> CellRow {
        CellRow {
            batch_size: self.batch_size,
            sparsity: self.sparsity,
            trials: self.trials,
            complete: self.complete,
            incomplete: self.incomplete,
            infeasible: self.infeasible,
            censored: self.censored,
            steps_to_result: self.steps_to_result,
            best_trial: self.best_trial,
            best_row: best.map_or(-1, |best| best as i64),
            test_errors: self.test_errors,
            test_error: self.test_error,
            seconds: self.seconds,
        }
    }
}

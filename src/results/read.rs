//! The reader of result files. It checks whatever it can: names, types, lengths, and that the tables agree with each other.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use hdf5::File;

use super::attributes::{Attribute, Attributes, Found};
use super::rows::{optional_table, table};
use super::schema::{CellRow, ConfirmationRow, CurveRow, MeasurementRow, SCHEMA, SCHEMA_VERSION, StartRow, TrialRow, optional_count};
use super::table::Table;
use super::{Environment, Results, WorkloadSummary, metaparameters};
use crate::optimizer::Metaparameters;
use crate::reader::{self, Task};
use crate::records::{Cell, CellKey, Start, Trial};
use crate::{Error, Result};

/// Reads a result file written by [`write`](super::write()), every field exactly; in a process of its own where the program has called
/// [`reader::begin`].
///
/// # Errors
/// [`Error::Results`] for a file that is no HDF5 file, is damaged, has another schema or a newer version of it, or contradicts itself.
pub fn read(path: &Path) -> Result<Results> {
    let advised = |problem: String| match problem.starts_with("damaged: ") {
        true => format!("{problem}; copy it again, or run dps-train again to write it anew"),
        false => problem,
    };
    let read = reader::ask(&READING, path, "").and_then(|mut answer| {
        let mut bytes = Vec::new();
        answer.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        postcard::from_bytes(&bytes).map_err(|error| format!("damaged: reading it gave no results ({error})"))
    });
    read.map_err(|problem| Error::Results { path: path.to_owned(), problem: advised(problem) })
}

/// Reads a result file for [`read`].
pub const READING: Task = Task {
    name: "results",
    act: |path, _, output| {
        let results = open(path).and_then(|(file, bytes)| contents(&file, bytes))?;
        let bytes = postcard::to_stdvec(&results).map_err(|error| error.to_string())?;
        output.write_all(&bytes).map_err(|error| error.to_string())
    },
};

/// The open file and its length in bytes.
fn open(path: &Path) -> Found<(File, u64)> {
    let unreadable = |error| format!("the result file cannot be read ({error}); give the --output of a study, which may be read");
    // HDF5 would wait for ever at a pipe.
    if fs::metadata(path).map_err(unreadable)?.is_file() {
        let file = reader::regular(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        reader::has_text_path(path)?;
        return match reader::is_hdf5(&file).map_err(unreadable)? {
            true => reader::open(path).map(|file| (file, bytes)),
            false => Err("expected a result file of dps-train, found no HDF5 file".to_owned()),
        };
    }
    Err("expected a result file, found a folder or a device".to_owned())
}

fn contents(file: &File, bytes: u64) -> Found<Results> {
    reader::has_own_tree(file, bytes)?;
    match String::read(file, "schema") {
        Ok(schema) if schema == SCHEMA => {}
        _ => return Err(format!("an HDF5 file, but no result file of dps-train: its attribute schema is not \"{SCHEMA}\"")),
    }
    let version = u32::read(file, "schema_version")?;
    if version != SCHEMA_VERSION {
        return Err(format!(
            "schema version {version}, where this program reads version {SCHEMA_VERSION}; use the dps-report of the version that wrote it"
        ));
    }
    let group = |name: &str| file.group(name).map_err(|_| format!("damaged: it has no group /{name}"));
    let [configuration, environment, workload] = ["configuration", Environment::PATH, WorkloadSummary::PATH].map(group);
    let workload = <WorkloadSummary as Attributes>::read(&*workload?)?.checked()?;
    let cells = cells(file, bytes, &workload)?;
    let complete = match u8::read(file, "complete")? {
        0 => false,
        1 => true,
        other => return Err(format!("damaged: the attribute complete is {other}, neither 0 nor 1")),
    };
    Ok(Results {
        configuration: String::read(&*configuration?, "toml")?,
        environment: Environment { starts: starts(file, bytes)?, ..Attributes::read(&*environment?)? },
        workload,
        cells,
        complete,
    })
}

/// The starts of the study, where the file has them.
fn starts(file: &File, bytes: u64) -> Found<Vec<Start>> {
    let rows: Vec<StartRow> = optional_table(file, bytes)?;
    let start = |(number, row): (usize, &StartRow)| row.start().map_err(|problem| format!("damaged: row {number} of /starts: {problem}"));
    rows.iter().enumerate().map(start).collect()
}

/// Reads all tables and puts them together again. Trials are in order of cells, curves in order of trials: a row out of place is damage.
fn cells(file: &File, bytes: u64, workload: &WorkloadSummary) -> Found<Vec<Cell>> {
    let cell_rows: Vec<CellRow> = table(file, bytes)?;
    let trials: Vec<TrialRow> = table(file, bytes)?;
    let metaparameters = metaparameters::read(file, bytes, trials.len())?;
    let curves: Vec<CurveRow> = table(file, bytes)?;
    // Not every study confirms cells, or measures smoothness.
    let (confirmations, measurements) = (optional_table::<ConfirmationRow>(file, bytes)?, optional_table::<MeasurementRow>(file, bytes)?);
    let (mut trials_left, mut metaparameters_left) = (trials.as_slice(), metaparameters.as_slice());
    let (mut curves_left, mut measurements_left) = (curves.as_slice(), measurements.as_slice());
    let mut cells: Vec<Cell> = Vec::with_capacity(cell_rows.len());
    let mut known = HashSet::new();
    for (row, found) in (0_u32..).zip(&cell_rows) {
        let damaged = |problem: String| format!("damaged: row {row} of /cells: {problem}");
        let trials_start = (trials.len() - trials_left.len()) as u64;
        let (own, others) = trials_left
            .split_at_checked(found.trials as usize)
            .ok_or_else(|| damaged(format!("expected {} trials, found {} left in /trials", found.trials, trials_left.len())))?;
        trials_left = others;
        // `/metaparameters` has as many rows as `/trials`, so the rows of this cell's trials are there.
        let (values, others) = metaparameters_left.split_at(own.len());
        metaparameters_left = others;
        let key = CellKey { batch_size: found.batch_size, sparsity: found.sparsity };
        // Adding 0.0 turns a sparsity of −0 into 0, so that both zeros have the same bits.
        if !known.insert((key.batch_size, (key.sparsity + 0.0).to_bits())) {
            return Err(damaged(format!("batch size {} at sparsity {} is there twice", key.batch_size, key.sparsity)));
        }
        let test_errors = optional_count(found.test_errors).map_err(damaged)?;
        let mut cell = Cell { key, trials: Vec::with_capacity(own.len()), test_errors, seconds: found.seconds, confirmations: Vec::new() };
        for (trial_row, &values) in own.iter().zip(values) {
            let start = (curves.len() - curves_left.len()) as u64;
            let own = |found: &&MeasurementRow| (found.cell, found.trial) == (row, trial_row.trial);
            let (measured, others) = measurements_left.split_at(measurements_left.iter().take_while(own).count());
            measurements_left = others;
            let trial = trial(trial_row, values, key, (row, start), &mut curves_left, measured, workload)
                .map_err(|problem| damaged(format!("trial {}: {problem}", trial_row.trial)))?;
            cell.trials.push(trial);
        }
        same(found, &CellRow::new(&cell, trials_start, workload)).map_err(damaged)?;
        cells.push(cell);
    }
    let mut known = HashSet::new();
    for (number, found) in confirmations.iter().enumerate() {
        let damaged = |problem: String| format!("damaged: row {number} of /confirmations: {problem}");
        let cell = cells.get_mut(found.cell as usize).ok_or_else(|| damaged(format!("there is no cell {}", found.cell)))?;
        let start = (curves.len() - curves_left.len()) as u64;
        let curve = evaluations(found.curve_length, &mut curves_left, workload).map_err(damaged)?;
        let point = cell.trials.iter().find(|trial| trial.index == found.point);
        let values = point.ok_or_else(|| damaged(format!("its cell has no trial {}", found.point)))?.metaparameters;
        let confirmation = found.confirmation(values, curve).map_err(damaged)?;
        same(found, &ConfirmationRow::new(&confirmation, cell.key, found.cell, start)).map_err(damaged)?;
        if !known.insert((found.cell, found.point, found.number)) {
            return Err(damaged(format!("confirmation {} of point {} is there twice", found.number, found.point)));
        }
        cell.confirmations.push(confirmation);
    }
    match [trials_left.len(), curves_left.len(), measurements_left.len()] {
        [0, 0, 0] => Ok(cells),
        [trials, curves, 0] => Err(format!("damaged: {trials} rows of /trials and {curves} rows of /curves belong to no cell")),
        [.., measurements] => Err(format!("damaged: {measurements} rows of /smoothness belong to no trial, or are not in order of trials")),
    }
}

/// One trial; takes its evaluations off `curves`. Its cell is row `cell_row` of /cells, and its evaluations begin at row `start` of /curves.
fn trial(
    row: &TrialRow,
    values: Metaparameters,
    key: CellKey,
    (cell_row, start): (u32, u64),
    curves: &mut &[CurveRow],
    measurements: &[MeasurementRow],
    workload: &WorkloadSummary,
) -> Found<Trial> {
    let curve = evaluations(row.curve_length, curves, workload)?;
    if !measurements.is_sorted_by(|before, after| before.step < after.step) {
        return Err("its measurements are not in order of steps".to_owned());
    }
    let trial = row.trial(values, curve, measurements)?;
    for (found, measurement) in measurements.iter().zip(&trial.measurements) {
        let expected = MeasurementRow::new(measurement, trial.index, key, cell_row);
        same(found, &expected).map_err(|difference| format!("its measurement at step {}: {difference}", found.step))?;
    }
    same(row, &TrialRow::new(&trial, key, cell_row, start, workload))?;
    Ok(trial)
}

/// The first `length` evaluations, taken off `curves`.
fn evaluations<'c>(length: u32, curves: &mut &'c [CurveRow], workload: &WorkloadSummary) -> Found<&'c [CurveRow]> {
    let (curve, others) = curves
        .split_at_checked(length as usize)
        .ok_or_else(|| format!("expected {length} evaluations, found {} left in /curves", curves.len()))?;
    *curves = others;
    if let Some(point) = curve.iter().find(|point| point.errors > point.examples || point.examples > workload.validation_examples) {
        return Err(format!("{} errors in {} of {} examples", point.errors, point.examples, workload.validation_examples));
    }
    if !curve.is_sorted_by(|before, after| before.step < after.step) {
        return Err("its evaluations are not in order of steps".to_owned());
    }
    Ok(curve)
}

/// Compares a row of the file with the row that would be written for the record that was read.
fn same<Row: Table>(found: &Row, expected: &Row) -> Found<()> {
    match found.differences(expected).first() {
        Some((column, found, expected)) => Err(format!("{column} is {found}, the other tables say {expected}")),
        None => Ok(()),
    }
}

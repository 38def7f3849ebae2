//! The reader of result files. It checks whatever it can: names, types, lengths, and that the tables agree with each other.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use hdf5::File;
use hdf5::types::{CompoundField, CompoundType, EnumType, FloatSize, TypeDescriptor};

use super::attributes::{Attribute, Attributes, Found};
use super::schema::{CellRow, ConfirmationRow, CurveRow, MeasurementRow, SCHEMA, SCHEMA_VERSION, StartRow, TrialRow, optional_count};
use super::table::Table;
use super::write::METAPARAMETERS;
use super::{Environment, Results, WorkloadSummary};
use crate::optimizer::{Metaparameter, Metaparameters};
use crate::reader::{self, MOST_INFLATED, Task, one_line};
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
    let metaparameters = metaparameters(file, bytes, trials.len())?;
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

/// So many evaluations, taken off `curves`.
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

/// All rows of a table.
fn table<Row: Table>(file: &File, bytes: u64) -> Found<Vec<Row>> {
    let damaged = |error| format!("damaged: the table /{} cannot be read ({})", Row::PATH, one_line(&error));
    let dataset = file.dataset(Row::PATH).map_err(|_| format!("damaged: it has no table /{}", Row::PATH))?;
    // HDF5 would leave columns it does not find unset.
    let kind = dataset.dtype().and_then(|kind| kind.to_descriptor()).map_err(damaged)?;
    if by_value(kind.clone()) != by_value(Row::type_descriptor().to_packed_repr()) || dataset.ndim() != 1 {
        return Err(format!("damaged: the table /{} has other columns than its schema version", Row::PATH));
    }
    let rows = dataset.size();
    if (rows as u64).saturating_mul(kind.size() as u64) > bytes.saturating_mul(MOST_INFLATED) {
        return Err(format!("damaged: the table /{} claims {rows} rows, more than the file can hold", Row::PATH));
    }
    Vec::<Row>::new()
        .try_reserve_exact(rows)
        .map_err(|_| format!("the table /{} has {rows} rows, too many for this machine's memory", Row::PATH))?;
    if rows == 0 { Ok(Vec::new()) } else { dataset.read_raw().map_err(damaged) }
}

/// A type with the members of its enumerations in the order of their values. Programs write them in orders of their own, which mean the same.
fn by_value(kind: TypeDescriptor) -> TypeDescriptor {
    match kind {
        TypeDescriptor::Enum(EnumType { size, signed, mut members }) => {
            members.sort_by_key(|member| member.value);
            TypeDescriptor::Enum(EnumType { size, signed, members })
        }
        TypeDescriptor::Compound(CompoundType { fields, size }) => {
            let fields = fields.into_iter().map(|field| CompoundField { ty: by_value(field.ty), ..field }).collect();
            TypeDescriptor::Compound(CompoundType { fields, size })
        }
        other => other,
    }
}

/// The rows of a table that not every file has.
fn optional_table<Row: Table>(file: &File, bytes: u64) -> Found<Vec<Row>> {
    if file.link_exists(Row::PATH) { table(file, bytes) } else { Ok(Vec::new()) }
}

/// The metaparameters of each of so many rows of `/trials`, in a file of so many bytes.
fn metaparameters(file: &File, bytes: u64, trials: usize) -> Found<Vec<Metaparameters>> {
    if (trials as u64).saturating_mul(size_of::<Metaparameters>() as u64) > bytes.saturating_mul(MOST_INFLATED) {
        return Err(format!("damaged: it is too short for the metaparameters of {trials} trials"));
    }
    let group = file.group(METAPARAMETERS).map_err(|_| format!("damaged: it has no group /{METAPARAMETERS}"))?;
    let names = group.member_names().map_err(|_| format!("damaged: the group /{METAPARAMETERS} cannot be listed"))?;
    let mut all = vec![Metaparameters::default(); trials];
    for text in names {
        let shown: String = text.chars().take(40).filter(|letter| !letter.is_control()).collect();
        let damaged = |what: &str| format!("damaged: the dataset /{METAPARAMETERS}/{shown} {what}");
        let name: Metaparameter = text.parse().map_err(|_| damaged("is of a metaparameter that this program does not know"))?;
        let dataset = group.dataset(&text).map_err(|_| damaged("is none"))?;
        let is_float = dataset.dtype().and_then(|kind| kind.to_descriptor()).is_ok_and(|kind| kind == TypeDescriptor::Float(FloatSize::U8));
        if !is_float || dataset.shape() != [trials] {
            return Err(damaged("has other rows than /trials, or is not of 64-bit floating-point numbers"));
        }
        let values: Vec<f64> = dataset.read_raw().map_err(|_| damaged("cannot be read"))?;
        for (trial, value) in all.iter_mut().zip(values) {
            trial.set(name, Some(value).filter(|value| !value.is_nan()));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use hdf5::H5Type;

    use super::*;
    use crate::results::codes::StatusCode;
    use crate::results::table::table as declare;

    declare!(Ended, "ended", "One row a test.", (code: u8, taken: u32) {
        status: StatusCode = "how it ended" => StatusCode(code),
        steps: u32 = "steps" => taken,
    });

    /// Other programs write the members of an enumeration in orders of their own.
    #[test]
    fn members_of_an_enumeration_may_stand_in_any_order() {
        let turned = |kind: TypeDescriptor| match kind {
            TypeDescriptor::Compound(CompoundType { mut fields, size }) => {
                if let TypeDescriptor::Enum(kind) = &mut fields[0].ty {
                    kind.members.reverse();
                }
                TypeDescriptor::Compound(CompoundType { fields, size })
            }
            other => other,
        };
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("ended.h5")).unwrap();
        let kind = turned(Ended::type_descriptor().to_packed_repr());
        assert_ne!(kind, Ended::type_descriptor().to_packed_repr());
        let dataset = file.new_dataset_builder().packed(true).empty_as(&kind).shape(2).create("ended").unwrap();
        let rows = [Ended::new(0, 7), Ended::new(2, 9)];
        dataset.write_raw(&rows).unwrap();
        let read: Vec<Ended> = table(&file, 1 << 20).unwrap();
        assert!(read.len() == 2 && read.iter().zip(&rows).all(|(read, row)| row.differences(read).is_empty()), "{read:?}");
    }
}

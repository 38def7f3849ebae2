//! The writer of result files.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr, slice};

use hdf5::file::LibraryVersion;
use hdf5::{File, Group};
use hdf5_sys::{h5f, h5p};

use super::attributes::{Attribute, Attributes, compressed, describe, text, texts};
use super::codes::exactly;
use super::schema::{CellRow, ConfirmationRow, CurveRow, MeasurementRow, SCHEMA, SCHEMA_VERSION, StartRow, TrialRow};
use super::table::{Column, Table};
use super::{Environment, Results, WorkloadSummary, grid, metaparameters as columns, publish};
use crate::Result;
use crate::optimizer::{Metaparameter, Metaparameters};
use crate::reader::one_line;
use crate::records::Start;
use crate::storage::{Disk, Storage};

/// Writes `results` to `path`, whole or not at all. One process alone (rank 0) may call it for a path.
///
/// # Errors
/// [`Error::Results`](crate::Error::Results); the file that was there is then untouched.
pub fn write(path: &Path, results: &Results) -> Result<()> {
    write_through(&Disk, path, results)
}

/// Writes `results` as [`write()`] does, through `storage`.
///
/// # Errors
/// As for [`write()`].
pub fn write_through(storage: &dyn Storage, path: &Path, results: &Results) -> Result<()> {
    publish::explained(path, image(results).map_err(as_io_error).and_then(|image| publish::replace(storage, path, &image)))
}

/// Files made by this process: HDF5 tells those in memory apart by their names.
static FILES: AtomicU64 = AtomicU64::new(0);

/// The bytes of a result file. HDF5 builds it in memory and opens no file, which somebody might have put a link in the place of.
fn image(results: &Results) -> hdf5::Result<Vec<u8>> {
    let file = File::with_options()
        // The 1.8 format has checksums on all metadata, and every reader of the last ten years knows it.
        .with_fapl(|access| access.core_options(1 << 16, false).libver_bounds(LibraryVersion::V18, LibraryVersion::V18))
        // No times in object headers: the same results are the same bytes.
        .with_fcpl(|creation| creation.obj_track_times(false))
        .create(format!("results-{}", FILES.fetch_add(1, Ordering::Relaxed)))?;
    fill(&file, results)?;
    file.flush()?;
    hdf5::sync::sync(|| {
        let query = || hdf5::Error::query().unwrap_or_else(|error| error);
        let mut memory = ptr::null_mut();
        // SAFETY: calls under the crate's lock with the identifier of a file that is open here. Without a buffer the first returns the length of
        // the file as its first bytes have it; with one, HDF5 1.10 would change a byte that a checksum covers. The second writes to a variable:
        // for a file in memory that is the address of HDF5's pointer to the first byte.
        let (length, found) = unsafe {
            (h5f::H5Fget_file_image(file.id(), ptr::null_mut(), 0), h5f::H5Fget_vfd_handle(file.id(), h5p::H5P_DEFAULT, &mut memory))
        };
        let length = usize::try_from(length).map_err(|_| query())?;
        if found < 0 || memory.is_null() {
            return Err(query());
        }
        // SAFETY: to flush a file in memory extends its memory to that length, and nobody changes the file while the lock is held.
        Ok(unsafe { slice::from_raw_parts(*memory.cast::<*const u8>(), length) }.to_vec())
    })
}

/// HDF5's error; where it is about memory, the operating system's.
fn as_io_error(error: hdf5::Error) -> io::Error {
    let text = one_line(&error);
    let lower = text.to_ascii_lowercase();
    if ["memory allocation failed", "unable to allocate", "can't allocate"].iter().any(|words| lower.contains(words)) {
        return io::ErrorKind::OutOfMemory.into();
    }
    io::Error::other(text)
}

fn fill(file: &File, results: &Results) -> hdf5::Result<()> {
    SCHEMA.to_owned().write(file, "schema")?;
    SCHEMA_VERSION.write(file, "schema_version")?;
    u8::from(results.complete).write(file, "complete")?;
    text(file, "description", "Steps-to-result of a study; complete is 1 once every cell of its grid is in /cells, else 0.")?;

    results.configuration.write(&*group(file, "configuration")?, "toml")?;
    let (environment, workload) = (&results.environment, &results.workload);
    Attributes::write(environment, &*group(file, Environment::PATH)?)?;
    Attributes::write(workload, &*group(file, WorkloadSummary::PATH)?)?;

    let (mut cells, mut trials, mut curves, mut measurements) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, cell) in (0..).zip(&results.cells) {
        cells.push(CellRow::new(cell, trials.len() as u64, workload));
        for trial in &cell.trials {
            trials.push(TrialRow::new(trial, cell.key, row, curves.len() as u64, workload));
            curves.extend(trial.curve.iter().map(CurveRow::new));
            measurements.extend(trial.measurements.iter().map(|found| MeasurementRow::new(found, trial.index, cell.key, row)));
        }
    }
    let mut confirmations = Vec::new();
    for (row, cell) in (0..).zip(&results.cells) {
        for confirmation in &cell.confirmations {
            confirmations.push(ConfirmationRow::new(confirmation, cell.key, row, curves.len() as u64));
            curves.extend(confirmation.run.curve.iter().map(CurveRow::new));
        }
    }
    table(file, &cells)?;
    table(file, &trials)?;
    let of_trials: Vec<_> = results.trials().map(|trial| trial.metaparameters).collect();
    metaparameters(&group(file, columns::PATH)?, &of_trials)?;
    table(file, &curves)?;
    if let Some(dimensions) = grid::Dimensions::new(&cells, &trials) {
        grid::write(&group(file, grid::PATH)?, &dimensions, &cells, &trials, &of_trials)?;
    }
    if !measurements.is_empty() {
        table(file, &measurements)?;
    }
    if !confirmations.is_empty() {
        table(file, &confirmations)?;
    }
    let start = |start: &Start| Some(StartRow::new(start, exactly(&start.host_names)?, exactly(&start.program)?));
    let starts: Option<Vec<StartRow>> = environment.starts.iter().map(start).collect();
    let starts =
        starts.ok_or_else(|| hdf5::Error::from("the names of hosts or the program of a start have a NUL character or too many bytes"))?;
    if starts.is_empty() { Ok(()) } else { table(file, &starts) }
}

/// Writes the metaparameters of all rows of /trials.
fn metaparameters(group: &Group, trials: &[Metaparameters]) -> hdf5::Result<()> {
    let about = "A dataset for each metaparameter that any trial has: row i belongs to row i of /trials. NaN: that trial has none.";
    text(group, "description", about)?;
    for name in Metaparameter::ALL {
        let values: Vec<f64> = trials.iter().map(|trial| trial.get(name).unwrap_or(f64::NAN)).collect();
        if values.iter().all(|value| value.is_nan()) {
            continue;
        }
        let dataset = compressed(group.new_dataset_builder(), &[values.len()]).empty::<f64>().shape(values.len()).create(name.name())?;
        dataset.write_raw(&values)?;
        text(&dataset, "description", name.meaning().split(". ").next().unwrap_or_default())?;
        text(&dataset, "symbol", name.symbol())?;
        describe(&dataset, name.unit(), name.title())?;
    }
    Ok(())
}

/// Writes a table of packed rows.
fn table<Row: Table>(file: &File, rows: &[Row]) -> hdf5::Result<()> {
    let dataset = compressed(file.new_dataset_builder(), &[rows.len()]).packed(true).empty::<Row>().shape(rows.len()).create(Row::PATH)?;
    if !rows.is_empty() {
        dataset.write_raw(rows)?;
    }
    text(&dataset, "description", Row::ROW)?;
    let lines: String = Row::COLUMNS.iter().map(|column| format!("{}: {}\n", column.name, column.meaning)).collect();
    text(&dataset, "columns", &lines)?;
    let of_columns = |of: fn(&Column) -> &'static str| Row::COLUMNS.iter().map(of).collect::<Vec<_>>();
    texts(&dataset, "units", Row::COLUMNS.len(), &of_columns(|column| column.unit))?;
    texts(&dataset, "long_name", Row::COLUMNS.len(), &of_columns(|column| column.meaning))
}

fn group(file: &File, name: &str) -> hdf5::Result<Group> {
    file.create_group_builder().with_gcpl(|creation| creation.obj_track_times(false)).create(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_in_hdf5_becomes_the_operating_systems() {
        let kind = |text: &str| as_io_error(hdf5::Error::Internal(text.to_owned())).kind();
        assert_eq!(kind("H5Dwrite(): can't write data: memory allocation failed for chunk"), io::ErrorKind::OutOfMemory);
        assert_eq!(kind("H5Dwrite(): not a dataset"), io::ErrorKind::Other);
    }
}

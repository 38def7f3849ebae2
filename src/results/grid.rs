//! The group `/grid`: the numbers of `/cells`, `/trials` and `/metaparameters` once more, as arrays by batch size, sparsity and trial. Their
//! dimensions have names and values, as netCDF-4 has them, so xarray and other readers of netCDF take the arrays as they are. dps does not read them.

use std::ffi::{CStr, CString};

use hdf5::types::VarLenArray;
use hdf5::{Dataset, Group, ObjectReference1};
use hdf5_sys::{h5a, h5p, h5s, h5t};

use super::attributes::{compressed, describe, numbers, text};
use super::schema::{CellRow, Table, TrialRow};
use crate::config::Metaparameter;
use crate::records::Status;
use crate::search::Metaparameters;

/// Its path.
pub(super) const PATH: &str = "grid";

/// What a table has of its rows' places, and what no 64-bit float holds.
const LEFT_OUT: [&str; 8] = ["batch_size", "sparsity", "trial", "cell", "best_row", "curve_start", "curve_length", "mask_hash"];

/// The values of the three dimensions, each in ascending order and once.
struct Dimensions {
    batch_sizes: Vec<u32>,
    sparsities: Vec<f64>,
    trials: Vec<u32>,
}

impl Dimensions {
    fn new(trials: &[TrialRow], cells: &[CellRow]) -> Self {
        let mut batch_sizes: Vec<u32> = cells.iter().map(|cell| cell.batch_size).collect();
        let mut sparsities: Vec<f64> = cells.iter().map(|cell| cell.sparsity).collect();
        let mut numbers: Vec<u32> = trials.iter().map(|trial| trial.trial).collect();
        batch_sizes.sort_unstable();
        sparsities.sort_unstable_by(f64::total_cmp);
        numbers.sort_unstable();
        batch_sizes.dedup();
        sparsities.dedup();
        numbers.dedup();
        Dimensions { batch_sizes, sparsities, trials: numbers }
    }

    /// The place of a cell in an array by batch size and sparsity.
    fn of_cell(&self, batch_size: u32, sparsity: f64) -> usize {
        let row = self.batch_sizes.partition_point(|&other| other < batch_size);
        row * self.sparsities.len() + self.sparsities.partition_point(|&other| other < sparsity)
    }

    /// The place of a trial in an array by batch size, sparsity and trial.
    fn of_trial(&self, row: &TrialRow) -> usize {
        self.of_cell(row.batch_size, row.sparsity) * self.trials.len() + self.trials.partition_point(|&other| other < row.trial)
    }
}

/// Writes the group into `group`. `metaparameters` has those of each row of `trials`.
pub(super) fn write(group: &Group, cells: &[CellRow], trials: &[TrialRow], metaparameters: &[Metaparameters]) -> hdf5::Result<()> {
    text(
        group,
        "description",
        "The numbers of /cells, /trials (called trial_…) and /metaparameters by batch size, sparsity and trial. NaN: there is none, or no such cell.",
    )?;
    let dimensions = Dimensions::new(trials, cells);
    let (rows, columns, depth) = (dimensions.batch_sizes.len(), dimensions.sparsities.len(), dimensions.trials.len());
    let scales = [
        scale::<TrialRow, u32>(group, "batch_size", &dimensions.batch_sizes)?,
        scale::<TrialRow, f64>(group, "sparsity", &dimensions.sparsities)?,
        scale::<TrialRow, u32>(group, "trial", &dimensions.trials)?,
    ];
    let array = |name: &str, values: &[f64], scales: &[ObjectReference1]| {
        let shape = &[rows, columns, depth][..scales.len()];
        let dataset = compressed(group.new_dataset_builder(), shape).empty::<f64>().shape(shape).create(name)?;
        dataset.write_raw(values)?;
        let lists: Vec<VarLenArray<ObjectReference1>> = scales.iter().map(|&scale| [scale].into()).collect();
        dataset.new_attr::<VarLenArray<ObjectReference1>>().shape(lists.len()).create("DIMENSION_LIST")?.write_raw(&lists)?;
        numbers(&dataset, "_FillValue", &[f64::NAN])?;
        Ok::<_, hdf5::Error>(dataset)
    };

    let places: Vec<usize> = cells.iter().map(|cell| dimensions.of_cell(cell.batch_size, cell.sparsity)).collect();
    for (column, values) in columns_of(cells, &places, rows * columns) {
        // `trials` beside the dimension `trial` would be easy to mistake.
        let name = if CellRow::NAMES[column] == "trials" { "trial_count" } else { CellRow::NAMES[column] };
        let dataset = array(name, &values, &scales[..2])?;
        describe(&dataset, CellRow::UNITS[column], &meaning::<CellRow>(column))?;
    }
    let places: Vec<usize> = trials.iter().map(|trial| dimensions.of_trial(trial)).collect();
    for (column, values) in columns_of(trials, &places, rows * columns * depth) {
        let dataset = array(&format!("trial_{}", TrialRow::NAMES[column]), &values, &scales)?;
        describe(&dataset, TrialRow::UNITS[column], &meaning::<TrialRow>(column))?;
        if TrialRow::NAMES[column] == "status" {
            numbers(&dataset, "flag_values", &Status::ALL.map(|status| f64::from(status as u8)))?;
            text(&dataset, "flag_meanings", &Status::ALL.map(Status::name).join(" "))?;
        }
    }
    for &name in Metaparameter::ALL {
        if metaparameters.iter().any(|of_trial| of_trial.get(name).is_some()) {
            let mut values = vec![f64::NAN; rows * columns * depth];
            for (of_trial, &place) in metaparameters.iter().zip(&places) {
                values[place] = of_trial.get(name).unwrap_or(f64::NAN);
            }
            let dataset = array(&format!("trial_{}", name.name()), &values, &scales)?;
            describe(&dataset, name.unit(), name.title())?;
        }
    }
    Ok(())
}

/// The columns of `rows` that `/grid` has, by number, each as an array of `len` numbers with row i at `places[i]`.
fn columns_of<Row: Table>(rows: &[Row], places: &[usize], len: usize) -> Vec<(usize, Vec<f64>)> {
    let numbers: Vec<Vec<f64>> = rows.iter().map(Table::numbers).collect();
    let wanted = (0..Row::NAMES.len()).filter(|&column| !LEFT_OUT.contains(&Row::NAMES[column]));
    let array = |column: usize| {
        let mut values = vec![f64::NAN; len];
        for (row, &place) in numbers.iter().zip(places) {
            values[place] = row[column];
        }
        (column, values)
    };
    wanted.map(array).collect()
}

/// What a column means here, where NaN stands for -1.
fn meaning<Row: Table>(column: usize) -> String {
    Row::MEANINGS[column].replace("-1 where", "NaN where")
}

/// Writes the values of a dimension, which has the name of a column of `Row`; and returns what refers to it.
fn scale<Row: Table, T: hdf5::H5Type>(group: &Group, name: &str, values: &[T]) -> hdf5::Result<ObjectReference1> {
    let dataset = group.new_dataset_builder().empty::<T>().shape(values.len()).create(name)?;
    dataset.write_raw(values)?;
    let column = Row::NAMES.iter().position(|&other| other == name).expect("the dimensions are columns of /trials");
    describe(&dataset, Row::UNITS[column], Row::MEANINGS[column])?;
    c_text(&dataset, c"CLASS", c"DIMENSION_SCALE")?;
    c_text(&dataset, c"NAME", &CString::new(name).map_err(|error| error.to_string())?)?;
    group.reference(name)
}

/// Gives a dataset an attribute that is a text of the C language, ended by a NUL: HDF5 wants those of a dimension so, and the crate hdf5 makes none.
fn c_text(dataset: &Dataset, name: &CStr, value: &CStr) -> hdf5::Result<()> {
    let bytes = value.to_bytes_with_nul();
    let is_written = hdf5::sync::sync(|| {
        // SAFETY: calls of HDF5 under the crate's lock, with identifiers and texts that live here; the text has as many bytes as the type. HDF5 refuses
        // an identifier that an earlier call failed to make.
        unsafe {
            let kind = h5t::H5Tcopy(*hdf5::globals::H5T_C_S1);
            let sized = h5t::H5Tset_size(kind, bytes.len());
            let space = h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR);
            let attribute = h5a::H5Acreate2(dataset.id(), name.as_ptr(), kind, space, h5p::H5P_DEFAULT, h5p::H5P_DEFAULT);
            let written = if sized >= 0 { h5a::H5Awrite(attribute, kind, bytes.as_ptr().cast()) } else { sized };
            h5a::H5Aclose(attribute);
            h5s::H5Sclose(space);
            h5t::H5Tclose(kind);
            written >= 0
        }
    });
    if is_written { Ok(()) } else { Err(format!("the attribute {name:?} of a dimension of /{PATH} cannot be written").into()) }
}

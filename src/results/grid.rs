//! The group `/grid`: the numbers of `/cells`, `/trials` and `/metaparameters` once more, as arrays by batch size, sparsity and trial. Their
//! dimensions have names and values, as netCDF-4 has them, so xarray and other readers of netCDF take the arrays as they are. dps does not read them.

use std::ffi::CStr;

use hdf5::types::VarLenArray;
use hdf5::{Dataset, Group, H5Type, ObjectReference1};
use hdf5_sys::{h5a, h5p, h5s, h5t};

use super::attributes::{compressed, describe, numbers, text};
use super::schema::{CellRow, TrialRow};
use super::table::{Column, Table};
use crate::optimizer::{Metaparameter, Metaparameters};
use crate::records::Status;
use crate::settings::ascending;

/// Path of the group of arrays in the file.
pub(super) const PATH: &str = "grid";

/// Numbers of an array at most. Cells that form no full grid, as merged files may have them, leave most of an array empty; a larger one is not worth
/// its memory.
const MOST_PLACES: usize = 1 << 22;

/// The dimensions, which are no arrays.
const DIMENSIONS: [&str; 3] = ["batch_size", "sparsity", "trial"];

/// The values of the three dimensions, each in ascending order and once.
pub(super) struct Dimensions {
    batch_sizes: Vec<u32>,
    sparsities: Vec<f64>,
    trials: Vec<u32>,
}

impl Dimensions {
    /// The dimensions of a file with these rows; none where there is nothing to put into arrays, or where they would be too large.
    pub fn new(cells: &[CellRow], trials: &[TrialRow]) -> Option<Self> {
        let batch_sizes = ascending(cells.iter().map(|cell| cell.batch_size), u32::cmp);
        let sparsities = ascending(cells.iter().map(|cell| cell.sparsity), f64::total_cmp);
        let numbers = ascending(trials.iter().map(|trial| trial.trial), u32::cmp);
        let places = batch_sizes.len().checked_mul(sparsities.len())?.checked_mul(numbers.len())?;
        (1..=MOST_PLACES).contains(&places).then_some(Dimensions { batch_sizes, sparsities, trials: numbers })
    }

    /// The place of a cell in an array by batch size and sparsity.
    fn of_cell(&self, batch_size: u32, sparsity: f64) -> usize {
        let row = self.batch_sizes.partition_point(|&other| other < batch_size);
        row * self.sparsities.len() + self.sparsities.partition_point(|&other| other < sparsity)
    }
}

/// Writes the group into `group`. `metaparameters` has those of each row of `trials`.
pub(super) fn write(
    group: &Group,
    dimensions: &Dimensions,
    cells: &[CellRow],
    trials: &[TrialRow],
    metaparameters: &[Metaparameters],
) -> hdf5::Result<()> {
    let about = "The numbers of /cells, /trials (called trial_…) and /metaparameters by batch size, sparsity and trial. NaN: there is none, or no \
                 such cell.";
    text(group, "description", about)?;
    let mut arrays = Arrays::new(group, dimensions)?;
    let places: Vec<usize> = cells.iter().map(|cell| dimensions.of_cell(cell.batch_size, cell.sparsity)).collect();
    for (number, column) in columns::<CellRow>() {
        // `trials` beside the dimension `trial` would be easy to mistake.
        let name = if column.name == "trials" { "trial_count" } else { column.name };
        let dataset = arrays.write(name, 2, cells.iter().map(|cell| cell.numbers()[number]), &places)?;
        describe(&dataset, column.unit, &meaning(column))?;
    }
    let place = |row: &TrialRow| {
        let of_cell = dimensions.of_cell(row.batch_size, row.sparsity) * dimensions.trials.len();
        of_cell + dimensions.trials.partition_point(|&other| other < row.trial)
    };
    let places: Vec<usize> = trials.iter().map(place).collect();
    for (number, column) in columns::<TrialRow>() {
        let name = format!("trial_{}", column.name);
        let dataset = arrays.write(&name, 3, trials.iter().map(|trial| trial.numbers()[number]), &places)?;
        describe(&dataset, column.unit, &meaning(column))?;
        if column.name == "status" {
            numbers(&dataset, "flag_values", &Status::ALL.map(|status| f64::from(status as u8)))?;
            text(&dataset, "flag_meanings", &Status::ALL.map(Status::name).join(" "))?;
        }
    }
    for name in Metaparameter::ALL {
        if metaparameters.iter().any(|of_trial| of_trial.get(name).is_some()) {
            let values = metaparameters.iter().map(|of_trial| of_trial.get(name).unwrap_or(f64::NAN));
            let dataset = arrays.write(&format!("trial_{}", name.name()), 3, values, &places)?;
            describe(&dataset, name.unit(), name.title())?;
        }
    }
    // Each dimension says which arrays have it.
    arrays.scales.iter().zip(&arrays.uses).try_for_each(|(scale, uses)| numbers(scale, "REFERENCE_LIST", uses))
}

/// The columns of a table that `/grid` has, each with its number in the table.
fn columns<Row: Table>() -> impl Iterator<Item = (usize, &'static Column)> {
    Row::COLUMNS.iter().enumerate().filter(|(_, column)| column.is_number && !column.is_place && !DIMENSIONS.contains(&column.name))
}

/// Where an array has a dimension, as HDF5 notes it at that dimension.
#[derive(Clone, Copy, H5Type)]
#[repr(C)]
struct Use {
    dataset: ObjectReference1,
    dimension: i32,
}

/// The arrays of the group, which refer to its dimensions, as these refer to them.
struct Arrays<'a> {
    group: &'a Group,
    shape: [usize; 3],
    scales: [Dataset; 3],
    uses: [Vec<Use>; 3],
}

impl<'a> Arrays<'a> {
    /// Writes the dimensions.
    fn new(group: &'a Group, dimensions: &Dimensions) -> hdf5::Result<Self> {
        let Dimensions { batch_sizes, sparsities, trials } = dimensions;
        Ok(Arrays {
            group,
            shape: [batch_sizes.len(), sparsities.len(), trials.len()],
            scales: [scale(group, c"batch_size", batch_sizes)?, scale(group, c"sparsity", sparsities)?, scale(group, c"trial", trials)?],
            uses: [const { Vec::new() }; 3],
        })
    }

    /// Writes an array of the first `dimensions` dimensions with the `i`-th of `values` at `places[i]`.
    fn write(&mut self, name: &str, dimensions: usize, values: impl Iterator<Item = f64>, places: &[usize]) -> hdf5::Result<Dataset> {
        let shape = &self.shape[..dimensions];
        let mut array = vec![f64::NAN; shape.iter().product()];
        for (value, &place) in values.zip(places) {
            array[place] = value;
        }
        let dataset = compressed(self.group.new_dataset_builder(), shape).empty::<f64>().shape(shape).create(name)?;
        dataset.write_raw(&array)?;
        numbers(&dataset, "_FillValue", &[f64::NAN])?;
        let mut lists: Vec<VarLenArray<ObjectReference1>> = Vec::new();
        for (dimension, scale) in self.scales[..dimensions].iter().enumerate() {
            lists.push([self.group.reference(&scale.name())?].into());
            self.uses[dimension].push(Use { dataset: self.group.reference(name)?, dimension: dimension as i32 });
        }
        dataset.new_attr::<VarLenArray<ObjectReference1>>().shape(lists.len()).create("DIMENSION_LIST")?.write_raw(&lists)?;
        Ok(dataset)
    }
}

/// Meaning of a column here, where NaN stands for -1.
fn meaning(column: &Column) -> String {
    column.meaning.replace("-1 where", "NaN where")
}

/// Writes the values of a dimension, which has the name of a column of `/trials`.
fn scale<T: H5Type>(group: &Group, c_name: &CStr, values: &[T]) -> hdf5::Result<Dataset> {
    let name = c_name.to_str().expect("the dimensions have names in ASCII");
    let dataset = group.new_dataset_builder().empty::<T>().shape(values.len()).create(name)?;
    dataset.write_raw(values)?;
    let column = TrialRow::COLUMNS.iter().find(|column| column.name == name).expect("the dimensions are columns of /trials");
    describe(&dataset, column.unit, column.meaning)?;
    c_text(&dataset, c"CLASS", c"DIMENSION_SCALE")?;
    c_text(&dataset, c"NAME", c_name)?;
    Ok(dataset)
}

/// Gives a dataset an attribute that is a text of the C language, ended by a NUL: HDF5 wants those of a dimension so, and the crate hdf5 makes none.
fn c_text(dataset: &Dataset, name: &CStr, value: &CStr) -> hdf5::Result<()> {
    let bytes = value.to_bytes_with_nul();
    hdf5::sync::sync(|| {
        // SAFETY: calls of HDF5 under the crate's lock, with identifiers and texts that live here; the text has as many bytes as the type. HDF5
        // refuses an identifier that an earlier call failed to make.
        unsafe {
            let kind = h5t::H5Tcopy(*hdf5::globals::H5T_C_S1);
            let sized = h5t::H5Tset_size(kind, bytes.len());
            let space = h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR);
            let attribute = h5a::H5Acreate2(dataset.id(), name.as_ptr(), kind, space, h5p::H5P_DEFAULT, h5p::H5P_DEFAULT);
            let written = if sized >= 0 { h5a::H5Awrite(attribute, kind, bytes.as_ptr().cast()) } else { sized };
            // Before the next calls clear it.
            let result = if written >= 0 { Ok(()) } else { Err(hdf5::Error::query().unwrap_or_else(|error| error)) };
            h5a::H5Aclose(attribute);
            h5s::H5Sclose(space);
            h5t::H5Tclose(kind);
            result
        }
    })
}

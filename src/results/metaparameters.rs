//! The group `/metaparameters`: a column of numbers for each metaparameter that any trial has, row i of which belongs to row i of `/trials`.

use hdf5::File;
use hdf5::types::{FloatSize, TypeDescriptor};

use super::attributes::Found;
use crate::optimizer::{Metaparameter, Metaparameters};
use crate::reader::MOST_INFLATED;

/// Path of the table in the file.
pub(super) const PATH: &str = "metaparameters";

/// The metaparameters of each of so many rows of `/trials`, in a file of so many bytes.
pub(super) fn read(file: &File, bytes: u64, trials: usize) -> Found<Vec<Metaparameters>> {
    if (trials as u64).saturating_mul(size_of::<Metaparameters>() as u64) > bytes.saturating_mul(MOST_INFLATED) {
        return Err(format!("damaged: it is too short for the metaparameters of {trials} trials"));
    }
    let group = file.group(PATH).map_err(|_| format!("damaged: it has no group /{PATH}"))?;
    let names = group.member_names().map_err(|_| format!("damaged: the group /{PATH} cannot be listed"))?;
    let mut all = vec![Metaparameters::default(); trials];
    for text in names {
        let shown: String = text.chars().take(40).filter(|letter| !letter.is_control()).collect();
        let damaged = |what: &str| format!("damaged: the dataset /{PATH}/{shown} {what}");
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

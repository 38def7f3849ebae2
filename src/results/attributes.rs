//! What tables and arrays of the file have in common: chunks, and attributes of texts and numbers.

use hdf5::types::{TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, DatasetBuilder, Extents, H5Type, Location};

use super::schema::{TEXT_BYTES, Text, exactly};

/// Rows or numbers of a chunk at most: a chunk of /curves is then 256 KiB, which fits HDF5's default chunk cache of 1 MiB.
const CHUNK_ROWS: usize = 16_384;

/// A dataset of so many numbers or rows in each dimension: in chunks that are compressed where this HDF5 can, each with a checksum.
pub(super) fn compressed(mut builder: DatasetBuilder, shape: &[usize]) -> DatasetBuilder {
    if shape.iter().all(|&len| len > 0) {
        let mut rows = CHUNK_ROWS;
        let mut chunk = shape.to_vec();
        for len in chunk.iter_mut().rev() {
            *len = rows.min(*len);
            rows = (rows / *len).max(1);
        }
        builder = builder.chunk(chunk);
        if hdf5::filters::deflate_available() {
            builder = builder.shuffle().deflate(4);
        }
        builder = builder.fletcher32();
    }
    builder
}

/// Gives a dataset of numbers its unit, where it has one, and its meaning.
pub(super) fn describe(dataset: &Dataset, unit: &str, meaning: &str) -> hdf5::Result<()> {
    if !unit.is_empty() {
        texts(dataset, "units", (), &[unit])?;
    }
    texts(dataset, "long_name", (), &[meaning])
}

/// Writes an attribute that this program reads back: a text of fixed length, because HDF5 1.10 crashes on a damaged one of variable length.
pub(super) fn text(at: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    let fixed: Option<Text> = exactly(value);
    let fixed = fixed.ok_or_else(|| hdf5::Error::from(format!("{name} has a NUL character or more than {TEXT_BYTES} bytes")))?;
    // No type of length 0 exists; the padding, NUL, is not part of the text.
    let kind = TypeDescriptor::FixedUnicode(value.len().max(1));
    at.new_attr_builder().empty_as(&kind).create(name)?.write_scalar(&fixed)
}

/// Writes an attribute of texts that this program does not read back: they have variable length, which h5py reads as `str`.
pub(super) fn texts(at: &Location, name: &str, shape: impl Into<Extents>, values: &[&str]) -> hdf5::Result<()> {
    let values = values.iter().map(|value| value.parse()).collect::<std::result::Result<Vec<VarLenUnicode>, _>>();
    let values = values.map_err(|_| hdf5::Error::from(format!("{name} has a NUL character")))?;
    at.new_attr::<VarLenUnicode>().shape(shape).create(name)?.write_raw(&values)
}

/// Writes an attribute that is a list of numbers.
pub(super) fn numbers<T: H5Type>(at: &Location, name: &str, values: &[T]) -> hdf5::Result<()> {
    at.new_attr::<T>().shape(values.len()).create(name)?.write_raw(values)
}

/// Writes an attribute that is a number.
pub(super) fn number<T: H5Type>(at: &Location, name: &str, value: T) -> hdf5::Result<()> {
    at.new_attr::<T>().create(name)?.write_scalar(&value)
}

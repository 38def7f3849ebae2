//! Code that groups, tables and arrays of the file share: chunks, and attributes of texts and numbers. A group of attributes is declared once, with
//! [`attributes!`].

use hdf5::types::{FixedUnicode, TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, DatasetBuilder, Extents, H5Type, Location};

use super::codes::exactly;
use crate::reader::{has_deflate, one_line};

/// Bytes a text may have: an attribute in an object's header has at most 64 KiB.
const TEXT_BYTES: usize = 32_768;

/// Bytes that the text of a configuration may have.
pub const LONGEST_CONFIGURATION: usize = TEXT_BYTES;

/// A text as it passes in and out of the file, where it has the length it needs. Texts of variable length would be kept in HDF5's
/// global heap, which has no checksum, and one damaged byte there crashes HDF5 1.10.
type Text = FixedUnicode<TEXT_BYTES>;

/// A value read from a file, or what is wrong with the file, in words that follow its name.
pub(super) type Found<T> = std::result::Result<T, String>;

/// A group whose attributes are a value's fields.
pub(super) trait Attributes: Sized {
    /// Path in the file.
    const PATH: &'static str;

    fn write(&self, at: &Location) -> hdf5::Result<()>;

    fn read(at: &Location) -> Found<Self>;

    /// Takes in the attributes of another part of the study, each as it is declared.
    fn join(&mut self, other: &Self);

    /// A table of the page of results: a line an attribute.
    fn described() -> (&'static str, String);
}

/// Declares a group of attributes: its type, its path, and for each attribute its name, type and meaning, whether files of earlier programs lack it
/// (`optional`: it is then the type's default), and by which function it is joined with that of another part of the study. Fields that are no
/// attributes follow after a semicolon.
macro_rules! attributes {
    ($(#[$about:meta])* $name:ident, $path:literal {
        $($field:ident: $kind:ty $([$optional:ident])? = $meaning:literal => $join:expr),+ $(,)?
        $(; $(#[$about_other:meta])* $other:ident: $other_kind:ty)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        pub struct $name { $(#[doc = $meaning] pub $field: $kind,)+ $($(#[$about_other])* pub $other: $other_kind)? }

        impl $crate::results::attributes::Attributes for $name {
            const PATH: &'static str = $path;

            fn write(&self, at: &hdf5::Location) -> hdf5::Result<()> {
                $($crate::results::attributes::Attribute::write(&self.$field, at, stringify!($field))?;)+
                Ok(())
            }

            fn read(at: &hdf5::Location) -> $crate::results::attributes::Found<Self> {
                Ok($name {
                    $($field: match [$(stringify!($optional),)? ""][0] {
                        "optional" if at.attr(stringify!($field)).is_err() => Default::default(),
                        _ => $crate::results::attributes::Attribute::read(at, stringify!($field))?,
                    },)+
                    $($other: Default::default())?
                })
            }

            fn join(&mut self, other: &Self) {
                $(($join)(&mut self.$field, &other.$field);)+
            }

            fn described() -> (&'static str, String) {
                let lines = [$((stringify!($field), <$kind as $crate::results::attributes::Attribute>::KIND, $meaning)),+]
                    .map(|(name, kind, meaning)| format!("| `{name}` | {kind} | {meaning} |\n"));
                ($path, format!("| attribute of `/{}` | type | meaning |\n|---|---|---|\n{}", $path, lines.concat()))
            }
        }
    };
}

pub(super) use attributes;

/// A type that an attribute can have.
pub(super) trait Attribute: Sized {
    /// The type's name for readers.
    const KIND: &'static str;

    fn write(&self, at: &Location, name: &str) -> hdf5::Result<()>;

    fn read(at: &Location, name: &str) -> Found<Self>;
}

macro_rules! numbers {
    ($($kind:ident),+) => { $(impl Attribute for $kind {
        const KIND: &'static str = stringify!($kind);

        fn write(&self, at: &Location, name: &str) -> hdf5::Result<()> {
            at.new_attr::<$kind>().create(name)?.write_scalar(self)
        }

        fn read(at: &Location, name: &str) -> Found<Self> {
            scalar(at, name, |kind| *kind == $kind::type_descriptor())
        }
    })+ };
}

numbers!(u8, u32, f64);

/// An attribute that only some files have.
impl<T: Attribute> Attribute for Option<T> {
    const KIND: &'static str = T::KIND;

    fn write(&self, at: &Location, name: &str) -> hdf5::Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.write(at, name))
    }

    fn read(at: &Location, name: &str) -> Found<Self> {
        T::read(at, name).map(Some)
    }
}

/// A text of fixed length, because HDF5 1.10 crashes on a damaged one of variable length.
impl Attribute for String {
    const KIND: &'static str = "UTF-8";

    fn write(&self, at: &Location, name: &str) -> hdf5::Result<()> {
        let fixed: Option<Text> = exactly(self);
        let fixed = fixed.ok_or_else(|| hdf5::Error::from(format!("{name} has a NUL character or more than {TEXT_BYTES} bytes")))?;
        // No type of length 0 exists; the padding, NUL, is not part of the text.
        let kind = TypeDescriptor::FixedUnicode(self.len().max(1));
        at.new_attr_builder().empty_as(&kind).create(name)?.write_scalar(&fixed)
    }

    fn read(at: &Location, name: &str) -> Found<Self> {
        let value: Text = scalar(at, name, |kind| matches!(kind, TypeDescriptor::FixedUnicode(1..=TEXT_BYTES)))?;
        String::from_utf8(value.as_bytes().to_vec()).map_err(|_| format!("damaged: the attribute {name} is not UTF-8 text"))
    }
}

/// A scalar attribute of a type that is `expected`.
fn scalar<T: H5Type>(at: &Location, name: &str, expected: impl Fn(&TypeDescriptor) -> bool) -> Found<T> {
    let attribute = at.attr(name).map_err(|_| format!("damaged: {} has no attribute {name}", at.name()))?;
    let damaged = |error| format!("damaged: the attribute {name} cannot be read ({})", one_line(&error));
    if !attribute.dtype().and_then(|kind| kind.to_descriptor()).is_ok_and(|kind| expected(&kind)) {
        return Err(format!("damaged: the attribute {name} has another type than its schema version"));
    }
    attribute.read_scalar().map_err(damaged)
}

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
        if has_deflate() {
            builder = builder.shuffle().deflate(4);
        }
        builder = builder.fletcher32();
    }
    builder
}

/// Gives a dataset of numbers its unit, where it has one, and its meaning.
pub(super) fn describe(dataset: &Dataset, unit: &str, meaning: &str) -> hdf5::Result<()> {
    if !unit.is_empty() {
        text(dataset, "units", unit)?;
    }
    text(dataset, "long_name", meaning)
}

/// Writes an attribute that is one text, as [`texts`] does several.
pub(super) fn text(at: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    texts(at, name, (), &[value])
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

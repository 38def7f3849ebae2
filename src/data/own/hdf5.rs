//! Datasets of an HDF5 file.

use std::path::Path;

use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{Dataset, File, Group, LinkType};

use super::array::Header;
use super::element::{Element, refused};
use super::found::Found;
use crate::error::locked;

/// Groups in groups that are looked into.
const DEEPEST: usize = 2;
/// Datasets and groups that are looked at.
const MOST: usize = 1_000;

/// An open dataset.
pub(super) struct Table {
    dataset: Dataset,
}

/// The datasets of a file, by their paths.
pub(super) fn datasets(path: &Path) -> Found<Vec<String>> {
    let mut names = Vec::new();
    let file = open(path)?;
    list(&file, "", 0, &mut names)?;
    Ok(names)
}

fn list(group: &Group, prefix: &str, depth: usize, names: &mut Vec<String>) -> Found<()> {
    let mut links = Vec::new();
    let visited = group.iter_visit_default(|name, link| {
        links.push((name.to_owned(), link.link_type));
        Ok(())
    });
    visited.map_err(|error| words("its groups cannot be listed", &error))?;
    for (name, link) in links {
        // A link may lead to another file, or to a pipe.
        if link != LinkType::Hard || names.len() >= MOST || name.contains(char::is_control) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if let Ok(inner) = group.group(&name) {
            if depth < DEEPEST {
                list(&inner, &format!("{path}/"), depth + 1, names)?;
            }
        } else if group.dataset(&name).is_ok() {
            names.push(path);
        }
    }
    Ok(())
}

fn open(path: &Path) -> Found<File> {
    File::open(path).map_err(|error| {
        let locked = locked(&error.to_string()).map(str::to_owned);
        locked.unwrap_or_else(|| words("expected an HDF5 file, found one that is damaged", &error))
    })
}

fn words(what: &str, error: &hdf5::Error) -> String {
    format!("{what} ({}); write it again", error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

impl Table {
    pub fn open(path: &Path, name: &str) -> Found<Table> {
        let dataset = open(path)?.dataset(name).map_err(|error| words("the dataset cannot be opened", &error))?;
        let plan = dataset.dcpl().map_err(|error| words("the dataset cannot be opened", &error))?;
        let is_elsewhere = plan.get_external().map_or(true, |files| !files.is_empty());
        if is_elsewhere || matches!(plan.get_layout(), Ok(hdf5::plist::dataset_create::Layout::Virtual) | Err(_)) {
            return Err("expected values in the file itself, found them in other files; copy them into one".to_owned());
        }
        Ok(Table { dataset })
    }

    pub fn header(&self) -> Found<Header> {
        let kind =
            self.dataset.dtype().and_then(|kind| kind.to_descriptor()).map_err(|error| words("its values have an unknown type", &error))?;
        let element = match kind {
            TypeDescriptor::Unsigned(IntSize::U1) => Element::U8,
            TypeDescriptor::Unsigned(IntSize::U2) => Element::U16,
            TypeDescriptor::Unsigned(IntSize::U4) => Element::U32,
            TypeDescriptor::Unsigned(IntSize::U8) => Element::U64,
            TypeDescriptor::Integer(IntSize::U1) => Element::I8,
            TypeDescriptor::Integer(IntSize::U2) => Element::I16,
            TypeDescriptor::Integer(IntSize::U4) => Element::I32,
            TypeDescriptor::Integer(IntSize::U8) => Element::I64,
            TypeDescriptor::Float(FloatSize::U4) => Element::F32,
            TypeDescriptor::Float(FloatSize::U8) => Element::F64,
            TypeDescriptor::Boolean => Element::Bool,
            other => return Err(refused(&other.to_string())),
        };
        let extents = self.dataset.shape().into_iter().map(|extent| extent as u64).collect();
        Ok(Header { extents, element, is_big_endian: false, is_fortran: false })
    }

    /// Bytes that the values take in the file.
    pub fn stored_bytes(&self) -> u64 {
        self.dataset.storage_size()
    }

    /// All values, little-endian.
    pub fn bytes(&self, element: Element) -> Found<Vec<u8>> {
        fn bytes<T: hdf5::H5Type, const N: usize>(dataset: &Dataset, bytes: impl Fn(T) -> [u8; N]) -> hdf5::Result<Vec<u8>> {
            Ok(dataset.read_raw::<T>()?.into_iter().flat_map(bytes).collect())
        }
        let data = &self.dataset;
        let read = match element {
            Element::U8 => data.read_raw(),
            Element::Bool => bytes(data, |value: bool| [value.into()]),
            Element::I8 => bytes(data, i8::to_le_bytes),
            Element::U16 | Element::F16 => bytes(data, u16::to_le_bytes),
            Element::I16 => bytes(data, i16::to_le_bytes),
            Element::U32 => bytes(data, u32::to_le_bytes),
            Element::I32 => bytes(data, i32::to_le_bytes),
            Element::U64 => bytes(data, u64::to_le_bytes),
            Element::I64 => bytes(data, i64::to_le_bytes),
            Element::F32 => bytes(data, f32::to_le_bytes),
            Element::F64 => bytes(data, f64::to_le_bytes),
        };
        read.map_err(|error| words("its values cannot be read", &error))
    }
}

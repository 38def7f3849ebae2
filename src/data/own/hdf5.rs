//! Datasets of an HDF5 file. The process that reads the file (`src/reader`) lists them, each with its type and extents, and hands on the
//! bytes of one.

use std::io::{self, Read};
use std::path::Path;

use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, Datatype, File, Group, LinkInfo, LinkType};
use hdf5_sys::h5l::H5Lget_val;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::h5t::{self, H5T_class_t, H5T_order_t, H5T_sign_t};
use serde::{Deserialize, Serialize};

use super::found::{Found, unread};
use crate::reader::{self, Problem, Task, one_line};

/// Depth of groups down to which arrays are read.
const DEEPEST: usize = 2;
/// Depth of groups down to which deeper arrays are looked for, to be refused by name.
const DEEPEST_NAMED: usize = 8;
/// Links that are looked at.
const MOST: usize = 10_000;
/// Soft links that are followed from one to the next.
const MOST_FOLLOWED: usize = 16;
/// Bytes of a link's text.
const LONGEST_LINK: usize = 4_096;

/// A dataset, or what should be one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Table {
    /// Path of the array in the file.
    pub name: String,
    /// Kind of the dataset, or why it cannot be read.
    pub about: Found<About>,
}

/// Type, extents and size of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct About {
    /// NumPy's code of the type of its values, as `<f4`; of what NumPy has no code for, or what is no number, a word.
    pub code: String,
    pub extents: Vec<u64>,
    /// Bytes that the values take in the file.
    pub stored: u64,
}

/// The datasets of a file, and what should be one but cannot be read, in the order of their names.
pub(super) fn tables(path: &Path) -> Found<Vec<Table>> {
    let mut listed = Vec::new();
    reader::ask(&READING, path, "")?.read_to_end(&mut listed).map_err(|error| unread(&error))?;
    postcard::from_bytes(&listed).map_err(|error| format!("its datasets cannot be listed ({error}); write it again"))
}

/// Reads an HDF5 file for `tables`, or the values of the dataset that is named.
pub const READING: Task = Task {
    name: "data",
    act: |path, name, output| {
        let file = reader::open(path)?;
        let handed = |error: io::Error| format!("what was read cannot be handed on ({error}); try again");
        if name.is_empty() {
            let mut listing = Listing { file: &file, tables: Vec::new(), seen: 0 };
            listing.list(&[], "", 0)?;
            return output.write_all(&postcard::to_stdvec(&listing.tables).map_err(|error| error.to_string())?).map_err(handed);
        }
        let dataset = dataset(&file, name)?;
        reader::write_values(&dataset, output)
    },
};

/// The values of a dataset, read once they are asked for.
pub(super) struct Values<'a> {
    path: &'a Path,
    name: &'a str,
    answer: Option<Box<dyn Read>>,
}

impl<'a> Values<'a> {
    pub fn new(path: &'a Path, table: &'a Table) -> Self {
        Values { path, name: &table.name, answer: None }
    }
}

impl Read for Values<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.answer.is_none() {
            self.answer = Some(reader::ask(&READING, self.path, self.name).map_err(|words| io::Error::other(Problem(words)))?);
        }
        self.answer.as_mut().map_or(Ok(0), |answer| answer.read(buffer))
    }
}

/// The datasets found so far.
struct Listing<'a> {
    file: &'a File,
    tables: Vec<Table>,
    seen: usize,
}

impl Listing<'_> {
    /// Lists the group at a path of hard links. `prefix` is the path by which it was found, of `depth` names.
    fn list(&mut self, group: &[String], prefix: &str, depth: usize) -> Found<()> {
        for (name, LinkInfo { link_type: kind, .. }) in links(&open_group(self.file, group)?)? {
            self.seen += 1;
            if self.seen > MOST {
                return Err(format!(
                    "expected at most {MOST} datasets and groups, found more; copy the images and labels into a file of their own"
                ));
            }
            if name.contains(char::is_control) {
                continue;
            }
            let shown = format!("{prefix}{name}");
            match end_of(self.file, group, &name, kind, &mut 0) {
                Err(problem) => self.tables.push(Table { name: shown, about: Err(problem) }),
                Ok(place) => match object(self.file, &place) {
                    Ok(Object::Group) if depth < if kind == LinkType::Hard { DEEPEST_NAMED } else { DEEPEST } => {
                        self.list(&place, &format!("{shown}/"), depth + 1)?;
                    }
                    Ok(Object::Group | Object::Type) => {}
                    Ok(Object::Dataset(dataset)) => {
                        let about = match depth {
                            0..=DEEPEST => about(&dataset),
                            _ => Err(format!("expected images and labels at most {DEEPEST} groups deep, found {depth}; move them up")),
                        };
                        self.tables.push(Table { name: shown, about });
                    }
                    Err(problem) => self.tables.push(Table { name: shown, about: Err(problem) }),
                },
            }
        }
        Ok(())
    }
}

/// Object that a link leads to.
enum Object {
    Group,
    Dataset(Dataset),
    /// A type with a name, which holds no values.
    Type,
}

fn object(file: &File, place: &[String]) -> Found<Object> {
    let path = place.join("/");
    if place.is_empty() || file.group(&path).is_ok() {
        return Ok(Object::Group);
    }
    match file.dataset(&path) {
        Ok(dataset) => Ok(Object::Dataset(dataset)),
        Err(_) if file.committed_datatype(&path).is_ok() => Ok(Object::Type),
        Err(error) => {
            let (major, minor, patch) = ::hdf5::library_version();
            Err(format!(
                "HDF5 {major}.{minor}.{patch} cannot open it ({}): it is damaged or of a newer format; write it again, in h5py with \
                 h5py.File(…, libver=(\"earliest\", \"v110\"))",
                one_line(&error)
            ))
        }
    }
}

fn open_group(file: &File, place: &[String]) -> Found<Group> {
    let path = if place.is_empty() { "/".to_owned() } else { place.join("/") };
    file.group(&path).map_err(|error| format!("the group {path} cannot be opened ({}); write it again", one_line(&error)))
}

fn links(group: &Group) -> Found<Vec<(String, LinkInfo)>> {
    let links = group.links(Default::default(), Default::default());
    links.map_err(|error| format!("its groups cannot be listed ({}); write it again", one_line(&error)))
}

/// Where a link of a group leads, as a path of hard links from the root: HDF5 itself would follow links on the way into other files.
fn end_of(file: &File, group: &[String], name: &str, kind: LinkType, followed: &mut usize) -> Found<Vec<String>> {
    match kind {
        LinkType::Hard => Ok([group, &[name.to_owned()]].concat()),
        LinkType::External => Err("expected values in the file itself, found a link to another file; copy them into one".to_owned()),
        LinkType::Soft => {
            *followed += 1;
            if *followed > MOST_FOLLOWED {
                return Err("expected a link that leads to values, found one that leads on and on; write it again".to_owned());
            }
            let target = target(&open_group(file, group)?, name)?;
            let mut place = if target.starts_with('/') { Vec::new() } else { group.to_vec() };
            for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
                let nowhere = || {
                    let target: String = target.chars().filter(|letter| !letter.is_control()).take(60).collect();
                    format!("expected a link that leads to values, found that {target} is not there; write it again")
                };
                let found = links(&open_group(file, &place).map_err(|_| nowhere())?)?;
                let kind = found.into_iter().find(|(name, _)| name == part).ok_or_else(nowhere)?.1.link_type;
                place = end_of(file, &place, part, kind, followed)?;
            }
            Ok(place)
        }
    }
}

/// The text of a soft link.
fn target(group: &Group, name: &str) -> Found<String> {
    let unread = || "expected a soft link, found one that cannot be read; write it again".to_owned();
    let name = std::ffi::CString::new(name).map_err(|_| unread())?;
    let mut text = vec![0_u8; LONGEST_LINK];
    // SAFETY: the identifier is an open group, the name ends with a zero, and HDF5 writes no more than the length that it is told.
    let read = hdf5::sync::sync(|| unsafe { H5Lget_val(group.id(), name.as_ptr(), text.as_mut_ptr().cast(), text.len(), H5P_DEFAULT) });
    let end = text.iter().position(|&byte| byte == 0).filter(|_| read >= 0).ok_or_else(unread)?;
    String::from_utf8(text[..end].to_vec()).map_err(|_| unread())
}

/// The dataset of a name that [`tables`] has listed.
fn dataset(file: &File, name: &str) -> Found<Dataset> {
    let mut place = Vec::new();
    for part in name.split('/') {
        let found = links(&open_group(file, &place)?)?;
        let gone = || "the dataset is not there any more; try again".to_owned();
        let kind = found.into_iter().find(|(name, _)| name == part).ok_or_else(gone)?.1.link_type;
        place = end_of(file, &place, part, kind, &mut 0)?;
    }
    let Object::Dataset(dataset) = object(file, &place)? else {
        return Err("expected a dataset, found a group; write it again".to_owned());
    };
    about(&dataset)?;
    Ok(dataset)
}

fn about(dataset: &Dataset) -> Found<About> {
    reader::has_own_values(dataset)?;
    reader::is_readable(dataset)?;
    let kind = dataset.dtype().map_err(|error| format!("its values have an unknown type ({}); write it again", one_line(&error)))?;
    let extents = dataset.shape().into_iter().map(|extent| extent as u64).collect();
    Ok(About { code: code(&kind), extents, stored: dataset.storage_size() })
}

/// The code of a type, as [`About`] has it.
fn code(datatype: &Datatype) -> String {
    let kind = datatype.id();
    let is_bool = || datatype.to_descriptor().is_ok_and(|found| found == TypeDescriptor::Boolean);
    // SAFETY: the identifier is an open type; all places are there for longer than the calls take.
    hdf5::sync::sync(|| unsafe {
        let bytes = h5t::H5Tget_size(kind);
        let order = match h5t::H5Tget_order(kind) {
            H5T_order_t::H5T_ORDER_BE => '>',
            H5T_order_t::H5T_ORDER_LE if bytes > 1 => '<',
            _ => '|',
        };
        let is_full = || h5t::H5Tget_precision(kind) == 8 * bytes && h5t::H5Tget_offset(kind) == 0;
        match h5t::H5Tget_class(kind) {
            H5T_class_t::H5T_INTEGER if is_full() => {
                let sign = if h5t::H5Tget_sign(kind) == H5T_sign_t::H5T_SGN_NONE { 'u' } else { 'i' };
                format!("{order}{sign}{bytes}")
            }
            H5T_class_t::H5T_FLOAT => {
                let mut places = [0; 5];
                let [sign, exponent, exponents, fraction, fractions] = places.each_mut().map(|place| &raw mut *place);
                let is_read = h5t::H5Tget_fields(kind, sign, exponent, exponents, fraction, fractions) >= 0;
                let ieee: [(usize, [usize; 5], usize); 3] =
                    [(2, [15, 10, 5, 0, 10], 15), (4, [31, 23, 8, 0, 23], 127), (8, [63, 52, 11, 0, 52], 1_023)];
                match ieee.contains(&(bytes, places, h5t::H5Tget_ebias(kind))) && is_read && is_full() {
                    true => format!("{order}f{bytes}"),
                    false => format!("|other floats of {bytes}"),
                }
            }
            // h5py writes bool so.
            H5T_class_t::H5T_ENUM if bytes == 1 && h5t::H5Tget_nmembers(kind) == 2 && is_bool() => "|b1".to_owned(),
            H5T_class_t::H5T_STRING => "|text".to_owned(),
            H5T_class_t::H5T_COMPOUND => "|compound".to_owned(),
            H5T_class_t::H5T_ENUM => "|enumeration".to_owned(),
            _ => "|no plain number".to_owned(),
        }
    })
}

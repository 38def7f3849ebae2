//! Where an array is: in a file of its own, in an .npz file or in an HDF5 file; and how it is read from there.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zip::{CompressionMethod, ZipArchive};

use super::array::Header;
use super::found::{Found, unread};
use super::hdf5::Table;
use super::{hdf5, idx, npy};
use crate::data::contents::{decompressed, is_gzip};
use crate::data::section::DataLayout;
use crate::data::{ImageShape, Pixels};
use crate::{Error, Result};

/// Where an array is.
#[derive(Debug, Clone)]
pub(super) struct ArrayPlace {
    pub file: PathBuf,
    pub format: Format,
}

/// The format of an array's file, and which of its arrays it is.
#[derive(Debug, Clone)]
pub(super) enum Format {
    /// An IDX file, gzipped or not.
    Idx,
    /// A .npy file.
    Npy,
    /// An .npz archive, and the array's name in it.
    Npz(String),
    /// An HDF5 file.
    Hdf5(Table),
}

/// Bytes of values up to which any ratio of compression is believed.
const UNSUSPICIOUS: u64 = 1 << 28;
/// Most bytes of values for each stored byte, of arrays larger than [`UNSUSPICIOUS`].
const MOST_INFLATED: u64 = 100;

impl ArrayPlace {
    /// The array's name in a file of named arrays.
    fn name(&self) -> Option<&str> {
        match &self.format {
            Format::Idx | Format::Npy => None,
            Format::Npz(name) | Format::Hdf5(Table { name, .. }) => Some(name),
        }
    }

    /// The name of the file.
    pub fn file_name(&self) -> Cow<'_, str> {
        self.file.file_name().unwrap_or_default().to_string_lossy()
    }

    /// The array's name, with its file's where there are several `files` of named arrays.
    pub fn shown(&self, files: &[PathBuf]) -> String {
        let name = self.name().filter(|_| files.len() > 1);
        name.map_or_else(|| self.to_string(), |name| format!("{} {name}", self.file_name()))
    }

    /// The error that says `problem` of the array.
    pub fn error(&self, problem: String) -> Error {
        let problem = if let Some(name) = self.name() { format!("{name}: {problem}") } else { problem };
        Error::Data { path: self.file.clone(), problem }
    }

    /// Header of the array.
    pub fn header(&self) -> Result<Header> {
        self.with_values(|header, _| Ok(header)).map_err(|problem| self.error(problem))
    }

    /// The header of images, their number, and the extents of one image.
    pub fn image_header(&self, layout: Option<DataLayout>) -> Result<(Header, usize, ImageShape)> {
        let header = self.header()?;
        let (count, shape) = header.images(layout).map_err(|problem| self.error(problem))?;
        Ok((header, count, shape))
    }

    /// The images, `[n][rows][columns][channels]`, and their extents.
    pub fn images(&self, layout: Option<DataLayout>) -> Result<(Pixels, ImageShape)> {
        let read = self.with_values(|header, Values { reader, stored, is_compressed }| {
            let (_, shape) = header.images(layout)?;
            is_plausible(header.bytes(), stored, is_compressed)?;
            Ok((header.read_images(reader, layout)?, shape))
        });
        read.map_err(|problem| self.error(problem))
    }

    /// The labels.
    pub fn labels(&self) -> Result<Vec<u16>> {
        let read = self.with_values(|header, Values { reader, stored, is_compressed }| {
            header.labels()?;
            is_plausible(header.bytes(), stored, is_compressed)?;
            header.read_labels(reader)
        });
        read.map_err(|problem| self.error(problem))
    }

    /// Opens an array, past its header.
    fn with_values<T>(&self, act: impl FnOnce(Header, Values) -> Found<T>) -> Found<T> {
        let path = &self.file;
        match &self.format {
            Format::Idx => {
                let (mut reader, stored) = opened(path).map_err(|error| unread(&error))?;
                let is_compressed = is_gzip(reader.fill_buf().map_err(|error| unread(&error))?);
                let mut reader = decompressed(Box::new(reader)).map_err(|error| unread(&error))?;
                let header = idx::header(&mut reader)?;
                act(header, Values { reader: &mut reader, stored, is_compressed })
            }
            Format::Npy => {
                let (mut reader, stored) = opened(path).map_err(|error| unread(&error))?;
                let header = npy::header(&mut reader)?;
                act(header, Values { reader: &mut reader, stored, is_compressed: false })
            }
            Format::Npz(name) => {
                let mut archive = archive(path)?;
                let mut member = archive.by_name(&format!("{name}.npy")).map_err(|error| format!("it cannot be read ({error})"))?;
                let (stored, is_compressed) = (member.compressed_size(), member.compression() != CompressionMethod::Stored);
                let header = npy::header(&mut member)?;
                act(header, Values { reader: &mut member, stored, is_compressed })
            }
            Format::Hdf5(table) => {
                let about = table.about.clone()?;
                let length = fs::metadata(path).map_err(|error| unread(&error))?.len();
                let (element, is_big_endian) = npy::element(&about.code).ok_or_else(|| npy::refused(&about.code))?;
                let header = Header { extents: about.extents, element, is_big_endian, is_fortran: false };
                let mut reader = hdf5::Values::new(path, table);
                act(header, Values { reader: &mut reader, stored: about.stored.min(length), is_compressed: true })
            }
        }
    }
}

/// A file, and its length in bytes.
fn opened(path: &Path) -> io::Result<(BufReader<File>, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((BufReader::new(file), length))
}

/// An array's values.
struct Values<'a> {
    reader: &'a mut dyn Read,
    /// Bytes that they take in the file, or somewhat more.
    stored: u64,
    is_compressed: bool,
}

/// Refuses what a damaged header says before memory is asked for.
fn is_plausible(bytes: u64, stored: u64, is_compressed: bool) -> Found<()> {
    if !is_compressed && bytes > stored {
        return Err(format!("expected {bytes} bytes of values, as the header says, found {stored} bytes in all: the file is cut short"));
    }
    if bytes > UNSUSPICIOUS && bytes / MOST_INFLATED > stored {
        return Err(format!(
            "expected at most {MOST_INFLATED} bytes of values for each byte stored, found a header that says {bytes} for {stored}"
        ));
    }
    Ok(())
}

fn archive(path: &Path) -> Found<ZipArchive<BufReader<File>>> {
    let file = File::open(path).map_err(|error| unread(&error))?;
    let damaged = |error: String| format!("expected an .npz file, found a damaged zip archive ({error}); write it again");
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    let file = File::open(path).map_err(|error| unread(&error))?;
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|error| damaged(error.to_string()))?;
        // The header before a member's values repeats the member's name, 30 bytes from the header's beginning.
        let mut name = vec![0; member.name_raw().len()];
        let mut length = [0; 2];
        let header = member.header_start();
        let read = file.read_exact_at(&mut length, header + 26).and_then(|()| file.read_exact_at(&mut name, header + 30));
        if read.is_err() || usize::from(u16::from_le_bytes(length)) != name.len() || name != member.name_raw() {
            return Err(damaged(format!("its directory and the array itself disagree about the name {}", shown(member.name_raw()))));
        }
    }
    Ok(archive)
}

/// The beginning of a name.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().filter(|letter| !letter.is_control()).take(60).collect()
}

/// The arrays of an .npz file.
pub(super) fn arrays_of_npz(path: &Path) -> Found<Vec<String>> {
    let archive = archive(path)?;
    let names = archive.file_names().filter_map(|name| name.ok()?.strip_suffix(".npy").map(str::to_owned));
    Ok(names.filter(|name| !name.contains(char::is_control)).collect())
}

/// Writes the array as the page and `dps-train data check` name it.
impl fmt::Display for ArrayPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or(&self.file_name()))
    }
}

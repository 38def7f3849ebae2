//! HDF5 files, read in a process of their own: the HDF5 library ends by a signal, or takes gigabytes, on some damaged files.
//!
//! A program that calls [`begin`] first has each file read by a second process of the same program, with limits on memory and time; the end of that
//! process is an error of the file. A program that does not, such as one that uses this library, reads in its own process, where such a file ends it.
//!
//! The module starts that process and speaks with it (`ask`), and sees that a file has its values in itself (`open`). It does not know what the files
//! hold: `results` and `data`, which read them, each give a [`Task`].

mod chunks;
mod end;
mod file;
mod process;

pub(crate) use chunks::{is_readable, write_values};
pub(crate) use end::Problem;
pub(crate) use file::{MOST_INFLATED, has_deflate, has_own_tree, has_own_values, has_text_path, is_hdf5, open, regular};
pub(crate) use process::ask;
pub use process::{Task, begin};

/// HDF5's words for an error, which may have line breaks, in one line.
pub(crate) fn one_line(error: &hdf5::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

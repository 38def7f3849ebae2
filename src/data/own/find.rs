//! Which of the arrays at a path are the training images, the training labels, the test images and the test labels: by their names.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::found::{Found, unread};
use super::hdf5::{self, Table};
use super::place::{ArrayPlace, arrays_of_npz};
use crate::reader;

/// The arrays of a data set.
#[derive(Debug)]
pub(super) struct Places {
    /// Images and labels.
    pub training: [ArrayPlace; 2],
    /// The same of the test set, where there is one.
    pub test: Option<[ArrayPlace; 2]>,
    /// Arrays that have other names.
    pub unused: Vec<ArrayPlace>,
}

/// The names of the four arrays in files of named arrays, as [`plain`] makes them; the first that is there is taken.
const NAMES: [(&str, &[&str]); 4] = [
    ("training images", &["x_train", "train_x", "train_images", "images_train", "training_images", "images", "x"]),
    ("training labels", &["y_train", "train_y", "train_labels", "labels_train", "training_labels", "labels", "y"]),
    ("test images", &["x_test", "test_x", "test_images", "images_test"]),
    ("test labels", &["y_test", "test_y", "test_labels", "labels_test"]),
];

/// Files of a folder that are looked at.
const MOST_FILES: usize = 10_000;

/// Endings of what downloads, copies and editors leave beside a file, as do hidden names (`._x` of macOS); none of them is data.
const LEFT_OVER: [&str; 9] = [".part", ".partial", ".crdownload", ".download", ".aria2", ".tmp", ".bak", ".rejected", "~"];

/// What to do where a path does not hold what is expected.
const ADVICE: &str = "workload.dataset.path is below the data folder (--data DIR)";

/// Looks at a folder of IDX files, a folder of .npy files, an .npz file or an HDF5 file.
pub(super) fn places(path: &Path) -> Found<Places> {
    let expected = "expected a folder of IDX or .npy files, an .npz file or an HDF5 file";
    let about = fs::metadata(path).map_err(|error| format!("{expected}, found none ({error}); {ADVICE}"))?;
    if about.is_dir() {
        return folder(path);
    }
    if !about.is_file() {
        return Err(format!("{expected}, found something else; {ADVICE}"));
    }
    let file = reader::regular(path).map_err(|error| unread(&error))?;
    let mut start = Vec::new();
    (&file).take(2).read_to_end(&mut start).map_err(|error| unread(&error))?;
    let arrays: Vec<(String, ArrayPlace)> = if start == b"PK" {
        arrays_of_npz(path)?.into_iter().map(|name| (plain(&name), ArrayPlace::Npz(path.into(), name))).collect()
    } else if reader::is_hdf5(&file).map_err(|error| unread(&error))? {
        hdf5::tables(path)?.into_iter().map(|table| (plain(&table.name), ArrayPlace::Hdf5(path.into(), table))).collect()
    } else {
        return Err(format!("{expected}, found a file of another format"));
    };
    named(arrays)
}

fn folder(path: &Path) -> Found<Places> {
    let entries = fs::read_dir(path).map_err(|error| unread(&error))?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_whole = |name: &str| !name.starts_with('.') && !LEFT_OVER.iter().any(|ending| name.ends_with(ending));
    let paths = entries.take(MOST_FILES).flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file() && is_whole(&name(path))).collect();
    files.sort();
    let arrays: Vec<(String, ArrayPlace)> =
        files.iter().filter_map(|path| Some((plain(name(path).strip_suffix(".npy")?), ArrayPlace::Npy(path.clone())))).collect();
    if !arrays.is_empty() {
        return named(arrays);
    }
    let mut found: [Vec<ArrayPlace>; 4] = Default::default();
    for path in files {
        let name = name(&path);
        let (is_training, is_test) = (name.contains("train"), name.contains("test") || name.contains("t10k"));
        let (is_images, is_labels) = (name.contains("images"), name.contains("labels"));
        if name.contains("idx") && is_training != is_test && is_images != is_labels {
            found[2 * usize::from(is_test) + usize::from(is_labels)].push(ArrayPlace::Idx(path));
        }
    }
    for (places, (what, _)) in found.iter().zip(NAMES) {
        if let [one, other, ..] = places.as_slice() {
            return Err(format!("expected one IDX file of {what}, found {one} and {other}; keep one of them there"));
        }
    }
    chosen(
        found.map(|mut places| places.pop()),
        Vec::new(),
        "IDX files such as train-images-idx3-ubyte and train-labels-idx1-ubyte, or .npy files",
    )
}

/// Chooses from arrays with their plain names.
fn named(mut arrays: Vec<(String, ArrayPlace)>) -> Found<Places> {
    let found = NAMES.map(|(_, names)| {
        let place = names.iter().find_map(|name| arrays.iter().position(|(array, _)| array == name))?;
        Some(arrays.remove(place).1)
    });
    // Before what is missing is named.
    for place in found.iter().flatten() {
        if let ArrayPlace::Hdf5(_, Table { name, about: Err(problem) }) = place {
            return Err(format!("{name}: {problem}"));
        }
    }
    for ((what, names), found) in NAMES.iter().zip(&found) {
        if let (None, Some((place, problem))) = (found, arrays.iter().find_map(|(_, place)| Some((place, unreadable(place, names)?)))) {
            return Err(format!("{place}: {problem}; dps takes it for the {what}"));
        }
    }
    let unused = arrays.into_iter().map(|(_, place)| place).collect();
    chosen(found, unused, "arrays named x_train and y_train, or train_images and train_labels")
}

/// Why an array of an HDF5 file is not the one of these names, where the last part of its path says that it should be, or the group that it is in.
fn unreadable(place: &ArrayPlace, names: &[&str]) -> Option<String> {
    let ArrayPlace::Hdf5(_, Table { name, about }) = place else { return None };
    let is_looked_for = |name: &str| names.contains(&plain(name).as_str());
    let mut cuts = name.match_indices('/').map(|(cut, _)| cut);
    match about {
        Err(problem) if cuts.clone().any(|cut| is_looked_for(&name[cut + 1..])) => Some(problem.clone()),
        _ => cuts.find(|&cut| is_looked_for(&name[..cut])).map(|cut| format!("expected an array as {}, found a group", &name[..cut])),
    }
}

fn chosen([images, labels, test_images, test_labels]: [Option<ArrayPlace>; 4], unused: Vec<ArrayPlace>, expected: &str) -> Found<Places> {
    let missing = |index: usize| {
        let what = NAMES[index].0;
        if unused.is_empty() {
            return format!("expected {expected}, found no {what}; add them");
        }
        let names: Vec<String> = unused.iter().take(5).map(ArrayPlace::to_string).collect();
        format!("expected {expected}, found no {what} among {}; rename what they are", names.join(", "))
    };
    let test = match (test_images, test_labels) {
        (Some(images), Some(labels)) => Some([images, labels]),
        (None, None) => None,
        (None, _) => return Err(missing(2)),
        (_, None) => return Err(missing(3)),
    };
    match (images, labels) {
        (Some(images), Some(labels)) => Ok(Places { training: [images, labels], test, unused }),
        (None, _) => Err(missing(0)),
        (_, None) => Err(missing(1)),
    }
}

/// A name in small letters, with underscores between its words.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['/', '-', '.', ' '], "_")
}

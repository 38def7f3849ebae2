//! Which of the arrays at a path are the training images, the training labels, the test images and the test labels: by their names.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::found::{Found, unread};
use super::hdf5::{self, Table};
use super::place::{ArrayPlace, Format, arrays_of_npz};
use crate::reader;

/// The arrays of a data set.
#[derive(Debug)]
pub(super) struct Places {
    /// Images and labels.
    pub training: [ArrayPlace; 2],
    /// Images and labels of a validation set, where there is one.
    pub validation: Option<[ArrayPlace; 2]>,
    /// Images and labels of the test set, where there is one.
    pub test: Option<[ArrayPlace; 2]>,
    /// Arrays that have other names.
    pub unused: Vec<ArrayPlace>,
}

impl Places {
    /// Images and labels of each set that there is, the training set first.
    pub fn sets(&self) -> impl Iterator<Item = &[ArrayPlace; 2]> {
        [Some(&self.training), self.validation.as_ref(), self.test.as_ref()].into_iter().flatten()
    }
}

/// The sets, and the words for each in the names of arrays.
const SETS: [(&str, &[&str]); 3] =
    [("training", &["train", "training"]), ("validation", &["val", "valid", "validation", "dev"]), ("test", &["test"])];

/// Arrays of a set: how names of each are made with the word for the set (`*`), and its names where the file or its folder names no set.
const ARRAYS: [(&str, [&str; 5], [&str; 2]); 2] = [
    ("images", ["x_*", "*_x", "*_images", "images_*", "*_set_x"], ["images", "x"]),
    ("labels", ["y_*", "*_y", "*_labels", "labels_*", "*_set_y"], ["labels", "y"]),
];

/// Arrays of a data set: images and labels of each of [`SETS`].
type Roles<T> = [[T; 2]; 3];

/// The names of an array in files of named arrays, as [`plain`] makes them; the first that is there is taken.
fn names(set: usize, array: usize) -> Vec<String> {
    let (_, patterns, alone) = ARRAYS[array];
    let mut names: Vec<String> = SETS[set].1.iter().flat_map(|word| patterns.map(|pattern| pattern.replace('*', word))).collect();
    if set == 0 {
        names.extend(alone.map(str::to_owned));
    }
    names
}

/// Most files of a folder of data.
const MOST_FILES: usize = 10_000;

/// Endings of what downloads, copies and editors leave beside a file, as do hidden names (`._x` of macOS); none of them is data.
const LEFT_OVER: [&str; 9] = [".part", ".partial", ".crdownload", ".download", ".aria2", ".tmp", ".bak", ".rejected", "~"];

/// Advice where a path does not hold what is expected.
const ADVICE: &str = "correct workload.dataset.path, which begins at the data folder (--data DIR) unless it is absolute";

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
    let arrays = arrays(path)?.ok_or_else(|| format!("{expected}, found a file of another format; save the arrays by numpy.savez"))?;
    named(path, arrays)
}

/// The arrays of an .npz file or an HDF5 file, with their plain names; none of another file.
fn arrays(path: &Path) -> Found<Option<Vec<(String, ArrayPlace)>>> {
    let file = reader::regular(path).map_err(|error| unread(&error))?;
    let mut start = Vec::new();
    (&file).take(2).read_to_end(&mut start).map_err(|error| unread(&error))?;
    let place = |format| ArrayPlace { file: path.into(), format };
    Ok(if start == b"PK" {
        Some(arrays_of_npz(path)?.into_iter().map(|name| (plain(&name), place(Format::Npz(name)))).collect())
    } else if reader::is_hdf5(&file).map_err(|error| unread(&error))? {
        Some(hdf5::tables(path)?.into_iter().map(|table| (plain(&table.name), place(Format::Hdf5(table)))).collect())
    } else {
        None
    })
}

fn folder(path: &Path) -> Found<Places> {
    let entries = fs::read_dir(path).map_err(|error| unread(&error))?;
    let place = |file: &PathBuf, format| ArrayPlace { file: file.clone(), format };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_whole = |name: &str| !name.starts_with('.') && !LEFT_OVER.iter().any(|ending| name.ends_with(ending));
    let paths: Vec<PathBuf> = entries.take(MOST_FILES + 1).flatten().map(|entry| entry.path()).collect();
    if paths.len() > MOST_FILES {
        return Err(format!("expected at most {MOST_FILES} files in the folder, found more; put the arrays into a folder of their own"));
    }
    let mut files: Vec<PathBuf> = paths.into_iter().filter(|path| path.is_file() && is_whole(&name(path))).collect();
    files.sort();
    let npys: Vec<(String, ArrayPlace)> =
        files.iter().filter_map(|path| Some((plain(name(path).strip_suffix(".npy")?), place(path, Format::Npy)))).collect();
    if !npys.is_empty() {
        return named(path, npys);
    }
    let mut idx: Roles<Vec<ArrayPlace>> = Default::default();
    for file in &files {
        let name = name(file);
        let (is_training, is_test) = (name.contains("train"), name.contains("test") || name.contains("t10k"));
        let set = match (is_training, is_test) {
            (true, false) => Some(0),
            (false, true) => Some(2),
            (false, false) => set_of(&name).filter(|&set| set == 1),
            (true, true) => None,
        };
        let (is_images, is_labels) = (name.contains("images"), name.contains("labels"));
        if let (Some(set), true, true) = (set, name.contains("idx"), is_images != is_labels) {
            idx[set][usize::from(is_labels)].push(place(file, Format::Idx));
        }
    }
    for (set, array) in roles() {
        if let [one, other, ..] = idx[set][array].as_slice() {
            return Err(format!("expected one IDX file of {}, found {one} and {other}; keep one of them there", what(set, array)));
        }
    }
    if idx.iter().flatten().any(|places| !places.is_empty()) {
        return chosen(path, idx.map(|set| set.map(|mut places| places.pop())), Vec::new());
    }
    let mut all = Vec::new();
    for file in files.iter().filter(|file| [".npz", ".h5", ".hdf5"].iter().any(|ending| name(file).ends_with(ending))) {
        let set = set_of(&name(file));
        let found = arrays(file).map_err(|problem| format!("{}: {problem}", file.file_name().unwrap_or_default().display()))?;
        for (mut plain, place) in found.unwrap_or_default() {
            // The file's name says which set it has: train.h5, test.h5.
            if let (Some(set), true) = (set, ARRAYS.iter().any(|(_, _, alone)| alone.contains(&plain.as_str()))) {
                plain = format!("{}_{plain}", SETS[set].1[0]);
            }
            all.push((plain, place));
        }
    }
    named(path, all)
}

/// The one set that the words of a file's name say, if they say one.
fn set_of(name: &str) -> Option<usize> {
    let plain = plain(name);
    let mut sets = (0..SETS.len()).filter(|&set| plain.split('_').any(|word| SETS[set].1.contains(&word)));
    sets.next().filter(|_| sets.next().is_none())
}

/// Every set with each of its arrays, as their places in [`SETS`] and [`ARRAYS`].
fn roles() -> impl Iterator<Item = (usize, usize)> {
    (0..SETS.len()).flat_map(|set| (0..ARRAYS.len()).map(move |array| (set, array)))
}

/// `training images`.
fn what(set: usize, array: usize) -> String {
    format!("{} {}", SETS[set].0, ARRAYS[array].0)
}

/// Chooses from arrays with their plain names.
fn named(path: &Path, mut arrays: Vec<(String, ArrayPlace)>) -> Found<Places> {
    let mut found: Roles<Option<ArrayPlace>> = Default::default();
    for (set, array) in roles() {
        let first = names(set, array).into_iter().find_map(|name| arrays.iter().position(|(array, _)| *array == name));
        let Some((name, place)) = first.map(|first| arrays.remove(first)) else { continue };
        // Two arrays of one name are refused if they are in different files; of two in one file, the first is taken.
        if let Some((_, other)) = arrays.iter().find(|(array, other)| *array == name && other.file != place.file) {
            let [one, other] = [place.file_name(), other.file_name()];
            return Err(format!(
                "expected one array of {}, found one in {one} and one in {other}; keep one of them there",
                what(set, array)
            ));
        }
        found[set][array] = Some(place);
    }
    // An array that cannot be read is named before one that is missing.
    for place in found.iter().flatten().flatten() {
        if let Format::Hdf5(Table { name, about: Err(problem) }) = &place.format {
            return Err(format!("{name}: {problem}"));
        }
    }
    for (set, array) in roles().filter(|&(set, array)| found[set][array].is_none()) {
        let names = names(set, array);
        if let Some((place, problem)) = arrays.iter().find_map(|(_, place)| Some((place, unreadable(place, &names, SETS[set].1)?))) {
            return Err(format!("{place}: {problem}; dps takes it for the {}", what(set, array)));
        }
    }
    chosen(path, found, arrays.into_iter().map(|(_, place)| place).collect())
}

/// Why an array of an HDF5 file is not the one of these names, where the last part of its path says that it should be, or the group that it is in.
/// A link that leads nowhere, or into another file, may be in the place of a group with a word for the set, as `test` of `test/images`.
fn unreadable(place: &ArrayPlace, names: &[String], words: &[&str]) -> Option<String> {
    let Format::Hdf5(Table { name, about }) = &place.format else { return None };
    let is_looked_for = |name: &str| names.contains(&plain(name));
    let mut cuts = name.match_indices('/').map(|(cut, _)| cut);
    match about {
        Err(problem) if cuts.clone().any(|cut| is_looked_for(&name[cut + 1..])) => Some(problem.clone()),
        Err(problem) if name.rsplit('/').next().is_some_and(|last| words.contains(&plain(last).as_str())) => Some(problem.clone()),
        _ => cuts.find(|&cut| is_looked_for(&name[..cut])).map(|cut| format!("expected an array as {}, found a group", &name[..cut])),
    }
}

fn chosen(path: &Path, found: Roles<Option<ArrayPlace>>, unused: Vec<ArrayPlace>) -> Found<Places> {
    let has = |set: usize| found[set].iter().any(Option::is_some);
    if let Some((set, array)) = roles().find(|&(set, array)| found[set][array].is_none() && (set == 0 || has(set))) {
        return Err(missing(path, [set, array], found.iter().flatten().flatten().chain(&unused).collect()));
    }
    let sets = found.map(|[images, labels]| Some([images?, labels?]));
    let [Some(training), validation, test] = sets else { unreachable!("a missing array of the training set is an error above") };
    Ok(Places { training, validation, test, unused })
}

/// Arrays that a sentence names.
const MOST_NAMED: usize = 10;

/// Sentence on an array that was looked for and not found: the arrays that were found, and a line of code that writes it.
fn missing(path: &Path, [set, array]: [usize; 2], found: Vec<&ArrayPlace>) -> String {
    let what = what(set, array);
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace(|letter: char| letter.is_control() || letter == '"', "");
    let first = names(set, array).swap_remove(0);
    let word = SETS[set].1[0];
    let line = match found.first().map(|place| &place.format) {
        Some(Format::Npz(_)) if path.is_file() => format!("save them by numpy.savez(\"{name}\", ..., x_{word}=x, y_{word}=y)"),
        Some(Format::Hdf5(_)) if path.is_file() => {
            format!("write them by h5py.File(\"{name}\", \"a\")[\"{first}\"] = {}", &first[..1])
        }
        Some(Format::Idx) => {
            format!("add an IDX file such as {word}-{}-idx{}-ubyte", ARRAYS[array].0, if array == 0 { 3 } else { 1 })
        }
        _ => format!("save them by numpy.save(\"{first}.npy\", {})", &first[..1]),
    };
    let listed: Vec<String> = found.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let found = match (found.len(), path.is_file()) {
        (0, true) => "found no arrays at all".to_owned(),
        (0, false) => "found no IDX, .npy, .npz or HDF5 files".to_owned(),
        (1..=MOST_NAMED, _) => format!("found only {}", listed.join(", ")),
        (more, _) => format!("found only {} and {} others", listed.join(", "), more - MOST_NAMED),
    };
    format!("expected {what} by the name {}, {found}; {line}", names(set, array).join(", "))
}

/// A name in small letters, with underscores between its words.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['/', '-', '.', ' '], "_")
}

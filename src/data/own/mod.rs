//! Images of one's own: a folder of IDX or .npy files, an .npz file or an HDF5 file, of any extents and number of classes.
//!
//! The module finds the arrays by their names and reads them, no further than their headers say. It checks the headers before it asks for memory.
//! HDF5 files are read by `reader`.

mod array;
mod element;
mod find;
mod found;
mod hdf5;
mod idx;
mod npy;
mod place;

use std::path::{Path, PathBuf};

use self::find::Places;
pub use self::hdf5::READING;
use self::place::ArrayPlace;
use super::examples::Sets;
use super::{Examples, Facts, ImageShape};
use crate::data::choice::OwnDataset;
use crate::data::section::DataLayout;
use crate::{Error, Result};

/// Facts, arrays and files of a data set, by the headers and the labels.
pub(super) struct Survey {
    pub facts: Facts,
    /// Each array that is used, with a description.
    pub arrays: Vec<(String, String)>,
    /// Arrays that are not used.
    pub unused: Vec<String>,
    /// The files, each once.
    pub files: Vec<PathBuf>,
}

/// Finds the arrays.
fn places(own: &OwnDataset, folder: &Path) -> Result<Places> {
    let path = folder.join(&own.path);
    find::places(&path).map_err(|mut problem| {
        if let (Ok(inside), false) = (Path::new(&own.path).strip_prefix(folder), path.exists()) {
            problem = format!("{problem}: write path = \"{}\"", inside.display());
        }
        Error::Data { path, problem }
    })
}

/// Reads the headers and the labels.
pub(super) fn survey(own: &OwnDataset, folder: &Path, layout: Option<DataLayout>) -> Result<Survey> {
    let places = places(own, folder)?;
    let mut files: Vec<PathBuf> = Vec::new();
    for ArrayPlace { file, .. } in places.sets().flatten() {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    let (mut arrays, mut sets, mut all_labels) = (Vec::new(), Vec::new(), Vec::new());
    for [images, labels] in places.sets() {
        let (header, count, shape) = images.image_header(layout)?;
        let values = labels.labels()?;
        agree(images, labels, count, values.len())?;
        sets.push((shape, if header.element.is_kept_as_bytes() { 1 } else { 4 }));
        arrays.push((images.shown(&files), header.description()));
        arrays.push((labels.shown(&files), labels.header()?.description()));
        all_labels.push(values);
    }
    same(&places, &sets)?;
    let classes = classes(&places.training[1], &all_labels.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let mut counts = all_labels.iter().map(Vec::len);
    let (shape, value_bytes) = sets[0];
    let facts = Facts {
        shape,
        value_bytes,
        classes,
        training: counts.next().unwrap_or(0),
        own_validation: places.validation.as_ref().and_then(|_| counts.next()),
        test: counts.next().unwrap_or(0),
    };
    Ok(Survey { facts, arrays, unused: places.unused.iter().map(|place| place.shown(&files)).collect(), files })
}

/// Reads everything; without a test set there are no examples of it.
pub(super) fn load(own: &OwnDataset, folder: &Path, layout: Option<DataLayout>) -> Result<Sets> {
    let places = places(own, folder)?;
    let read = |[images, labels]: &[ArrayPlace; 2]| {
        let values = labels.labels()?;
        // Before the images are read, which takes longer.
        agree(images, labels, images.image_header(layout)?.1, values.len())?;
        let (pixels, shape) = images.images(layout)?;
        Ok(Examples { images: pixels, labels: values, shape })
    };
    let mut sets = places.sets().map(read).collect::<Result<Vec<Examples>>>()?;
    same(&places, &sets.iter().map(|set| (set.shape, set.images.value_bytes())).collect::<Vec<_>>())?;
    let classes = classes(&places.training[1], &sets.iter().map(|set| set.labels.as_slice()).collect::<Vec<_>>())?;
    let training = sets.remove(0);
    let test = places.test.and_then(|_| sets.pop()).unwrap_or_else(|| training.gather(&[]));
    Ok(Sets { training, validation: sets.pop(), test, classes })
}

/// Refuses labels that are not as many as the images.
fn agree(images: &ArrayPlace, labels: &ArrayPlace, count: usize, found: usize) -> Result<()> {
    if count == found {
        return Ok(());
    }
    Err(labels.error(format!("expected one label for each of the {count} images of {images}, found {found} labels")))
}

/// Refuses images of other extents or values than the training images'.
fn same(places: &Places, sets: &[(ImageShape, usize)]) -> Result<()> {
    let words = |(shape, bytes): (ImageShape, usize)| format!("{shape} of {}", if bytes == 1 { "bytes" } else { "32-bit floating point" });
    match places.sets().zip(sets).find(|(_, set)| **set != sets[0]) {
        Some(([images, _], set)) => {
            Err(images.error(format!("expected images as the training images are, {}, found {}", words(sets[0]), words(*set))))
        }
        None => Ok(()),
    }
}

/// The number of classes, one more than the highest label.
fn classes(place: &ArrayPlace, labels: &[&[u16]]) -> Result<usize> {
    if let Some((first, others)) = labels[0].split_first()
        && others.iter().all(|label| label == first)
    {
        return Err(place.error(format!("expected labels of at least two classes, found {first} for every training image")));
    }
    Ok(labels.iter().flat_map(|labels| labels.iter()).max().map_or(0, |&highest| usize::from(highest) + 1))
}

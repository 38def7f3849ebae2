//! Images of one's own: a folder of IDX or .npy files, an .npz file or an HDF5 file, of any extents and number of classes.
//!
//! What lives here finds the arrays by their names and reads them, no further than their headers say. What headers say is checked before memory is
//! asked for. HDF5 files are read by `reader`.

mod array;
mod element;
mod find;
mod found;
mod hdf5;
mod idx;
mod npy;
mod place;

use std::path::{Path, PathBuf};

pub use self::hdf5::READING;
use self::place::ArrayPlace;
use super::{Examples, ImageShape};
use crate::config::{DataLayout, OwnDataset};
use crate::{Error, Result};

/// The training and the test examples of a data set; without a test set there are none of the latter.
pub(super) struct Own {
    pub training: Examples,
    pub test: Examples,
    /// Labels are below it.
    pub classes: usize,
}

/// What the headers and the labels say.
pub(super) struct Survey {
    pub shape: ImageShape,
    pub value_bytes: usize,
    pub classes: usize,
    pub training: usize,
    pub test: usize,
    /// Each array that is used, and what it is.
    pub arrays: Vec<(String, String)>,
    /// Arrays that are not.
    pub unused: Vec<String>,
    /// The files, each once.
    pub files: Vec<PathBuf>,
}

/// Reads the headers and the labels.
pub(super) fn survey(own: &OwnDataset, folder: &Path, layout: Option<DataLayout>) -> Result<Survey> {
    let path = folder.join(&own.path);
    let places = find::places(&path).map_err(|problem| Error::Data { path, problem })?;
    let (mut arrays, mut sets, mut value_bytes) = (Vec::new(), Vec::new(), 1);
    for [images, labels] in [Some(&places.training), places.test.as_ref()].into_iter().flatten() {
        let header = images.header()?;
        let (count, shape) = images.image_extents(layout)?;
        value_bytes = if header.element.is_kept_as_bytes() { 1 } else { 4 };
        arrays.push((images.to_string(), header.description()));
        let header = labels.header()?;
        arrays.push((labels.to_string(), header.description()));
        sets.push((count, shape, value_bytes, labels.labels()?));
        agree(images, labels, count, sets.last().map_or(0, |(_, _, _, labels)| labels.len()))?;
    }
    let kinds: Vec<(ImageShape, usize)> = sets.iter().map(|(_, shape, bytes, _)| (*shape, *bytes)).collect();
    same(&places, &kinds)?;
    let labels: Vec<&[u16]> = sets.iter().map(|(_, _, _, labels)| labels.as_slice()).collect();
    let classes = classes(&places.training[1], &labels)?;
    let mut files: Vec<PathBuf> = places.training.iter().chain(places.test.iter().flatten()).map(|place| place.file().to_owned()).collect();
    files.dedup();
    Ok(Survey {
        shape: kinds[0].0,
        value_bytes,
        classes,
        training: labels[0].len(),
        test: labels.get(1).map_or(0, |labels| labels.len()),
        arrays,
        unused: places.unused.iter().map(ArrayPlace::to_string).collect(),
        files,
    })
}

/// Reads everything.
pub(super) fn load(own: &OwnDataset, folder: &Path, layout: Option<DataLayout>) -> Result<Own> {
    let path = folder.join(&own.path);
    let places = find::places(&path).map_err(|problem| Error::Data { path, problem })?;
    let read = |[images, labels]: &[ArrayPlace; 2]| {
        let values = labels.labels()?;
        // Before the images are read, which takes longer.
        agree(images, labels, images.image_extents(layout)?.0, values.len())?;
        let (pixels, shape) = images.images(layout)?;
        Ok::<_, Error>(Examples { images: pixels, labels: values, shape })
    };
    let training = read(&places.training)?;
    let test = match &places.test {
        Some(test) => read(test)?,
        None => training.gather(&[]),
    };
    let sets: Vec<(ImageShape, usize)> = [&training, &test].iter().map(|set| (set.shape, set.images.value_bytes())).collect();
    same(&places, &sets)?;
    let classes = classes(&places.training[1], &[&training.labels, &test.labels])?;
    Ok(Own { training, test, classes })
}

/// Refuses labels that are not as many as the images.
fn agree(images: &ArrayPlace, labels: &ArrayPlace, count: usize, found: usize) -> Result<()> {
    if count == found {
        return Ok(());
    }
    Err(labels.error(format!("expected one label for each of the {count} images of {images}, found {found} labels")))
}

/// Refuses test images of other extents or values than the training images'.
fn same(places: &find::Places, sets: &[(ImageShape, usize)]) -> Result<()> {
    let kind = |bytes: usize| if bytes == 1 { "bytes" } else { "32-bit floating point" };
    match (sets, &places.test) {
        ([training, test], Some([images, _])) if training != test => Err(images.error(format!(
            "expected test images as the training images are, {} of {}, found {} of {}",
            training.0,
            kind(training.1),
            test.0,
            kind(test.1)
        ))),
        _ => Ok(()),
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

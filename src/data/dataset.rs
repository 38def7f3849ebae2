//! A whole data set: training, validation and test examples, and what normalises their pixels.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::choice::{DatasetChoice, DatasetName};
use super::examples::Sets;
use super::facts::{Facts, held_out};
use super::normalise::{Normalisation, normalise};
use super::section::{DataSource, DataSplit};
use super::table::{DataFile, DatasetSpec, FileFormat};
use super::{Examples, ImageShape, Pixels, cifar, find, idx, own};
use crate::random::{Permutation, Purpose};
use crate::{Error, Result};

/// A data set in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The data set's name.
    pub name: String,
    /// Extents of its images.
    pub shape: ImageShape,
    /// Number of classes.
    pub classes: usize,
    /// The training file without the validation examples: example j is the file's example π(validation + j). All of it in π's order where there is a
    /// validation set of its own.
    pub training: Examples,
    /// The examples that decide steps-to-result: example j is the training file's example π(j), or that of the validation set of its own.
    pub validation: Examples,
    /// The test file; no examples where there is none.
    pub test: Examples,
    /// Mean and deviation of each channel.
    pub normalisation: Vec<Normalisation>,
    /// SHA-256, in hexadecimal, of the shape, pixels and labels of the three sets in their order (so of the split as well), and before them of the
    /// name of a data set that has one: equal on all ranks and when a run is resumed.
    pub digest: String,
    /// Further facts about the files.
    pub particulars: Particulars,
}

/// Facts about a data set's files besides the examples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Particulars {
    /// Whether the validation set is the data's own.
    pub has_own_validation: bool,
    /// Least and greatest value of the training and the validation examples, as the files have them.
    pub range: [f32; 2],
    /// The digest by an earlier rule, which hashed the name of one's own data too: studies that an earlier dps began have this digest.
    pub earlier_digest: String,
}

impl Facts {
    /// The facts of a data set: of one that has a name those of the published files, without a look at any, unless files that are not the published
    /// ones ([`DataSource::Own`]) are there; of one's own data from headers and labels.
    ///
    /// # Errors
    /// [`Error::Data`] where files that are looked at are missing, damaged, or not as they should be.
    pub fn of(choice: &DatasetChoice, folder: &Path, split: &DataSplit) -> Result<Facts> {
        match choice {
            DatasetChoice::Named(name) => {
                let DatasetSpec { image, classes, training, test, .. } = *name.spec();
                let [classes, mut training, mut test] = [classes, training, test].map(|count| count as usize);
                if let (DataSource::Own, Ok(files)) = (split.source, find::locate(*name, folder)) {
                    let (sets, _) = named(*name, &files, folder, split)?;
                    (training, test) = (sets.training.len(), sets.test.len());
                }
                Ok(Facts { shape: image.into(), value_bytes: 1, classes, training, own_validation: None, test })
            }
            DatasetChoice::Own(own) => own::survey(own, folder, split.layout).map(|survey| survey.facts),
        }
    }
}

impl Dataset {
    /// Reads the files of a data set in the data folder `folder`, those that [`super::locate`] finds for a name, and splits them.
    ///
    /// # Errors
    /// [`Error::Data`] where a file is missing, damaged, of other extents than the data set's, not the original though the split says so, or where
    /// the split would leave no training or no validation example.
    pub fn load(choice: impl Into<DatasetChoice>, folder: &Path, split: &DataSplit) -> Result<Dataset> {
        let choice = choice.into();
        let (sets, place) = match &choice {
            DatasetChoice::Named(name) => named(*name, &find::locate(*name, folder)?, folder, split)?,
            DatasetChoice::Own(own) => (own::load(own, folder, split.layout)?, folder.join(&own.path)),
        };
        Dataset::of(&choice.to_string(), sets, split).map_err(|problem| Error::Data { path: place, problem })
    }

    /// Splits and normalises the examples of a training file and a test file, whose labels are below `classes`.
    ///
    /// The validation set is the first round(fraction·n) elements of the [`Permutation`] π of (split seed, [`Purpose::Split`], 0) over the
    /// n examples of the file, and the training set the rest in π's order: so its first examples are a random subset of it,
    /// however the file is sorted. The images are moved to their places where they are; the validation set's alone are copied.
    ///
    /// # Errors
    /// [`Error::Data`] where the fraction leaves no training or no validation example, or where all pixels of a channel are equal.
    pub fn new(name: &str, classes: usize, file: Examples, test: Examples, split: &DataSplit) -> Result<Dataset> {
        let sets = Sets { training: file, validation: None, test, classes };
        Dataset::of(name, sets, split).map_err(|problem| Error::Data { path: name.into(), problem })
    }

    /// A data set of a training and a test file, and of a validation set of its own: without one as [`Dataset::new`] makes it.
    fn of(name: &str, sets: Sets, split: &DataSplit) -> std::result::Result<Dataset, String> {
        let Sets { training: file, validation: own_validation, mut test, classes } = sets;
        let n = u32::try_from(file.len()).map_err(|_| format!("expected fewer than 2³² examples, found {}", file.len()))?;
        let has_own_validation = own_validation.is_some();
        let held_out = if has_own_validation { 0 } else { held_out(split.validation_fraction, n)? };
        let normalisation = Normalisation::of(&file)?;
        let permutation = Permutation::new(split.split_seed, Purpose::Split, 0, n);
        let order: Vec<u32> = (held_out..n).chain(0..held_out).map(|i| permutation.at(i)).collect();
        let shape = file.shape;
        let [mut training, held_out] = file.arranged(&order, (n - held_out) as usize);
        let mut validation = own_validation.unwrap_or(held_out);
        let of_name = |name: &str| digest(name, classes, [&training, &validation, &test]);
        let earlier_digest = of_name(name);
        let digest = if DatasetName::NAMES.contains(&name) { earlier_digest.clone() } else { of_name("") };
        let range = range([&training.images, &validation.images]);
        [&mut training, &mut validation, &mut test].into_iter().for_each(|set| normalise(set, &normalisation));
        let particulars = Particulars { has_own_validation, range, earlier_digest };
        Ok(Dataset { name: name.to_owned(), shape, classes, training, validation, test, normalisation, digest, particulars })
    }

    /// Whether `digest` is that of these data, by the present rule or by the earlier one.
    pub fn has_digest(&self, digest: &str) -> bool {
        digest == self.digest || digest == self.particulars.earlier_digest
    }

    /// The classes that no training example has.
    pub fn empty_classes(&self) -> Vec<usize> {
        let mut has = vec![false; self.classes];
        self.training.labels.iter().for_each(|&label| has[usize::from(label)] = true);
        (0..self.classes).filter(|&class| !has[class]).collect()
    }

    /// The facts of the data set.
    pub fn facts(&self) -> Facts {
        let own_validation = self.particulars.has_own_validation.then_some(self.validation.len());
        let training = self.training.len() + if own_validation.is_some() { 0 } else { self.validation.len() };
        let value_bytes = self.training.images.value_bytes();
        Facts { shape: self.shape, value_bytes, classes: self.classes, training, own_validation, test: self.test.len() }
    }

    /// For each channel, the network's input for every byte p: (p/255 − mean)/std, computed in 64 bits and rounded once. Images of floating point
    /// need none.
    pub fn lookup_table(&self) -> Vec<[f32; 256]> {
        let table = |channel: &Normalisation| std::array::from_fn(|p| channel.apply(p as f64 / 255.0));
        self.normalisation.iter().map(table).collect()
    }
}

/// The examples of a data set that has a name, from the files located for the data folder `folder`, and the folder of the files.
fn named(name: DatasetName, files: &[PathBuf], folder: &Path, split: &DataSplit) -> Result<(Sets, PathBuf)> {
    let DatasetSpec { image, classes, format, .. } = *name.spec();
    let shape = ImageShape::from(image);
    let digests = &mut Vec::new();
    let (training, test) = match format {
        FileFormat::Cifar => {
            let [batches @ .., test] = files else { unreachable!("{name} has files") };
            (cifar::read(batches, shape, classes, digests)?, cifar::read(std::slice::from_ref(test), shape, classes, digests)?)
        }
        FileFormat::Idx => {
            let [images, labels, test_images, test_labels] = files else { unreachable!("{name} has four files, not {}", files.len()) };
            (idx::read(images, labels, shape, classes, digests)?, idx::read(test_images, test_labels, shape, classes, digests)?)
        }
    };
    if split.source == DataSource::Original {
        originals(name, folder, files, digests)?;
    }
    let place = files.first().and_then(|file| file.parent()).unwrap_or(folder);
    Ok((Sets { training, validation: None, test, classes: classes as usize }, place.to_owned()))
}

/// Refuses files that are not the ones the data set's publishers made: other data would be measured in their name.
fn originals(name: DatasetName, folder: &Path, files: &[PathBuf], digests: &[String]) -> Result<()> {
    for ((file, found), published) in files.iter().zip(digests).zip(name.spec().files) {
        if published.sha256 != found {
            let what = match known(found) {
                Some((other, file)) => format!("that of {other}, {}", file.name),
                None => format!("another (SHA-256 {found})"),
            };
            let problem = format!(
                "expected the original file of {name}, found {what}; fetch it ({}), or set data.source = \"own\" if these data are meant",
                find::fetching(name, folder)
            );
            return Err(Error::Data { path: file.clone(), problem });
        }
    }
    Ok(())
}

/// Which data set's file has this SHA-256, if any's.
fn known(sha256: &str) -> Option<(DatasetName, &'static DataFile)> {
    let mut files = DatasetName::ALL.iter().flat_map(|&name| name.spec().files.iter().map(move |file| (name, file)));
    files.find(|(_, file)| file.sha256 == sha256)
}

/// Least and greatest of all values; −0 is 0.
fn range(sets: [&Pixels; 2]) -> [f32; 2] {
    let mut range = [f32::INFINITY, f32::NEG_INFINITY];
    let mut widen = |value: f32| range = [range[0].min(value), range[1].max(value)];
    for set in sets {
        match set {
            Pixels::Bytes(values) => values.iter().for_each(|&value| widen(value.into())),
            Pixels::Floats(values) => values.iter().for_each(|&value| widen(value)),
        }
    }
    range.map(|value| value + 0.0)
}

fn digest(name: &str, classes: usize, sets: [&Examples; 3]) -> String {
    let mut hash = Sha256::new();
    hash.update(name);
    for set in sets {
        for extent in [set.shape.height, set.shape.width, set.shape.channels, set.len()] {
            hash.update((extent as u64).to_le_bytes());
        }
        match &set.images {
            Pixels::Bytes(values) => hash.update(values),
            Pixels::Floats(values) => values.iter().for_each(|value| hash.update(value.to_le_bytes())),
        }
        // Labels of at most 256 classes are hashed as one byte each, so that earlier digests, from when every label was a byte, stay valid.
        if classes <= 256 {
            set.labels.iter().for_each(|&label| hash.update([label as u8]));
        } else {
            set.labels.iter().for_each(|&label| hash.update(label.to_le_bytes()));
        }
    }
    format!("{:x}", hash.finalize())
}

//! A whole data set: training, validation and test examples, and what normalises their pixels.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Examples, ImageShape, cifar, find, idx};
use crate::config::{DataFile, DataSource, DataSplit, DatasetName, FileFormat};
use crate::random::{Permutation, Purpose};
use crate::{Error, Result};

/// Classes of every data set here; labels are below it.
pub const CLASSES: u8 = 10;

/// Mean and standard deviation of pixels / 255 of one channel, over the whole training file before the split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (of the population, not of a sample).
    pub std: f64,
}

/// A data set in memory, as bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The data set's name.
    pub name: DatasetName,
    /// Extents of its images.
    pub shape: ImageShape,
    /// Number of classes.
    pub classes: usize,
    /// The training file without the validation examples: example j is the file's example π(validation + j).
    pub training: Examples,
    /// The examples that decide steps-to-result: example j is the file's example π(j).
    pub validation: Examples,
    /// The test file.
    pub test: Examples,
    /// Mean and deviation of each channel.
    pub normalisation: Vec<Normalisation>,
    /// SHA-256, in hexadecimal, of the name, shape, pixels and labels of the three sets in their order (so of the split as well):
    /// equal on all ranks and when a run is resumed.
    pub digest: String,
}

impl Dataset {
    /// Reads the files that [`super::locate`] finds for `name` and splits them.
    ///
    /// # Errors
    /// [`Error::Data`] where a file is missing, damaged, of other extents than the data set's, not the original though the split says so, or where the split would leave no
    /// training or no validation example.
    pub fn load(name: DatasetName, folder: &Path, split: &DataSplit) -> Result<Dataset> {
        let files = find::locate(name, folder)?;
        let shape = ImageShape::from(name.spec().image);
        let digests = &mut Vec::new();
        let (file, test) = match (name.spec().format, files.as_slice()) {
            (FileFormat::Cifar, [batches @ .., test]) => {
                (cifar::read(batches, shape, digests)?, cifar::read(std::slice::from_ref(test), shape, digests)?)
            }
            (FileFormat::Idx, [images, labels, test_images, test_labels]) => {
                (idx::read(images, labels, shape, digests)?, idx::read(test_images, test_labels, shape, digests)?)
            }
            (_, other) => unreachable!("{name} consists of {} files", other.len()),
        };
        if split.source == DataSource::Original {
            originals(name, &files, digests)?;
        }
        let place = files.first().and_then(|file| file.parent()).unwrap_or(folder);
        Dataset::new(name, &file, test, split).map_err(|problem| Error::Data { path: place.into(), problem })
    }

    /// Splits and normalises the examples of a training file and a test file.
    ///
    /// The validation set is the first round(fraction·n) elements of the [`Permutation`] π of (split seed, [`Purpose::Split`], 0) over the
    /// n examples of the file, and the training set the rest in π's order: so its first examples are a random subset of it,
    /// however the file is sorted.
    ///
    /// # Errors
    /// A sentence where the fraction leaves no training or no validation example, or where all pixels of a channel are equal.
    pub fn new(name: DatasetName, file: &Examples, test: Examples, split: &DataSplit) -> std::result::Result<Dataset, String> {
        let n = u32::try_from(file.len()).map_err(|_| format!("expected fewer than 2³² examples, found {}", file.len()))?;
        let held_out = (split.validation_fraction * f64::from(n)).round();
        if !(held_out >= 1.0 && held_out < f64::from(n)) {
            return Err(format!(
                "expected at least one training and one validation example, but validation_fraction = {} of the {n} examples of the training \
                 file is {held_out} of them",
                split.validation_fraction
            ));
        }
        let held_out = held_out as u32;
        let normalisation = normalisation(file)?;
        let permutation = Permutation::new(split.split_seed, Purpose::Split, 0, n);
        let validation = file.gather((0..held_out).map(|i| permutation.at(i)));
        let training = file.gather((held_out..n).map(|i| permutation.at(i)));
        let digest = digest(name, [&training, &validation, &test]);
        Ok(Dataset { name, shape: file.shape, classes: CLASSES.into(), training, validation, test, normalisation, digest })
    }

    /// For each channel, the network's input for every pixel value p: (p/255 − mean)/std, computed in 64 bits and rounded once.
    pub fn lookup_table(&self) -> Vec<[f32; 256]> {
        let table = |channel: &Normalisation| std::array::from_fn(|p| ((p as f64 / 255.0 - channel.mean) / channel.std) as f32);
        self.normalisation.iter().map(table).collect()
    }
}

/// Refuses files that are not the ones the data set's publishers made: other data would be measured in their name.
fn originals(name: DatasetName, files: &[PathBuf], digests: &[String]) -> Result<()> {
    for ((file, found), published) in files.iter().zip(digests).zip(name.spec().files) {
        if published.sha256 != found {
            let what = match known(found) {
                Some((other, file)) => format!("that of {other}, {}", file.name),
                None => format!("another (SHA-256 {found})"),
            };
            let problem = format!(
                "expected the original file of {name}, found {what}; fetch it (dps-train data fetch {name}), or set data.source = \"own\" if these \
                 data are meant"
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

/// Exact sums of integers, so the result does not depend on an order of summation.
fn normalisation(examples: &Examples) -> std::result::Result<Vec<Normalisation>, String> {
    let mut histograms = vec![[0u64; 256]; examples.shape.channels];
    for pixel in examples.images.chunks_exact(examples.shape.channels) {
        histograms.iter_mut().zip(pixel).for_each(|(histogram, &value)| histogram[usize::from(value)] += 1);
    }
    let of = |(channel, histogram): (usize, &[u64; 256])| {
        let moment = |power: u32| histogram.iter().zip(0u64..).map(|(count, value)| u128::from(count * value.pow(power))).sum::<u128>();
        let (n, sum, squares) = (moment(0), moment(1), moment(2));
        let mean = sum as f64 / (n as f64 * 255.0);
        let std = ((n * squares - sum * sum) as f64).sqrt() / (n as f64 * 255.0);
        match std > 0.0 {
            true => Ok(Normalisation { mean, std }),
            false => Err(format!("expected images, found the same value in every pixel of channel {channel} of the training file")),
        }
    };
    histograms.iter().enumerate().map(of).collect()
}

fn digest(name: DatasetName, sets: [&Examples; 3]) -> String {
    let mut hash = Sha256::new();
    hash.update(name.name());
    for set in sets {
        for extent in [set.shape.height, set.shape.width, set.shape.channels, set.len()] {
            hash.update((extent as u64).to_le_bytes());
        }
        hash.update(&set.images);
        hash.update(&set.labels);
    }
    format!("{:x}", hash.finalize())
}

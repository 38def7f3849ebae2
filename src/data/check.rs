//! Report on the data of a study, for `dps-train data check`.

use std::fs;
use std::path::Path;

use super::choice::DatasetChoice;
use super::section::DataSplit;
use super::{Dataset, Pixels, find, own};
use crate::readable::count;
use crate::storage::digest;
use crate::{Error, Result};

/// Reads a data set and says what it is: its files, extents, classes, split, values, normalisation and digest.
///
/// # Errors
/// As [`Dataset::load`].
pub fn check(choice: &DatasetChoice, folder: &Path, split: &DataSplit) -> Result<String> {
    let (files, arrays, unused) = match choice {
        DatasetChoice::Named(name) => (find::locate(*name, folder)?, Vec::new(), Vec::new()),
        DatasetChoice::Own(own) => {
            let own::Survey { files, arrays, unused, .. } = own::survey(own, folder, split.layout)?;
            (files, arrays, unused)
        }
    };
    let data = Dataset::load(choice.clone(), folder, split)?;
    let mut lines = vec![("data set".to_owned(), data.name.clone())];
    for file in files {
        let read = fs::metadata(&file).and_then(|about| Ok((about.len(), digest(&file)?)));
        let unreadable =
            |error| Error::Data { path: file.clone(), problem: format!("the file cannot be read ({error}); make it readable") };
        let (bytes, sha256) = read.map_err(unreadable)?;
        lines.push(("file".to_owned(), format!("{}, {} bytes, SHA-256 {sha256}", file.display(), count(bytes))));
    }
    lines.extend(arrays.into_iter().map(|(name, what)| ("array".to_owned(), format!("{name} {what}"))));
    if !unused.is_empty() {
        lines.push(("not used".to_owned(), unused.join(", ")));
    }
    let kind = if let Pixels::Bytes(_) = data.training.images { "bytes" } else { "32-bit floating point" };
    lines.push(("images".to_owned(), format!("{} of {kind}", data.shape)));
    for (name, set) in [("training", &data.training), ("validation", &data.validation), ("test", &data.test)] {
        let none = match name {
            "validation" if data.particulars.has_own_validation => ", a set of the data's own: data.validation_fraction is not used",
            _ if set.is_empty() => "; without a test set a study has no test errors",
            _ => "",
        };
        lines.push((name.to_owned(), format!("{} examples{none}", count(set.len() as u64))));
    }
    lines.push(("classes".to_owned(), classes(&data)));
    let [least, greatest] = data.particulars.range;
    lines.push(("values".to_owned(), format!("{least} to {greatest}")));
    for (channel, values) in data.normalisation.iter().enumerate() {
        let scale = if let Pixels::Bytes(_) = data.training.images { " of values / 255" } else { "" };
        lines.push((format!("channel {channel}"), format!("mean {:.6}, standard deviation {:.6}{scale}", values.mean, values.std)));
    }
    lines.push(("digest".to_owned(), data.digest.clone()));
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    Ok(lines.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect())
}

/// How many classes there are, and how many training and validation examples each has.
fn classes(data: &Dataset) -> String {
    let mut counts = vec![0_u64; data.classes];
    for set in [&data.training, &data.validation] {
        set.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
    }
    let all = || counts.iter().enumerate();
    let (Some((fewest, least)), Some((commonest, most))) = (all().min_by_key(|(_, count)| **count), all().max_by_key(|(_, count)| **count))
    else {
        return String::new();
    };
    format!(
        "{}, of each from {} (class {fewest}) to {} (class {commonest}) training and validation examples",
        data.classes,
        count(*least),
        count(*most)
    )
}

//! The binary version of CIFAR-10: records of one label and 3072 pixels, 1024 red, 1024 green, 1024 blue, row by row
//! (Krizhevsky, "Learning multiple layers of features from tiny images", 2009; layout on the data set's page).

use std::path::PathBuf;

use super::contents::Contents;
use super::{Examples, ImageShape};
use crate::Result;

/// Bytes that are read at most, more than the data set has: a damaged file cannot ask for all memory.
const MOST_BYTES: usize = 1 << 28;

/// Reads `files` one after the other; images must be `shape`, and labels below `classes`. Pixels become channel last. Adds the
/// digest of each.
pub(super) fn read(files: &[PathBuf], shape: ImageShape, classes: u32, digests: &mut Vec<String>) -> Result<Examples> {
    let record_bytes = 1 + shape.values();
    let most = MOST_BYTES / record_bytes;
    let plane = shape.height * shape.width;
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for file in files {
        let mut contents = Contents::open(file)?;
        let bytes_left = (most - labels.len()) * record_bytes;
        let bytes = contents.read_up_to(bytes_left + 1)?;
        if bytes.is_empty() {
            return Err(contents.error(format!("expected records of {record_bytes} bytes, found an empty file")));
        }
        if bytes.len() > bytes_left {
            return Err(contents.error(format!("expected at most {most} examples in all files together, found more")));
        }
        if !bytes.len().is_multiple_of(record_bytes) {
            let problem = format!(
                "expected records of {record_bytes} bytes (a label and {shape} pixels), found {} bytes, {} too many for whole records: \
                 the file is truncated or not CIFAR-10's binary version",
                bytes.len(),
                bytes.len() % record_bytes
            );
            return Err(contents.error(problem));
        }
        images.reserve_exact(bytes.len() / record_bytes * shape.values());
        for (i, record) in bytes.chunks_exact(record_bytes).enumerate() {
            let (label, planes) = (record[0], &record[1..]);
            if u32::from(label) >= classes {
                return Err(contents.error(format!("expected labels from 0 to {}, found {label} at example {i}", classes - 1)));
            }
            labels.push(label.into());
            images.extend((0..plane).flat_map(|pixel| planes[pixel..].iter().step_by(plane).copied()));
        }
        digests.push(contents.digest());
    }
    Ok(Examples { images: images.into(), labels, shape })
}

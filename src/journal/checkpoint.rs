//! The checkpoint: the state of one cell's trials in the middle of their training. It is written whole or not at all.
//!
//! A checkpoint says nothing of ranks, threads or devices, so any number of ranks can go on from it. It only saves time: without it the cell's
//! unfinished trials start again and end with the same results.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::contents::payload;
use super::problem::{error, explain};
use crate::Result;
use crate::records::{CellKey, Training};
use crate::storage::Storage;
use crate::training::CellState;

/// The first line, with the version of the format and of the fields of [`Checkpoint`]; a checksum of the rest follows it.
const MAGIC: &[u8] = b"dps checkpoint 9\n";

/// A cell in the middle of its training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Digest of the configuration.
    pub digest: String,
    /// Digest of the data.
    pub data_digest: String,
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// The trainings that confirm its points, where these are under way: a trial of the state has the place of one of them as its index.
    pub confirming: Option<Vec<Training>>,
    /// Where the cell is.
    pub state: CellState,
}

/// Result of loading a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// No checkpoint.
    Absent,
    /// A whole one of this study. Its cell may be finished by now: the caller checks that.
    Checkpoint(Checkpoint),
    /// A damaged one, or another study's: one sentence about it, to print before the cell's unfinished trials start again.
    Damaged(String),
}

/// Puts a checkpoint at `path` in place of the one there; a failure or kill leaves the old one.
///
/// # Errors
/// [`Error::Journal`](crate::Error::Journal).
pub fn save(path: &Path, checkpoint: &Checkpoint, storage: &dyn Storage) -> Result<()> {
    let start = MAGIC.len() + size_of::<u32>();
    let mut bytes = MAGIC.to_vec();
    bytes.resize(start, 0);
    postcard::to_io(checkpoint, &mut bytes).map_err(|cause| error(path, format!("the checkpoint could not be encoded ({cause})")))?;
    let checksum = crc32fast::hash(&bytes[start..]);
    bytes[MAGIC.len()..start].copy_from_slice(&checksum.to_le_bytes());
    storage.publish(path, &bytes).map_err(|cause| explain(path, "the checkpoint could not be written", &cause))
}

/// The checkpoint at `path`, if it is whole and of the study with these digests.
///
/// # Errors
/// [`Error::Journal`](crate::Error::Journal): the operating system could not read it.
pub fn load(path: &Path, digest: &str, data_digest: &str, storage: &dyn Storage) -> Result<Loaded> {
    let bytes = match storage.read(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Loaded::Absent),
        other => other.map_err(|cause| explain(path, "the checkpoint could not be read", &cause))?,
    };
    let problem = match decode(&bytes) {
        None => "is damaged or of another version of this program",
        Some(checkpoint) if checkpoint.digest != digest => "is of another configuration",
        Some(checkpoint) if checkpoint.data_digest != data_digest => "is of other data",
        Some(checkpoint) => return Ok(Loaded::Checkpoint(checkpoint)),
    };
    Ok(Loaded::Damaged(format!("{}: the checkpoint {problem}: its cell's unfinished trials start again", path.display())))
}

fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let (checksum, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
    if crc32fast::hash(rest) == u32::from_le_bytes(*checksum) { payload(rest) } else { None }
}

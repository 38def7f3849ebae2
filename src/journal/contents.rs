//! What a journal says: its header, its records, and the cells and trials they add up to.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{OTHER_STUDY, frame};
use crate::backend::floats;
use crate::study::{Cell, CellKey, Trial};

const MAGIC: &str = "dps journal ";

/// Version of the format, of the fields of records, and of how they are computed: it rises with every change of one, so that no study is finished by
/// another program than the one that began it.
const VERSION: u32 = 4;

/// Which study a journal is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The effective configuration, as canonical TOML.
    pub configuration: String,
    /// The configuration's digest; a study goes on only with the same one.
    pub digest: String,
    /// The data's digest; a study goes on only with the same one.
    pub data_digest: String,
    /// Version of the program that started the study.
    pub program_version: String,
    /// Commit it was built from, or empty.
    pub commit: String,
    /// Start of the study, ISO 8601 in UTC.
    pub started: String,
}

/// What is appended to a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A trial has ended.
    Trial {
        /// Batch size of its cell, in examples.
        batch_size: u32,
        /// Sparsity of its cell.
        sparsity: f64,
        /// How it went.
        trial: Trial,
    },
    /// A cell is finished: all its trials are recorded.
    Cell {
        /// Its batch size, in examples.
        batch_size: u32,
        /// Its sparsity.
        sparsity: f64,
        /// Wrongly classified test examples of the best trial, where there is one.
        test_errors: Option<u32>,
        /// Wall-clock seconds of the cell, over all runs.
        seconds: f64,
    },
    /// A later run goes on with the study.
    Restart {
        /// When, ISO 8601 in UTC.
        started: String,
    },
    /// The connections of a seed's network are scored.
    Scores {
        /// The trial's number.
        seed: u64,
        /// A score a parameter, in the network's order.
        #[serde(with = "floats")]
        values: Vec<f32>,
    },
}

/// All that a journal says.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// Which study it is of, in the words of the run that started it.
    pub header: Header,
    /// The finished cells in the order in which they were finished, each with its trials by index.
    pub finished: Vec<Cell>,
    /// Trials that ended in cells that are not finished, by index; the cells in the order of their first record.
    pub partial: Vec<(CellKey, Vec<Trial>)>,
    /// Scores of connections, by seed: seconds each to make, and the same for every cell.
    pub scores: BTreeMap<u64, Vec<f32>>,
    /// How many later runs went on with the study.
    pub restarts: u32,
    /// Bytes at the end that are no whole record: one cut short by a kill, or damaged since. What is before them is whole.
    pub dropped_bytes: u64,
}

/// A cell's records so far.
struct Entry {
    key: CellKey,
    trials: BTreeMap<u32, Trial>,
    /// Its place among the finished cells, test errors and seconds, once it is finished.
    finished: Option<(usize, Option<u32>, f64)>,
}

/// The bytes of a journal without records.
pub(super) fn beginning(header: &Header) -> Result<Vec<u8>, String> {
    let mut bytes = format!("{MAGIC}{VERSION}\n").into_bytes();
    bytes.extend(encode(header)?);
    Ok(bytes)
}

/// A record as it lies in the journal.
pub(super) fn encode(record: &impl Serialize) -> Result<Vec<u8>, String> {
    let payload = postcard::to_stdvec(record).map_err(|error| format!("the record could not be encoded ({error})"))?;
    frame::framed(&payload).ok_or_else(|| "the record is longer than 4 GiB: evaluate less often".into())
}

/// What a journal's bytes say, or in one sentence why they are none.
pub(super) fn decode(bytes: &[u8]) -> Result<Contents, String> {
    let mut at = magic(bytes)?;
    let Some(first) = frame::record(bytes, at) else {
        return Err(format!("the journal's header, at byte {at}, is damaged: restore the file from a copy, or {OTHER_STUDY}"));
    };
    let header = payload(first).ok_or_else(|| strange(at))?;
    at += frame::HEAD + first.len();

    let (mut cells, mut scores, mut restarts, mut finished) = (Vec::new(), BTreeMap::new(), 0, 0);
    while let Some(bytes) = frame::record(bytes, at) {
        match payload(bytes).ok_or_else(|| strange(at))? {
            Record::Trial { batch_size, sparsity, trial } => {
                let entry = entry(&mut cells, CellKey { batch_size, sparsity });
                let index = trial.index;
                if entry.trials.insert(index, trial.clone()).is_some_and(|known| !known.agrees(&trial)) {
                    return Err(twice(&format!("trial {index} of the"), entry.key, at));
                }
            }
            Record::Cell { batch_size, sparsity, test_errors, seconds } => {
                let entry = entry(&mut cells, CellKey { batch_size, sparsity });
                let place = entry.finished.map_or(finished, |(place, ..)| place);
                if entry.finished.is_some_and(|(_, known, _)| known != test_errors) {
                    return Err(twice("the end of the", entry.key, at));
                }
                entry.finished = Some((place, test_errors, seconds));
                finished = finished.max(place + 1);
            }
            Record::Restart { .. } => restarts += 1,
            Record::Scores { seed, values } => {
                scores.insert(seed, values);
            }
        }
        at += frame::HEAD + bytes.len();
    }
    if let Some(next) = frame::next_record(bytes, at) {
        return Err(format!(
            "the record at byte {at} is damaged, but a whole one follows at byte {next}, so this is no write cut short: restore the file \
             from a copy, or {OTHER_STUDY}"
        ));
    }
    let (mut done, partial): (Vec<Entry>, Vec<Entry>) = cells.into_iter().partition(|entry| entry.finished.is_some());
    done.sort_by_key(|entry| entry.finished.map(|(place, ..)| place));
    let finished = done.into_iter().filter_map(|Entry { key, trials, finished }| {
        finished.map(|(_, test_errors, seconds)| Cell { key, trials: trials.into_values().collect(), test_errors, seconds })
    });
    let partial = partial.into_iter().map(|entry| (entry.key, entry.trials.into_values().collect()));
    let dropped_bytes = (bytes.len() - at) as u64;
    Ok(Contents { header, finished: finished.collect(), partial: partial.collect(), scores, restarts, dropped_bytes })
}

/// The length of the first line, if it is a journal's of this version.
fn magic(bytes: &[u8]) -> Result<usize, String> {
    let expected = format!("{MAGIC}{VERSION}\n");
    if bytes.starts_with(expected.as_bytes()) {
        return Ok(expected.len());
    }
    let version = bytes.strip_prefix(MAGIC.as_bytes()).map(|rest| rest.iter().take_while(|byte| byte.is_ascii_digit()));
    match version.map(|digits| digits.map(|&digit| digit as char).collect::<String>()) {
        Some(version) if !version.is_empty() => Err(format!(
            "the journal has format version {version}, and this program knows version {VERSION}: use the program that started the study, \
             or {OTHER_STUDY}"
        )),
        _ => Err(format!("expected a journal, which begins with \"{MAGIC}{VERSION}\", found another file: {OTHER_STUDY}")),
    }
}

/// A record's value, if its bytes are one's and no more.
fn payload<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

fn entry(cells: &mut Vec<Entry>, key: CellKey) -> &mut Entry {
    let place =
        cells.iter().position(|entry| entry.key.batch_size == key.batch_size && entry.key.sparsity.to_bits() == key.sparsity.to_bits());
    let place = place.unwrap_or_else(|| {
        cells.push(Entry { key, trials: BTreeMap::new(), finished: None });
        cells.len() - 1
    });
    &mut cells[place]
}

fn twice(what: &str, key: CellKey, at: usize) -> String {
    let CellKey { batch_size, sparsity } = key;
    format!(
        "{what} cell with batch size {batch_size} and sparsity {sparsity} is recorded twice, and the record at byte {at} differs from the \
         one before it; the same study gives the same results, so two programs or processors had a part in it: {OTHER_STUDY}"
    )
}

fn strange(at: usize) -> String {
    format!("the record at byte {at} is whole, but of a kind unknown here: use the program that started the study, or {OTHER_STUDY}")
}

//! Contents of a journal: its header, its records, and the cells and trials they add up to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame;
use super::problem::OTHER_STUDY;
use crate::backend::floats;
use crate::records::{Cell, CellKey, Confirmation, Ending, MaskRecord, Start, Training, Trial, best};

const MAGIC: &str = "dps journal ";

/// Version of the format, of the fields of records, and of how records are computed. The version rises with every change of one of these, so that no
/// study is finished by another program than the one that began it. A new kind of record that changes none of these leaves the version as it is: a
/// program that does not know the kind refuses the journal.
pub const VERSION: u32 = 5;

/// Which study a journal is of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The effective configuration, as canonical TOML.
    pub configuration: String,
    /// The configuration's digest; a study continues only with the same one.
    pub digest: String,
    /// The data's digest; a study goes on only with the same one.
    pub data_digest: String,
    /// Another digest of the same data, under which an earlier version may have begun the study; not kept.
    #[serde(skip)]
    pub earlier_data_digest: String,
    /// Version of the program that started the study.
    pub program_version: String,
    /// Commit it was built from, or empty.
    pub commit: String,
    /// Start of the study, ISO 8601 in UTC.
    pub started: String,
}

/// A record, which is appended to a journal.
#[allow(clippy::large_enum_variant, reason = "few are in memory at a time")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A trial has ended.
    Trial {
        /// The trial's cell.
        key: CellKey,
        /// The ended trial.
        trial: Trial,
    },
    /// A cell is finished: all its trials are recorded.
    Cell {
        /// Batch size and sparsity of the cell.
        key: CellKey,
        /// How many trials it has, numbered without a gap: all of them are recorded before.
        trials: u32,
        /// Wrongly classified test examples of the best trial, where there is one.
        test_errors: Option<u32>,
        /// Wall-clock seconds of the cell, over all runs.
        seconds: f64,
    },
    /// A later run goes on with the study.
    Restart {
        /// Time of the restart, ISO 8601 in UTC.
        started: String,
        /// The configuration from this run on, as canonical TOML, where it has more cells or trials than before.
        configuration: Option<String>,
    },
    /// A cell gets more trials: those it has may be recorded anew, since a better one would cut them short. If it was finished, it is so no more.
    Extension {
        /// Batch size and sparsity of the cell.
        key: CellKey,
    },
    /// The connections of a seed's network are scored.
    Scores {
        /// Seed of the network: a trial's number, or a confirmation's fresh seed.
        seed: u64,
        /// A score a parameter, in the network's order.
        #[serde(with = "floats")]
        values: Vec<f32>,
    },
    /// A seed's network has a mask of one sparsity.
    Mask(MaskRecord),
    /// Several records that were appended at once, as their bytes. Records of their own could be left with gaps between them by a loss of power,
    /// which no write that was cut short leaves.
    Together(Vec<Vec<u8>>),
    /// The start that the header or the [`Restart`](Record::Restart) before tells of.
    Start(Start),
    /// How the last start ended. Where several such records follow one start, the last record counts.
    End(Ending),
    /// A point of a cell is trained again.
    Confirmation {
        /// The cell.
        key: CellKey,
        /// The training that confirms the point.
        confirmation: Confirmation,
    },
}

/// The contents of a journal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// Which study it is of, in the words of the run that started it, but for the configuration: that is the latest.
    pub header: Header,
    /// The finished cells in the order in which they were finished, each with its trials by index.
    pub finished: Vec<Cell>,
    /// Cells that are not finished, in the order of their first record.
    pub partial: Vec<Partial>,
    /// Scores of connections, by seed. One seed's take seconds to compute and serve every cell.
    pub scores: BTreeMap<u64, Vec<f32>>,
    /// Masks of criteria whose masks depend on the sparsity.
    pub masks: Vec<MaskRecord>,
    /// Every start of the study, the first one among them.
    pub starts: Vec<Start>,
    /// How the last start ended, where that is known.
    pub ended: Option<Ending>,
    /// Bytes at the end that are no whole record: one cut short by a kill, or damaged since. What is before them is whole.
    pub dropped_bytes: u64,
}

impl Contents {
    /// The cells that have any record: the finished ones, then the others.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.finished.iter().chain(self.partial.iter().map(|partial| &partial.cell))
    }

    /// Whether the last start noted that it was stopped.
    pub fn was_stopped(&self) -> bool {
        self.ended == Some(Ending::Stopped)
    }

    /// How many starts came after the first one: runs that went on with the study, and the first ones of parts put together.
    pub fn restarts(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }
}

/// A start of which only the time is known.
pub fn bare_start(started: &str, number: usize, before: Ending) -> Start {
    let began = humantime::parse_rfc3339(started).ok().and_then(|began| began.duration_since(SystemTime::UNIX_EPOCH).ok());
    Start { began: began.map_or(0, |began| began.as_micros() as u64), number: number as u32, before, ..Start::default() }
}

/// A cell that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// The cell with the trials that have ended, by index. A cell that was finished with fewer trials has the seconds and
    /// confirmations of that time, and the test errors too, while the trial that was best then is still the best.
    pub cell: Cell,
    /// Whether the cell was finished with fewer trials.
    pub extended: bool,
}

/// A cell's records so far.
struct Entry {
    /// The cell as it was last finished, without its trials; of each training the last confirmation.
    cell: Cell,
    trials: BTreeMap<u32, Trial>,
    /// Trials that an extension allows to be recorded anew.
    revisable: BTreeSet<u32>,
    /// The number of the best trial of a cell that was finished with fewer trials.
    extended: Option<Option<u32>>,
    /// Where the cell is finished: its place among the finished cells.
    finished: Option<usize>,
}

impl Entry {
    /// The cell with its trials.
    fn cell(self) -> Cell {
        Cell { trials: self.trials.into_values().collect(), ..self.cell }
    }
}

/// The bytes of a journal without records, and the checksum to chain the first one to.
pub(super) fn beginning(header: &Header) -> Result<(Vec<u8>, u32), String> {
    let mut bytes = format!("{MAGIC}{VERSION}\n").into_bytes();
    let (header, checksum) = encode(header, 0)?;
    bytes.extend(header);
    Ok((bytes, checksum))
}

/// A record as it lies in the journal behind one with the checksum `previous`, and its own checksum.
pub(super) fn encode(record: &impl Serialize, previous: u32) -> Result<(Vec<u8>, u32), String> {
    let payload = postcard::to_stdvec(record).map_err(|error| format!("the record could not be encoded ({error})"))?;
    frame::framed(&payload, previous).ok_or_else(|| "the record is longer than 4 GiB: evaluate less often".into())
}

/// Records as one, so that all or none of them are found.
pub(super) fn together(records: &[Record]) -> Result<Record, String> {
    let bytes = |record| postcard::to_stdvec(record).map_err(|error| format!("the record could not be encoded ({error})"));
    records.iter().map(bytes).collect::<Result<_, _>>().map(Record::Together)
}

/// Contents of the records of a journal that are read so far.
struct Read {
    header: Header,
    cells: Vec<Entry>,
    scores: BTreeMap<u64, Vec<f32>>,
    masks: Vec<MaskRecord>,
    /// Cells that were finished.
    finished: usize,
    starts: Vec<Start>,
    ended: Option<Ending>,
}

impl Read {
    /// Takes a record that lies at byte `at`, alone or together with others.
    fn take(&mut self, one: Record, at: usize) -> Result<(), String> {
        match one {
            Record::Trial { key, trial } => {
                let entry = entry(&mut self.cells, key);
                let index = trial.index;
                let revised = entry.revisable.remove(&index);
                if entry.trials.insert(index, trial.clone()).is_some_and(|known| !revised && !known.agrees(&trial)) {
                    return Err(twice(&format!("trial {index} of the"), key, at));
                }
            }
            Record::Cell { key, trials, test_errors, seconds } => {
                let entry = entry(&mut self.cells, key);
                let first = entry.trials.keys().next().copied().unwrap_or_default();
                let known = (first..).zip(entry.trials.keys()).take_while(|(number, index)| number == *index).count();
                if known < trials as usize {
                    return Err(format!(
                        "the cell with batch size {} and sparsity {} is recorded as finished at byte {at}, but {known} of its {trials} \
                         trials are: restore the file from a copy, or {OTHER_STUDY}",
                        key.batch_size, key.sparsity
                    ));
                }
                let place = entry.finished.unwrap_or(self.finished);
                if entry.finished.is_some() && entry.cell.test_errors != test_errors {
                    return Err(twice("the end of the", key, at));
                }
                (entry.cell.test_errors, entry.cell.seconds, entry.finished) = (test_errors, seconds, Some(place));
                self.finished = self.finished.max(place + 1);
            }
            Record::Restart { started, configuration } => {
                let before = self.ended.take().unwrap_or_default();
                self.starts.push(bare_start(&started, self.starts.len(), before));
                if let Some(configuration) = configuration {
                    self.header.configuration = configuration;
                }
            }
            Record::Extension { key } => {
                let entry = entry(&mut self.cells, key);
                entry.revisable = entry.trials.keys().copied().collect();
                if entry.finished.take().is_some() {
                    entry.extended = Some(number_of_best(&entry.trials));
                }
            }
            Record::Scores { seed, values } => {
                self.scores.insert(seed, values);
            }
            Record::Mask(mask) => self.masks.push(mask),
            Record::Start(start) => {
                self.starts.pop();
                self.starts.push(start);
            }
            Record::End(ending) => self.ended = Some(ending),
            Record::Confirmation { key, confirmation } => {
                let known = &mut entry(&mut self.cells, key).cell.confirmations;
                let same = |known: &Confirmation| known.training == confirmation.training;
                let before = known.iter().position(same).map(|place| known.swap_remove(place));
                // With a higher limit a training is done again.
                if before.is_some_and(|before| before.run.steps_run == confirmation.run.steps_run && !before.agrees(&confirmation)) {
                    let Training { point, number, .. } = confirmation.training;
                    return Err(twice(&format!("confirmation {number} of point {point} of the"), key, at));
                }
                known.push(confirmation);
            }
            Record::Together(_) => return Err(strange(at)),
        }
        Ok(())
    }

    /// The contents of a journal that has these records, and `dropped_bytes` behind them.
    fn contents(self, dropped_bytes: u64) -> Contents {
        let Read { header, cells, scores, masks, starts, ended, .. } = self;
        let (mut done, partial): (Vec<Entry>, Vec<Entry>) = cells.into_iter().partition(|entry| entry.finished.is_some());
        done.sort_by_key(|entry| entry.finished);
        let finished = done.into_iter().map(Entry::cell).collect();
        let partial = partial.into_iter().map(|mut entry| {
            entry.cell.test_errors = entry.cell.test_errors.filter(|_| entry.extended == Some(number_of_best(&entry.trials)));
            Partial { extended: entry.extended.is_some(), cell: entry.cell() }
        });
        Contents { header, finished, partial: partial.collect(), scores, masks, starts, ended, dropped_bytes }
    }
}

/// Contents of a journal by its bytes, and the checksum of the last record; or in one sentence why there are none.
pub(super) fn decode(bytes: &[u8]) -> Result<(Contents, u32), String> {
    let mut at = magic(bytes)?;
    let Some(first) = frame::record(bytes, at) else {
        return Err(format!("the journal's header, at byte {at}, is damaged: restore the file from a copy, or {OTHER_STUDY}"));
    };
    let header: Header = payload(first.payload).ok_or_else(|| strange(at))?;
    at += frame::HEAD + first.payload.len();
    let mut last_checksum = first.checksum;

    let starts = vec![bare_start(&header.started, 0, Ending::First)];
    let mut read = Read { header, starts, cells: Vec::new(), scores: BTreeMap::new(), masks: Vec::new(), finished: 0, ended: None };
    while let Some(record) = frame::record(bytes, at) {
        if record.previous != last_checksum {
            return Err(format!(
                "the record at byte {at} was not written behind the one before it: records are missing, or in another order; restore the file \
                 from a copy, or {OTHER_STUDY}"
            ));
        }
        last_checksum = record.checksum;
        let records = match payload(record.payload).ok_or_else(|| strange(at))? {
            Record::Together(records) => {
                records.iter().map(|bytes| payload(bytes)).collect::<Option<Vec<Record>>>().ok_or_else(|| strange(at))?
            }
            one => vec![one],
        };
        for one in records {
            read.take(one, at)?;
        }
        at += frame::HEAD + record.payload.len();
    }
    if let Some(next) = frame::next_record(bytes, at) {
        return Err(format!(
            "the record at byte {at} is damaged, but a whole one follows at byte {next}, so this is no write cut short: restore the file \
             from a copy, or {OTHER_STUDY}"
        ));
    }
    Ok((read.contents((bytes.len() - at) as u64), last_checksum))
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

/// The value of a record or a checkpoint, if its bytes are one's and no more.
pub(super) fn payload<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

fn number_of_best(trials: &BTreeMap<u32, Trial>) -> Option<u32> {
    best(trials.values()).map(|trial| trial.index)
}

fn entry(cells: &mut Vec<Entry>, key: CellKey) -> &mut Entry {
    let bits = |key: CellKey| (key.batch_size, key.sparsity.to_bits());
    // Records of a cell follow each other, so the last cells are the first to look at.
    let place = cells.iter().rposition(|entry| bits(entry.cell.key) == bits(key)).unwrap_or_else(|| {
        let cell = Cell { key, trials: Vec::new(), test_errors: None, seconds: 0.0, confirmations: Vec::new() };
        cells.push(Entry { cell, trials: BTreeMap::new(), revisable: BTreeSet::new(), extended: None, finished: None });
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

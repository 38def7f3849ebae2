//! A small study: its header, trials, records and checkpoint, and what a journal with such records says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dps::Error;
use dps::backend::LaneState;
use dps::journal::{Checkpoint, Contents, Header, Journal, Loaded, Partial, Record, load};
use dps::optimizer::{Metaparameter, Metaparameters};
use dps::records::{Cell, CellKey, CurvePoint, Ending, Measurement, Start, Status, Trial};
use dps::storage::Disk;
use dps::training::{CellState, LaneRecord};

pub const CONFIGURATION: &str =
    "[workload]\nnetwork = \"simple-cnn\"\n[grid]\nbatch_sizes = [2, 64]\ntrials = 3\n[execution]\nthreads = 1\nrace = true\n";

pub const DENSE: CellKey = CellKey { batch_size: 2, sparsity: 0.0 };
pub const SPARSE: CellKey = CellKey { batch_size: 64, sparsity: 0.9 };

/// A new folder, and the path of a journal in it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    (folder, path)
}

pub fn header() -> Header {
    Header {
        configuration: CONFIGURATION.into(),
        digest: "c0ffee".into(),
        data_digest: "da7a".into(),
        earlier_data_digest: String::new(),
        program_version: "0.1.0".into(),
        commit: String::new(),
        started: "2026-01-02T03:04:05Z".into(),
    }
}

pub fn trial(index: u32) -> Trial {
    let goal = index == 1;
    Trial {
        index,
        metaparameters: {
            let mut values =
                Metaparameters::from([(Metaparameter::LearningRate, 0.1 / 3.0 + f64::from(index)), (Metaparameter::Momentum, 0.9)]);
            values.set(Metaparameter::EndLearningRateFactor, goal.then_some(1e-300));
            values
        },
        status: if goal { Status::Complete } else { Status::Censored },
        steps: goal.then_some(32),
        steps_run: 32,
        parameters_kept: 6_235,
        mask_hash: u64::MAX - u64::from(index),
        dead_layers: index,
        curve: vec![
            CurvePoint { step: 16, loss: f32::MIN_POSITIVE / 2.0, errors: 300, examples: 6_000 },
            CurvePoint { step: 32, loss: -0.0, errors: 200 + index, examples: 6_000 },
        ],
        measurements: vec![
            Measurement { step: 0, loss: 2.5, gradient_norm: 1.0 / 3.0, squared_norms: 1e300, lipschitz: Some(-0.0) },
            Measurement { step: 32, loss: 0.1, gradient_norm: 0.5, squared_norms: 0.75 + f64::from(index), lipschitz: None },
        ],
        seconds: 1.25,
    }
}

/// A trial with what equality of floats does not see: a NaN with a sign and bits of its own.
pub fn infeasible(index: u32) -> Trial {
    let curve = vec![CurvePoint { step: 16, loss: f32::from_bits(0xFFC0_1234), errors: 0, examples: 0 }];
    Trial { status: Status::Infeasible, curve, seconds: f64::NAN, ..trial(index) }
}

pub fn ended(key: CellKey, trial: Trial) -> Record {
    Record::Trial { key, trial }
}

pub fn finished(key: CellKey, trials: u32, test_errors: Option<u32>) -> Record {
    Record::Cell { key, trials, test_errors, seconds: 3.5 }
}

pub fn script() -> Vec<Record> {
    let restart = Record::Restart { started: "2026-01-02T04:00:00Z".into(), configuration: None };
    vec![
        ended(DENSE, trial(1)),
        ended(DENSE, trial(0)),
        finished(DENSE, 2, Some(77)),
        restart,
        ended(SPARSE, trial(2)),
        ended(SPARSE, trial(0)),
        Record::Scores { seed: 7, values: vec![0.25, -0.0, f32::MIN_POSITIVE / 2.0] },
    ]
}

pub fn checkpoint(step: u32) -> Checkpoint {
    let lane = |index: u32| LaneRecord {
        trial: Trial { status: Status::Incomplete, steps: None, ..trial(index) },
        state: LaneState {
            weights: (0..50).map(|i| i as f32 / 7.0 + step as f32).collect(),
            velocity: vec![],
            squares: vec![],
            average: vec![],
            loss: 0.25,
            broken: None,
        },
        margins: vec![-0.0, 1.5, f32::NEG_INFINITY],
    };
    let Header { digest, data_digest, .. } = header();
    let state = CellState { step, lanes: vec![lane(0), lane(2)], ended: vec![trial(1)], test_errors: Some(4), seconds: 0.1 };
    Checkpoint { digest, data_digest, key: SPARSE, confirming: None, state }
}

pub fn open(path: &Path) -> dps::Result<(Journal, Contents)> {
    Journal::open(path, &header(), Arc::new(Disk)).map(|opened| (opened.journal, opened.contents))
}

pub fn load_checkpoint(path: &Path) -> Loaded {
    load(path, "c0ffee", "da7a", &Disk).unwrap()
}

/// The one sentence of an error, which must be the journal's.
pub fn problem<T>(result: dps::Result<T>) -> String {
    match result {
        Err(error @ Error::Journal { .. }) => {
            assert_eq!(error.exit_code(), 7);
            error.to_string()
        }
        Err(other) => panic!("expected a journal's error, found {other}"),
        Ok(_) => panic!("expected an error"),
    }
}

/// A journal with these records, and the file's length before each of them and at the end.
pub fn journal_of(path: &Path, records: &[Record]) -> Vec<usize> {
    let (mut journal, _) = open(path).unwrap();
    let length = || fs::metadata(path).unwrap().len() as usize;
    let mut lengths = vec![length()];
    for record in records {
        journal.append(std::slice::from_ref(record)).unwrap();
        lengths.push(length());
    }
    lengths
}

/// The times of the header and of the restart, in microseconds since 1970.
pub const BEGAN: u64 = 1_767_323_045_000_000;
pub const LATER: u64 = 1_767_326_400_000_000;

/// Contents of a journal with these records, by an independent and simple-minded way; for records without duplicates.
pub fn expected(records: &[Record]) -> Contents {
    let trials = |key: CellKey| -> Vec<Trial> {
        let mut trials: Vec<Trial> = records
            .iter()
            .filter_map(|record| match record {
                Record::Trial { key: of, trial } if *of == key => Some(trial.clone()),
                _ => None,
            })
            .collect();
        trials.sort_by_key(|trial| trial.index);
        trials
    };
    let first = Start { began: BEGAN, before: Ending::First, ..Start::default() };
    let mut contents = Contents {
        header: header(),
        finished: vec![],
        partial: vec![],
        scores: BTreeMap::new(),
        masks: vec![],
        starts: vec![first.clone()],
        ended: None,
        dropped_bytes: 0,
    };
    for record in records {
        match *record {
            Record::Cell { key, test_errors, seconds, .. } => {
                contents.finished.push(Cell { key, trials: trials(key), test_errors, seconds, confirmations: Vec::new() });
            }
            Record::Restart { .. } => contents.starts.push(Start { began: LATER, number: 1, before: Ending::Unknown, ..first.clone() }),
            Record::Trial { .. }
            | Record::Extension { .. }
            | Record::Together(_)
            | Record::Start(_)
            | Record::End(_)
            | Record::Confirmation { .. } => {}
            Record::Mask(ref mask) => contents.masks.push(mask.clone()),
            Record::Scores { seed, ref values } => drop(contents.scores.insert(seed, values.clone())),
        }
    }
    for record in records {
        if let Record::Trial { key, .. } = *record
            && !contents.finished.iter().any(|cell| cell.key == key)
            && !contents.partial.iter().any(|partial| partial.cell.key == key)
        {
            let cell = Cell { key, trials: trials(key), test_errors: None, seconds: 0.0, confirmations: Vec::new() };
            contents.partial.push(Partial { cell, extended: false });
        }
    }
    contents
}

//! The journal, checkpoint and lock of a study, under torn writes, damage, kills and every failing file operation.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use dps::Error;
use dps::backend::LaneState;
use dps::config::Metaparameter;
use dps::journal::{
    Checkpoint, Contents, Header, Journal, Loaded, Lock, Partial, Record, checkpoint_path, journal_path, load, lock_path, overwrites, save,
    set_aside,
};
use dps::records::{Cell, CellKey, CurvePoint, Ending, Measurement, Start, Status, Trial};
use dps::search::Metaparameters;
use dps::storage::Disk;
use dps::training::{CellState, LaneRecord};
use proptest::prelude::*;
use support::faults::{Failing, Fault};

const CONFIGURATION: &str =
    "[workload]\nnetwork = \"simple-cnn\"\n[grid]\nbatch_sizes = [2, 64]\ntrials = 3\n[execution]\nthreads = 1\nrace = true\n";
const DENSE: CellKey = CellKey { batch_size: 2, sparsity: 0.0 };
const SPARSE: CellKey = CellKey { batch_size: 64, sparsity: 0.9 };

fn header() -> Header {
    Header {
        configuration: CONFIGURATION.into(),
        digest: "c0ffee".into(),
        data_digest: "da7a".into(),
        program_version: "0.1.0".into(),
        commit: String::new(),
        started: "2026-01-02T03:04:05Z".into(),
    }
}

fn trial(index: u32) -> Trial {
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
fn infeasible(index: u32) -> Trial {
    let curve = vec![CurvePoint { step: 16, loss: f32::from_bits(0xFFC0_1234), errors: 0, examples: 0 }];
    Trial { status: Status::Infeasible, curve, seconds: f64::NAN, ..trial(index) }
}

fn ended(CellKey { batch_size, sparsity }: CellKey, trial: Trial) -> Record {
    Record::Trial { batch_size, sparsity, trial }
}

fn finished(CellKey { batch_size, sparsity }: CellKey, trials: u32, test_errors: Option<u32>) -> Record {
    Record::Cell { batch_size, sparsity, trials, test_errors, seconds: 3.5 }
}

fn script() -> Vec<Record> {
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

fn checkpoint(step: u32) -> Checkpoint {
    let lane = |trial: u32| LaneRecord {
        trial,
        state: LaneState {
            weights: (0..50).map(|i| i as f32 / 7.0 + step as f32).collect(),
            velocity: vec![],
            squares: vec![],
            average: vec![],
            loss: 0.25,
            broken: None,
        },
        curve: vec![CurvePoint { step: 16, loss: 0.5, errors: 3, examples: 9 }],
        measurements: vec![Measurement { step: 0, loss: 2.0, gradient_norm: 0.1, squared_norms: 0.2, lipschitz: Some(3.0) }],
        margins: vec![-0.0, 1.5, f32::NEG_INFINITY],
        seconds: 0.5,
    };
    let Header { digest, data_digest, .. } = header();
    let state = CellState { step, lanes: vec![lane(0), lane(2)], ended: vec![trial(1)], test_errors: Some(4), seconds: 0.1 };
    Checkpoint { digest, data_digest, batch_size: 64, sparsity: 0.9, state }
}

fn open(path: &Path) -> dps::Result<(Journal, Contents)> {
    Journal::open(path, &header(), Arc::new(Disk)).map(|opened| (opened.journal, opened.contents))
}

fn load_checkpoint(path: &Path) -> Loaded {
    load(path, "c0ffee", "da7a", &Disk).unwrap()
}

/// The one sentence of an error, which must be the journal's.
fn problem<T>(result: dps::Result<T>) -> String {
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
fn journal_of(path: &Path, records: &[Record]) -> Vec<usize> {
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
const BEGAN: u64 = 1_767_323_045_000_000;
const LATER: u64 = 1_767_326_400_000_000;

/// What a journal with these records says, by an independent and simple-minded way; for records without duplicates.
fn expected(records: &[Record]) -> Contents {
    let trials = |key: CellKey| -> Vec<Trial> {
        let mut trials: Vec<Trial> = records
            .iter()
            .filter_map(|record| match record {
                Record::Trial { batch_size, trial, .. } if *batch_size == key.batch_size => Some(trial.clone()),
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
            Record::Cell { batch_size, sparsity, test_errors, seconds, .. } => {
                let key = CellKey { batch_size, sparsity };
                contents.finished.push(Cell { key, trials: trials(key), test_errors, seconds });
            }
            Record::Restart { .. } => contents.starts.push(Start { began: LATER, number: 1, before: Ending::Unknown, ..first.clone() }),
            Record::Trial { .. } | Record::Extension { .. } | Record::Together(_) | Record::Start(_) | Record::End(_) => {}
            Record::Mask(ref mask) => contents.masks.push(mask.clone()),
            Record::Scores { seed, ref values } => drop(contents.scores.insert(seed, values.clone())),
        }
    }
    for record in records {
        if let Record::Trial { batch_size, sparsity, .. } = *record {
            let key = CellKey { batch_size, sparsity };
            if !contents.finished.iter().any(|cell| cell.key == key) && !contents.partial.iter().any(|partial| partial.key == key) {
                contents.partial.push(Partial { key, trials: trials(key), extended: None });
            }
        }
    }
    contents
}

#[test]
fn what_is_appended_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal_path(&folder.path().join("new/results/x.h5"));
    assert_eq!(path, folder.path().join("new/results/x.journal"));
    assert_eq!(Journal::read(&path, &Disk).unwrap(), None);
    journal_of(&path, &script());
    let (mut journal, contents) = open(&path).unwrap();
    assert_eq!(contents, expected(&script()));
    assert_eq!(contents.finished[0].key, DENSE);
    assert_eq!(contents.finished[0].steps_to_result(), Some(32));
    assert_eq!(contents.partial[0].trials.iter().map(|trial| trial.index).collect::<Vec<_>>(), [0, 2]);

    journal.append(&[ended(SPARSE, trial(1)), finished(SPARSE, 3, None)]).unwrap();
    journal.append(&[ended(CellKey { batch_size: 64, sparsity: 0.95 }, infeasible(0))]).unwrap();
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.finished[1].key, contents.finished[1].test_errors), (SPARSE, None));
    let read = &contents.partial[0].trials[0];
    assert_eq!(read.curve[0].loss.to_bits(), 0xFFC0_1234);
    assert!(read.seconds.is_nan());
    assert_eq!(format!("{read:?}"), format!("{:?}", infeasible(0)));
}

/// When, where and by what a study was started.
fn start(number: u32, before: Ending) -> Start {
    let host_names = "node1, node2".to_owned();
    Start { began: LATER, number, before, ranks: 4, threads: 2, hosts: 2, host_names, program: "0.2.0 (commit c0ffee)".to_owned() }
}

#[test]
fn each_start_knows_how_the_one_before_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("x.h5");
    let path = journal_path(&output);
    let restart = Record::Restart { started: "2026-01-02T04:00:00Z".into(), configuration: None };
    let note = |code: u8| Journal::note_end(&output, code, Arc::new(Disk));
    let ended = || Journal::read(&path, &Disk).unwrap().unwrap().ended;
    note(137).unwrap();
    assert!(!path.exists(), "there was no study to note it of");
    let lengths = journal_of(&path, &[Record::Start(start(0, Ending::First)), Record::End(Ending::Stopped)]);
    assert_eq!(ended(), Some(Ending::Stopped));
    for code in [0, 75] {
        note(code).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, lengths[2], "the study says that itself");
    }
    // The launcher was killed, and the ranks that it left stopped.
    note(137).unwrap();
    assert_eq!(ended(), Some(Ending::Killed(9)));
    // What is started without reaching the study is no end of it.
    note(5).unwrap();
    assert_eq!(ended(), Some(Ending::Killed(9)));
    open(&path).unwrap().0.append(std::slice::from_ref(&restart)).unwrap();
    assert_eq!(ended(), None);
    let bare = Start { began: LATER, number: 1, before: Ending::Killed(9), ..Start::default() };
    assert_eq!(open(&path).unwrap().1.starts, [start(0, Ending::First), bare], "of a program that recorded no more");
    open(&path).unwrap().0.append(&[Record::Start(start(1, Ending::Killed(9)))]).unwrap();
    note(5).unwrap();
    open(&path).unwrap().0.append(&[restart]).unwrap();
    let contents = open(&path).unwrap().1;
    assert_eq!(contents.restarts(), 2);
    assert_eq!((contents.starts[1].clone(), contents.starts[2].before), (start(1, Ending::Killed(9)), Ending::RankLost));
    // The bytes of both kinds of record, as of the others.
    assert_eq!(crc32fast::hash(&fs::read(&path).unwrap()[lengths[0]..lengths[2]]), 1_230_213_242);
}

#[test]
fn an_empty_file_is_started_as_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    fs::write(&path, "").unwrap();
    journal_of(&path, &script());
    assert_eq!(open(&path).unwrap().1, expected(&script()));
}

/// The bytes of version 5, by their checksum: whoever changes them, or a recorded field, must raise the version.
#[test]
fn the_format_of_version_5_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let lengths = journal_of(&path, &script());
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"dps journal 5\n"));
    // The scores, last, are the youngest kind of record.
    assert_eq!(crc32fast::hash(&bytes[..lengths[script().len() - 1]]), 1_868_360_763);
    assert_eq!(crc32fast::hash(&bytes[lengths[script().len() - 1]..]), 4_101_411_026);
    let path = folder.path().join("x.checkpoint");
    save(&path, &checkpoint(5), &Disk).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"dps checkpoint 7\n"));
    assert_eq!(crc32fast::hash(&bytes), 1_115_479_559);
}

#[test]
fn a_record_torn_at_any_byte_is_cut_off_and_the_study_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let (records, last) = (script(), script().len() - 1);
    let lengths = journal_of(&path, &records);
    let whole = fs::read(&path).unwrap();
    for cut in lengths[last]..lengths[last + 1] {
        for zeros in [0, 40] {
            let mut torn = whole[..cut].to_vec();
            // As some file systems leave a file that was growing when the power went.
            torn.resize(cut + zeros, 0);
            // A record whose last bytes are zeros is whole with them.
            if torn.starts_with(&whole) {
                continue;
            }
            fs::write(&path, &torn).unwrap();
            let dropped_bytes = (torn.len() - lengths[last]) as u64;
            let before = Contents { dropped_bytes, ..expected(&records[..last]) };
            assert_eq!(Journal::read(&path, &Disk).unwrap().unwrap(), before, "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap(), torn, "reading changed the file");
            let (mut journal, contents) = open(&path).unwrap();
            assert_eq!(contents, before, "cut at {cut}");
            journal.append(&records[last..=last]).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
    }
}

#[test]
fn any_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let (records, last) = (script(), script().len() - 1);
    let lengths = journal_of(&path, &records);
    let whole = fs::read(&path).unwrap();
    let dropped_bytes = (lengths[last + 1] - lengths[last]) as u64;
    for at in 0..whole.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&path, &bytes).unwrap();
            let read = Journal::read(&path, &Disk);
            if at >= lengths[last] {
                assert_eq!(read.unwrap().unwrap(), Contents { dropped_bytes, ..expected(&records[..last]) }, "byte {at}");
            } else {
                let problem = problem(read);
                assert!(problem.contains("--fresh") && !problem.contains('\n'), "{problem}");
                if at >= lengths[0] {
                    let record = lengths.iter().rev().find(|&&start| start <= at).unwrap();
                    assert!(problem.contains(&format!("the record at byte {record} is damaged")), "byte {at}: {problem}");
                }
                if flip == 255 {
                    assert_eq!(self::problem(open(&path)), problem);
                    assert_eq!(fs::read(&path).unwrap(), bytes, "a refused journal was changed");
                }
            }
        }
    }
}

#[test]
fn a_trial_recorded_twice_counts_once_if_it_went_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    journal_of(&path, &[ended(DENSE, trial(1)), ended(DENSE, infeasible(0)), finished(DENSE, 2, Some(7)), ended(DENSE, infeasible(0))]);
    journal_of(&path, &[ended(DENSE, Trial { seconds: 9.0, ..trial(1) }), finished(DENSE, 2, Some(7))]);
    let contents = open(&path).unwrap().1;
    assert_eq!((contents.finished.len(), contents.partial.len()), (1, 0));
    let trials = &contents.finished[0].trials;
    assert_eq!(trials.iter().map(|trial| trial.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(trials[1].seconds, 9.0);

    let whole = fs::read(&path).unwrap();
    journal_of(&path, &[ended(DENSE, Trial { steps_run: 48, ..trial(1) })]);
    let found = problem(open(&path));
    assert!(
        found.contains("trial 1 of the cell with batch size 2 and sparsity 0 is recorded twice")
            && found.contains(&whole.len().to_string()),
        "{found}"
    );
    fs::write(&path, &whole).unwrap();
    journal_of(&path, &[finished(DENSE, 2, Some(8))]);
    assert!(problem(open(&path)).contains("the end of the cell with batch size 2"));
}

#[test]
fn another_study_is_refused_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    journal_of(&path, &script());
    let whole = fs::read(&path).unwrap();
    let refused = |header: Header| problem(Journal::open(&path, &header, Arc::new(Disk)));
    let changed = |from: &str, to: &str| Header { configuration: CONFIGURATION.replace(from, to), digest: "other".into(), ..header() };

    // Other cells and trials are no other study.
    let found =
        refused(changed("network = \"simple-cnn\"\n[grid]\nbatch_sizes = [2, 64]", "optimizer = \"sgd\"\n[grid]\nbatch_sizes = [2, 128]"));
    for difference in [
        "workload.network: journal has \"simple-cnn\", configuration has nothing",
        "workload.optimizer: journal has nothing, configuration has \"sgd\"",
    ] {
        assert!(found.contains(difference) && !found.contains("grid"), "{found}");
    }
    let found = refused(Header {
        configuration: CONFIGURATION.replace("threads = 1", "threads = 2").replace("true", "false"),
        digest: "other".into(),
        ..header()
    });
    assert!(found.contains("execution.race: journal has true, configuration has false") && !found.contains("threads"), "{found}");
    assert!(refused(changed("threads = 1", "threads = 2")).contains("digest: journal has c0ffee, configuration has other"));
    assert!(refused(changed("[grid]", "[[")).contains("digest: journal has c0ffee, configuration has other"));
    assert!(refused(Header { data_digest: "0dd".into(), ..header() }).contains("journal has da7a, the data files have 0dd"));

    // What the digest leaves out, and who runs the study, do not matter.
    let later = Header { program_version: "0.1.1".into(), configuration: CONFIGURATION.replace("threads = 1", "threads = 2"), ..header() };
    assert_eq!(Journal::open(&path, &later, Arc::new(Disk)).unwrap().contents, expected(&script()));

    fs::write(&path, [b"dps journal 23\n", &whole[14..]].concat()).unwrap();
    assert!(problem(open(&path)).contains("format version 23, and this program knows version 5"));
    // Before version 4 records were not chained.
    fs::write(&path, [b"dps journal 3\n", &whole[14..]].concat()).unwrap();
    assert!(problem(open(&path)).contains("format version 3, and this program knows version 5: use the program that started the study"));
    for other in [b"step,loss\n1,2\n".as_slice(), b"\x89HDF\r\n\x1a\n", b"dps journal \n", b"d", b"dps journal 5"] {
        fs::write(&path, other).unwrap();
        assert!(!problem(open(&path)).contains('\n'));
        assert_eq!(fs::read(&path).unwrap(), other);
    }
    assert!(problem(open(folder.path())).contains("the journal could not be read"));
}

/// Runs a study's storage calls; returns what was acknowledged: the records, the step of the last checkpoint, and whether saving a later
/// one was tried.
fn run(path: &Path, checkpoint_path: &Path, storage: &Arc<Failing<Disk>>) -> (Vec<Record>, Option<u32>, bool) {
    let (mut acknowledged, mut saved, mut tried_since) = (Vec::new(), None, false);
    let Ok(opened) = Journal::open(path, &header(), storage.clone()) else { return (acknowledged, saved, tried_since) };
    let mut journal = opened.journal;
    for (place, record) in script().into_iter().enumerate() {
        // After a failure a program would stop; one that goes on must find the journal in order too. It cannot finish a cell whose trials it could
        // not record.
        if matches!(record, Record::Cell { .. }) && acknowledged.len() < place {
            continue;
        }
        if journal.append(std::slice::from_ref(&record)).is_ok() {
            acknowledged.push(record);
        }
        if place % 2 == 1 {
            let step = place as u32;
            if save(checkpoint_path, &checkpoint(step), &**storage).is_ok() {
                (saved, tried_since) = (Some(step), false);
            } else {
                tried_since = true;
            }
        }
    }
    (acknowledged, saved, tried_since)
}

#[test]
fn every_failing_operation_leaves_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    for calls in [1, 2, 3, u64::MAX] {
        for written in [0, 5, 13, usize::MAX] {
            for at in 1.. {
                let case = folder.path().join(format!("{calls}-{written}-{at}"));
                let (path, aside) = (case.join("x.journal"), case.join("x.checkpoint"));
                let storage = Arc::new(Failing::new(Disk, at, Fault { kind: ErrorKind::StorageFull, written, calls }));
                let (acknowledged, saved, tried_since) = run(&path, &aside, &storage);
                if (storage.operations().len() as u64) < at {
                    assert!(at > 30, "only {at} operations were tried");
                    assert_eq!(acknowledged, script());
                    break;
                }

                // All that was acknowledged is there, and nothing else but, possibly, the last record whose append failed.
                let contents = open(&path).unwrap_or_else(|error| panic!("operation {at}: {error}")).1;
                let attempted: Vec<Record> = script().into_iter().filter(|record| !acknowledged.contains(record)).collect();
                let said = Contents { dropped_bytes: 0, ..contents };
                let with = |record: &Record| expected(&[acknowledged.as_slice(), std::slice::from_ref(record)].concat());
                assert!(
                    said == expected(&acknowledged) || attempted.iter().any(|record| said == with(record)),
                    "operation {at}, {calls} calls: {said:?}"
                );
                if calls == 1 {
                    assert_eq!((said, contents.dropped_bytes), (expected(&acknowledged), 0), "operation {at}: a torn end was left");
                }

                match load_checkpoint(&aside) {
                    Loaded::Absent => assert_eq!(saved, None, "operation {at}"),
                    Loaded::Checkpoint(found) => {
                        assert_eq!(found, checkpoint(found.state.step));
                        assert!(Some(found.state.step) == saved || (tried_since && Some(found.state.step) > saved), "operation {at}");
                    }
                    Loaded::Damaged(sentence) => panic!("operation {at}: {sentence}"),
                }
                // And on a healthy disk the study ends as it would have.
                let (mut journal, _) = open(&path).unwrap();
                attempted.iter().for_each(|record| journal.append(std::slice::from_ref(record)).unwrap());
                let Contents { mut finished, mut partial, .. } = open(&path).unwrap().1;
                partial.iter_mut().for_each(|cell| cell.trials.sort_by_key(|trial| trial.index));
                finished.sort_by_key(|cell| cell.key.batch_size);
                assert_eq!((finished, partial), (expected(&script()).finished, expected(&script()).partial), "operation {at}");
            }
        }
    }
}

#[test]
fn what_is_acknowledged_is_synced_before_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let storage = Arc::new(Failing::new(Disk, u64::MAX, Fault { kind: ErrorKind::Other, written: 0, calls: 1 }));
    let mut done = 0;
    let mut since = || {
        let operations = storage.operations();
        let new = operations[done..].join(" ");
        done = operations.len();
        new
    };
    const PUBLISH: &str = "create append sync rename sync_folder";
    let mut journal = Journal::open(&path, &header(), storage.clone()).unwrap().journal;
    assert_eq!(since(), format!("read {PUBLISH} open sync"));
    journal.append(&script()[..1]).unwrap();
    assert_eq!(since(), "append sync");
    Journal::open(&path, &header(), storage.clone()).unwrap();
    assert_eq!(since(), "read sync_folder open sync", "its name, too");
    save(&folder.path().join("x.checkpoint"), &checkpoint(1), &*storage).unwrap();
    assert_eq!(since(), PUBLISH);
    set_aside(&folder.path().join("x.h5"), &*storage).unwrap();
    assert_eq!(since(), "rename rename sync_folder");
}

#[test]
fn a_failed_append_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    // The write fails, then the sync; then either, and taking the record back too.
    for (operation, calls, words) in [(1, 1, "taken back"), (2, 1, "taken back"), (1, 2, "not be cut off"), (2, 2, "not be cut off")] {
        let path = folder.path().join(format!("{operation}-{calls}.journal"));
        let started = {
            let counting = Arc::new(Failing::new(Disk, u64::MAX, Fault { kind: ErrorKind::Other, written: 0, calls }));
            Journal::open(&path, &header(), counting.clone()).unwrap();
            fs::remove_file(&path).unwrap();
            counting.operations().len() as u64
        };
        let storage = Arc::new(Failing::new(Disk, started + operation, Fault { kind: ErrorKind::StorageFull, written: 9, calls }));
        let mut journal = Journal::open(&path, &header(), storage).unwrap().journal;
        let found = problem(journal.append(&script()[..1]));
        assert!(found.contains(words) && found.contains("free some space"), "{found}");
        if calls == 1 {
            journal.append(&script()[1..2]).unwrap();
            assert_eq!(open(&path).unwrap().1, expected(&script()[1..2]));
        } else {
            assert_eq!(open(&path).unwrap().1.dropped_bytes, if operation == 1 { 9 } else { 0 });
        }
    }
}

#[test]
fn a_checkpoint_returns_bit_for_bit_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = checkpoint_path(&folder.path().join("x.h5"));
    assert_eq!(load_checkpoint(&path), Loaded::Absent);
    let mut written = checkpoint(7);
    written.state.lanes[0].state.weights[3] = f32::from_bits(0x7FC0_0001);
    written.state.lanes[1].state.velocity = vec![-0.0; 50];
    save(&path, &written, &Disk).unwrap();
    let Loaded::Checkpoint(read) = load_checkpoint(&path) else { panic!("not loaded") };
    assert_eq!(format!("{read:?}"), format!("{written:?}"));
    assert_eq!(read.state.lanes[0].state.weights[3].to_bits(), 0x7FC0_0001);

    let damaged = |loaded: Loaded| match loaded {
        Loaded::Damaged(sentence) => sentence,
        other => panic!("expected a sentence, found {other:?}"),
    };
    assert!(damaged(load(&path, "other", "da7a", &Disk).unwrap()).contains("is of another configuration"));
    assert!(damaged(load(&path, "c0ffee", "other", &Disk).unwrap()).contains("is of other data"));
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        assert!(damaged(load_checkpoint(&path)).contains("is damaged or of another version"), "byte {at} flipped");
        fs::write(&path, &whole[..at]).unwrap();
        assert!(damaged(load_checkpoint(&path)).contains("is damaged or of another version"), "cut at {at}");
    }
    assert!(problem(load(folder.path(), "", "", &Disk)).contains("could not be read"));
}

#[test]
fn starting_over_moves_everything_aside() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("x.h5");
    let at = |name: &str| folder.path().join(name);
    assert_eq!(set_aside(&result, &Disk).unwrap(), []);
    for (round, expected) in [1, 3].into_iter().enumerate() {
        fs::write(&result, format!("result {round}")).unwrap();
        fs::write(at("x.journal"), format!("journal {round}")).unwrap();
        if round == 0 {
            fs::write(at("x.checkpoint"), "checkpoint").unwrap();
            // Free for the journal but not for the result, so not free.
            fs::write(at("x.h5.old-2"), "someone's").unwrap();
        }
        let moved = set_aside(&result, &Disk).unwrap();
        assert_eq!(moved.len(), 3 - round);
        assert_eq!(moved.last().unwrap().1, at(&format!("x.journal.old-{expected}")));
        assert_eq!(fs::read_to_string(at(&format!("x.h5.old-{expected}"))).unwrap(), format!("result {round}"));
        assert_eq!(fs::read_to_string(at(&format!("x.journal.old-{expected}"))).unwrap(), format!("journal {round}"));
        assert!(!result.exists() && !at("x.journal").exists() && !at("x.checkpoint").exists());
    }
    assert_eq!(fs::read_to_string(at("x.h5.old-2")).unwrap(), "someone's");

    // Stopped at any operation, the journal is the last to go.
    for call in 1..=4 {
        for name in ["x.h5", "x.journal", "x.checkpoint"] {
            fs::write(at(name), name).unwrap();
        }
        let storage = Failing::new(Disk, call, Fault { kind: ErrorKind::PermissionDenied, written: 0, calls: u64::MAX });
        assert!(problem(set_aside(&result, &storage)).contains("choose a folder you may write to"));
        assert_eq!(at("x.journal").exists(), call <= 3);
    }
}

#[test]
fn results_of_different_names_have_different_journals() {
    let names = ["x.h5", "x", "x.v2", "x.v2.h5", "x.journal", "x.hdf5"];
    let journals: std::collections::BTreeSet<_> = names.iter().map(|name| journal_path(Path::new(name))).collect();
    // "x" and "x.h5" are the exception: no one has both.
    assert_eq!(journals.len(), names.len() - 2);
}

#[cfg(unix)]
#[test]
fn a_study_does_not_write_over_its_configuration_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("x.journal"), "a configuration").unwrap();
    std::os::unix::fs::symlink(at("x.journal"), at("link.h5")).unwrap();
    let config = at("x.journal");
    for output in ["x.h5", "x.journal", "./x.h5", "../", "link.h5"] {
        let output = if output == "../" { at("../").join(folder.path().file_name().unwrap()).join("x.h5") } else { at(output) };
        assert!(overwrites(&output, &config), "{output:?}");
    }
    for output in ["y.h5", "x.journal.h5"] {
        assert!(!overwrites(&at(output), &config), "{output:?}");
    }
    // By name alone, where nothing is there yet.
    assert!(overwrites(Path::new("no/a.toml"), Path::new("no/a.toml")));
}

#[test]
fn a_second_job_is_refused_and_a_killed_ones_lock_is_no_obstacle() {
    const HOLD: &str = "DPS_TEST_LOCK_TO_HOLD";
    if let Some(path) = std::env::var_os(HOLD) {
        let _lock = Lock::take(Path::new(&path)).unwrap();
        println!("\nheld");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = lock_path(&folder.path().join("results/x.h5"));
    let lock = Lock::take(&path).unwrap();
    assert!(problem(Lock::take(&path)).contains(&format!("process {} on ", std::process::id())));
    drop(lock);
    assert!(!path.exists());

    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_second_job_is_refused_and_a_killed_ones_lock_is_no_obstacle"])
        .env(HOLD, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap() == "held"), "the child did not take the lock");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let found = problem(Lock::take(&path));
    assert!(found.contains(&format!("process {} on {}, for 0 minutes", child.id(), host.trim())), "{found}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(path.exists(), "the killed job left its file");
    let _lock = Lock::take(&path).unwrap();
    assert!(problem(Lock::take(&path)).contains(&format!("process {} on ", std::process::id())));
}

/// One record's bytes as the journal stores it behind one with the checksum `previous`, and its own checksum.
fn framed(payload: &[u8], previous: u32) -> (Vec<u8>, u32) {
    let (length, previous) = ((payload.len() as u32).to_le_bytes(), previous.to_le_bytes());
    let checksum = crc32fast::hash(&[length.as_slice(), &previous, payload].concat());
    ([&length, &length.map(|byte| !byte), &previous, &checksum.to_le_bytes(), payload].concat(), checksum)
}

/// Where each record of a journal begins, and the file's end.
fn places(bytes: &[u8]) -> Vec<usize> {
    let mut places = vec![bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1];
    while let Some(length) = bytes.get(places[places.len() - 1]..).and_then(|rest| rest.first_chunk()) {
        places.push(places[places.len() - 1] + 16 + u32::from_le_bytes(*length) as usize);
    }
    places
}

#[test]
fn a_record_that_is_missing_or_out_of_place_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    journal_of(&path, &script());
    let whole = fs::read(&path).unwrap();
    let places = places(&whole);
    assert_eq!(places.len(), script().len() + 2);
    let records: Vec<&[u8]> = places.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
    let refused = |records: &[&[u8]]| {
        fs::write(&path, [&whole[..places[0]], &records.concat()].concat()).unwrap();
        problem(Journal::read(&path, &Disk))
    };
    // The header is the first; without the last one a journal is that of an earlier moment.
    for missing in 1..records.len() - 1 {
        let left = [&records[..missing], &records[missing + 1..]].concat();
        let found = refused(&left);
        assert!(found.contains(&format!("the record at byte {} was not written behind the one before it", places[missing])), "{found}");
        let mut swapped = records.clone();
        swapped.swap(missing, missing + 1);
        assert!(refused(&swapped).contains("was not written behind"));
        let doubled = [&records[..=missing], &records[missing..]].concat();
        assert!(refused(&doubled).contains("was not written behind"));
    }
}

#[test]
fn a_cell_is_finished_only_with_all_its_trials() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    for (trials, known) in [(3, 2), (1, 1), (2, 2)] {
        let records = [ended(DENSE, trial(1)), ended(DENSE, trial(0)), ended(SPARSE, trial(2)), finished(DENSE, trials, None)];
        let _ = fs::remove_file(&path);
        journal_of(&path, &records);
        match Journal::read(&path, &Disk) {
            Ok(contents) => assert_eq!((known >= trials, contents.unwrap().finished.len()), (true, 1)),
            refused => {
                let found = problem(refused);
                assert!(known < trials && found.contains("2 of its 3 trials are"), "{found}");
            }
        }
    }
}

#[test]
fn a_finished_cell_may_get_more_trials_which_cut_the_others_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let extension = Record::Extension { batch_size: DENSE.batch_size, sparsity: DENSE.sparsity };
    let begun = [ended(DENSE, trial(0)), ended(DENSE, trial(1)), finished(DENSE, 2, Some(7)), extension];
    journal_of(&path, &begun);
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.finished.len(), contents.partial.len()), (0, 1));
    assert_eq!((contents.partial[0].trials.len(), contents.partial[0].extended), (2, Some((Some(7), 3.5))));
    // The best so far is cut short by a better one.
    let cut = Trial { status: Status::Censored, steps: None, steps_run: 16, ..trial(1) };
    journal_of(&path, &[ended(DENSE, trial(0)), ended(DENSE, cut.clone()), ended(DENSE, trial(2)), finished(DENSE, 3, Some(5))]);
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.finished.len(), contents.finished[0].test_errors), (1, Some(5)));
    assert_eq!(contents.finished[0].trials, [trial(0), cut, trial(2)]);
    // Once: after it they are what they are.
    journal_of(&path, &[ended(DENSE, trial(1))]);
    assert!(problem(Journal::read(&path, &Disk)).contains("trial 1 of the cell with batch size 2 and sparsity 0 is recorded twice"));
}

#[test]
fn a_cell_under_way_may_get_more_trials_which_cut_the_others_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let extension = Record::Extension { batch_size: DENSE.batch_size, sparsity: DENSE.sparsity };
    let cut = Trial { status: Status::Censored, steps: None, steps_run: 16, ..trial(1) };
    journal_of(&path, &[ended(DENSE, trial(1)), extension, ended(DENSE, cut.clone())]);
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.partial[0].trials.clone(), contents.partial[0].extended), (vec![cut], None));
}

/// A loss of power may take any part of what one append wrote, and leave zeros in its place.
#[test]
fn an_append_of_several_records_is_found_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let lengths = journal_of(&path, &script()[..1]);
    open(&path).unwrap().0.append(&[ended(DENSE, trial(0)), finished(DENSE, 2, Some(77))]).unwrap();
    let whole = fs::read(&path).unwrap();
    assert_eq!(Journal::read(&path, &Disk).unwrap().unwrap().finished, expected(&script()[..3]).finished);
    let start = *lengths.last().unwrap();
    for end in start + 1..=whole.len() {
        let mut torn = whole.clone();
        torn[start..end].fill(0);
        // Bytes that were zeros are as they were.
        if torn == whole {
            continue;
        }
        fs::write(&path, &torn).unwrap();
        let dropped_bytes = (whole.len() - start) as u64;
        let before = Contents { dropped_bytes, ..expected(&script()[..1]) };
        assert_eq!(Journal::read(&path, &Disk).unwrap().unwrap(), before, "zeros up to byte {end}");
    }
}

/// What was tested is a trial. Where a better one has ended, or it was cut short itself, its test errors are not the cell's.
#[test]
fn test_errors_of_a_cell_that_gets_more_trials_are_those_of_its_best_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let extension = Record::Extension { batch_size: DENSE.batch_size, sparsity: DENSE.sparsity };
    let tested = |path: &Path| Journal::read(path, &Disk).unwrap().unwrap().partial[0].extended;
    journal_of(&path, &[ended(DENSE, trial(0)), ended(DENSE, trial(1)), finished(DENSE, 2, Some(7)), extension]);
    assert_eq!(tested(&path), Some((Some(7), 3.5)));
    let better = Trial { status: Status::Complete, steps: Some(16), steps_run: 16, ..trial(2) };
    journal_of(&path, &[ended(DENSE, better)]);
    assert_eq!(tested(&path), Some((None, 3.5)));
}

#[test]
fn bytes_like_the_beginnings_of_many_records_take_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    journal_of(&path, &script());
    let mut bytes = fs::read(&path).unwrap();
    // Six megabytes of heads, each of which claims three.
    let head = [3_000_000_u32, !3_000_000].map(u32::to_le_bytes).concat();
    bytes.extend(head.repeat(750_000));
    fs::write(&path, &bytes).unwrap();
    let begun = std::time::Instant::now();
    assert!(problem(Journal::read(&path, &Disk)).contains("is damaged"));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_a_panic(
        start in 0..4,
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4),
        kinds in proptest::collection::vec(0..5u8, 4),
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("x.journal"), folder.path().join("x.checkpoint"));
        let mut bytes = match start {
            0 => Vec::new(),
            1 => b"dps journal 5\n".to_vec(),
            _ => { journal_of(&path, &script()[..1]); fs::read(&path).unwrap() }
        };
        // Whole records with any bytes in them, which begin as a record's kind may.
        let mut previous = match start {
            0 | 1 => 0,
            _ => { let places = places(&bytes); u32::from_le_bytes(*bytes[places[places.len() - 2] + 12..].first_chunk().unwrap()) }
        };
        for (payload, kind) in payloads.iter().zip(kinds) {
            let (record, checksum) = framed(&[&[kind], payload.as_slice()].concat(), previous);
            bytes.extend(record);
            previous = checksum;
        }
        let records = bytes.len();
        bytes.extend(&rest);
        fs::write(&path, &bytes).unwrap();
        match Journal::read(&path, &Disk) {
            Ok(Some(contents)) => prop_assert_eq!(contents.dropped_bytes as usize, bytes.len() - records),
            Ok(None) => prop_assert!(bytes.is_empty()),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }

        let mut bytes = b"dps checkpoint 7\n".to_vec();
        bytes.truncate(if start == 0 { 0 } else { bytes.len() });
        if start > 1 {
            bytes.extend(crc32fast::hash(&rest).to_le_bytes());
        }
        bytes.extend(&rest);
        fs::write(&aside, &bytes).unwrap();
        prop_assert!(matches!(load_checkpoint(&aside), Loaded::Damaged(_)));
    }

    #[test]
    fn any_trial_returns_bit_for_bit(
        batch_size: u32,
        bits: (u64, u64, u64),
        numbers: (u32, u32, u64),
        options: (Option<u32>, Option<u32>),
        curve in proptest::collection::vec(any::<(u32, u32, u32, u32)>(), 0..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let written = Trial {
            index: numbers.0,
            metaparameters: {
                let mut values = Metaparameters::from([(Metaparameter::LearningRate, f64::from_bits(bits.0))]);
                values.set(Metaparameter::Momentum, options.0.map(|_| f64::from_bits(bits.1)));
                values.set(Metaparameter::DecaySteps, options.0.map(f64::from));
                values
            },
            status: Status::ALL[numbers.1 as usize % 4],
            steps: options.1,
            steps_run: numbers.1,
            parameters_kept: numbers.0 ^ numbers.1,
            mask_hash: numbers.2,
            dead_layers: numbers.0,
            curve: curve.iter().map(|&(step, loss, errors, examples)| CurvePoint { step, loss: f32::from_bits(loss), errors, examples })
                .collect(),
            measurements: curve.iter().map(|&(step, ..)| Measurement { step, loss: f64::from_bits(bits.0), gradient_norm: f64::from_bits(bits.1), squared_norms: f64::from_bits(bits.2), lipschitz: options.0.map(f64::from) })
                .collect(),
            seconds: f64::from_bits(bits.2),
        };
        journal_of(&path, &[ended(CellKey { batch_size, sparsity: 0.5 }, written.clone())]);
        let contents = open(&path).unwrap().1;
        let read = &contents.partial[0].trials[0];
        let bits = |trial: &Trial| {
            let values: Vec<(Metaparameter, u64)> = trial.metaparameters.iter().map(|(name, value)| (name, value.to_bits())).collect();
            let losses: Vec<u32> = trial.curve.iter().map(|point| point.loss.to_bits()).collect();
            (values, trial.seconds.to_bits(), losses)
        };
        prop_assert_eq!(contents.partial[0].key.batch_size, batch_size);
        prop_assert_eq!(bits(read), bits(&written));
        prop_assert_eq!(format!("{:?}", read), format!("{:?}", written));
    }
}

//! File operations that fail, each in its turn.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use dps::journal::{Contents, Journal, Loaded, Record, save, set_aside};
use dps::storage::Disk;

use super::sample::*;
use super::support::faults::{Failing, Fault};

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
    let sound = Arc::new(Failing::new(Disk, u64::MAX, Fault { kind: ErrorKind::StorageFull, written: 0, calls: 1 }));
    run(&folder.path().join("sound/x.journal"), &folder.path().join("sound/x.checkpoint"), &sound);
    let operations = sound.operations();
    for calls in [1, 2, 3, u64::MAX] {
        for written in [0, 5, 13, usize::MAX] {
            for at in 1.. {
                // An append alone can write a part of its bytes.
                if written > 0 && operations.get(at as usize - 1).is_some_and(|&operation| operation != "append") {
                    continue;
                }
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
                partial.iter_mut().for_each(|partial| partial.cell.trials.sort_by_key(|trial| trial.index));
                finished.sort_by_key(|cell| cell.key.batch_size);
                assert_eq!((finished, partial), (expected(&script()).finished, expected(&script()).partial), "operation {at}");
            }
        }
    }
}

#[test]
fn what_is_acknowledged_is_synced_before_it_is_named() {
    let (folder, path) = place();
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

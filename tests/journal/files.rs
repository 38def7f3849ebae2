//! A checkpoint, the names of a study's files, and its lock.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use dps::journal::{Journal, Loaded, Lock, checkpoint_path, journal_path, load, lock_path, overwrites, save, set_aside};
use dps::storage::Disk;

use super::sample::*;
use super::support::faults::{Failing, Fault};

#[test]
fn a_journal_whose_file_is_gone_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    let journal = Journal::open(&path, &header(), Arc::new(Disk)).unwrap().journal;
    journal.check().unwrap();
    let moved = folder.path().canonicalize().unwrap().join("y.journal");
    fs::rename(&path, &moved).unwrap();
    assert!(journal.check().unwrap_err().to_string().contains(&format!("found that its file was moved to {}: ", moved.display())));
    fs::remove_file(&moved).unwrap();
    assert!(journal.check().unwrap_err().to_string().contains("found that its file was removed or replaced"));
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
    // "x" and "x.h5" share a journal, and so do "x.v2" and "x.v2.h5": nobody has both of a pair.
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
        .args(["--exact", "--nocapture", "files::a_second_job_is_refused_and_a_killed_ones_lock_is_no_obstacle"])
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

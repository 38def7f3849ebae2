//! Records are read back as they were written, and the format is fixed.

use std::fs;
use std::sync::Arc;

use dps::journal::{Header, Journal, Record, VERSION, journal_path, save};
use dps::optimizer::{Metaparameter, Metaparameters};
use dps::records::{CellKey, CurvePoint, Ending, Measurement, Start, Status, Trial};
use dps::storage::Disk;
use proptest::prelude::*;

use super::sample::*;

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
    assert_eq!(contents.partial[0].cell.trials.iter().map(|trial| trial.index).collect::<Vec<_>>(), [0, 2]);

    journal.append(&[ended(SPARSE, trial(1)), finished(SPARSE, 3, None)]).unwrap();
    journal.append(&[ended(CellKey { batch_size: 64, sparsity: 0.95 }, infeasible(0))]).unwrap();
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.finished[1].key, contents.finished[1].test_errors), (SPARSE, None));
    let read = &contents.partial[0].cell.trials[0];
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
    // A start that does not reach the study is no end of it.
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
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    journal_of(&path, &script());
    assert_eq!(open(&path).unwrap().1, expected(&script()));
}

/// The bytes of a version, by their checksum: whoever changes them, or a recorded field, must raise the version.
#[test]
fn the_format_of_a_version_is_fixed() {
    let (folder, path) = place();
    let lengths = journal_of(&path, &script());
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"dps journal 5\n"));
    // The scores, last, are the youngest kind of record.
    assert_eq!(crc32fast::hash(&bytes[..lengths[script().len() - 1]]), 1_868_360_763);
    assert_eq!(crc32fast::hash(&bytes[lengths[script().len() - 1]..]), 4_101_411_026);
    let path = folder.path().join("x.checkpoint");
    save(&path, &checkpoint(5), &Disk).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"dps checkpoint 9\n"));
    assert_eq!(crc32fast::hash(&bytes), 2_917_339_298);
}

#[test]
fn a_trial_recorded_twice_counts_once_if_it_went_the_same_way() {
    let (_folder, path) = place();
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
    let (folder, path) = place();
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

    // Keys that the digest leaves out, and who runs the study, do not matter.
    let later = Header { program_version: "0.1.1".into(), configuration: CONFIGURATION.replace("threads = 1", "threads = 2"), ..header() };
    assert_eq!(Journal::open(&path, &later, Arc::new(Disk)).unwrap().contents, expected(&script()));

    fs::write(&path, [b"dps journal 23\n", &whole[14..]].concat()).unwrap();
    assert!(problem(open(&path)).contains(&format!("format version 23, and this program knows version {VERSION}")));
    // Before version 4 records were not chained.
    fs::write(&path, [b"dps journal 3\n", &whole[14..]].concat()).unwrap();
    assert!(
        problem(open(&path)).contains(&format!("format version 3, and this program knows version {VERSION}: use the program that started"))
    );
    for other in
        [b"step,loss\n1,2\n".as_slice(), b"\x89HDF\r\n\x1a\n", b"dps journal \n", b"d", format!("dps journal {VERSION}").as_bytes()]
    {
        fs::write(&path, other).unwrap();
        assert!(!problem(open(&path)).contains('\n'));
        assert_eq!(fs::read(&path).unwrap(), other);
    }
    assert!(problem(open(folder.path())).contains("the journal could not be read"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_trial_returns_bit_for_bit(
        batch_size: u32,
        bits: (u64, u64, u64),
        numbers: (u32, u32, u64),
        options: (Option<u32>, Option<u32>),
        curve in proptest::collection::vec(any::<(u32, u32, u32, u32)>(), 0..20),
    ) {
        let (_folder, path) = place();
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
        let read = &contents.partial[0].cell.trials[0];
        let bits = |trial: &Trial| {
            let values: Vec<(Metaparameter, u64)> = trial.metaparameters.iter().map(|(name, value)| (name, value.to_bits())).collect();
            let losses: Vec<u32> = trial.curve.iter().map(|point| point.loss.to_bits()).collect();
            (values, trial.seconds.to_bits(), losses)
        };
        prop_assert_eq!(contents.partial[0].cell.key.batch_size, batch_size);
        prop_assert_eq!(bits(read), bits(&written));
        prop_assert_eq!(format!("{:?}", read), format!("{:?}", written));
    }
}

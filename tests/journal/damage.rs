//! Journals that are torn, flipped, out of order or made of any bytes.

use std::fs;
use std::sync::LazyLock;

use dps::journal::{Contents, Journal, Loaded, VERSION, save};
use dps::storage::Disk;
use proptest::prelude::*;

use super::sample::*;

#[test]
fn a_record_torn_at_any_byte_is_cut_off_and_the_study_goes_on() {
    let (_folder, path) = place();
    let (records, last) = (script(), script().len() - 1);
    let lengths = journal_of(&path, &records);
    let whole = fs::read(&path).unwrap();
    for cut in lengths[last]..lengths[last + 1] {
        for zeros in [0, 40] {
            let mut torn = whole[..cut].to_vec();
            // Some file systems leave zeros in a file that was growing when the power went.
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
    let (_folder, path) = place();
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
    let (_folder, path) = place();
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

/// A loss of power may take any part of what one append wrote, and leave zeros in its place.
#[test]
fn an_append_of_several_records_is_found_whole_or_not_at_all() {
    let (_folder, path) = place();
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

#[test]
fn bytes_like_the_beginnings_of_many_records_take_no_time() {
    let (_folder, path) = place();
    journal_of(&path, &script());
    let mut bytes = fs::read(&path).unwrap();
    // Six megabytes of heads, each of which claims three.
    let head = [3_000_000_u32, !3_000_000].map(u32::to_le_bytes).concat();
    bytes.extend(head.repeat(750_000));
    fs::write(&path, &bytes).unwrap();
    let begun = std::time::Instant::now();
    assert!(problem(Journal::read(&path, &Disk)).contains("is damaged"));
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}

/// The first line of a checkpoint.
static CHECKPOINT_HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.checkpoint");
    save(&path, &checkpoint(1), &Disk).unwrap();
    fs::read(&path).unwrap().split_inclusive(|&byte| byte == b'\n').next().unwrap().to_vec()
});

/// A journal of one record behind its header.
static BEGUN_JOURNAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    journal_of(&path, &script()[..1]);
    fs::read(&path).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_a_panic(
        start in 0..4,
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4),
        kinds in proptest::collection::vec(0..11u8, 4),
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("x.journal"), folder.path().join("x.checkpoint"));
        let mut bytes = match start {
            0 => Vec::new(),
            1 => format!("dps journal {VERSION}\n").into_bytes(),
            _ => BEGUN_JOURNAL.clone(),
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

        let mut bytes = CHECKPOINT_HEAD.clone();
        bytes.truncate(if start == 0 { 0 } else { bytes.len() });
        if start > 1 {
            bytes.extend(crc32fast::hash(&rest).to_le_bytes());
        }
        bytes.extend(&rest);
        fs::write(&aside, &bytes).unwrap();
        prop_assert!(matches!(load_checkpoint(&aside), Loaded::Damaged(_)));
    }
}

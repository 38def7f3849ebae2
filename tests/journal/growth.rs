//! Cells that get more trials.

use std::fs;
use std::path::Path;

use dps::journal::{Contents, Journal, Partial, Record};
use dps::records::{Status, Trial};
use dps::storage::Disk;

use super::sample::*;

#[test]
fn a_cell_is_finished_only_with_all_its_trials() {
    let (_folder, path) = place();
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
    let (_folder, path) = place();
    let extension = Record::Extension { key: DENSE };
    let begun = [ended(DENSE, trial(0)), ended(DENSE, trial(1)), finished(DENSE, 2, Some(7)), extension];
    journal_of(&path, &begun);
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.finished.len(), contents.partial.len()), (0, 1));
    assert_eq!((contents.partial[0].cell.trials.len(), tested(&contents)), (2, Some((Some(7), 3.5))));
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
    let (_folder, path) = place();
    let extension = Record::Extension { key: DENSE };
    let cut = Trial { status: Status::Censored, steps: None, steps_run: 16, ..trial(1) };
    journal_of(&path, &[ended(DENSE, trial(1)), extension, ended(DENSE, cut.clone())]);
    let contents = Journal::read(&path, &Disk).unwrap().unwrap();
    assert_eq!((contents.partial[0].cell.trials.clone(), tested(&contents)), (vec![cut], None));
}

/// The test errors and seconds of the first cell under way, where it was finished with fewer trials.
fn tested(contents: &Contents) -> Option<(Option<u32>, f64)> {
    let Partial { cell, extended } = &contents.partial[0];
    extended.then_some((cell.test_errors, cell.seconds))
}

/// Test errors are of a trial. Where a better one has ended, or it was cut short itself, its test errors are not the cell's.
#[test]
fn test_errors_of_a_cell_that_gets_more_trials_are_those_of_its_best_one() {
    let (_folder, path) = place();
    let extension = Record::Extension { key: DENSE };
    let tested = |path: &Path| tested(&Journal::read(path, &Disk).unwrap().unwrap());
    journal_of(&path, &[ended(DENSE, trial(0)), ended(DENSE, trial(1)), finished(DENSE, 2, Some(7)), extension]);
    assert_eq!(tested(&path), Some((Some(7), 3.5)));
    let better = Trial { status: Status::Complete, steps: Some(16), steps_run: 16, ..trial(2) };
    journal_of(&path, &[ended(DENSE, better)]);
    assert_eq!(tested(&path), Some((None, 3.5)));
}

//! Progress through mpirun: a terminal shows the bar, a log gets lines.

use crate::support::study::{Study, at_a_terminal, mpirun, succeed};

#[test]
fn the_bar_reaches_the_terminal_of_mpirun_and_no_log() {
    let study = Study::new(&[]);
    let shown = at_a_terminal(&study.measuring(mpirun(2), "seen.h5", &[])).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("trials left") && shown.contains("[4/4] ") && shown.contains("Steps-to-result"), "{shown}");

    let log = succeed(&mut study.measuring(mpirun(2), "logged.h5", &[]));
    assert!(log.contains("[4/4] ") && !log.contains("trials left"), "{log}");
}

//! dps-report as a program. By itself in a program, as tests/full_disk.rs is.

use std::fs;

use dps::results::{self, Environment, Results, WorkloadSummary};

#[test]
fn each_file_is_reported_and_what_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let report = || {
        let mut report = assert_cmd::Command::cargo_bin("dps-report").unwrap();
        report.current_dir(folder.path());
        report
    };
    for name in ["a/study.h5", "b/study.h5"] {
        let workload = WorkloadSummary { dataset: name.to_owned(), ..WorkloadSummary::default() };
        let study = Results { configuration: String::new(), environment: Environment::default(), workload, cells: vec![], complete: false };
        results::write(&folder.path().join(name), &study).unwrap();
    }
    let output = report().args(["a/study.h5", "b/study.h5", "-o", "figures"]).assert().success().get_output().stdout.clone();
    let output = String::from_utf8(output).unwrap();
    assert_eq!(output.matches("No cell is finished yet").count(), 2, "{output}");
    // Both are named study: the figures are told apart.
    for (figure, dataset) in [("study", "a/study.h5"), ("study-2", "b/study.h5")] {
        let figure = fs::read_to_string(folder.path().join(format!("figures/{figure}-steps-to-result.svg"))).unwrap();
        assert!(figure.contains(dataset));
    }

    fs::write(folder.path().join("notes.h5"), "no HDF5").unwrap();
    let error = report().arg("notes.h5").assert().code(4).get_output().stderr.clone();
    assert_eq!(String::from_utf8(error).unwrap(), "dps-report: notes.h5: expected a result file of dps-train, found no HDF5 file\n");
}

//! Sizes and times of the files of many trials. `make scale` prints them; docs/cluster.md has the table.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use dps::journal::{Header, Journal, Record};
use dps::records::{Cell, CellKey};
use dps::results;
use dps::storage::Disk;

use crate::support::synthetic::Synthetic;

#[test]
#[ignore = "a minute and 3 GB of memory, for a table"]
fn files_of_many_trials() {
    let synthetic = Synthetic { trials: 100, ..Synthetic::large() };
    let folder = tempfile::tempdir().unwrap();
    let (path, journal) = (folder.path().join("large.h5"), folder.path().join("large.journal"));
    println!("| cells | trials | evaluations | result file | written in | read in |\n|---|---|---|---|---|---|");
    // Synthetic trials of small batches are evaluated more often.
    for (cells, batch_size) in [(10, 2), (100, 2), (1000, 2), (10_000, 64)] {
        let cell = |number: u32| Cell {
            key: CellKey { batch_size: batch_size + number, sparsity: 0.0 },
            ..synthetic.cell(CellKey { batch_size, sparsity: f64::from(number % 500) / 1000.0 })
        };
        let study = Synthetic { batch_sizes: Vec::new(), ..synthetic.clone() };
        let study = results::Results { cells: (0..cells).map(cell).collect(), ..study.results() };
        let evaluations: usize = study.cells.iter().flat_map(|cell| &cell.trials).map(|trial| trial.curve.len()).sum();
        let began = Instant::now();
        results::write(&path, &study).unwrap();
        let written = began.elapsed().as_secs_f64();
        let megabytes = fs::metadata(&path).unwrap().len() as f64 / 1e6;
        let began = Instant::now();
        let found = results::read(&path).unwrap();
        let read = began.elapsed().as_secs_f64();
        assert!(found.cells == study.cells);
        println!("| {cells} | {} | {evaluations} | {megabytes:.1} MB | {written:.2} s | {read:.2} s |", 100 * cells);
        if cells == 10 {
            append(&journal, &study.cells);
        }
    }
    let bytes = fs::metadata(&journal).unwrap().len();
    let began = Instant::now();
    let found = Journal::read(&journal, &Disk).unwrap().unwrap();
    let read = began.elapsed().as_secs_f64();
    let trials: usize = found.partial.iter().map(|partial| partial.cell.trials.len()).sum();
    println!("journal of {trials} trials: {:.0} bytes a trial, read in {read:.3} s", bytes as f64 / trials as f64);
}

/// Journals the trials of some cells, one by one as they end.
fn append(path: &std::path::Path, cells: &[Cell]) {
    let header = Header { started: "2026-01-02T03:04:05Z".into(), ..Header::default() };
    Journal::begin(path, &header, &[], &Disk).unwrap();
    let mut journal = Journal::open(path, &header, Arc::new(Disk)).unwrap().journal;
    let began = Instant::now();
    for cell in cells {
        for trial in &cell.trials {
            journal.append(&[Record::Trial { key: cell.key, trial: trial.clone() }]).unwrap();
        }
    }
    let trials = cells.iter().map(|cell| cell.trials.len()).sum::<usize>();
    println!("journal: {:.2} ms a trial, on this machine's disk", began.elapsed().as_secs_f64() * 1e3 / trials as f64);
}

//! Lets each file operation of a whole study fail in turn. The next run must end with the results of an undisturbed study.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::faults::{Failing, Fault};
use crate::support::records::timeless;
use crate::support::study::{Study, fail, train};
use dps::backend::cpu::{Cpu, VectorUnit};
use dps::comm::{MemoryLimit, Single};
use dps::data::Dataset;
use dps::progress::{Event, Observer};
use dps::records::Cell;
use dps::settings::{self, Configuration};
use dps::storage::{Disk, Storage};
use dps::study::{Beginning, Place, RunEnd, Surroundings, run};
use dps::{Result, progress, results};

/// The study's configuration and data.
fn loaded(study: &Study) -> (Configuration, Dataset) {
    let loaded = settings::load(&study.config, &[]).unwrap();
    let dataset = Dataset::load(loaded.study.workload.dataset.clone(), study.folder.path(), &loaded.study.data).unwrap();
    (loaded, dataset)
}

/// Runs the study at `output` on a storage, or what is left of it.
fn measure(loaded: &Configuration, dataset: &Dataset, output: &Path, storage: Arc<dyn Storage>) -> Result<RunEnd> {
    run_told(loaded, dataset, output, storage, Surroundings::PROCESS, &mut *progress::silent())
}

/// Where a single process with so many threads runs a study.
pub fn place(threads: usize, storage: Arc<dyn Storage>, surroundings: Surroundings) -> Place<'static> {
    Place {
        world: &Single,
        mpi_library: "none".into(),
        command_line: String::new(),
        threads,
        memory: MemoryLimit::NONE,
        storage,
        surroundings,
    }
}

fn run_told(
    loaded: &Configuration,
    dataset: &Dataset,
    output: &Path,
    storage: Arc<dyn Storage>,
    surroundings: Surroundings,
    observer: &mut dyn Observer,
) -> Result<RunEnd> {
    let place = place(1, storage, surroundings);
    run(
        loaded,
        dataset,
        &place,
        &Cpu { unit: VectorUnit::best(), threads: 1, convolutions: loaded.study.execution.convolutions },
        output,
        Beginning::Journal,
        observer,
    )
}

/// Counts what a run was told to do.
#[derive(Default)]
struct Told {
    scored: usize,
    cells: usize,
}

impl Observer for Told {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Scored { .. } => self.scored += 1,
            Event::CellFinished { .. } => self.cells += 1,
            _ => {}
        }
    }
}

/// The finished cells, without their times.
fn cells(path: &Path) -> Vec<Cell> {
    timeless(results::read(path).unwrap().cells)
}

#[test]
fn whichever_file_operation_fails_the_study_ends_in_a_sentence_and_the_next_run_makes_good() {
    let changes = [("max_steps = 40", "max_steps = 8"), ("trials = 5", "trials = 2"), ("[0, 0.9]", "[0.5]"), ("[2, 37]", "[2, 5]")];
    let study = Study::with_data(60, 20, &changes);
    let (loaded, dataset) = loaded(&study);
    let whole = study.at("whole.h5");
    measure(&loaded, &dataset, &whole, Arc::new(Disk)).unwrap();
    let expected = cells(&whole);
    assert_eq!(expected.len(), 2);

    let mut failed = Vec::new();
    // One call that fails, as on a disk that is full for a moment; all from that call on, as on one that stays full.
    for calls in [1, u64::MAX] {
        for at in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let output = folder.path().join("study.h5");
            let storage = Arc::new(Failing::new(Disk, at, Fault { kind: ErrorKind::StorageFull, written: 7, calls }));
            let outcome = measure(&loaded, &dataset, &output, storage.clone());
            let operations = storage.operations();
            let Some(operation) = operations.get(at as usize - 1) else {
                outcome.unwrap();
                break;
            };
            if let Err(error) = outcome {
                let said = error.to_string();
                assert!(said.contains("free some space") && said.lines().count() == 1, "{operation} {at}: {said}");
                failed.push(*operation);
            }
            if output.exists() {
                let so_far = cells(&output);
                assert_eq!(so_far, expected[..so_far.len()], "{operation} {at}");
            }
            measure(&loaded, &dataset, &output, Arc::new(Disk)).unwrap();
            assert_eq!(cells(&output), expected, "{operation} {at}");
        }
    }
    // Scores take a pass over the data and are kept: a study stopped at the first record of a trial scores nothing again.
    let output = study.at("scores.h5");
    let counted = Arc::new(Failing::new(Disk, u64::MAX, Fault { kind: ErrorKind::Other, written: 0, calls: 1 }));
    measure(&loaded, &dataset, &study.at("counted.h5"), counted.clone()).unwrap();
    let appends: Vec<usize> = (0..).zip(counted.operations()).filter(|(_, operation)| *operation == "append").map(|(at, _)| at).collect();
    // The journal's beginning, the start, the results so far, the scores of two trials, then the end of the first.
    let storage = Arc::new(Failing::new(Disk, appends[5] as u64 + 1, Fault { kind: ErrorKind::Other, written: 0, calls: 1 }));
    measure(&loaded, &dataset, &output, storage).unwrap_err();
    let journal = dps::journal::Journal::read(&output.with_extension("journal"), &Disk).unwrap().unwrap();
    assert_eq!((journal.scores.len(), journal.partial.len(), journal.finished.len()), (2, 0, 0));
    let mut told = Told::default();
    run_told(&loaded, &dataset, &output, Arc::new(Disk), Surroundings::PROCESS, &mut told).unwrap();
    assert_eq!((told.scored, told.cells), (0, 2));
    assert_eq!(cells(&output), expected);

    for operation in ["create", "append", "sync", "rename", "sync_folder", "open"] {
        assert!(failed.contains(&operation), "no study failed at {operation}: {failed:?}");
    }
}

/// Cells that a run has finished, and those after which it is to stop.
static FINISHED: AtomicUsize = AtomicUsize::new(0);
const STOP_AFTER: usize = 105;

#[test]
fn the_file_of_many_cells_is_not_written_for_each_and_lacks_none_at_an_end() {
    struct Counted;
    impl Observer for Counted {
        fn event(&mut self, event: &Event) {
            if let Event::CellFinished { .. } = event {
                FINISHED.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let (sizes, sparsities): (Vec<u32>, Vec<f64>) = ((2..13).collect(), (0..11).map(|tenths| f64::from(tenths) / 20.0).collect());
    let (sizes, sparsities) = (format!("{sizes:?}"), format!("{sparsities:?}"));
    let changes = [
        ("max_steps = 40", "max_steps = 4"),
        ("trials = 5", "trials = 1"),
        ("[0, 0.9]", &*sparsities),
        ("[2, 37]", &*sizes),
        ("[pruning]", "[execution]\ncheckpoint_seconds = 0\n\n[pruning]"),
    ];
    let study = Study::with_data(60, 20, &changes);
    let ((loaded, dataset), output) = (loaded(&study), study.at("study.h5"));
    let stopping = Surroundings { stop: || FINISHED.load(Ordering::SeqCst) == STOP_AFTER, ..Surroundings::PROCESS };
    // The journal, a run's first result file, one for each cell up to 100 and for every second one from then on, the checkpoint of the stop, and the
    // result file of the end.
    for (written, finished) in [(1 + 1 + 100 + 2 + 1 + 1, STOP_AFTER), (1 + 8, 121)] {
        let storage = Arc::new(Failing::new(Disk, u64::MAX, Fault { kind: ErrorKind::Other, written: 0, calls: 1 }));
        run_told(&loaded, &dataset, &output, storage.clone(), stopping, &mut Counted).unwrap();
        let renamed = storage.operations().iter().filter(|operation| **operation == "rename").count();
        assert_eq!((renamed, cells(&output).len()), (written, finished));
        FINISHED.fetch_add(1, Ordering::SeqCst);
    }
}

/// HDF5 takes paths in UTF-8 alone: a study does not begin where its result file could not be written.
#[cfg(target_os = "linux")]
#[test]
fn a_result_file_that_hdf5_could_not_open_is_refused_before_a_trial() {
    use std::os::unix::ffi::OsStrExt;
    let study = Study::with_data(200, 40, &[]);
    let files = || std::fs::read_dir(study.folder.path()).unwrap().count();
    let before = files();
    let output = study.folder.path().join(std::ffi::OsStr::from_bytes(b"a\xff.h5"));
    let said = fail(train().arg(&study.config).arg("--data").arg(study.folder.path()).arg("-o").arg(output), 7);
    assert!(said.contains("its path is no text in UTF-8"), "{said}");
    assert_eq!(files(), before);
}

//! The result file and what is made of it: exact round trips, atomic publication, refusal of damaged files, table and figure.

use std::fs;

use dps::optimizer::Metaparameter;
use dps::records::{Cell, CellKey, Confirmation, CurvePoint, Ending, Measurement, Seeds, Start, Status, Training, Trial};
use dps::results::{self, Environment, Results, WorkloadSummary};
use dps::{Error, analysis};
use proptest::prelude::*;
use proptest::sample::Index;

const VALIDATION: u32 = 6_000;

/// A trial that reaches the goal at `steps`, or spends 64 steps without.
fn trial(index: u32, steps: Option<u32>) -> Trial {
    let last = steps.unwrap_or(64);
    let point = |step: u32| CurvePoint {
        step,
        loss: 1.0 / step as f32,
        errors: if Some(step) == steps { 119 } else { 121 },
        examples: if Some(step) == steps { VALIDATION } else { 500 },
    };
    Trial {
        index,
        metaparameters: [(Metaparameter::LearningRate, 0.1 / f64::from(index + 1))].into(),
        status: if steps.is_some() { Status::Complete } else { Status::Incomplete },
        steps,
        steps_run: last,
        parameters_kept: 62_346,
        // Spread over all 64 bits, as hashes are.
        mask_hash: u64::from(index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        dead_layers: index % 3,
        curve: (16..=last).step_by(16).map(point).collect(),
        measurements: Vec::new(),
        seconds: 0.5,
    }
}

/// A cell whose trials reach the goal as `steps` says.
fn cell(batch_size: u32, sparsity: f64, steps: &[Option<u32>]) -> Cell {
    let trials: Vec<Trial> = (0..).zip(steps).map(|(index, &steps)| trial(index, steps)).collect();
    let test_errors = trials.iter().any(|trial| trial.steps.is_some()).then_some(201);
    Cell { key: CellKey { batch_size, sparsity }, trials, test_errors, seconds: 1.5, confirmations: Vec::new() }
}

fn study(cells: Vec<Cell>, complete: bool) -> Results {
    Results {
        configuration: "# ε\n[workload]\ngoal_error = 0.02\nmax_steps = 40000\nevaluate_every = 16\n".to_owned(),
        environment: Environment {
            program_version: "0.1.0".to_owned(),
            source_tree: "modified".to_owned(),
            compiler: "rustc 1.89.0".to_owned(),
            command_line: "dps-train 'a b.toml'".to_owned(),
            processor: "Xeon".to_owned(),
            mpi_library: "none".to_owned(),
            ranks: 2,
            threads: 1,
            device: "CPU, AVX-512, 1 thread a rank".to_owned(),
            started: "2025-11-21T08:00:00Z".to_owned(),
            finished: "2025-11-21T09:00:00Z".to_owned(),
            ..Environment::default()
        },
        workload: WorkloadSummary {
            dataset: "mnist".to_owned(),
            network: "simple-cnn".to_owned(),
            optimizer: "sgd".to_owned(),
            schedule: "constant".to_owned(),
            goal_error: 0.02,
            goal_threshold: 120,
            validation_examples: VALIDATION,
            training_examples: None,
            test_examples: 10_000,
            max_steps: 40_000,
            evaluate_every: 16,
            parameters: 62_346,
        },
        cells,
        complete,
    }
}

/// Two sparsities by three batch sizes; batch size 8 at sparsity 0.9 reaches no goal.
fn small_study() -> Results {
    let cells = vec![
        cell(2, 0.0, &[Some(512), Some(480), Some(480)]),
        cell(4, 0.0, &[Some(256), None]),
        cell(8, 0.0, &[Some(160)]),
        cell(2, 0.9, &[None, Some(1024)]),
        cell(4, 0.9, &[Some(544), Some(560)]),
        cell(8, 0.9, &[None, None]),
    ];
    study(cells, true)
}

fn problem(result: dps::Result<Results>) -> String {
    let error = result.expect_err("the file must be refused");
    assert!(matches!(error, Error::Results { .. }));
    error.to_string()
}

/// Cells out of order, one of the grid missing, with 3, 2 or 1 trials.
#[test]
fn the_grid_has_every_number_at_its_place() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut study = small_study();
    study.cells.remove(4);
    study.cells.reverse();
    results::write(&path, &study).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    let numbers = |name: &str| file.dataset(&format!("grid/{name}")).unwrap().read_raw::<f64>().unwrap();
    assert_eq!(numbers("batch_size"), [2.0, 4.0, 8.0]);
    assert_eq!(numbers("sparsity"), [0.0, 0.9]);
    assert_eq!(numbers("trial"), [0.0, 1.0, 2.0]);
    let same = |name: &str, shape: &[usize], expected: &[f64]| {
        assert_eq!(file.dataset(&format!("grid/{name}")).unwrap().shape(), shape, "{name}");
        let found = numbers(name);
        let is_same = found.iter().zip(expected).all(|(found, expected)| found == expected || found.is_nan() && expected.is_nan());
        assert!(found.len() == expected.len() && is_same, "{name}: {found:?}");
    };
    const NONE: f64 = f64::NAN;
    same("steps_to_result", &[3, 2], &[480.0, 1024.0, 256.0, NONE, 160.0, NONE]);
    same("trial_count", &[3, 2], &[3.0, 2.0, 2.0, NONE, 1.0, 2.0]);
    let steps = [512.0, 480.0, 480.0, NONE, 1024.0, NONE, 256.0, NONE, NONE, NONE, NONE, NONE, 160.0, NONE, NONE, NONE, NONE, NONE];
    same("trial_steps", &[3, 2, 3], &steps);
    let (one, two, three) = (0.1, 0.1 / 2.0, 0.1 / 3.0);
    let rates = [one, two, three, one, two, NONE, one, two, NONE, NONE, NONE, NONE, one, NONE, NONE, one, two, NONE];
    same("trial_learning_rate", &[3, 2, 3], &rates);

    study.cells.clear();
    results::write(&path, &study).unwrap();
    assert!(hdf5::File::open(&path).unwrap().group("grid").is_err());
}

prop_compose! {
    fn any_point()(loss in prop::num::f32::ANY, errors in 0..=VALIDATION, unseen in 0..=VALIDATION) -> CurvePoint {
        CurvePoint { step: 0, loss, errors, examples: (VALIDATION - unseen).max(errors) }
    }
}

prop_compose! {
    fn any_measurement()(loss in prop::num::f64::ANY, values in (0.0..1e9, 0.0..1e9), lipschitz in prop::option::of(0.0..1e9)) -> Measurement {
        Measurement { step: 0, loss, gradient_norm: values.0, squared_norms: values.1, lipschitz }
    }
}

prop_compose! {
    fn any_trial()(
        values in prop::collection::vec(prop::option::of(0.0..1e6), Metaparameter::ALL.len()),
        status in prop::sample::select(&Status::ALL),
        steps in any::<u32>(),
        (steps_run, parameters_kept, mask_hash) in any::<(u32, u32, u64)>(),
        mut curve in prop::collection::vec(any_point(), 0..20),
        mut measurements in prop::collection::vec(any_measurement(), 0..4),
        seconds in prop::num::f64::ANY,
    ) -> Trial {
        (16..).step_by(16).zip(&mut curve).for_each(|(step, point)| point.step = step);
        (0..).step_by(100).zip(&mut measurements).for_each(|(step, measurement)| measurement.step = step);
        Trial {
            index: 0,
            metaparameters: Metaparameter::ALL.iter().zip(values).filter_map(|(&name, value)| Some((name, value?))).collect(),
            status,
            steps: (status == Status::Complete).then_some(steps),
            steps_run,
            parameters_kept,
            mask_hash,
            dead_layers: parameters_kept ^ 5,
            curve,
            measurements,
            seconds,
        }
    }
}

prop_compose! {
    fn any_start()(
        (began, number, code) in any::<(u64, u32, u8)>(),
        kind in 0..7,
        (ranks, threads, hosts) in any::<(u32, u32, u32)>(),
        host_names in "[^\0]{0,60}",
    ) -> Start {
        let before = [
            Ending::First, Ending::Finished, Ending::Stopped, Ending::RankLost, Ending::Killed(code), Ending::Failed(code), Ending::Unknown,
        ][kind as usize];
        Start { began, number, before, ranks, threads, hosts, host_names, program: "0.2.0 (commit c0ffee)".to_owned() }
    }
}

prop_compose! {
    /// A confirmation of any of a cell's trials.
    fn any_confirmation()(
        mut run in any_trial(),
        place in any::<Index>(),
        (number, weights, order, evaluate_every) in any::<(u32, u64, u64, u32)>(),
    ) -> (Index, Confirmation) {
        run.measurements.clear();
        if run.status == Status::Censored {
            run.status = Status::Incomplete;
        }
        (place, Confirmation { training: Training { point: 0, number, seeds: Seeds { weights, order }, evaluate_every }, run })
    }
}

prop_compose! {
    fn any_cell()(
        mut trials in prop::collection::vec(any_trial(), 0..5),
        test_errors in prop::option::of(any::<u32>()),
        sparsity in 0.0..1.0,
        confirmations in prop::collection::vec(any_confirmation(), 0..4),
    ) -> Cell {
        (0..).zip(&mut trials).for_each(|(index, trial)| trial.index = index);
        let of_trial = |(place, Confirmation { training, run }): (Index, Confirmation)| {
            let trial: &Trial = trials.get(place.index(trials.len().max(1)))?;
            let run = Trial { index: trial.index, metaparameters: trial.metaparameters, ..run };
            Some(Confirmation { training: Training { point: trial.index, ..training }, run })
        };
        let confirmations = confirmations.into_iter().filter_map(of_trial).collect();
        Cell { key: CellKey { batch_size: 1, sparsity }, trials, test_errors, seconds: sparsity * 3.0, confirmations }
    }
}

prop_compose! {
    fn any_study()(
        starts in prop::collection::vec(any_start(), 0..4),
        mut cells in prop::collection::vec(any_cell(), 0..5),
        configuration in "[^\0]*",
        complete in any::<bool>(),
    ) -> Results {
        (1..).zip(&mut cells).for_each(|(batch_size, cell)| cell.key.batch_size = batch_size);
        let mut study = Results { configuration, ..study(cells, complete) };
        study.environment.starts = starts;
        study
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_read_is_what_was_written(study in any_study()) {
        let _alone = crate::alone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("study.h5");
        results::write(&path, &study).unwrap();
        // Texts are compared, so that NaN equals NaN.
        prop_assert_eq!(format!("{:?}", results::read(&path).unwrap()), format!("{study:?}"));
    }
}

#[test]
fn columns_have_units_and_meanings_that_other_programs_find() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.h5");
    results::write(&path, &small_study()).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    let texts = |at: &str, name: &str| -> Vec<String> {
        let attribute = file.dataset(at).unwrap().attr(name).unwrap();
        attribute.read_raw::<hdf5::types::VarLenUnicode>().unwrap().iter().map(ToString::to_string).collect()
    };
    for (table, columns) in [("cells", 13), ("trials", 15), ("curves", 4)] {
        let described = texts(table, "columns");
        let names: Vec<&str> = described[0].lines().filter_map(|line| line.split(": ").next()).collect();
        assert_eq!((texts(table, "units").len(), texts(table, "long_name").len(), names.len()), (columns, columns, columns), "{table}");
        let unit = |name: &str| texts(table, "units")[names.iter().position(|column| *column == name).unwrap()].clone();
        match table {
            "cells" => assert_eq!((unit("batch_size"), unit("seconds"), unit("best_row")), ("examples".into(), "s".into(), String::new())),
            "trials" => assert_eq!((unit("steps"), unit("sparsity"), unit("final_loss")), ("steps".into(), "1".into(), "nat".into())),
            _ => assert_eq!(texts(table, "long_name")[0], "optimizer steps taken before it"),
        }
    }
    assert_eq!(texts("metaparameters/learning_rate", "units"), ["1"]);
    assert_eq!(texts("metaparameters/learning_rate", "long_name"), ["learning rate"]);
}

#[test]
fn the_same_results_are_the_same_bytes() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.h5"), folder.path().join("second.h5"));
    results::write(&first, &small_study()).unwrap();
    // HDF5 would keep times in whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    results::write(&second, &small_study()).unwrap();
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap(), "two writes of the same results differ");
}

#[test]
fn a_missing_folder_is_made_and_a_newer_file_replaces_the_older() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/study.h5");
    results::write(&path, &study(vec![], false)).unwrap();
    results::write(&path, &small_study()).unwrap();
    assert_eq!(results::read(&path).unwrap(), small_study());
    assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn a_write_that_cannot_be_leaves_things_as_they_were() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    for path in [file.join("study.h5"), folder.path().to_owned()] {
        let problem = results::write(&path, &small_study()).unwrap_err().to_string();
        assert!(problem.contains("could not be written") && problem.contains("no file there is damaged"), "{problem}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left");

    let path = folder.path().join("study.h5");
    results::write(&path, &small_study()).unwrap();
    for configuration in ["a\0".to_owned(), "#".repeat(40_000)] {
        assert!(results::write(&path, &Results { configuration, ..small_study() }).is_err());
        assert_eq!(results::read(&path).unwrap(), small_study());
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let _alone = crate::alone();
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("mine"), "mine").unwrap();
    let write = |name: &str| results::write(&at(name), &small_study());
    let publish = |name: &str| results::publish(&at(name), b"figure");
    for (number, target) in ["mine", "nothing", "loop-2", "near"].into_iter().enumerate() {
        // The name under which a file is made is one that a killed run may have left, and that anybody knows.
        for (name, temporary) in [(format!("loop-{number}"), false), (format!("x-{number}"), true)] {
            let place = if temporary { format!(".{name}.tmp") } else { name.clone() };
            for (put, expected) in [(&write as &dyn Fn(&str) -> dps::Result<()>, None), (&publish, Some(b"figure".to_vec()))] {
                let _ = fs::remove_file(at(&place));
                symlink(target, at(&place)).unwrap();
                symlink("mine", at("near")).unwrap();
                put(&name).unwrap();
                assert!(!at(&name).is_symlink(), "{name}");
                match expected {
                    Some(bytes) => assert_eq!(fs::read(at(&name)).unwrap(), bytes),
                    None => assert_eq!(results::read(&at(&name)).unwrap(), small_study()),
                }
                fs::remove_file(at("near")).unwrap();
                assert!(fs::read(at("mine")).unwrap() == b"mine" && !at("nothing").exists(), "{name}");
            }
        }
    }
}

/// HDF5 takes paths in UTF-8 alone, and what is written must be readable; two such names must not have one temporary file either.
#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_refused_before_anything_is_written() {
    let _alone = crate::alone();
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"a\xff.h5"));
    for result in [results::write(&path, &small_study()), results::publish(&path, b"page")] {
        assert!(result.unwrap_err().to_string().contains("its path is no text in UTF-8"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let named = folder.path().join("a.h5");
    results::write(&named, &small_study()).unwrap();
    fs::rename(&named, &path).unwrap();
    assert!(problem(results::read(&path)).contains("expected a path in UTF-8"));
}

#[test]
fn a_file_in_a_folders_place_is_named() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("results"), "").unwrap();
    let said = |error: dps::Error| error.to_string();
    let problem = said(results::write(&folder.path().join("results/deep/study.h5"), &small_study()).unwrap_err());
    assert!(
        problem.contains("results is needed as a folder and is a file") && problem.contains("move it away, or choose another path"),
        "{problem}"
    );
    let problem = said(dps::journal::Lock::take(&folder.path().join("results/study.lock")).unwrap_err());
    assert!(problem.contains("results is needed as a folder and is a file"), "{problem}");
}

#[test]
fn other_files_are_refused_in_words() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.h5");
    assert!(problem(results::read(&path)).contains("cannot be read"));
    assert!(problem(results::read(folder.path())).contains("found a folder"));
    for contents in ["", "batch_size,steps\n2,480\n"] {
        fs::write(&path, contents).unwrap();
        assert!(problem(results::read(&path)).contains("found no HDF5 file"));
    }
    hdf5::File::create(&path).unwrap();
    assert!(problem(results::read(&path)).contains("no result file of dps-train"));

    let spoiled = |spoil: &dyn Fn(&hdf5::File)| {
        results::write(&path, &small_study()).unwrap();
        spoil(&hdf5::File::open_rw(&path).unwrap());
        problem(results::read(&path))
    };
    assert!(
        spoiled(&|file| file.attr("schema_version").unwrap().write_scalar(&(results::SCHEMA_VERSION + 1)).unwrap())
            .contains("schema version")
    );
    assert!(spoiled(&|file| file.unlink("trials").unwrap()).contains("no table /trials"));
    assert!(spoiled(&|file| file.delete_attr("complete").unwrap()).contains("no attribute complete"));
    let other_columns = spoiled(&|file| {
        file.unlink("curves").unwrap();
        file.new_dataset::<u32>().shape(10).create("curves").unwrap();
    });
    assert!(other_columns.contains("other columns"));
    // Each of these is a good table of its own: only together they are wrong.
    let shorter = folder.path().join("shorter.h5");
    results::write(&shorter, &study(small_study().cells[..5].to_vec(), true)).unwrap();
    for (name, words) in [("cells", "belong to no cell"), ("trials", "expected 2 trials, found 0"), ("curves", "evaluations, found 0")] {
        let said = spoiled(&|file| {
            let shorter = hdf5::File::open(&shorter).unwrap();
            file.unlink(name).unwrap();
            shorter.dataset(name).unwrap().copy_to(file, name).unwrap();
            if name == "trials" {
                file.unlink("metaparameters/learning_rate").unwrap();
                let rates = shorter.dataset("metaparameters/learning_rate").unwrap();
                rates.copy_to(&file.group("metaparameters").unwrap(), "learning_rate").unwrap();
            }
        });
        assert!(said.contains(words), "{name}: {said}");
    }
    let metaparameters = [
        ("learning_rate", "warmth", 12, "is of a metaparameter that this program does not know"),
        ("learning_rate", "momentum", 13, "has other rows than /trials"),
    ];
    for (from, to, rows, words) in metaparameters {
        let said = spoiled(&|file| {
            let group = file.group("metaparameters").unwrap();
            group.unlink(from).unwrap();
            group.new_dataset::<f64>().shape(rows).create(to).unwrap();
        });
        assert!(said.contains(&format!("the dataset /metaparameters/{to} {words}")), "{said}");
    }
    assert!(spoiled(&|file| file.unlink("metaparameters").unwrap()).contains("no group /metaparameters"));
    // Reading a link, or values kept elsewhere, would open whatever they name.
    let elsewhere = shorter.to_str().unwrap();
    for name in ["cells", "environment", "smoothness", "metaparameters/learning_rate", "metaparameters/momentum"] {
        let said = spoiled(&|file| {
            let _ = file.unlink(name);
            file.link_external(elsewhere, name, name).unwrap();
        });
        assert!(said.contains(&format!("expected groups and tables of its own, found a link, /{name}")), "{said}");
        let said = spoiled(&|file| {
            let _ = file.unlink(name);
            file.link_soft("/curves", name).unwrap();
        });
        assert!(said.contains(&format!("expected groups and tables of its own, found a link, /{name}")), "{said}");
    }
    for name in ["cells", "trials", "curves", "metaparameters/learning_rate"] {
        let replaced = |in_another: &dyn Fn(hdf5::DatasetBuilder, usize) -> hdf5::DatasetBuilder| {
            spoiled(&|file| {
                let rows = file.dataset(name).unwrap().size();
                let kind = file.dataset(name).unwrap().dtype().unwrap();
                file.unlink(name).unwrap();
                let builder = in_another(file.new_dataset_builder(), rows);
                builder.empty_as(kind.to_descriptor().unwrap()).shape(rows).create(name).unwrap();
            })
        };
        let external = replaced(&|builder, rows| builder.external(elsewhere, 0, rows * 1_000));
        let in_virtual = replaced(&|builder, rows| builder.virtual_map(elsewhere, name, rows, .., rows, ..));
        for said in [external, in_virtual] {
            assert!(said.contains(&format!("/{name}: expected values in the file itself, found them in other files")), "{said}");
        }
    }
    for (attribute, words) in [("evaluate_every", "evaluated after, 0 steps"), ("max_steps", "that trials take")] {
        assert!(spoiled(&|file| file.group("workload").unwrap().attr(attribute).unwrap().write_scalar(&0_u32).unwrap()).contains(words));
    }
    for goal in [f64::NAN, -0.1, 1.5, f64::INFINITY] {
        let said = spoiled(&|file| file.group("workload").unwrap().attr("goal_error").unwrap().write_scalar(&goal).unwrap());
        assert!(said.contains("goal_error") && said.contains("no fraction"), "{said}");
    }
}

/// Files of other versions are refused, and the sentence says which program reads them.
#[test]
fn other_schema_versions_are_refused() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.h5");
    results::write(&path, &small_study()).unwrap();
    for version in [2, results::SCHEMA_VERSION + 1] {
        hdf5::File::open_rw(&path).unwrap().attr("schema_version").unwrap().write_scalar(&version).unwrap();
        let said = problem(results::read(&path));
        assert!(
            said.contains(&format!("schema version {version}, where this program reads version {}", results::SCHEMA_VERSION)),
            "{said}"
        );
    }
}

/// Every damage is found, and said in one line: HDF5's metadata, and the tables' chunks, carry checksums.
#[test]
fn damaged_files_are_refused() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.h5");
    results::write(&path, &small_study()).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 97) {
        fs::write(&path, &whole[..length]).unwrap();
        let said = problem(results::read(&path));
        assert!(!said.contains('\n'), "{said}");
    }
    for position in (0..whole.len()).step_by(101) {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x55;
        fs::write(&path, &damaged).unwrap();
        // Only unused space and text are not covered by a checksum.
        if let Ok(read) = results::read(&path) {
            assert_eq!(read.cells, small_study().cells, "a damaged byte {position} went unnoticed");
        }
    }
}

#[test]
fn the_table_has_a_row_a_batch_size_and_a_column_a_sparsity() {
    let _alone = crate::alone();
    let table = analysis::table(&small_study(), None);
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [vec!["2", "480", "1,024"], vec!["4", "256", "544"], vec!["8", "160", "–"]] {
        assert!(words.contains(&row), "no row {row:?} in\n{table}");
    }
    // Batch size 2, sparsity 0: of trials 1 and 2, both with 480 steps, the first.
    assert!(words.contains(&vec!["2", "0", "3/0/0/0", "1", "0.05000", "0.0201", "1.5"]), "{table}");
    assert!(!table.contains("momentum") && !table.contains("not measured") && !table.contains("not finished"), "{table}");

    let mut unfinished = small_study();
    unfinished.cells.pop();
    unfinished.complete = false;
    let table = analysis::table(&unfinished, None);
    assert!(table.contains("·  not measured yet") && table.contains("not finished"), "{table}");
    assert!(analysis::table(&study(vec![], false), None).contains("No cell is finished yet"));
}

/// The figure of a study as text.
fn figure(study: &Results) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures/figure.svg");
    analysis::steps_to_result_plot(study, &path).unwrap();
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_figure_has_a_line_a_sparsity_and_a_marker_a_cell() {
    let _alone = crate::alone();
    let svg = figure(&small_study());
    let steps = [(2.0, 480.0), (4.0, 256.0), (8.0, 160.0)];
    assert_eq!(drawn(&small_study(), "point", "sparsity 0"), steps);
    assert_eq!(drawn(&small_study(), "point", "sparsity 0.9").len(), 2);
    // Twice the batch, half the steps: the dashes go on to batch size 8 at 480 / 4 steps.
    assert_eq!(drawn(&small_study(), "line", "sparsity 0"), [&[(2.0, 480.0), (8.0, 120.0)], &steps[..]].concat());
    for text in [
        "Batch size (examples)",
        "Steps-to-result",
        "sparsity 0\n",
        "sparsity 0.9",
        "linear scaling",
        "2³",
        "2¹⁰",
        "validation error ≤ 0.02",
    ] {
        assert!(svg.contains(text), "no \"{text}\" in the figure");
    }
    // A gap breaks the line. The figure says where no trial reached the goal, and where nothing is measured.
    let gap = study(vec![cell(2, 0.0, &[Some(64)]), cell(4, 0.0, &[None]), cell(8, 0.0, &[Some(32)]), cell(16, 0.0, &[Some(16)])], true);
    let line = drawn(&gap, "line", "sparsity 0");
    assert!(line[3].1.is_nan() && line.len() == 2 + 4, "{line:?}");
    assert!(figure(&study(vec![], false)).contains("No cell is finished yet"));
    assert!(figure(&study(vec![cell(48, 0.5, &[None])], true)).contains("No trial has reached the goal"));
    // No number in a file makes the axes endless.
    assert!(figure(&study(vec![cell(0, 0.5, &[Some(0)]), cell(u32::MAX, f64::NAN, &[Some(16)])], true)).contains("2³⁰"));
}

/// The values of a series that the figure of a study draws so; a gap is not a number.
fn drawn(results: &Results, drawn: &str, series: &str) -> Vec<(f64, f64)> {
    let study = analysis::gather(vec![("study.h5".to_owned(), results.clone())]).remove(0);
    let rows = analysis::values(&analysis::figures(&study, &[])[0].chart).rows;
    let number = |text: &String| text.parse().unwrap_or(f64::NAN);
    rows.iter().filter(|row| row[1] == series && row[2] == drawn).map(|row| (number(&row[3]), number(&row[4]))).collect()
}

//! HDF5 files that make the HDF5 library fail, and data in files that lead elsewhere or say two things: each ends in a sentence.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use crate::support::study::{around, train};
use crate::support::synthetic::Synthetic;
use dps::data::{DataSplit, Dataset, DatasetChoice, OwnDataset};
use dps::results;
use hdf5::File;

/// A file kept in tests/fixtures/hostile, unpacked into `folder`.
fn kept(folder: &Path, name: &str) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/hostile/{name}.gz"));
    let path = folder.join(name);
    let mut decoder = flate2::read::GzDecoder::new(fs::File::open(packed).unwrap());
    std::io::copy(&mut decoder, &mut fs::File::create(&path).unwrap()).unwrap();
    path
}

fn report(path: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dps-report"));
    command.arg(path).arg("--output").arg(path.with_extension("report"));
    command
}

/// The one sentence with which a program ends.
fn sentence(output: &Output, code: i32, path: &Path) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.lines().count() == 1 && said.contains(&*path.to_string_lossy()), "{said}");
    said
}

#[test]
fn result_files_that_crash_hdf5_end_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["result-segv.h5", "result-fpe.h5"] {
        let path = kept(folder.path(), name);
        let said = sentence(&report(&path).output().unwrap(), 4, &path);
        assert!(said.contains("write it anew"), "{name}: {said}");
        let said = sentence(&train().args(["merge", "--output"]).arg(folder.path().join("x.h5")).arg(&path).output().unwrap(), 4, &path);
        assert!(said.contains("write it anew"), "{name}: {said}");
    }
}

/// A small file whose evaluations, of which none was written, would take gigabytes: the reading process may have less.
#[test]
fn a_small_result_file_takes_no_gigabyte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    results::write(&path, &Synthetic::small().results()).unwrap();
    let file = File::open_rw(&path).unwrap();
    let row = file.dataset("curves").unwrap().dtype().unwrap().to_descriptor().unwrap();
    file.unlink("curves").unwrap();
    file.new_dataset_builder().empty_as(&row).chunk(1 << 16).shape(1 << 28).create("curves").unwrap();
    drop(file);
    assert!(fs::metadata(&path).unwrap().len() < 1_000_000);
    let mut child = report(&path).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    // SAFETY: the structs are plain, and zeros make them valid; the process is a child of this one and nobody else waits for it.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        assert_eq!(libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage), child.id() as i32);
        (ExitStatus::from_raw(status), usage)
    };
    let said = sentence(&Output { status, stdout: Vec::new(), stderr }, 4, &path);
    assert!(said.contains("bytes of values in a file of this length"), "{said}");
    // Of the program or of the process that it started, whichever took more.
    let megabytes = usage.ru_maxrss / 1_000;
    assert!(megabytes > 0 && megabytes < 300, "{megabytes} MB");
    let _ = child.wait();
}

/// `dps-train data check` of a data set in a file.
fn check(folder: &Path, file: &str) -> Command {
    let config = folder.join("check.toml");
    let text = format!(
        "[workload]\ndataset = {{ path = \"{file}\" }}\nnetwork = \"lenet-300-100\"\ngoal_error = 0.5\nevaluate_every = 16\nmax_steps = 100\noptimizer = \"sgd\"\n[grid]\nbatch_sizes = [2]\nsparsities = [0]\ntrials = 1\n[search.learning_rate]\nmin = 0.1\nmax = 1.0\nscale = \"log\"\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = train();
    command.args(["data", "check"]).arg(config).arg("--data").arg(folder);
    command
}

fn load(folder: &Path, file: &str) -> Result<Dataset, String> {
    let choice = DatasetChoice::Own(OwnDataset { path: file.into(), name: "mine".into() });
    let split = DataSplit { validation_fraction: 0.25, ..DataSplit::default() };
    Dataset::load(choice, folder, &split).map_err(|error| error.to_string())
}

#[test]
fn data_files_that_crash_hdf5_end_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data-segv-1.h5", "data-segv-2.h5", "data-segv-3.h5"] {
        let path = kept(folder.path(), name);
        let said = sentence(&check(folder.path(), name).output().unwrap(), 3, &path);
        assert!(said.contains("damaged"), "{name}: {said}");
    }
}

/// Bytes of a chunk's extents and of its elements' size: HDF5 1.10 accepts three of the changes, and gives what lies behind the chunk in memory.
#[test]
fn chunks_of_another_length_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = kept(folder.path(), "data-chunks.h5");
    let whole = fs::read(&path).unwrap();
    let output = check(folder.path(), "data-chunks.h5").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (place, found, byte) in [(1033, 0x00, 0x10), (1027, 0x07, 0x14), (1031, 0x04, 0x08), (1031, 0x04, 0x05)] {
        let mut damaged = whole.clone();
        assert_eq!(damaged[place], found);
        damaged[place] = byte;
        fs::write(&path, &damaged).unwrap();
        let said = sentence(&check(folder.path(), "data-chunks.h5").output().unwrap(), 3, &path);
        assert!(said.contains("damaged") && said.contains("x_t"), "byte {place}: {said}");
    }
}

#[test]
fn an_archive_with_two_names_for_an_array_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    kept(folder.path(), "names.npz");
    let said = load(folder.path(), "names.npz").unwrap_err();
    assert!(said.contains("its directory and the array itself disagree about the name"), "{said}");
}

/// Writes images and labels into a group.
fn put(group: &hdf5::Group, images: &str, labels: &str, count: usize) {
    let pixels: Vec<u8> = (0..count * 30).map(|place| (place * 37 % 251) as u8).collect();
    group.new_dataset::<u8>().shape([count, 6, 5]).create(images).unwrap().write_raw(&pixels).unwrap();
    let values: Vec<i32> = (0..count).map(|place| (place % 3) as i32).collect();
    group.new_dataset::<i32>().shape([count]).create(labels).unwrap().write_raw(&values).unwrap();
}

/// A file of a training set, and of what `more` adds.
fn written(folder: &Path, more: impl FnOnce(&File)) -> Result<Dataset, String> {
    // A program that another test starts at this moment has the writer's lock until it runs: each file is a new one, and a copy has no lock.
    let apart = tempfile::tempdir().unwrap();
    let path = apart.path().join("written.h5");
    let file = File::create(&path).unwrap();
    put(&file, "x_train", "y_train", 20);
    more(&file);
    drop(file);
    fs::copy(&path, folder.join("data.h5")).unwrap();
    load(folder, "data.h5")
}

#[test]
fn links_within_a_file_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let plain = written(folder.path(), |file| put(file, "x_test", "y_test", 8)).unwrap();
    let linked = written(folder.path(), |file| {
        let kept = file.create_group("kept").unwrap().create_group("deep").unwrap();
        put(&kept, "x", "y", 8);
        file.link_soft("/kept/deep", "way").unwrap();
        file.link_soft("/way/x", "x_test").unwrap();
        file.link_soft("./way/./y", "y_test").unwrap();
    });
    assert_eq!(linked.unwrap().test, plain.test);
    let by_group = written(folder.path(), |file| {
        put(&file.create_group("kept").unwrap(), "images", "labels", 8);
        file.link_soft("kept", "test").unwrap();
    });
    assert_eq!(by_group.unwrap().test, plain.test);
}

/// A data set may not lose a part because that cannot be read.
#[test]
fn what_is_looked_for_and_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.h5");
    put(&File::create(&other).unwrap(), "x_test", "y_test", 8);
    let other = other.to_str().unwrap();
    let refused = |more: &dyn Fn(&File), words: &str| {
        let said = written(folder.path(), more).unwrap_err();
        assert!(said.contains(words), "{said}");
    };
    refused(
        &|file| file.link_soft("/nowhere", "x_test").unwrap(),
        "x_test: expected a link that leads to values, found that /nowhere is not there",
    );
    refused(
        &|file| file.link_soft("x_test", "x_test").unwrap(),
        "x_test: expected a link that leads to values, found one that leads on and on",
    );
    refused(
        &|file| file.link_external(other, "x_test", "x_test").unwrap(),
        "x_test: expected values in the file itself, found a link to another",
    );
    // Groups of sets: test/x and test/y would be the test set.
    refused(
        &|file| file.link_external(other, "/", "test").unwrap(),
        "test: expected values in the file itself, found a link to another file; copy them into one; dps takes it for the test images",
    );
    refused(
        &|file| file.link_soft("/nowhere", "val").unwrap(),
        "val: expected a link that leads to values, found that /nowhere is not there",
    );
    // A link that leads through another file.
    let through = |file: &File| {
        file.link_external(other, "/", "away").unwrap();
        file.link_soft("/away/x_test", "x_test").unwrap();
    };
    refused(&through, "x_test: expected values in the file itself, found a link to another");
    let external = |file: &File| {
        let builder = file.new_dataset::<u8>().external(other, 0, 240).shape([8, 6, 5]);
        builder.create("x_test").unwrap();
    };
    refused(&external, "x_test: expected values in the file itself, found them in other files");
    let deeper = |file: &File| put(&file.create_group("a/b/c").unwrap(), "x_test", "y_test", 8);
    refused(&deeper, "a/b/c/x_test: expected images and labels at most 2 groups deep, found 3; move them up");
    let as_group = |file: &File| put(&file.create_group("x_test").unwrap(), "values", "names", 8);
    refused(&as_group, "expected an array as x_test, found a group");
}

/// MATLAB puts 512 bytes of its own before HDF5's.
#[test]
fn user_blocks_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let plain = written(folder.path(), |_| ()).unwrap();
    for block in [512, 1_024, 8_192] {
        let file = File::with_options().with_fcpl(|creation| creation.userblock(block)).create(folder.path().join("written.h5")).unwrap();
        put(&file, "x_train", "y_train", 20);
        drop(file);
        let mut bytes = fs::read(folder.path().join("written.h5")).unwrap();
        bytes[..20].copy_from_slice(b"MATLAB 7.3 MAT-file ");
        fs::write(folder.path().join("block.h5"), bytes).unwrap();
        assert_eq!(load(folder.path(), "block.h5").unwrap().training, plain.training, "{block}");
    }
}

#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.h5");
    let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is a string with its zero at the end.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    // A program that waits at the pipe is ended, with another code.
    let mut limit = Command::new("timeout");
    limit.arg("60");
    let said = sentence(&around(limit, &report(&pipe)).output().unwrap(), 4, &pipe);
    assert!(said.contains("found a folder or a device"), "{said}");
}

/// The process finds the same records as the library, bit for bit.
#[test]
fn a_sound_result_file_is_read_as_before() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments/data/optimizers-sgd.h5");
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("merged.h5");
    let output = train().args(["merge", "--output"]).arg(&merged).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(dps::results::read(&merged).unwrap().cells, dps::results::read(&source).unwrap().cells);
}

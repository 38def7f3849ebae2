//! Images of one's own: every format that is read, what is refused and in which words, and studies of them.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dps::Error;
use dps::config::{DataSplit, DatasetChoice, OwnDataset};
use dps::data::{Dataset, Facts, ImageShape, Pixels};
use dps::results;
use flate2::Compression;
use flate2::write::GzEncoder;
use support::study::{succeed, train};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

const SHAPE: [usize; 4] = [24, 5, 4, 2];
const TESTS: [usize; 4] = [6, 5, 4, 2];

/// Pixels of images, no two alike.
fn pixels([count, height, width, channels]: [usize; 4], seed: usize) -> Vec<u8> {
    (0..count * height * width * channels).map(|i| (i * 37 + seed * 11 + i / 40) as u8).collect()
}

fn labels(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 7 % 3) as u8).collect()
}

fn npy(kind: &str, extents: &[usize], values: &[u8]) -> Vec<u8> {
    let extents: Vec<String> = extents.iter().map(|extent| format!("{extent},")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}\n", extents.join(" "));
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat()
}

fn idx(kind: u8, extents: &[usize], values: &[u8]) -> Vec<u8> {
    let header = [0, 0, kind, extents.len() as u8].into_iter().chain(extents.iter().flat_map(|&extent| (extent as u32).to_be_bytes()));
    header.chain(values.iter().copied()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The four arrays as .npy files, by their names.
fn arrays() -> Vec<(&'static str, Vec<u8>)> {
    // Labels in other widths, and one of them as a column.
    let wide: Vec<u8> = labels(SHAPE[0]).iter().flat_map(|&label| i64::from(label).to_le_bytes()).collect();
    let big_endian: Vec<u8> = labels(TESTS[0]).iter().flat_map(|&label| u16::from(label).to_be_bytes()).collect();
    vec![
        ("x_train", npy("|u1", &SHAPE, &pixels(SHAPE, 1))),
        ("y_train", npy("<i8", &SHAPE[..1], &wide)),
        ("x_test", npy("|u1", &TESTS, &pixels(TESTS, 2))),
        ("y_test", npy(">u2", &[TESTS[0], 1], &big_endian)),
    ]
}

fn npz(arrays: &[(&str, Vec<u8>)], path: &Path) {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (number, (name, bytes)) in arrays.iter().enumerate() {
        let method = [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated][number % 2];
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default().compression_method(method).large_file(number == 0)).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

fn write(folder: &Path, files: &[(&str, Vec<u8>)]) {
    fs::create_dir_all(folder).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
}

fn own(path: &str) -> DatasetChoice {
    DatasetChoice::Own(OwnDataset { path: path.into(), name: "mine".into() })
}

fn load(folder: &Path, path: &str) -> dps::Result<Dataset> {
    Dataset::load(own(path), folder, &DataSplit { validation_fraction: 0.25, ..DataSplit::default() })
}

/// A data folder with the same data in every format.
fn every_format() -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let at = |name: &str| data.path().join(name);
    let npys: Vec<(String, Vec<u8>)> = arrays().into_iter().map(|(name, bytes)| (format!("{name}.npy"), bytes)).collect();
    write(&at("npy"), &npys.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
    npz(&arrays(), &at("all.npz"));
    let idxs = [
        ("emnist-mine-train-images-idx3-ubyte.gz", gzip(&idx(8, &SHAPE, &pixels(SHAPE, 1)))),
        ("emnist-mine-train-labels-idx1-ubyte", idx(8, &SHAPE[..1], &labels(SHAPE[0]))),
        ("t10k-images.idx3-ubyte", idx(8, &TESTS, &pixels(TESTS, 2))),
        ("t10k-labels.idx1-ubyte.gz", gzip(&idx(8, &TESTS[..1], &labels(TESTS[0])))),
        ("README", b"text".to_vec()),
    ];
    write(&at("idx"), &idxs);
    let file = hdf5::File::create(at("written.hdf5")).unwrap();
    for (name, shape, seed) in [("train", SHAPE, 1), ("test", TESTS, 2)] {
        let group = file.create_group(name).unwrap();
        let images = group.new_dataset::<u8>().shape(shape).create("images").unwrap();
        images.write_raw(&pixels(shape, seed)).unwrap();
        let values: Vec<i32> = labels(shape[0]).into_iter().map(i32::from).collect();
        group.new_dataset::<i32>().shape([shape[0]]).create("labels").unwrap().write_raw(&values).unwrap();
    }
    drop(file);
    // A program that another test starts at this moment has the writer's lock until it runs; a copy has none.
    fs::copy(at("written.hdf5"), at("all.hdf5")).unwrap();
    fs::remove_file(at("written.hdf5")).unwrap();
    data
}

#[test]
fn every_format_gives_the_same_data() {
    let data = every_format();
    let first = load(data.path(), "npy").unwrap();
    assert_eq!((first.training.len(), first.validation.len(), first.test.len(), first.classes), (18, 6, 6, 3));
    assert_eq!(first.shape, ImageShape { height: 5, width: 4, channels: 2 });
    assert_eq!(first.name, "mine");
    assert_eq!(first.test.images, Pixels::Bytes(pixels(TESTS, 2)));
    for path in ["all.npz", "idx", "all.hdf5"] {
        assert_eq!(load(data.path(), path).unwrap(), first, "{path}");
    }
    // The order of the split is that of data sets that have a name: every example is in one of the two sets, with its label.
    let file: Vec<(Vec<u8>, u16)> =
        pixels(SHAPE, 1).chunks(40).map(<[u8]>::to_vec).zip(labels(SHAPE[0]).into_iter().map(u16::from)).collect();
    let mut found: Vec<(Vec<u8>, u16)> = Vec::new();
    for set in [&first.training, &first.validation] {
        found.extend((0..set.len()).map(|i| (set.image(i).to_vec(), set.label(i))));
    }
    assert!(file.iter().all(|example| found.contains(example)) && found != file);
}

#[test]
fn headers_say_what_the_whole_is() {
    let data = every_format();
    for path in ["npy", "all.npz", "idx", "all.hdf5"] {
        let facts = Facts::of(&own(path), data.path()).unwrap();
        assert_eq!(facts, load(data.path(), path).unwrap().facts(), "{path}");
        assert_eq!((facts.training, facts.test, facts.validation(0.25)), (24, 6, 6));
    }
}

#[test]
fn floating_point_is_normalised_as_bytes_are() {
    let data = every_format();
    let bytes = load(data.path(), "npy").unwrap();
    let floats = |shape, seed| -> Vec<f32> { pixels(shape, seed).iter().map(|&byte| f32::from(byte) / 255.0).collect() };
    let little = |values: Vec<f32>| values.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let big = |values: Vec<f32>| values.into_iter().flat_map(f32::to_be_bytes).collect::<Vec<u8>>();
    let mut arrays = arrays();
    arrays[0].1 = npy("<f4", &SHAPE, &little(floats(SHAPE, 1)));
    arrays[2].1 = npy(">f4", &TESTS, &big(floats(TESTS, 2)));
    npz(&arrays, &data.path().join("floats.npz"));
    let found = load(data.path(), "floats.npz").unwrap();
    assert_eq!(found.facts().value_bytes, 4);
    assert_ne!(found.digest, bytes.digest);
    for (found, expected) in found.normalisation.iter().zip(&bytes.normalisation) {
        assert!((found.mean - expected.mean).abs() < 1e-7 && (found.std - expected.std).abs() < 1e-7, "{found:?} {expected:?}");
    }
    let tables = bytes.lookup_table();
    for (found, bytes) in [(&found.training, &bytes.training), (&found.validation, &bytes.validation), (&found.test, &bytes.test)] {
        let (Pixels::Floats(found), Pixels::Bytes(bytes)) = (&found.images, &bytes.images) else { panic!("{:?}", found.images) };
        assert_eq!(found.len(), bytes.len());
        let expected = bytes.iter().enumerate().map(|(i, &byte)| tables[i % 2][usize::from(byte)]);
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-5));
    }
}

#[test]
fn as_many_as_a_thousand_classes_are_told_apart() {
    let data = tempfile::tempdir().unwrap();
    let count = 2_000;
    let images: Vec<u8> = (0..count * 4).map(|i| (i * 31 % 251) as u8).collect();
    let values: Vec<u8> = (0..count).flat_map(|i| (i as u32 % 1_000).to_le_bytes()).collect();
    let write_labels = |values: &[u8]| {
        write(data.path(), &[("x.npy", npy("|u1", &[count, 2, 2], &images)), ("y.npy", npy("<u4", &[count], values))]);
        Dataset::load(own(""), data.path(), &DataSplit::default())
    };
    let whole = write_labels(&values).unwrap();
    assert_eq!((whole.classes, whole.test.len()), (1_000, 0));
    assert!(whole.training.labels.iter().any(|&label| label > 256));
    // A label's second byte counts.
    let mut other = values.clone();
    other[257 * 4 + 1] = 0;
    assert_ne!(write_labels(&other).unwrap().digest, whole.digest);
    other[4..8].copy_from_slice(&1_000_u32.to_le_bytes());
    let text = write_labels(&other).unwrap_err().to_string();
    assert!(text.contains("expected labels from 0 to 999, found 1000 at example 1; number the classes from 0"), "{text}");
}

/// An array, its new contents or none, and words of the message.
type Change = (&'static str, Option<Vec<u8>>, &'static [&'static str]);

#[test]
fn what_is_wrong_is_said_in_words() {
    let float = |value: f32| {
        [0.5, value, 0.25, 0.75].repeat(SHAPE.iter().product::<usize>() / 4).into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
    };
    let cases: Vec<Change> = vec![
        ("y_train", None, &["found no training labels; add them"]),
        ("y_train", Some(npy("<i8", &[1 << 24], &[])), &["expected 134217728 bytes of values", "cut short"]),
        ("x_test", None, &["found no test images"]),
        ("x_train", Some(npy("<f8", &SHAPE, &[])), &["found \"<f8\"; convert them"]),
        ("x_train", Some(npy("<i2", &SHAPE, &[])), &["expected images as bytes or as 32-bit floating point, found int16"]),
        ("x_train", Some(npy("|u1", &[24, 40], &pixels(SHAPE, 1))), &["expected images as [n][rows][columns]", "found [24][40]"]),
        ("x_train", Some(npy("|u1", &[0, 5, 4, 2], &[])), &["expected from 1 to 16777216 images, found [0][5][4][2]"]),
        ("x_train", Some(npy("|u1", &[24, 5, 0, 2], &[])), &["expected images of 1 to 4096 rows"]),
        ("x_train", Some(npy("|u1", &[24, 4096, 4096], &[])), &["of at most 1048576 values, found [24][4096][4096]"]),
        ("x_train", Some(npy("|u1", &SHAPE, &pixels(SHAPE, 1)[..900])), &["expected 960 bytes of values", "cut short"]),
        ("x_train", Some(npy("|u1", &SHAPE, &pixels([25, 5, 4, 2], 1))), &["found more: the file is not what its header says"]),
        ("x_train", Some(npy("|u1", &[1 << 24, 512, 512], &[])), &["expected one label for each of the 16777216 images"]),
        ("x_train", Some(npy("|u1", &SHAPE, &[7; 960])), &["the same value in every pixel of channel 0"]),
        ("x_train", Some(npy("<f4", &SHAPE, &float(f32::NAN))), &["expected finite values, found NaN as value 1"]),
        (
            "x_train",
            Some(npy("<f4", &SHAPE, &float(0.1))),
            &["expected test images as the training images are", "32-bit floating point, found"],
        ),
        ("x_test", Some(npy("|u1", &[6, 5, 5, 2], &pixels([6, 5, 5, 2], 2))), &["5×4×2 of bytes, found 5×5×2 of bytes"]),
        ("y_train", Some(npy("|i1", &[24], &[255; 24])), &["expected labels from 0 to 999, found -1 at example 0"]),
        ("y_train", Some(npy("|u1", &[24], &[2; 24])), &["expected labels of at least two classes, found 2 for every training image"]),
        ("y_train", Some(npy("|u1", &[23], &labels(23))), &["expected one label for each of the 24 images", "found 23 labels"]),
        ("y_train", Some(npy("<f4", &[24], &[0; 96])), &["expected labels as whole numbers"]),
        ("y_train", Some(npy("|u1", &[24, 3], &[0; 72])), &["expected labels as [n], found [24][3]"]),
        ("y_train", Some(b"\x93NUMPY\x01\x00\xff\xffx".to_vec()), &["expected a .npy header of at most 10000 letters"]),
        ("y_train", Some(b"no array".to_vec()), &["expected a .npy array"]),
        ("y_train", Some(vec![]), &["found an end in its header"]),
    ];
    let text_of = |data: &Path, path: &str| {
        let error = load(data, path).unwrap_err();
        assert!(matches!(error, Error::Data { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with(data.to_str().unwrap()) && !text.contains('\n'), "{text}");
        text
    };
    for (array, bytes, words) in cases {
        let data = tempfile::tempdir().unwrap();
        let mut arrays = arrays();
        arrays.retain(|(name, _)| *name != array || bytes.is_some());
        if let (Some((_, old)), Some(new)) = (arrays.iter_mut().find(|(name, _)| *name == array), &bytes) {
            old.clone_from(new);
        }
        let files: Vec<(String, Vec<u8>)> = arrays.iter().map(|(name, bytes)| (format!("{name}.npy"), bytes.clone())).collect();
        write(&data.path().join("npy"), &files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
        npz(&arrays, &data.path().join("all.npz"));
        for path in ["npy", "all.npz"] {
            let text = text_of(data.path(), path);
            assert!(words.iter().all(|word| text.contains(word)), "{path}, {words:?}: {text}");
        }
    }
    let data = every_format();
    fs::write(data.path().join("all.zip"), b"PK\x03\x04 and no more").unwrap();
    fs::write(data.path().join("damaged.hdf5"), b"\x89HDF\r\n\x1a\n and no more").unwrap();
    fs::write(data.path().join("text"), b"text").unwrap();
    fs::create_dir(data.path().join("empty")).unwrap();
    fs::copy(data.path().join("idx/t10k-images.idx3-ubyte"), data.path().join("idx/test-images.idx3-ubyte")).unwrap();
    npz(&[("x_train", arrays()[0].1.clone()), ("targets", vec![])], &data.path().join("other.npz"));
    let others = [
        ("other.npz", "found no training labels among targets; rename what they are"),
        ("nowhere", "expected a folder of IDX or .npy files, an .npz file or an HDF5 file, found none"),
        ("text", "found a file of another format"),
        ("empty", "found no training images"),
        ("all.zip", "found a damaged zip archive"),
        ("damaged.hdf5", "expected an HDF5 file, found one that is damaged"),
        ("idx", "expected one IDX file of test images, found t10k-images.idx3-ubyte and test-images.idx3-ubyte"),
    ];
    for (path, words) in others {
        let text = text_of(data.path(), path);
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A study of one cell on the data at `path`.
fn config(folder: &Path, path: &str) -> PathBuf {
    let text = format!(
        "[workload]\ndataset = {{ path = \"{path}\", name = \"mine\" }}\n\
         network = [{{ layer = \"flatten\" }}, {{ layer = \"dense\", outputs = 3 }}]\noptimizer = \"sgd\"\ngoal_error = 0.9\nmax_steps = 8\n\
         evaluate_every = 2\n[grid]\nbatch_sizes = [4]\nsparsities = [0]\ntrials = 2\n[search]\nlearning_rate = 0.01\n"
    );
    let config = folder.join("mine.toml");
    fs::write(&config, text).unwrap();
    config
}

#[test]
fn a_check_says_what_was_found() {
    let data = every_format();
    let config = config(data.path(), "all.npz");
    let check = |data: &Path| train().args(["data", "check"]).arg(&config).arg("--data").arg(data).output().unwrap();
    let output = check(data.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let whole = Dataset::load(own("all.npz"), data.path(), &DataSplit::default()).unwrap();
    for words in [
        "data set    mine\n",
        "all.npz, ",
        " bytes, SHA-256 ",
        "array       x_train [24][5][4][2] uint8\n",
        "images      5×4×2 of bytes\n",
        "training    22 examples\n",
        "classes     3, of each from 8 (class 0) to 8 (class 2)",
        "values      0 to 255\n",
        &whole.digest,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let output = check(Path::new("nowhere"));
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("dps-train: nowhere/all.npz: expected a folder"));
}

#[test]
fn without_a_test_set_there_are_no_test_errors() {
    let data = every_format();
    for name in ["x_test.npy", "y_test.npy"] {
        fs::remove_file(data.path().join("npy").join(name)).unwrap();
    }
    let config = config(data.path(), "npy");
    let output = data.path().join("mine.h5");
    let mut command = train();
    command.arg(&config).arg("--data").arg(data.path()).arg("-o").arg(&output).args(["--device", "cpu", "--quiet"]);
    succeed(&mut command);
    let found = results::read(&output).unwrap();
    assert_eq!((found.workload.dataset.as_str(), found.workload.test_examples), ("mine", 0));
    assert!(found.cells[0].steps_to_result().is_some());
    assert_eq!(found.cells[0].test_errors, None);
    assert_eq!(found.workload.test_error(&found.cells[0]), None);
}

#[test]
fn a_configuration_names_its_data() {
    let data = every_format();
    let refused = |dataset: &str| {
        let config = config(data.path(), "npy");
        let text = fs::read_to_string(&config).unwrap().replace("{ path = \"npy\", name = \"mine\" }", dataset);
        fs::write(&config, text).unwrap();
        let output = train().arg(&config).arg("--plan").arg("--data").arg(data.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (dataset, words) in [
        ("{ }", "workload.dataset.path: expected a folder or file below the data folder, found nothing"),
        ("{ path = 3 }", "workload.dataset.path: expected a folder or file below the data folder, found 3"),
        ("{ path = \"npy\", name = \"mnist\" }", "workload.dataset.name: expected at most 40 letters"),
        ("{ path = \"npy\", name = \"a b\" }", "found \"a b\"; write for example \"digits\""),
        ("{ path = \"..\" }", "workload.dataset.name: "),
        ("{ path = \"npy\", nmae = \"x\" }", "unknown key \"workload.dataset.nmae\"; did you mean \"workload.dataset.name\"?"),
        ("\"mine\"", "workload.dataset: expected one of mnist, fashion-mnist, cifar-10, found \"mine\""),
    ] {
        let (code, text) = refused(dataset);
        assert!(code == Some(2) && text.contains(words), "{dataset}: {text}");
    }
    assert_eq!(refused("{ path = \"npy\" }"), (Some(0), String::new()));
}

//! Images of one's own: every format that is read, what is refused and in which words, and studies of them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data::gzip;
use crate::support::study::{succeed, train};
use dps::Error;
use dps::data::{DataLayout, DataSplit, Dataset, DatasetChoice, Facts, ImageShape, OwnDataset, Pixels};
use dps::journal::{Header, Journal, journal_path};
use dps::records::Trial;
use dps::results;
use dps::storage::Disk;
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
        // Blocks of a tape or a disk image are filled up so.
        ("t10k-labels.idx1-ubyte.gz", [gzip(&idx(8, &TESTS[..1], &labels(TESTS[0]))), vec![0; 700]].concat()),
        ("README", b"text".to_vec()),
        // Files that macOS, downloads and dps-train data fetch leave beside data.
        ("._emnist-mine-train-images-idx3-ubyte.gz", b"attributes".to_vec()),
        (".t10k-images.idx3-ubyte.swp", b"edited".to_vec()),
        ("t10k-images.idx3-ubyte.part", b"half".to_vec()),
        ("t10k-labels.idx1-ubyte.gz.rejected", b"other".to_vec()),
    ];
    write(&at("idx"), &idxs);
    write(&at("npy"), &[("._x_train.npy", b"attributes".to_vec()), ("x_test.npy.part", b"half".to_vec())]);
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
        found.extend((0..set.len()).map(|i| (set.image(i).to_vec(), set.labels[i])));
    }
    assert!(file.iter().all(|example| found.contains(example)) && found != file);
}

#[test]
fn headers_say_what_the_whole_is() {
    let data = every_format();
    for path in ["npy", "all.npz", "idx", "all.hdf5"] {
        let facts = Facts::of(&own(path), data.path(), &DataSplit::default()).unwrap();
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

/// A type by NumPy's code for it, and the bytes of a value, big-endian.
type Kind = (&'static str, fn(u8) -> Vec<u8>);

const KINDS: [Kind; 10] = [
    ("i1", |value| vec![value]),
    ("u2", |value| u16::from(value).to_be_bytes().into()),
    ("i2", |value| i16::from(value).to_be_bytes().into()),
    ("u4", |value| u32::from(value).to_be_bytes().into()),
    ("i4", |value| i32::from(value).to_be_bytes().into()),
    ("u8", |value| u64::from(value).to_be_bytes().into()),
    ("i8", |value| i64::from(value).to_be_bytes().into()),
    ("f4", |value| f32::from(value).to_be_bytes().into()),
    ("f8", |value| f64::from(value).to_be_bytes().into()),
    // Of 16 bits from the 32: numbers below 128 are exact in both.
    ("f2", |value| {
        let bits = f32::from(value).to_bits();
        let half = if value == 0 { 0 } else { ((bits >> 23) - 112) << 10 | bits >> 13 & 0x3ff };
        (half as u16).to_be_bytes().into()
    }),
];

/// Images and labels as arrays of one type, in either order of bytes and of extents.
#[test]
fn every_type_of_numbers_is_read_by_its_values() {
    let data = tempfile::tempdir().unwrap();
    let small = |shape, seed| pixels(shape, seed).into_iter().map(|value| value % 100).collect::<Vec<u8>>();
    // The first extent the fastest: as NumPy saves the transpose of an array in C's order.
    let fortran = |[count, height, width, channels]: [usize; 4], values: &[u8]| {
        let mut swapped = Vec::new();
        for (k, j, i) in (0..channels).flat_map(|k| (0..width).flat_map(move |j| (0..height).map(move |i| (k, j, i)))) {
            swapped.extend((0..count).map(|n| values[((n * height + i) * width + j) * channels + k]));
        }
        swapped
    };
    let mut first: Option<Dataset> = None;
    for (code, bytes) in KINDS {
        for (is_big_endian, is_fortran) in [(false, false), (true, false), (false, true), (true, true)] {
            let array = |extents: &[usize], values: &[u8]| {
                let width = bytes(0).len();
                let mut all: Vec<u8> = values.iter().flat_map(|&value| bytes(value)).collect();
                if !is_big_endian {
                    all.chunks_mut(width).for_each(<[u8]>::reverse);
                }
                let file = npy(&format!("{}{code}", if is_big_endian { ">" } else { "<" }), extents, &all);
                let at = file.windows(5).position(|word| word == b"False").unwrap();
                if is_fortran { [&file[..at], b"True ", &file[at + 5..]].concat() } else { file }
            };
            let images = |shape: [usize; 4], seed| {
                let values = small(shape, seed);
                array(&shape, &if is_fortran { fortran(shape, &values) } else { values })
            };
            let arrays = [
                ("x_train", images(SHAPE, 1)),
                ("y_train", array(&[SHAPE[0], 1, 1, 1], &labels(SHAPE[0]))),
                ("x_test", images(TESTS, 2)),
                ("y_test", array(&TESTS[..1], &labels(TESTS[0]))),
            ];
            npz(&arrays, &data.path().join("all.npz"));
            let found = load(data.path(), "all.npz").unwrap();
            assert_eq!(found.facts().value_bytes, 4, "{code}");
            let first = first.get_or_insert_with(|| found.clone());
            assert_eq!(found, *first, "{code}, big-endian {is_big_endian}, Fortran's order {is_fortran}");
        }
    }
    // The values stay as they are: not divided by 255.
    let mean: f64 = small(SHAPE, 1).iter().step_by(2).map(|&value| f64::from(value)).sum::<f64>() / 480.0;
    assert!((first.unwrap().normalisation[0].mean - mean).abs() < 1e-12);
}

/// The images with their channels first, in every format.
fn channels_first(data: &Path) {
    let planes = |[count, height, width, channels]: [usize; 4], seed| {
        let values = pixels([count, height, width, channels], seed);
        let image =
            |image: &[u8]| (0..channels).flat_map(|k| image.iter().skip(k).step_by(channels).copied().collect::<Vec<_>>()).collect();
        values.chunks(height * width * channels).map(image).collect::<Vec<Vec<u8>>>().concat()
    };
    let shape = |[count, height, width, channels]: [usize; 4]| [count, channels, height, width];
    let mut arrays = arrays();
    arrays[0].1 = npy("|u1", &shape(SHAPE), &planes(SHAPE, 1));
    arrays[2].1 = npy("|u1", &shape(TESTS), &planes(TESTS, 2));
    npz(&arrays, &data.join("first.npz"));
    let files: Vec<(String, Vec<u8>)> = arrays.into_iter().map(|(name, bytes)| (format!("{name}.npy"), bytes)).collect();
    write(&data.join("first"), &files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
    let copied = |name: &str| fs::read(data.join("idx").join(name)).unwrap();
    let idxs = [
        ("train-images-idx4-ubyte", idx(8, &shape(SHAPE), &planes(SHAPE, 1))),
        ("train-labels-idx1-ubyte", copied("emnist-mine-train-labels-idx1-ubyte")),
        ("test-images-idx4-ubyte", idx(8, &shape(TESTS), &planes(TESTS, 2))),
        ("test-labels-idx1-ubyte", copied("t10k-labels.idx1-ubyte.gz")),
    ];
    write(&data.join("first-idx"), &idxs);
    fs::copy(data.join("all.hdf5"), data.join("first.hdf5")).unwrap();
    let file = hdf5::File::open_rw(data.join("first.hdf5")).unwrap();
    for (name, extents, seed) in [("train", SHAPE, 1), ("test", TESTS, 2)] {
        file.unlink(&format!("{name}/images")).unwrap();
        let images = file.new_dataset::<u8>().shape(shape(extents)).create(format!("{name}/images").as_str()).unwrap();
        images.write_raw(&planes(extents, seed)).unwrap();
    }
}

#[test]
fn channels_may_be_first() {
    let data = every_format();
    channels_first(data.path());
    let split = |layout| DataSplit { validation_fraction: 0.25, layout, ..DataSplit::default() };
    let last = load(data.path(), "npy").unwrap();
    for path in ["first", "first.npz", "first-idx", "first.hdf5"] {
        let first = split(Some(DataLayout::ChannelsFirst));
        assert_eq!(Dataset::load(own(path), data.path(), &first).unwrap(), last, "{path}");
        assert_eq!(Facts::of(&own(path), data.path(), &first).unwrap(), last.facts(), "{path}");
    }
    // An array that looks like channels first is, or is not, by the key alone.
    let bytes = pixels([24, 3, 5, 5], 3);
    npz(&[("x", npy("|u1", &[24, 3, 5, 5], &bytes)), ("y", npy("|u1", &[24], &labels(24)))], &data.path().join("odd.npz"));
    assert!(load(data.path(), "odd.npz").is_err());
    let shape = |layout| Dataset::load(own("odd.npz"), data.path(), &split(Some(layout))).unwrap().shape;
    assert_eq!(shape(DataLayout::ChannelsLast), ImageShape { height: 3, width: 5, channels: 5 });
    assert_eq!(shape(DataLayout::ChannelsFirst), ImageShape { height: 5, width: 5, channels: 3 });
    // Images without channels are as they are.
    let grey = [("x", npy("|u1", &[24, 5, 5], &bytes[..600])), ("y", npy("|u1", &[24], &labels(24)))];
    npz(&grey, &data.path().join("grey.npz"));
    let grey = |layout| Dataset::load(own("grey.npz"), data.path(), &split(layout)).unwrap();
    assert_eq!(grey(Some(DataLayout::ChannelsFirst)), grey(None));
}

#[test]
fn a_study_of_channels_first_records_the_same() {
    let data = every_format();
    channels_first(data.path());
    let study = |path: &str, layout: &str| {
        let config = config(data.path(), path);
        let text = fs::read_to_string(&config).unwrap().replace("{ layer = \"flatten\" }", CONVOLUTION) + layout;
        fs::write(&config, text).unwrap();
        let output = data.path().join(format!("of-{}.h5", path.trim_end_matches(".npz")));
        succeed(train().arg(&config).arg("--data").arg(data.path()).arg("-o").arg(&output).args(["--device", "cpu", "--quiet"]));
        let found = results::read(&output).unwrap();
        let trials: Vec<Trial> =
            found.cells.iter().flat_map(|cell| cell.trials.clone()).map(|trial| Trial { seconds: 0.0, ..trial }).collect();
        (found.environment.data_digest, found.workload, trials)
    };
    let last = study("npy", "");
    assert_eq!(study("first.npz", "[data]\nlayout = \"channels-first\"\n"), last);
    assert!(!last.2.is_empty());
}

/// Rows, columns and channels are not alike to it.
const CONVOLUTION: &str = "{ layer = \"convolution\", channels = 2, kernel = 3 }, { layer = \"flatten\" }";

#[test]
fn truth_values_are_bytes_and_features_are_one_row() {
    let data = tempfile::tempdir().unwrap();
    let bits: Vec<u8> = pixels(SHAPE, 1).into_iter().map(|value| value & 1).collect();
    let write_kind = |kind: &str| {
        npz(&[("x", npy(kind, &[24, 40], &bits)), ("y", npy("|b1", &[24], &bits[..24]))], &data.path().join("all.npz"));
        load(data.path(), "all.npz").unwrap()
    };
    let (found, bytes) = (write_kind("|b1"), write_kind("|u1"));
    assert_eq!(found, bytes);
    assert_eq!((found.shape, found.classes, found.facts().value_bytes), (ImageShape { height: 1, width: 40, channels: 1 }, 2, 1));
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
        ("y_train", None, &["expected training labels by the name y_train, train_y, train_labels", "found only x_train", "x_test"]),
        ("y_train", Some(npy("<i8", &[1 << 24], &[])), &["expected 134217728 bytes of values", "cut short"]),
        ("x_test", None, &["expected test images by the name x_test, test_x, test_images, images_test, test_set_x, found only x_train"]),
        ("x_train", Some(npy("<c8", &SHAPE, &[])), &["found \"<c8\"; save x.astype(\"float32\") of images"]),
        ("x_train", Some(npy("<f16", &SHAPE, &[])), &["expected numbers (bool, int8 to uint64, float16 to float64), found \"<f16\""]),
        ("y_train", Some(npy("<U5", &[24], &[])), &["found \"<U5\"; save", "numpy.unique(y, return_inverse=True)[1] of labels"]),
        ("x_train", Some(npy("|u1", &[24], &labels(24))), &["expected images as [n][rows][columns]", "found [24]: are these the labels?"]),
        ("x_train", Some(npy("|u1", &[24, 5, 4, 2, 1], &pixels(SHAPE, 1))), &["found [24][5][4][2][1]"]),
        (
            "x_train",
            Some(npy("|u1", &[24, 3, 5, 5], &[0; 1800])),
            &["found [24][3][5][5], which looks like", "add layout = \"channels-first\" to [data], or save x.transpose(0, 2, 3, 1)"],
        ),
        (
            "x_train",
            Some(npy("<f8", &SHAPE, &[0, 0, 0, 0, 0, 0, 0, 0x7e].repeat(960))),
            &["expected values that 32-bit floating point can hold, found ", "as value 0; scale"],
        ),
        ("x_train", Some(npy("|u1", &[0, 5, 4, 2], &[])), &["expected from 1 to 16777216 images, found [0][5][4][2]"]),
        ("x_train", Some(npy("|u1", &[24, 5, 0, 2], &[])), &["expected images of 1 to 4096 rows"]),
        ("x_train", Some(npy("|u1", &[24, 4096, 4096], &[])), &["of at most 1048576 values, found [24][4096][4096]"]),
        ("x_train", Some(npy("|u1", &SHAPE, &pixels(SHAPE, 1)[..900])), &["expected 960 bytes of values", "cut short"]),
        ("x_train", Some(npy("|u1", &SHAPE, &pixels([25, 5, 4, 2], 1))), &["found more: the file is not what its header says"]),
        ("x_train", Some(npy("|u1", &[1 << 24, 512, 512], &[])), &["expected one label for each of the 16777216 images"]),
        ("x_train", Some(npy("|u1", &SHAPE, &[7; 960])), &["the same value in every pixel of channel 0"]),
        ("x_train", Some(npy("<f4", &SHAPE, &float(f32::NAN))), &["expected finite values, found NaN as value 1"]),
        ("x_train", Some(npy("<f4", &SHAPE, &float(0.1))), &["expected images as the training images are", "32-bit floating point, found"]),
        ("x_test", Some(npy("|u1", &[6, 5, 5, 2], &pixels([6, 5, 5, 2], 2))), &["5×4×2 of bytes, found 5×5×2 of bytes"]),
        ("y_train", Some(npy("|i1", &[24], &[255; 24])), &["expected labels from 0 to 999, found -1 at example 0"]),
        ("y_train", Some(npy("|u1", &[24], &[2; 24])), &["expected labels of at least two classes, found 2 for every training image"]),
        ("y_train", Some(npy("|u1", &[23], &labels(23))), &["expected one label for each of the 24 images", "found 23 labels"]),
        ("y_train", Some(npy("<f4", &[24], &[0, 0, 0, 0x3f].repeat(24))), &["expected labels as whole numbers, found 0.5 at example 0"]),
        ("y_train", Some(npy("<f4", &[24], &[0, 0, 0xc0, 0x7f].repeat(24))), &["expected labels as whole numbers, found NaN at example 0"]),
        ("y_train", Some(npy("|u1", &[24, 3], &[0; 72])), &["expected labels as [n], found [24][3]", "save y.argmax(1)"]),
        ("y_train", Some(npy("|u1", &SHAPE, &pixels(SHAPE, 1))), &["found [24][5][4][2]: are these the images?"]),
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
    npz(&[], &data.path().join("none.npz"));
    write(&data.path().join("twice"), &[]);
    for name in ["train.npz", "old-train.npz"] {
        npz(&arrays()[..2], &data.path().join("twice").join(name));
    }
    fs::copy(data.path().join("all.hdf5"), data.path().join("half.hdf5")).unwrap();
    hdf5::File::open_rw(data.path().join("half.hdf5")).unwrap().unlink("test/labels").unwrap();
    let others = [
        ("other.npz", "expected training labels by the name y_train, "),
        ("other.npz", "labels, y, found only x_train, targets; save them by numpy.savez(\"other.npz\", ..., x_train=x, y_train=y)"),
        ("none.npz", "expected training images by the name x_train, "),
        ("none.npz", ", images, x, found no arrays at all; save them by"),
        ("half.hdf5", "found only train/images, train/labels, test/images; write them by h5py.File(\"half.hdf5\", \"a\")[\"y_test\"] = y"),
        ("twice", "expected one array of training images, found one in old-train.npz and one in train.npz; keep one of them there"),
        ("nowhere", "expected a folder of IDX or .npy files, an .npz file or an HDF5 file, found none"),
        ("text", "found a file of another format"),
        ("empty", "expected training images by the name x_train, "),
        ("empty", "found no IDX, .npy, .npz or HDF5 files; save them by numpy.save(\"x_train.npy\", x)"),
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

/// Arrays of a training, a validation and a test set under names.
fn three_sets(names: [&str; 6]) -> Vec<(&str, Vec<u8>)> {
    let sets = [(SHAPE, 1), ([9, 5, 4, 2], 3), (TESTS, 2)];
    let arrays =
        sets.iter().flat_map(|&(shape, seed)| [npy("|u1", &shape, &pixels(shape, seed)), npy("|u1", &shape[..1], &labels(shape[0]))]);
    names.into_iter().zip(arrays).collect()
}

#[test]
fn a_validation_set_of_its_own_takes_the_place_of_the_split() {
    let data = tempfile::tempdir().unwrap();
    let at = |name: &str| data.path().join(name);
    npz(&three_sets(["train_images", "train_labels", "val_images", "val_labels", "test_images", "test_labels"]), &at("three.npz"));
    let found = load(data.path(), "three.npz").unwrap();
    assert_eq!((found.training.len(), found.validation.len(), found.test.len()), (24, 9, 6));
    assert_eq!(found.validation.images, Pixels::Bytes(pixels([9, 5, 4, 2], 3)));
    assert_eq!(found.validation.labels, labels(9).into_iter().map(u16::from).collect::<Vec<u16>>());
    assert_eq!(Facts::of(&own("three.npz"), data.path(), &DataSplit::default()).unwrap(), found.facts());
    // Normalisation is by the training file, and the order of its examples is random all the same.
    npz(&three_sets(["x", "y", "x_other", "y_other", "x_test", "y_test"]), &at("two.npz"));
    let split = load(data.path(), "two.npz").unwrap();
    assert_eq!(split.normalisation, found.normalisation);
    assert_eq!((split.training.len(), split.validation.len()), (18, 6));
    assert_eq!(found.training.labels[6..], split.training.labels[..]);
    // A share that would leave nothing is of no interest.
    let split = DataSplit { validation_fraction: 0.001, ..DataSplit::default() };
    assert_eq!(Dataset::load(own("three.npz"), data.path(), &split).unwrap().digest, found.digest);
    for words in [["x_val", "y_val"], ["x_valid", "y_valid"], ["dev_x", "dev_y"], ["validation_set_x", "validation_set_y"]] {
        npz(&three_sets(["train_set_x", "train_set_y", words[0], words[1], "test_set_x", "test_set_y"]), &at("other.npz"));
        assert_eq!(load(data.path(), "other.npz").unwrap(), found, "{words:?}");
    }
    // A file for each set, or for each array.
    let arrays = three_sets(["x", "y", "x", "y", "images", "labels"]);
    for (place, name) in ["cats_train.npz", "cats_valid.npz", "cats_test.npz"].iter().enumerate() {
        write(&at("sets"), &[("._cats_train.npz", b"text".to_vec()), ("cats_train.npz.part", b"text".to_vec())]);
        npz(&arrays[2 * place..][..2], &at("sets").join(name));
    }
    write(&at("arrays"), &[]);
    for ((name, bytes), set) in arrays.iter().zip(["train", "train", "valid", "valid", "test", "test"]) {
        let array = if ["x", "images"].contains(name) { "x" } else { "y" };
        npz(&[(array, bytes.clone())], &at("arrays").join(format!("cells_split_{set}_{array}.npz")));
    }
    let idxs: Vec<(String, Vec<u8>)> = [("train", SHAPE, 1), ("val", [9, 5, 4, 2], 3), ("t10k", TESTS, 2)]
        .into_iter()
        .flat_map(|(set, shape, seed)| {
            let images = (format!("{set}-images-idx4-ubyte"), idx(8, &shape, &pixels(shape, seed)));
            [images, (format!("{set}-labels-idx1-ubyte"), idx(8, &shape[..1], &labels(shape[0])))]
        })
        .collect();
    write(&at("idx"), &idxs.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
    write(&at("idx"), &[("._train-images-idx4-ubyte", b"text".to_vec()), ("train-labels-idx1-ubyte.part", b"text".to_vec())]);
    for path in ["sets", "arrays", "idx"] {
        assert_eq!(load(data.path(), path).unwrap(), found, "{path}");
    }
}

#[test]
fn the_plan_the_check_and_the_results_say_whose_validation_set_it_is() {
    let data = tempfile::tempdir().unwrap();
    let mut arrays = three_sets(["x_train", "y_train", "x_val", "y_val", "x_test", "y_test"]);
    // Nothing of class 0.
    arrays[1].1 = npy("|u1", &[24], &labels(24).into_iter().map(|label| label.max(1)).collect::<Vec<u8>>());
    npz(&arrays, &data.path().join("three.npz"));
    let config = config(data.path(), "three.npz");
    let output = data.path().join("three.h5");
    let run = |words: &[&str]| {
        let output = train().args(words).arg(&config).arg("--data").arg(data.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let said = "9 examples, a set of the data's own";
    assert!(run(&["--plan"]).0.contains(said));
    assert!(run(&["data", "check"]).0.contains(said));
    let (table, notes) = run(&["--device", "cpu", "-o", output.to_str().unwrap()]);
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" of 9 examples of the data's own validation set wrong"), "{table}");
    assert!(notes.contains("1 of 3 classes have no training example (0), but outputs of the network"), "{notes}");
    let found = results::read(&output).unwrap();
    assert_eq!((found.workload.validation_examples, found.workload.training_examples), (9, Some(24)));
}

#[test]
fn the_digest_is_not_of_the_name() {
    let data = every_format();
    let named = |name: &str| {
        let dataset = DatasetChoice::Own(OwnDataset { path: "all.npz".into(), name: name.into() });
        Dataset::load(dataset, data.path(), &DataSplit { validation_fraction: 0.25, ..DataSplit::default() }).unwrap()
    };
    assert_eq!(named("one").digest, named("other").digest);
    // Versions before wrote it so into journals and results.
    let digits = DatasetChoice::Own(OwnDataset { path: "digits.npz".into(), name: "digits".into() });
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data");
    let digits = Dataset::load(digits, &fixtures, &DataSplit::default()).unwrap();
    assert!(digits.has_digest("215ecc11fed1ff4500fbb31b9f372f698d5ee69450cd1fcee21ed01ab5c7f6e3") && digits.has_digest(&digits.digest));
}

#[test]
fn a_study_goes_on_that_was_begun_with_the_digest_of_before() {
    let data = every_format();
    let config = config(data.path(), "all.npz");
    let output = data.path().join("mine.h5");
    let configuration = dps::settings::load(&config, &[]).unwrap();
    let dataset = Dataset::load(own("all.npz"), data.path(), &configuration.study.data).unwrap();
    let earlier = dataset.particulars.earlier_digest.clone();
    assert_ne!(earlier, dataset.digest);
    let header = Header {
        configuration: configuration.text,
        digest: configuration.digest,
        data_digest: earlier.clone(),
        earlier_data_digest: String::new(),
        program_version: dps::version::VERSION.into(),
        commit: String::new(),
        started: "2026-01-01T00:00:00Z".into(),
    };
    drop(Journal::open(&journal_path(&output), &header, Arc::new(Disk)).unwrap());
    succeed(train().arg(&config).arg("--data").arg(data.path()).arg("-o").arg(&output).args(["--device", "cpu", "--quiet"]));
    let found = results::read(&output).unwrap();
    assert_eq!((found.environment.data_digest.as_str(), found.complete), (earlier.as_str(), true));
    let cell = ["--batch-size", "4", "--sparsity", "0", "--trial", "0"];
    succeed(train().arg("replay").arg(&output).args(cell).arg("--data").arg(data.path()));
}

#[test]
fn values_are_exact() {
    let data = tempfile::tempdir().unwrap();
    let floats = |values: &[u8]| values.iter().flat_map(|&value| f32::from(value).to_le_bytes()).collect::<Vec<u8>>();
    let values: Vec<u8> = (0..24 * 40).map(|i| (i * 53 % 256) as u8).collect();
    npz(&[("x", npy("<f4", &[24, 40], &floats(&values))), ("y", npy("|u1", &[24], &labels(24)))], &data.path().join("mine.npz"));
    assert_eq!(load(data.path(), "mine.npz").unwrap().particulars.range, [0.0, 255.0]);
    let output = train().args(["data", "check"]).arg(config(data.path(), "mine.npz")).arg("--data").arg(data.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("values      0 to 255\n"), "{text}");
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
        ("{ }", "workload.dataset.path: expected a folder or file below the data folder, or an absolute path, found nothing"),
        ("{ path = 3 }", "workload.dataset.path: expected a folder or file below the data folder, or an absolute path, found 3"),
        ("{ path = \"npy\", name = \"mnist\" }", "workload.dataset.name: expected at most 40 letters"),
        ("{ path = \"npy\", name = \"a b\" }", "found \"a b\"; write for example \"digits\""),
        ("{ path = \"..\" }", "workload.dataset.name: "),
        ("{ path = \"npy\", nmae = \"x\" }", "unknown key \"workload.dataset.nmae\"; did you mean \"workload.dataset.name\"?"),
        (
            "{ path = \"mnist.npz\" }",
            "expected a name for results to use, since the path's, \"mnist\", is another data set's; add name = \"my-mnist\"",
        ),
        ("{ path = \"my data.npz\" }", "\"my data\", has letters that are none of a-z, A-Z, 0-9, -, _ and .; add name = \"my-data\""),
        ("{ path = \"données.npz\" }", "add name = \"donn-es\""),
        ("{ path = \"数据.npz\" }", "add name = \"digits\""),
        ("{ path = \"x/..\" }", "since the path has none; add name = \"digits\""),
        (
            "{ path = \"an-image-data-set-with-a-name-of-its-own-v1.npz\" }",
            "more than 40 letters; add name = \"an-image-data-set-with-a-name-of-its\"",
        ),
        ("\"mine.npz\"", "found \"mine.npz\"; write dataset = { path = \"mine.npz\" } where that is in the data folder"),
        ("\"data/mine.npz\"", "found \"data/mine.npz\"; write dataset = { path = \"mine.npz\" }"),
        ("\"mine\"", "workload.dataset: expected one of mnist, fashion-mnist, cifar-10, found \"mine\""),
    ] {
        let (code, text) = refused(dataset);
        assert!(code == Some(2) && text.contains(words), "{dataset}: {text}");
    }
    assert_eq!(refused("{ path = \"npy\" }"), (Some(0), String::new()));
    let text = fs::read_to_string(config(data.path(), "npy")).unwrap() + "[data]\nlayout = \"channels-last\"\n";
    let named = text.replace("{ path = \"npy\", name = \"mine\" }", "\"mnist\"");
    let problem = dps::settings::parse("mine", &named, &[]).unwrap_err().to_string();
    assert!(problem.contains("data.layout: expected nothing for mnist, whose layout is known, found a value; remove it"), "{problem}");
    // Without the key a configuration is what it was before there was one.
    let canonical = |text: &str| dps::settings::parse("mine", text, &[]).unwrap().text;
    assert_eq!(canonical(&text).matches("layout").count(), 1);
    assert_eq!(canonical(text.trim_end_matches("layout = \"channels-last\"\n")).matches("layout").count(), 0);
}

#[test]
fn a_new_configuration_says_why_it_cannot_be_measured() {
    let data = every_format();
    let init = |name: &str, path: &str| {
        let mut init = train();
        init.arg("init").arg(data.path().join(name)).args(["--path", path, "--optimizer", "sgd", "--data"]).arg(data.path());
        init.output().unwrap()
    };
    let written = |name: &str, path: &str| {
        let output = init(name, path);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let folder = data.path().display();
    let said = written("a study.toml", "nowhere.npz");
    assert!(said.contains(&format!("It cannot be measured as it is: {folder}/nowhere.npz: expected a folder of IDX")), "{said}");
    assert!(said.contains(&format!("dps-train pilot '{folder}/a study.toml' --data {folder};")), "{said}");
    assert!(!written("small.toml", "all.npz").contains("It cannot be measured"));
    // The other commands take it for a result file.
    let refused = init("study.h5", "all.npz");
    assert!(refused.status.code() == Some(2) && !data.path().join("study.h5").exists(), "{refused:?}");
}

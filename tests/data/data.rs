//! Data sets from files: what is read, what is refused and in which words, how it is split and normalised.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use dps::Error;
use dps::data::{DataSource, DataSplit, Dataset, DatasetName, Examples, Facts, ImageShape, fetch, locate};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const FILES: [&str; 4] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];
const PIXELS: usize = 28 * 28;

fn idx(magic: u32, extents: &[u32], body: &[u8]) -> Vec<u8> {
    let header = std::iter::once(&magic).chain(extents).flat_map(|word| word.to_be_bytes());
    header.chain(body.iter().copied()).collect()
}

/// `count` images, image i filled with a pattern of its own that starts with i.
fn images(count: u32) -> Vec<u8> {
    let body: Vec<u8> = (0..count as usize).flat_map(|i| (0..PIXELS).map(move |p| ((i + p * 7) % 256) as u8)).collect();
    idx(0x803, &[count, 28, 28], &body)
}

fn labels(count: u32) -> Vec<u8> {
    let body: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
    idx(0x801, &[count], &body)
}

/// The bytes in gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A data folder with a small MNIST: 20 training and 4 test examples.
fn small_mnist() -> TempDir {
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(data.path().join("mnist")).unwrap();
    for (file, bytes) in FILES.iter().zip([images(20), labels(20), images(4), labels(4)]) {
        write(&data, file, &bytes);
    }
    data
}

fn write(data: &TempDir, file: &str, bytes: &[u8]) {
    fs::write(data.path().join("mnist").join(file), bytes).unwrap();
}

/// How made-up data are read: without the check that they are the originals.
fn own() -> DataSplit {
    DataSplit { source: DataSource::Own, ..DataSplit::default() }
}

fn load(data: &TempDir) -> dps::Result<Dataset> {
    Dataset::load(DatasetName::Mnist, data.path(), &own())
}

/// The error, which must be of the data, of one line, and name a file or folder of `data`.
fn refusal(data: &TempDir) -> String {
    let error = load(data).unwrap_err();
    assert!(matches!(error, Error::Data { .. }));
    let text = error.to_string();
    assert!(text.starts_with(data.path().to_str().unwrap()) && !text.contains('\n'), "{text}");
    text
}

#[test]
fn a_small_mnist_loads_whole_and_split() {
    let folder = small_mnist();
    let data = load(&folder).unwrap();
    assert_eq!(Facts::of(&DatasetName::Mnist.into(), folder.path(), &own()).unwrap(), data.facts(), "before the images are read");
    assert_eq!((data.training.len(), data.validation.len(), data.test.len(), data.classes), (18, 2, 4, 10));
    assert_eq!(data.shape, ImageShape { height: 28, width: 28, channels: 1 });
    let mut firsts: Vec<u8> = (0..18).map(|i| data.training.image(i)[0]).chain((0..2).map(|i| data.validation.image(i)[0])).collect();
    for set in [&data.training, &data.validation, &data.test] {
        for i in 0..set.len() {
            assert_eq!(set.labels[i], u16::from(set.image(i)[0] % 10), "a label stays with its image");
            assert_eq!(set.image(i)[1], set.image(i)[0] + 7);
        }
    }
    firsts.sort();
    assert_eq!(firsts, (0..20).collect::<Vec<u8>>(), "every example is in one of the two sets");
    assert_eq!((0..4).map(|i| data.test.image(i)[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn gzipped_and_otherwise_named_files_are_the_same_data() {
    let (plain, other) = (small_mnist(), small_mnist());
    for file in FILES {
        let path = other.path().join("mnist").join(file);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        match file.contains("train") {
            true => write(&other, &format!("{}.gz", file.replace("-idx", ".idx")), &gzip(&bytes)),
            false => write(&other, file, &gzip(&bytes)), // gzipped by content, not by name
        }
    }
    assert_eq!(load(&plain).unwrap(), load(&other).unwrap());
}

#[test]
fn the_digest_is_of_pixels_labels_and_split() {
    let digest = |data: &TempDir, split_seed, validation_fraction| {
        Dataset::load(DatasetName::Mnist, data.path(), &DataSplit { split_seed, validation_fraction, ..own() }).unwrap().digest
    };
    let data = small_mnist();
    let first = digest(&data, 0, 0.1);
    assert_eq!(first, digest(&data, 0, 0.1));
    assert_eq!(first.len(), 64);
    // Versions before wrote it so into results and journals: a label is a byte.
    let loaded = load(&data).unwrap();
    let mut expected = Sha256::new();
    expected.update("mnist");
    for set in [&loaded.training, &loaded.validation, &loaded.test] {
        [28, 28, 1, set.len() as u64].iter().for_each(|extent| expected.update(extent.to_le_bytes()));
        (0..set.len()).for_each(|i| expected.update(set.image(i)));
        (0..set.len()).for_each(|i| expected.update([set.labels[i] as u8]));
    }
    assert_eq!(first, format!("{:x}", expected.finalize()));
    let mut digests = vec![first, digest(&data, 1, 0.1), digest(&data, 0, 0.2)];
    let mut changed = images(4);
    changed[16] ^= 1;
    write(&data, FILES[2], &changed);
    digests.push(digest(&data, 0, 0.1));
    let mut changed = labels(20);
    changed[8] ^= 1;
    write(&data, FILES[1], &changed);
    digests.push(digest(&data, 0, 0.1));
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

#[test]
fn normalisation_is_of_the_whole_training_file_and_exact() {
    let shape = ImageShape { height: 1, width: 2, channels: 2 };
    let file = Examples { images: vec![0, 10, 255, 10, 0, 30, 255, 30].into(), labels: vec![0, 1], shape };
    let test = Examples { images: vec![1; 4].into(), labels: vec![9], shape };
    let data = Dataset::new("pairs", 10, file, test, &DataSplit { validation_fraction: 0.5, ..own() }).unwrap();
    assert_eq!((data.normalisation[0].mean, data.normalisation[0].std), (0.5, 0.5));
    assert_eq!((data.normalisation[1].mean * 255.0, data.normalisation[1].std * 255.0), (20.0, 10.0));
    let table = data.lookup_table();
    assert_eq!((table.len(), table[0][0], table[0][255], table[1][20]), (2, -1.0, 1.0, 0.0));
    assert!((table[1][10] + 1.0).abs() < 1e-6 && (table[1][40] - 2.0).abs() < 1e-6);
}

#[test]
fn splits_that_leave_nothing_are_refused() {
    let data = small_mnist();
    for validation_fraction in [0.0, 0.01, 0.99, 1.0, -1.0, 7.0, f64::NAN, f64::INFINITY] {
        let split = DataSplit { validation_fraction, ..own() };
        let text = Dataset::load(DatasetName::Mnist, data.path(), &split).unwrap_err().to_string();
        assert!(text.contains("at least one training and one validation example") && text.contains("of the 20 examples"), "{text}");
    }
    for (file, bytes) in FILES.iter().zip([images(1), labels(1)]) {
        write(&data, file, &bytes);
    }
    assert!(refusal(&data).contains("of the 1 examples"));
}

/// Damage to each file, and words of the message.
#[test]
fn malformed_files_are_refused_in_words() {
    let long = |mut bytes: Vec<u8>| {
        bytes.push(0);
        bytes
    };
    let mut mislabelled = labels(20);
    mislabelled[8 + 13] = 10;
    let mut damaged = gzip(&images(20));
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].fill(0xff);
    let cases: Vec<(usize, Vec<u8>, &[&str])> = vec![
        (0, vec![], &["expected an IDX image file", "found an empty file"]),
        (0, vec![0, 0], &["found 2 bytes in all"]),
        (0, images(20)[..9].to_vec(), &["expected a header of 16 bytes, found 9"]),
        (0, images(20)[..5000].to_vec(), &["expected 15680 bytes after the header", "found 4984", "truncated"]),
        (0, long(images(20)), &["expected 15680 bytes", "found more"]),
        // Zeros there would fill up a block, as own_data.rs has them.
        (0, [gzip(&images(20)), vec![7]].concat(), &["damaged"]),
        (0, [gzip(&images(20)), vec![0; 9], vec![7; 9]].concat(), &["damaged"]),
        (0, [gzip(&images(20)), gzip(&[1])].concat(), &["expected 15680 bytes", "found more"]),
        (0, labels(20), &["expected an IDX image file (magic number 0x00000803)", "an IDX label file (0x00000801)", "swapped"]),
        (1, images(20), &["expected an IDX label file (magic number 0x00000801)", "an IDX image file", "swapped"]),
        (0, idx(0xd03, &[20, 28, 28], &[]), &["found 0x00000d03"]),
        (0, b"<!DOCTYPE html><html></html>".to_vec(), &["found 0x3c21444f"]),
        (0, idx(0x803, &[20, 32, 32], &[0; 20 * 1024]), &["expected images of 28×28 pixels, found 32×32"]),
        (0, idx(0x803, &[0, 28, 28], &[]), &["expected from 1 to", "says 0"]),
        (0, idx(0x803, &[u32::MAX, 28, 28], &[0; 784]), &["expected from 1 to", "says 4294967295"]),
        (0, idx(0x803, &[20, 28, 28], &[7; 20 * PIXELS]), &["same value in every pixel"]),
        (0, gzip(&[images(20), vec![0; 1 << 25]].concat()), &["found more"]),
        (0, damaged, &["gzip data is damaged"]),
        (0, gzip(&images(20))[..300].to_vec(), &["gzip data is damaged or cut short"]),
        (1, labels(20)[..20].to_vec(), &["expected 20 bytes after the header", "found 12", "truncated"]),
        (1, long(labels(20)), &["found more"]),
        (1, labels(19), &["expected one label for each of the 20 images", "found 19 labels"]),
        (1, mislabelled, &["expected labels from 0 to 9, found 10 at example 13"]),
        (2, vec![], &["found an empty file"]),
        (3, labels(5), &["expected one label for each of the 4 images", "found 5 labels"]),
    ];
    for (file, bytes, words) in cases {
        let data = small_mnist();
        write(&data, FILES[file], &bytes);
        let text = refusal(&data);
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    }
}

#[test]
fn missing_files_name_every_place_and_the_command() {
    let data = tempfile::tempdir().unwrap();
    let text = Dataset::load(DatasetName::Cifar10, data.path(), &own()).unwrap_err().to_string();
    for place in ["cifar-10", "cifar-10/cifar-10-batches-bin", "cifar-10-batches-bin"] {
        assert!(text.contains(data.path().join(place).to_str().unwrap()), "{place}: {text}");
    }
    assert!(text.ends_with(&format!("run: dps-train data fetch cifar-10 --data {}", data.path().display())), "{text}");

    let data = small_mnist();
    fs::remove_file(data.path().join("mnist").join(FILES[3])).unwrap();
    let text = refusal(&data);
    assert!(text.contains("t10k-labels-idx1-ubyte is missing; run: dps-train data fetch mnist"), "{text}");
    fs::create_dir(data.path().join("mnist").join(FILES[3])).unwrap();
    assert!(refusal(&data).contains("is missing"));
}

/// Three records a file: red, green and blue planes whose values tell channel and position.
fn cifar_batch(first: u8) -> Vec<u8> {
    let record = |label: u8| {
        let pixels = (0..3u8).flat_map(move |channel| (0..1024u32).map(move |p| (p % 80) as u8 + 80 * channel));
        std::iter::once(label).chain(pixels)
    };
    (first..first + 3).flat_map(record).collect()
}

fn small_cifar(folder: &str) -> (TempDir, PathBuf) {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join(folder);
    fs::create_dir_all(&folder).unwrap();
    for i in 1..=5 {
        fs::write(folder.join(format!("data_batch_{i}.bin")), cifar_batch(i)).unwrap();
    }
    fs::write(folder.join("test_batch.bin"), cifar_batch(0)).unwrap();
    (data, folder)
}

#[test]
fn cifar_is_found_in_every_place_and_becomes_channel_last() {
    for place in ["cifar-10", "cifar-10/cifar-10-batches-bin", "cifar-10-batches-bin"] {
        let (data, _) = small_cifar(place);
        // Files of an unpacking that ended early, in another place, hide nothing.
        if place != "cifar-10" {
            fs::create_dir_all(data.path().join("cifar-10")).unwrap();
            fs::write(data.path().join("cifar-10/test_batch.bin"), cifar_batch(0)).unwrap();
        }
        let loaded = Dataset::load(DatasetName::Cifar10, data.path(), &own()).unwrap();
        assert_eq!((loaded.training.len(), loaded.validation.len(), loaded.test.len()), (13, 2, 3));
        assert_eq!(loaded.normalisation.len(), 3);
        assert_eq!(loaded.test.labels, [0, 1, 2]);
        let expected: Vec<u8> = (0..1024u32).flat_map(|p| (0..3u8).map(move |channel| (p % 80) as u8 + 80 * channel)).collect();
        assert_eq!(loaded.test.image(1), expected);
    }
}

#[test]
fn malformed_cifar_batches_are_refused_in_words() {
    let mut mislabelled = cifar_batch(0);
    mislabelled[3073] = 200;
    let cases = [
        (vec![], "found an empty file"),
        (cifar_batch(0)[..5000].to_vec(), "found 5000 bytes, 1927 too many"),
        (mislabelled, "expected labels from 0 to 9, found 200 at example 1"),
        (gzip(&cifar_batch(0))[..40].to_vec(), "gzip data is damaged"),
    ];
    for (bytes, words) in cases {
        let (data, folder) = small_cifar("cifar-10");
        fs::write(folder.join("data_batch_3.bin"), bytes).unwrap();
        let text = Dataset::load(DatasetName::Cifar10, data.path(), &own()).unwrap_err().to_string();
        assert!(text.contains("data_batch_3.bin") && text.contains(words), "{words}: {text}");
    }
}

/// Where the machine has the originals (Debian package dataset-fashion-mnist), their known mean and deviation come out.
#[test]
fn fashion_mnist_has_its_known_normalisation_and_can_be_fetched() {
    let nowhere = tempfile::tempdir().unwrap();
    if locate(DatasetName::FashionMnist, nowhere.path()).is_err() {
        eprintln!("not tested: the package dataset-fashion-mnist is not installed");
        return;
    }
    let data = Dataset::load(DatasetName::FashionMnist, nowhere.path(), &DataSplit::default()).unwrap();
    assert_eq!((data.training.len(), data.validation.len(), data.test.len()), (54_000, 6_000, 10_000));
    assert_eq!(format!("{:.4} {:.4}", data.normalisation[0].mean, data.normalisation[0].std), "0.2860 0.3530");
    for class in 0..10 {
        let count = data.validation.labels.iter().filter(|&&label| label == class).count();
        assert!((500..700).contains(&count), "class {class} has {count} of 6,000 validation examples");
    }

    let folder = fetch(DatasetName::FashionMnist, nowhere.path(), &mut |_| ()).unwrap();
    assert_eq!(folder, nowhere.path().join("fashion-mnist"));
    assert_eq!(fs::metadata(folder.join(FILES[0])).unwrap().len(), 47_040_016);
    assert!(locate(DatasetName::FashionMnist, nowhere.path()).unwrap().iter().all(|file| file.starts_with(&folder)));
    assert_eq!(Dataset::load(DatasetName::FashionMnist, nowhere.path(), &DataSplit::default()).unwrap().digest, data.digest);

    // Originals under another data set's name, or with other labels, are refused.
    fs::rename(&folder, nowhere.path().join("mnist")).unwrap();
    let refused = |name| Dataset::load(name, nowhere.path(), &DataSplit::default()).unwrap_err().to_string();
    let text = refused(DatasetName::Mnist);
    assert!(text.contains("expected the original file of mnist, found that of fashion-mnist, train-images-idx3-ubyte; "), "{text}");
    assert_eq!(Dataset::load(DatasetName::Mnist, nowhere.path(), &own()).unwrap().normalisation, data.normalisation);
    fs::rename(nowhere.path().join("mnist"), &folder).unwrap();
    let mut labels = fs::read(folder.join(FILES[1])).unwrap();
    labels[8..13].iter_mut().for_each(|label| *label = (*label + 1) % 10);
    fs::write(folder.join(FILES[1]), labels).unwrap();
    let text = refused(DatasetName::FashionMnist);
    assert!(text.contains("train-labels-idx1-ubyte: expected the original file of fashion-mnist, found another (SHA-256 "), "{text}");
}

/// Where the environment variable DPS_DATA names a folder with MNIST, its known mean and deviation come out.
#[test]
fn mnist_has_its_known_normalisation() {
    let Some(folder) = std::env::var_os("DPS_DATA").filter(|folder| locate(DatasetName::Mnist, Path::new(folder)).is_ok()) else {
        eprintln!("not tested: no MNIST in DPS_DATA");
        return;
    };
    let data = Dataset::load(DatasetName::Mnist, Path::new(&folder), &DataSplit::default()).unwrap();
    assert_eq!(format!("{:.4} {:.4}", data.normalisation[0].mean, data.normalisation[0].std), "0.1307 0.3081");
    // The digest in docs/experiments/data.
    assert_eq!(data.digest, "4d8c569848132f0ea2a01e7c47f71e91eff6c051ddc8d30e8ff9b7e593e2707c");
}

#[test]
fn made_up_data_are_refused_unless_they_are_named_so() {
    let data = small_mnist();
    let error = Dataset::load(DatasetName::Mnist, data.path(), &DataSplit::default()).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.exit_code(), 3);
    assert!(
        text.contains(FILES[0]) && text.contains("expected the original file of mnist") && text.contains("data.source = \"own\""),
        "{text}"
    );
    load(&data).unwrap();
}

/// Every proper prefix of a file, gzipped or not, is refused.
#[test]
fn truncation_at_every_length_is_an_error() {
    let data = small_mnist();
    for file in [1, 3] {
        let whole = fs::read(data.path().join("mnist").join(FILES[file])).unwrap();
        for bytes in [whole.clone(), gzip(&whole)] {
            for length in 0..bytes.len() {
                write(&data, FILES[file], &bytes[..length]);
                refusal(&data);
            }
        }
        write(&data, FILES[file], &whole);
    }
    let whole = images(4);
    for bytes in [whole.clone(), gzip(&whole)] {
        for length in (0..bytes.len()).filter(|length| length % 61 == 0 || *length < 40 || bytes.len() - length < 20) {
            write(&data, FILES[2], &bytes[..length]);
            refusal(&data);
        }
    }
    let (cifar, folder) = small_cifar("cifar-10");
    let whole = gzip(&cifar_batch(0));
    for length in 0..whole.len() {
        fs::write(folder.join("test_batch.bin"), &whole[..length]).unwrap();
        assert!(Dataset::load(DatasetName::Cifar10, cifar.path(), &own()).is_err(), "length {length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes of any kind are refused in one line, whether bare or behind a valid header or a valid gzip wrapper.
    #[test]
    fn arbitrary_bytes_never_panic(file in 0..4usize, wrap in 0..4, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let data = small_mnist();
        let header = if file % 2 == 0 { idx(0x803, &[], &bytes) } else { idx(0x801, &[], &bytes) };
        let gzip_header = [&[0x1f, 0x8b, 8, 0][..], &bytes].concat();
        write(&data, FILES[file], &match wrap { 0 => bytes, 1 => header, 2 => gzip(&header), _ => gzip_header });
        refusal(&data);
    }

    #[test]
    fn arbitrary_cifar_bytes_never_panic(
        bytes in prop::sample::select(vec![0_usize, 1, 3072, 3073, 3074, 6146]).prop_flat_map(|length| prop::collection::vec(any::<u8>(), length))
    ) {
        let (data, folder) = small_cifar("cifar-10");
        fs::write(folder.join("data_batch_1.bin"), bytes).unwrap();
        if let Err(error) = Dataset::load(DatasetName::Cifar10, data.path(), &own()) {
            let one_line = !error.to_string().contains('\n');
            prop_assert!(one_line);
        }
    }

    /// One changed byte in gzip is an error or changes nothing (a field such as the time of the file): never other pixels.
    #[test]
    fn damaged_gzip_never_gives_other_data(place in any::<prop::sample::Index>(), change in 1..=255u8) {
        let data = small_mnist();
        let digest = load(&data).unwrap().digest;
        let mut bytes = gzip(&images(20));
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        write(&data, FILES[0], &bytes);
        if let Ok(loaded) = load(&data) {
            prop_assert_eq!(loaded.digest, digest);
        }
    }
}

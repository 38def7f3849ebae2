//! The formats: what makes an input of each, and what reads it. Every reader of dps that meets bytes from outside is here.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use dps::analysis::{gather, read_layout, read_table, shallue};
use dps::arguments::{ReportArguments, Train};
use dps::config::Override;
use dps::data::{DataSplit, Dataset, DatasetChoice, DatasetName, OwnDataset};
use dps::journal::{Journal, Loaded, load, save};
use dps::results;
use dps::settings;
use dps::storage::{Disk, Storage};
use dps::supervise::Hosts;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::checksums;
use super::mutate::{self, Random};
use super::{put, sample};

/// A format.
pub struct Format {
    pub name: &'static str,
    /// The input of a seed.
    pub make: fn(u64) -> Vec<u8>,
    /// Reads an input, for which a folder is there; the words of a refusal.
    pub read: fn(&[u8], &Path) -> Result<(), String>,
}

pub static FORMATS: [Format; 16] = [
    Format { name: "toml", make: |seed| text_of(tomls(), seed), read: toml },
    Format { name: "options", make: |seed| text_of(LINES, seed), read: options },
    Format { name: "hosts", make: |seed| text_of(HOSTS, seed), read: hosts },
    Format { name: "csv", make: |seed| text_of(TABLES, seed), read: csv },
    Format { name: "layout", make: layout_of, read: layout },
    Format {
        name: "idx",
        make: |seed| damaged_of(&[idx(false)], seed),
        read: |input, folder| own("idx", "train-images-idx3-ubyte", input, folder),
    },
    Format { name: "idx-gzip", make: idx_gzip, read: |input, folder| own("idx", "train-images-idx3-ubyte", input, folder) },
    Format {
        name: "mnist",
        make: |seed| damaged_of(&[idx(false), idx(true)], seed),
        read: |input, folder| published(DatasetName::Mnist, "train-images-idx3-ubyte", input, folder),
    },
    Format {
        name: "cifar-10",
        make: |seed| damaged_of(&[vec![7; 3_073], gzip(&[1; 6_146])], seed),
        read: |input, folder| published(DatasetName::Cifar10, "data_batch_1.bin", input, folder),
    },
    Format { name: "npy", make: |seed| damaged_of(npys(), seed), read: |input, folder| own("npy", "x_train.npy", input, folder) },
    Format { name: "npz", make: |seed| damaged_of(npzs(), seed), read: |input, folder| own("", "all.npz", input, folder) },
    Format { name: "hdf5", make: |seed| hdf5_of(hdf5s(), seed), read: own_twice },
    Format {
        name: "results",
        make: |seed| hdf5_of(result_files(), seed),
        read: |input, folder| file(input, folder, "x.h5", |path| results::read(path).map(drop)),
    },
    Format {
        name: "journal",
        make: journal,
        read: |input, folder| file(input, folder, "x.journal", |path| Journal::read(path, &Disk).map(drop)),
    },
    Format {
        name: "checkpoint",
        make: checkpoint,
        read: |input, folder| {
            file(input, folder, "x.checkpoint", |path| match load(path, "c0ffee", "da7a", &Disk)? {
                Loaded::Damaged(said) => Err(dps::Error::Memory { problem: said }),
                _ => Ok(()),
            })
        },
    },
    Format {
        name: "lock",
        make: |seed| {
            damaged_of(&[b"{\"host\":\"node1\",\"pid\":17,\"since\":\"2026-01-02T03:04:05Z\"}".to_vec(), b"17 node1\n".to_vec()], seed)
        },
        read: |input, folder| {
            file(input, folder, "x.lock", |path| {
                let _ = dps::journal::Lock::holder(path);
                Ok(())
            })
        },
    },
];

/// The sound input of a seed.
fn one<T>(of: &[T], seed: u64) -> &T {
    Random::new(!seed).one(of)
}

/// A text of a seed.
fn text_of<T: AsRef<str>>(of: &[T], seed: u64) -> Vec<u8> {
    mutate::text(one(of, seed).as_ref(), WORDS, &mut Random::new(seed)).into_bytes()
}

/// Bytes of a seed.
fn damaged_of(of: &[Vec<u8>], seed: u64) -> Vec<u8> {
    damaged(one::<Vec<u8>>(of, seed), seed)
}

fn damaged(sound: &[u8], seed: u64) -> Vec<u8> {
    mutate::bytes(sound.to_vec(), &mut Random::new(seed))
}

/// Words that mean something in one of the text formats.
const WORDS: &[&str] = &[
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "4294967296",
    "18446744073709551616",
    "true",
    "[[",
    "]]",
    "sparsities",
    "batch_sizes",
    "trials",
    "learning_rate",
    "min",
    "max",
    "scale",
    "log",
    "linear",
    "snip",
    "grasp",
    "synflow",
    "erk",
    "resnet-8",
    "simple-cnn",
    "momentum",
    "adamw",
    "mnist",
    "cifar-10",
    "--set",
    "--plan",
    "--fresh",
    "--data",
    "--output",
    "--device",
    "cpu",
    "gpu",
    "slots=",
    "layers",
    "convolution",
    "dense",
    "pool",
    "1979-05-27",
    "study",
];

const LINES: &[&str] = &[
    "configs/quickstart.toml --set workload.goal_error=0.05 --set grid.sparsities=[0,0.9] --output x.h5 --data data --device cpu --threads 2",
    "merge --output x.h5 a.h5 b.h5 --force",
    "replay x.h5 --batch-size 64 --sparsity 0.9 --trial 3 --csv x.csv",
    "supervise --tries 3 --hosts node1:4,node2:4 --reach ssh -- mpirun -n 4 dps-train x.toml --output x.h5",
    "status x.h5 --json",
    "data check x.toml --data data --set workload.goal_error=0.5",
    "ended x.h5 --code 75",
    "keys workload",
    "x.h5 y.h5 z.csv --output report --style paper --goal 0.1 --strict --claims x.md",
];

const HOSTS: &[&str] = &["node1:4,node2:4", "node1", "node1 slots=4 # first\nnode2 slots=8\n"];

const TABLES: &[&str] = &[
    "study,batch_size,sparsity,steps_to_result,goal\na,2,0,480,0.05\na,4,0,256,0.05\na,8,0.9,,0.05\nb,2,0.5,30,0.1\n",
    "study,batch_size,sparsity,steps_to_result,goal\n\"a, b\",2,0,480,0.05\n\"a \"\"b\"\"\",4,0,256,0.05\n",
];

/// The configurations that come with the program.
fn tomls() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let files = ["", "examples"].into_iter().flat_map(|folder| fs::read_dir(root.join(folder)).expect("configurations are there"));
        let mut paths: Vec<_> = files.map(|entry| entry.expect("they can be listed").path()).filter(|path| path.is_file()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).expect("they are texts")).collect()
    })
}

fn toml(input: &[u8], _: &Path) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let study = settings::parse("fuzz", &text, &[]).map_err(|error| error.to_string())?.study;
    // A study written down is that study.
    let again = settings::canonical(&study).unwrap();
    let read = settings::parse("fuzz", &again, &[]).unwrap_or_else(|error| panic!("written and refused: {error}"));
    assert_eq!(settings::canonical(&read.study).unwrap(), again, "written and read as another");
    Ok(())
}

fn options(input: &[u8], _: &Path) -> Result<(), String> {
    let text = String::from_utf8_lossy(input).into_owned();
    let words: Vec<OsString> = ["dps"].into_iter().chain(text.split_whitespace()).map(OsString::from).collect();
    for word in text.split_whitespace() {
        if let Some((key, value)) = word.split_once('=') {
            let change = Override { option: word.to_owned(), key: key.to_owned(), value: value.to_owned() };
            let _ = settings::parse("fuzz", &tomls()[0], &[change]);
        }
    }
    let _ = ReportArguments::read(words.clone());
    match Train::read(words) {
        Err(answer) if answer.use_stderr() => {
            // The programs shorten each line.
            let text = answer.render().to_string();
            Err(text.lines().map(|line| line.chars().take(420).collect::<String>()).collect::<Vec<_>>().join("\n"))
        }
        _ => Ok(()),
    }
}

fn hosts(input: &[u8], _: &Path) -> Result<(), String> {
    Hosts::read(&String::from_utf8_lossy(input), "ssh", std::time::Duration::ZERO).map(drop).map_err(|error| error.to_string())
}

fn csv(input: &[u8], folder: &Path) -> Result<(), String> {
    file(input, folder, "x.csv", |path| read_table(path).map(drop))
}

/// The files of a small study exported in the layout of Shallue et al., by their paths.
fn layouts() -> &'static [(PathBuf, String)] {
    static FILES: OnceLock<Vec<(PathBuf, String)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut study = results::read(&measured()[1]).expect("it is sound");
        study.cells.truncate(2);
        study.cells.iter_mut().for_each(|cell| cell.trials.truncate(3));
        shallue(&gather(vec![("study".to_owned(), study)]), folder.path()).expect("the folder has space");
        let (mut files, mut folders) = (Vec::new(), vec![folder.path().to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).expect("it was just written") {
                let path = entry.expect("it can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder.path()).expect("it is below").to_owned();
                    files.push((name, fs::read_to_string(path).expect("it is a text")));
                }
            }
        }
        files.sort();
        files
    })
}

/// A line with the number of the file that is damaged, then its text.
fn layout_of(seed: u64) -> Vec<u8> {
    let files = layouts();
    let number = Random::new(!seed).below(files.len().min(8));
    [format!("{number}\n"), mutate::text(&files[number].1, WORDS, &mut Random::new(seed))].concat().into_bytes()
}

fn layout(input: &[u8], folder: &Path) -> Result<(), String> {
    let files = layouts();
    let below = folder.join("layout");
    if !below.exists() {
        for (name, text) in files {
            let path = below.join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("the folder has space");
            put(&path, text.as_bytes());
        }
    }
    let text = String::from_utf8_lossy(input);
    let (number, text) = text.split_once('\n').expect("a line is first");
    let (name, sound) = &files[number.parse::<usize>().expect("the line is a number")];
    put(&below.join(name), text.as_bytes());
    let read = read_layout(&below, Some(0.1)).map(drop).map_err(|error| error.to_string());
    put(&below.join(name), sound.as_bytes());
    read
}

/// Reads an input as the file of a name.
fn file(input: &[u8], folder: &Path, name: &str, read: impl Fn(&Path) -> dps::Result<()>) -> Result<(), String> {
    let path = folder.join(name);
    put(&path, input);
    read(&path).map_err(|error| error.to_string())
}

const SHAPE: [usize; 4] = [12, 5, 4, 2];

fn pixels() -> Vec<u8> {
    (0..SHAPE.iter().product()).map(|place: usize| (place * 37 + place / 40) as u8).collect()
}

fn labels() -> Vec<u8> {
    (0..SHAPE[0]).map(|place| (place % 3) as u8).collect()
}

fn idx(is_gzip: bool) -> Vec<u8> {
    let extents = [12_u32, 5, 8].map(u32::to_be_bytes).concat();
    let bytes = [&[0, 0, 8, 3], &extents[..], &pixels()].concat();
    if is_gzip { gzip(&bytes) } else { bytes }
}

/// Damaged values in sound gzip, or the other way round.
fn idx_gzip(seed: u64) -> Vec<u8> {
    if seed.is_multiple_of(2) { gzip(&damaged(&idx(false), seed)) } else { damaged(&idx(true), seed) }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn npy(kind: &str, extents: &[usize], values: &[u8]) -> Vec<u8> {
    let extents: Vec<String> = extents.iter().map(|extent| format!("{extent},")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}\n", extents.join(" "));
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat()
}

fn npys() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let floats: Vec<u8> = pixels().into_iter().flat_map(|pixel| f32::from(pixel).to_be_bytes()).collect();
        let fortran = String::from_utf8_lossy(b"False").into_owned();
        let turned = npy("<f8", &SHAPE, &pixels().into_iter().flat_map(|pixel| f64::from(pixel).to_le_bytes()).collect::<Vec<_>>());
        let place = turned.windows(5).position(|window| window == fortran.as_bytes()).expect("the header says so");
        let mut turned = turned;
        turned[place..place + 5].copy_from_slice(b"True ");
        vec![npy("|u1", &SHAPE, &pixels()), npy(">f4", &SHAPE, &floats), turned, npy("|b1", &[12, 40], &pixels())]
    })
}

/// Archives with each array stored and deflated.
fn npzs() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let archive = |method| {
            let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
            for (name, array) in [
                ("x_train", npys()[0].clone()),
                ("y_train", npy("|u1", &[12], &labels())),
                ("x_test", npys()[0].clone()),
                (
                    "y_test",
                    npy("<i8", &[12, 1], &labels().into_iter().flat_map(|label| i64::from(label).to_le_bytes()).collect::<Vec<_>>()),
                ),
            ] {
                let options = zip::write::SimpleFileOptions::default().compression_method(method).large_file(name == "y_test");
                archive.start_file(format!("{name}.npy"), options).expect("memory takes it");
                archive.write_all(&array).expect("memory takes it");
            }
            archive.finish().expect("memory takes it").into_inner()
        };
        vec![archive(zip::CompressionMethod::Stored), archive(zip::CompressionMethod::Deflated)]
    })
}

/// Reads data of one's own, of which the file of a name is the input and the others are sound.
fn own(below: &str, name: &str, input: &[u8], folder: &Path) -> Result<(), String> {
    loaded(below, name, input, folder).map(drop)
}

fn loaded(below: &str, name: &str, input: &[u8], folder: &Path) -> Result<Dataset, String> {
    let place = folder.join(below);
    if !below.is_empty() && !place.exists() {
        fs::create_dir(&place).expect("the folder has space");
        put(&place.join("train-labels-idx1-ubyte"), &[&[0, 0, 8, 1, 0, 0, 0, 12], &labels()[..]].concat());
        if below == "npy" {
            put(&place.join("y_train.npy"), &npy("|u1", &[12], &labels()));
        }
    }
    put(&place.join(name), input);
    let path = if below.is_empty() { name } else { below };
    let choice = DatasetChoice::Own(OwnDataset { path: path.into(), name: "mine".into() });
    Dataset::load(choice, folder, &split()).map_err(|error| error.to_string())
}

fn split() -> DataSplit {
    DataSplit { validation_fraction: 0.25, ..DataSplit::default() }
}

/// A published data set, of which one file is the input and the others are empty.
fn published(name: DatasetName, input_name: &str, input: &[u8], folder: &Path) -> Result<(), String> {
    let place = folder.join(name.name());
    if !place.exists() {
        fs::create_dir(&place).expect("the folder has space");
        name.spec().files.iter().for_each(|file| put(&place.join(file.name), &[]));
    }
    put(&place.join(input_name), input);
    Dataset::load(name, folder, &split()).map(drop).map_err(|error| error.to_string())
}

/// An HDF5 file that was accepted is read again: what comes of a damaged file depends on nothing but its bytes.
fn own_twice(input: &[u8], folder: &Path) -> Result<(), String> {
    let first = loaded("", "all.hdf5", input, folder)?.digest;
    let second = loaded("", "all.hdf5", input, folder).map(|dataset| dataset.digest);
    assert_eq!(second, Ok(first), "read again it is another");
    Ok(())
}

/// A sound HDF5 file, and the bytes that its checksums are of.
type Sound = (Vec<u8>, Vec<Range<usize>>);

/// An HDF5 file of a seed: of half of the seeds the checksums are put right.
fn hdf5_of(sound: &[Sound], seed: u64) -> Vec<u8> {
    let ((bytes, sums), mut random) = (one(sound, seed), Random::new(seed));
    let mut bytes = bytes.clone();
    match random.below(8) {
        0 => return mutate::bytes(bytes, &mut random),
        // Within what a checksum is of.
        1..5 if !sums.is_empty() => {
            let range = random.one(sums).clone();
            mutate::in_place(&mut bytes[range], &mut random);
        }
        _ => mutate::in_place(&mut bytes, &mut random),
    }
    checksums::put_right(&mut bytes, sums);
    bytes
}

fn with_sums(path: &Path) -> Sound {
    let bytes = fs::read(path).expect("it was just written");
    let sums = checksums::of_hdf5(&bytes);
    (bytes, sums)
}

/// Data of every layout, in HDF5's oldest and newest format.
fn hdf5s() -> &'static [Sound] {
    static FILES: OnceLock<Vec<Sound>> = OnceLock::new();
    FILES.get_or_init(|| {
        use hdf5::filters::Filter::{Deflate, Fletcher32, Shuffle};
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = Vec::new();
        for is_latest in [false, true] {
            for kind in 0..4 {
                let path = folder.path().join(format!("{is_latest}-{kind}.h5"));
                let mut options = hdf5::File::with_options();
                if is_latest {
                    options.with_fapl(|access| access.libver_latest());
                }
                let file = options.create(&path).expect("the folder has space");
                for part in ["train", "test"] {
                    let images = file.new_dataset::<u8>().shape(SHAPE);
                    let images = match kind {
                        0 => images,
                        1 => images.chunk([7, 4, 4, 2]).set_filters(&[Shuffle, Deflate(9), Fletcher32]),
                        2 => images.chunk([3, 5, 4, 2]).deflate(1),
                        _ => images.chunk([2, 5, 2, 1]),
                    };
                    images
                        .create(format!("x_{part}").as_str())
                        .and_then(|images| images.write_raw(&pixels()))
                        .expect("the folder has space");
                    let values: Vec<i64> = labels().into_iter().map(i64::from).collect();
                    let name = if kind == 2 { "kept" } else { "y" };
                    let made = file.new_dataset::<i64>().shape([SHAPE[0]]).create(format!("{name}_{part}").as_str());
                    made.and_then(|made| made.write_raw(&values)).expect("the folder has space");
                    if kind == 2 {
                        file.link_soft(&format!("/kept_{part}"), &format!("y_{part}")).expect("the folder has space");
                    }
                }
                drop(file);
                files.push(with_sums(&path));
            }
        }
        files
    })
}

/// Measured result files.
fn measured() -> [PathBuf; 2] {
    ["mnist-simple-cnn-nesterov.h5", "optimizers-sgd.h5"]
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments/data").join(name))
}

/// Result files: measured ones, and one written now.
fn result_files() -> &'static [Sound] {
    static FILES: OnceLock<Vec<Sound>> = OnceLock::new();
    FILES.get_or_init(|| {
        let old = measured();
        let folder = tempfile::tempdir().expect("a folder");
        let anew = folder.path().join("x.h5");
        let read = results::read(&old[1]).expect("it is sound");
        results::write(&anew, &read).expect("the folder has space");
        old.iter().chain([&anew]).map(|path| with_sums(path)).collect()
    })
}

/// A journal with damaged records, whose checksums are put right in half of the seeds.
fn journal(seed: u64) -> Vec<u8> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let sound = FILE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.journal");
        let (mut journal, _) = sample::open(&path).expect("the folder has space");
        journal.append(&sample::script()).expect("the folder has space");
        sample::script().into_iter().for_each(|record| journal.append(&[record]).expect("the folder has space"));
        fs::read(&path).expect("it was just written")
    });
    let mut random = Random::new(seed);
    if random.below(2) == 0 {
        return mutate::bytes(sound.clone(), &mut random);
    }
    // Length, complement, checksum of the record before, checksum, and the record's own bytes, behind the first line.
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut at = (0..sound.len() - 8).find(|&at| word(sound, at) == !word(sound, at + 4)).expect("a journal has records");
    let (mut made, mut previous) = (sound[..at].to_vec(), 0);
    while at + 16 <= sound.len() {
        let length = word(sound, at) as usize;
        let mut payload = sound[at + 16..at + 16 + length].to_vec();
        if random.below(4) == 0 {
            payload = mutate::bytes(payload, &mut random);
        }
        let length_word = (payload.len() as u32).to_le_bytes();
        let sum = crc32fast::hash(&[&length_word[..], &u32::to_le_bytes(previous), &payload].concat());
        made.extend(
            [&length_word[..], &(!(payload.len() as u32)).to_le_bytes(), &previous.to_le_bytes(), &sum.to_le_bytes(), &payload].concat(),
        );
        previous = sum;
        at += 16 + length;
    }
    made
}

/// A checkpoint with a right checksum in half of the seeds.
fn checkpoint(seed: u64) -> Vec<u8> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let sound = FILE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.checkpoint");
        let disk: Arc<dyn Storage> = Arc::new(Disk);
        save(&path, &sample::checkpoint(7), &*disk).expect("the folder has space");
        fs::read(&path).expect("it was just written")
    });
    let mut random = Random::new(seed);
    if random.below(2) == 0 {
        return mutate::bytes(sound.clone(), &mut random);
    }
    let start = sound.iter().position(|&byte| byte == b'\n').expect("a line is first") + 1;
    let rest = mutate::bytes(sound[start + 4..].to_vec(), &mut random);
    [&sound[..start], &crc32fast::hash(&rest).to_le_bytes(), &rest].concat()
}

//! Cost of reading HDF5 files in a process of their own: `cargo bench --bench reading`, or `make bench PARTS=reading`.
//!
//! Prints seconds, the median of seven: HDF5's own call in this process, and `Dataset::load` (which also splits and digests the data) or
//! `results::read` in this process and in another one.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use dps::data::{DataSplit, Dataset, DatasetChoice, OwnDataset};
use dps::{data, reader, results};
use hdf5::filters::Filter::{Deflate, Shuffle};

/// 200 MB of images.
const SHAPE: [usize; 3] = [255_102, 28, 28];
const TIMES: usize = 7;
/// Tells a second start of this program that it is to read in its own process.
const HERE: &str = "DPS_BENCH_HERE";

fn main() {
    if let Some(folder) = env::var_os(HERE) {
        return measure(Path::new(&folder), "in this process");
    }
    if let Some(code) = reader::begin(&[results::READING, data::READING]) {
        // SAFETY: _exit takes any number and does nothing but end the process.
        unsafe { libc::_exit(code.into()) }
    }
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    for file in ["contiguous", "gzip"] {
        let dataset = || {
            let file = hdf5::File::open(folder.path().join(format!("{file}.h5"))).expect("it is there");
            let values: Vec<u8> = file.dataset("x_train").and_then(|images| images.read_raw()).expect("it is sound");
            assert_eq!(values.len(), SHAPE.iter().product::<usize>());
        };
        print(file, "HDF5 alone", dataset);
    }
    let status = Command::new(env::current_exe().expect("it has a path")).env(HERE, folder.path()).status();
    assert!(status.expect("it starts again").success());
    measure(folder.path(), "in another process");
}

/// Images that compress as photographs do: half of the bits are noise.
fn write(folder: &Path) {
    let mut state = 1_u32;
    let pixels: Vec<u8> = (0..SHAPE.iter().product())
        .map(|place: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (place / 64 % 16 * 16) as u8 | (state >> 28) as u8
        })
        .collect();
    let labels: Vec<u8> = (0..SHAPE[0]).map(|place| (place % 10) as u8).collect();
    for is_compressed in [false, true] {
        let file = hdf5::File::create(folder.join(if is_compressed { "gzip.h5" } else { "contiguous.h5" })).expect("the disk has space");
        let images = file.new_dataset::<u8>().shape(SHAPE);
        let images = if is_compressed { images.chunk([256, 28, 28]).set_filters(&[Shuffle, Deflate(4)]) } else { images };
        images.create("x_train").and_then(|images| images.write_raw(&pixels)).expect("the disk has space");
        file.new_dataset::<u8>().shape([SHAPE[0]]).create("y_train").and_then(|made| made.write_raw(&labels)).expect("the disk has space");
    }
}

fn measure(folder: &Path, how: &str) {
    for file in ["contiguous", "gzip"] {
        let load = || {
            let choice = DatasetChoice::Own(OwnDataset { path: format!("{file}.h5"), name: "bench".into() });
            let dataset = Dataset::load(choice, folder, &DataSplit::default()).expect("it is sound");
            assert_eq!(dataset.training.len() + dataset.validation.len(), SHAPE[0]);
        };
        print(file, how, load);
    }
    let result = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/experiments/data/mnist-simple-cnn-sgd.h5");
    print("result file", how, || drop(results::read(&result).expect("it is sound")));
}

fn print(what: &str, how: &str, act: impl Fn()) {
    let mut seconds: Vec<f64> = (0..TIMES)
        .map(|_| {
            let begun = Instant::now();
            act();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{what:<12} {how:<20} {:.3} s", seconds[TIMES / 2]);
}

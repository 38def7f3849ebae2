//! `dps-train doctor`: what this machine has for a study, and what to do about what it lacks.
//!
//! Nothing here starts MPI, opens a GPU or changes anything.

use std::path::{Path, PathBuf};

use crate::backend::cpu::VectorUnit;
use crate::comm::{MemoryLimit, Single, launcher, processor_model, threads};
use crate::data::{DataFile, DatasetName, fetching, locate};
use crate::exit;
use crate::readable::some;
use crate::reader;
use crate::version::VERSION_AND_COMMIT;

/// Findings of the doctor, in the order in which they are printed.
#[derive(Debug)]
pub struct Examination {
    lines: Vec<(String, String)>,
    /// Where data sets were looked for.
    data: PathBuf,
    /// Data sets whose files are all there.
    datasets: Vec<DatasetName>,
    /// GPUs that the kernels can run on.
    gpus: usize,
}

/// Looks at this machine, and at the data sets in the folder `data`.
pub fn examine(data: &Path) -> Examination {
    let mut lines = vec![
        ("dps".into(), VERSION_AND_COMMIT.into()),
        ("CPU".into(), processor()),
        ("memory".into(), MemoryLimit::of(&Single, threads(&Single)).to_string()),
        ("MPI".into(), mpi()),
        ("mpirun".into(), mpirun()),
        ("HDF5".into(), hdf5()),
    ];
    lines.extend(launcher::Launched::now().words(&mpi()).map(|words| ("launched by".into(), words)));
    let gpus = gpus(&mut lines);
    let mut datasets = Vec::new();
    for name in DatasetName::ALL {
        let found = match locate(name, data) {
            Ok(files) => {
                datasets.push(name);
                let place = files.first().and_then(|file| file.parent()).unwrap_or(data).display();
                match files.iter().zip(name.spec().files).find(|(path, file)| is_of_other_length(path, file)) {
                    Some((_, file)) => format!("in {place}; not the original: {} is published with {} bytes", file.name, file.bytes),
                    None => format!("in {place}"),
                }
            }
            Err(error) => error.to_string(),
        };
        lines.push((name.to_string(), found));
    }
    Examination { lines, data: data.to_owned(), datasets, gpus }
}

/// Whether a data set's file, where it is not compressed, has more or fewer bytes than the published one.
fn is_of_other_length(path: &Path, file: &DataFile) -> bool {
    path.extension().is_none_or(|extension| extension != "gz") && path.metadata().is_ok_and(|found| found.len() != file.bytes)
}

impl Examination {
    /// 0 where a study can run: at least one data set is there and, where `gpu` asks for one, a GPU; else the exit code of the error that a
    /// study would end with.
    pub fn exit_code(&self, gpu: bool) -> u8 {
        match () {
            () if gpu && self.gpus == 0 => exit::DEVICE,
            () if self.datasets.is_empty() => exit::DATA,
            () => exit::DONE,
        }
    }

    /// The findings, a line each, and whether a study can run; `gpu` asks for one on a GPU.
    pub fn text(&self, gpu: bool) -> String {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: String = self.lines.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect();
        let place = match self.gpus {
            0 => "on the CPU; what a GPU lacks is said above".to_owned(),
            1 => "on the GPU, and on the CPU with --device cpu".to_owned(),
            gpus => format!("on {gpus} GPUs, a rank each, and on the CPU with --device cpu"),
        };
        let verdict = match self.exit_code(gpu) {
            exit::DONE => format!("Studies can run here: {place}."),
            exit::DEVICE => "No study can run on a GPU here; what is missing is said above.".to_owned(),
            _ => format!(
                "No data set is fetched; a study of data that are not your own needs one, for example: {}",
                fetching(DatasetName::FashionMnist, &self.data)
            ),
        };
        format!("{lines}\n{verdict}\n")
    }
}

fn processor() -> String {
    format!("{} of {}, {}", some(threads(&Single), "thread"), processor_model(), VectorUnit::best().name())
}

#[cfg(feature = "mpi")]
fn mpi() -> String {
    crate::comm::mpi_library()
}

/// The launcher in the PATH.
fn mpirun() -> String {
    let library = mpi();
    match launcher::mpirun(&library) {
        None => "not in the PATH: one process runs without it; for several, install the mpirun of that MPI".into(),
        Some((version, true)) => version,
        Some((version, false)) if cfg!(feature = "mpi") => {
            format!("{version}: does not fit {library}; put that MPI's own mpirun first in the PATH")
        }
        Some((version, _)) => version,
    }
}

#[cfg(not(feature = "mpi"))]
fn mpi() -> String {
    "not in this build: one process alone; for several, build with the feature \"mpi\"".into()
}

fn hdf5() -> String {
    let (major, minor, patch) = ::hdf5::library_version();
    let zlib = if reader::has_deflate() { "" } else { ", without zlib: compressed files cannot be read" };
    format!("{major}.{minor}.{patch}{zlib}")
}

/// Adds lines about GPUs and their libraries; the number of GPUs that can be used.
#[cfg(feature = "cuda")]
fn gpus(lines: &mut Vec<(String, String)>) -> usize {
    use crate::Error;
    use crate::backend::cuda::gpus::{OLDEST, list};
    use crate::backend::cuda::libraries::{Library, find};

    let problem = |error: Error| match error {
        Error::Device { problem, .. } => problem,
        other => other.to_string(),
    };
    let mut compiler = false;
    for library in Library::ALL {
        let found = find(library).map(|found| match library {
            Library::Driver => {
                let release =
                    std::fs::read_to_string("/sys/module/nvidia/version").map(|text| text.trim().to_owned() + ", ").unwrap_or_default();
                format!("{release}for CUDA {}, at {}", found.version, found.path.display())
            }
            _ => format!("{} at {}", found.version, found.path.display()),
        });
        compiler |= library == Library::Nvrtc && found.is_ok();
        let without = match library {
            Library::Cublas => " (needed with execution.products = \"cublas\" alone)",
            Library::Nccl => " (needed by ranks that share a batch on GPUs of their own)",
            Library::Driver | Library::Nvrtc => "",
        };
        lines.push((library.name().into(), found.unwrap_or_else(|error| problem(error) + without)));
    }
    if find(Library::Driver).is_err() {
        return 0;
    }
    if let Some(value) = std::env::var_os("CUDA_VISIBLE_DEVICES") {
        lines.push(("visible GPUs".into(), format!("those of CUDA_VISIBLE_DEVICES={value:?}")));
    }
    match list() {
        Err(error) => {
            lines.push(("GPU".into(), problem(error)));
            0
        }
        Ok(gpus) => {
            let fits = |capability| capability >= OLDEST;
            for (number, gpu) in gpus.iter().enumerate() {
                let too_old = if fits(gpu.capability) { String::new() } else { format!("; too old, {}.{} is needed", OLDEST.0, OLDEST.1) };
                lines.push((format!("GPU {number}"), format!("{gpu}{too_old}")));
            }
            if compiler { gpus.iter().filter(|gpu| fits(gpu.capability)).count() } else { 0 }
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn gpus(lines: &mut Vec<(String, String)>) -> usize {
    lines.push(("GPU".into(), "not in this build: for NVIDIA's, build with the feature \"cuda\"".into()));
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_needs_data_and_a_gpu_only_where_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let with =
            |datasets: &[DatasetName], gpus| Examination { lines: Vec::new(), data: "data".into(), datasets: datasets.to_vec(), gpus };
        assert_eq!(with(&[DatasetName::Mnist], 0).exit_code(false), 0);
        assert_eq!(with(&[DatasetName::Mnist], 0).exit_code(true), 6);
        assert_eq!(with(&[DatasetName::Mnist], 1).exit_code(true), 0);
        assert_eq!(with(&[], 1).exit_code(false), 3);
        assert!(with(&[], 0).text(false).contains("data fetch"));
        let text = examine(folder.path()).text(false);
        for name in ["dps", "CPU", "MPI", "mpirun", "HDF5", "cifar-10"] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
        }
    }
}

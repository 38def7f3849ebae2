//! NVIDIA's libraries: where they are on this machine, which versions, and what to do about one that is missing or does not fit.
//!
//! cudarc opens a library when it is first needed, by a fixed list of names, and panics where none of them works. So everything here comes
//! first. It also looks where cudarc does not: the names of CUDA 13 and of NCCL (`libnccl.so.2`), toolkits beside the loader's path, the folders of
//! NVIDIA's Python packages, and those where containers have the driver. What it finds there is put under the name that cudarc tries first, by
//! `alias`.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::alias::alias;
use super::check::refuse;
use crate::Result;

/// A library that the GPU back end opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// libcuda, which belongs to the driver.
    Driver,
    /// The compiler of the kernels.
    Nvrtc,
    /// cuBLAS: matrix products, for studies with execution.products = "cublas".
    Cublas,
    /// Reductions between GPUs.
    Nccl,
}

/// A version of a library: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version(major, minor, 0) => write!(f, "{major}.{minor}"),
            Version(major, minor, patch) => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

/// A library that is there and fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Version of the library; the driver's is that of the newest CUDA it serves.
    pub version: Version,
}

/// Opens a library, so that cudarc's functions of it can be called from now on. Later calls return the first one's answer.
///
/// # Errors
/// [`crate::Error::Device`] where none is there, or none that fits: one sentence that names it, what was found and what to do.
pub fn find(library: Library) -> Result<&'static Found> {
    static FOUND: [OnceLock<std::result::Result<Found, String>>; Library::ALL.len()] = [const { OnceLock::new() }; Library::ALL.len()];
    FOUND[library as usize].get_or_init(|| search(library)).as_ref().map_err(|problem| refuse(problem.clone()))
}

impl Library {
    /// All libraries.
    pub const ALL: [Library; 4] = [Library::Driver, Library::Nvrtc, Library::Cublas, Library::Nccl];

    /// The library's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Library::Driver => "NVIDIA driver",
            Library::Nvrtc => "NVRTC",
            Library::Cublas => "cuBLAS",
            Library::Nccl => "NCCL",
        }
    }

    /// The name in `libNAME.so`.
    fn stem(self) -> &'static str {
        match self {
            Library::Driver => "cuda",
            Library::Nvrtc => "nvrtc",
            Library::Cublas => "cublas",
            Library::Nccl => "nccl",
        }
    }

    /// File names that cudarc does not try, by which it also goes.
    fn other_names(self) -> &'static [&'static str] {
        match self {
            Library::Driver => &[],
            Library::Nvrtc => &["libnvrtc.so.13"],
            Library::Cublas => &["libcublas.so.13"],
            Library::Nccl => &["libnccl.so.2"],
        }
    }

    /// The oldest that will do: for the driver and the toolkit the first whose CUDA graphs and C++17 serve, for NCCL the first that cudarc
    /// knows.
    fn oldest(self) -> Version {
        match self {
            Library::Driver | Library::Nvrtc | Library::Cublas => Version(11, 4, 0),
            Library::Nccl => Version(2, 18, 0),
        }
    }

    /// Ways to get the library: they complete "expected …, found none; ".
    fn remedy(self) -> &'static str {
        match self {
            Library::Driver => "install NVIDIA's driver (nvidia-smi must work), start a container with its GPUs, or use --device cpu",
            Library::Nvrtc => {
                "install the CUDA toolkit or, with pip, nvidia-cuda-nvrtc-cu12 (nvidia-cuda-nvrtc for CUDA 13), or put its \
                 folder into LD_LIBRARY_PATH"
            }
            Library::Cublas => {
                "install the CUDA toolkit or, with pip, nvidia-cublas-cu12 (nvidia-cublas for CUDA 13), or put its folder \
                 into LD_LIBRARY_PATH"
            }
            Library::Nccl => "install libnccl2 or, with pip, nvidia-nccl-cu12 (-cu13 for CUDA 13), or put its folder into LD_LIBRARY_PATH",
        }
    }

    /// The library's version, as it says itself; none where it does not have the function that says it.
    fn version(self, handle: &Handle) -> Option<Version> {
        let split = |version: c_int, major: u32, minor: u32, patch: u32| {
            let version = u32::try_from(version).unwrap_or(0);
            Version(version / major, version % major / minor, version % minor / patch)
        };
        // SAFETY: each of these functions has the type that NVIDIA's headers declare, writes the numbers that it is given room for, and needs nothing
        // to be initialised.
        unsafe {
            match self {
                Library::Driver => Some(split(handle.number(c"cuDriverGetVersion")?, 1000, 10, 1)),
                Library::Nccl => Some(split(handle.number(c"ncclGetVersion")?, 10_000, 100, 1)),
                Library::Nvrtc => {
                    let function: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = handle.function(c"nvrtcVersion")?;
                    let (mut major, mut minor) = (0, 0);
                    (function(&mut major, &mut minor) == 0).then_some(Version(major as u32, minor as u32, 0))
                }
                Library::Cublas => {
                    let function: unsafe extern "C" fn(c_int, *mut c_int) -> c_int = handle.function(c"cublasGetProperty")?;
                    let of = |which| {
                        let mut value = 0;
                        (function(which, &mut value) == 0).then_some(value as u32)
                    };
                    Some(Version(of(0)?, of(1)?, of(2)?))
                }
            }
        }
    }

    /// Why a library of this version cannot be used; none where it can.
    fn unfit(self, version: Version, driver: Option<Version>) -> Option<String> {
        if version < self.oldest() {
            return Some(format!("expected {} {} or newer", self.name(), self.oldest()));
        }
        let driver = driver?;
        match self {
            // A driver loads the machine code of all releases with its own first number.
            Library::Nvrtc if version.0 > driver.0 => Some(format!("expected an NVRTC for the driver's CUDA {driver}")),
            Library::Cublas if version.0 > driver.0 => Some(format!("expected a cuBLAS for the driver's CUDA {driver}")),
            _ => None,
        }
    }
}

/// A library that is open.
struct Handle(*mut c_void);

impl Handle {
    fn open(name: &CStr) -> Option<Handle> {
        // SAFETY: the name is a text of C. What a library does when it is opened is NVIDIA's to answer for, as it would be under cudarc.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        (!handle.is_null()).then(|| Handle(handle))
    }

    /// The function of that name, if the library has one.
    ///
    /// # Safety
    /// F must be the type of the function `name`: of a function pointer.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the library is open, and the name a text of C.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: the symbol is the address of a function of type F, as the caller promises, and as large as a function pointer.
        (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
    }

    /// The number that the function of that name writes, where it returns 0.
    ///
    /// # Safety
    /// The function must be `int name(int *)`.
    unsafe fn number(&self, name: &CStr) -> Option<c_int> {
        // SAFETY: the caller promises this type.
        let function: unsafe extern "C" fn(*mut c_int) -> c_int = unsafe { self.function(name)? };
        let mut value = 0;
        // SAFETY: the function writes one number, for which `value` is there.
        (unsafe { function(&mut value) } == 0).then_some(value)
    }

    /// The file, from one of its functions.
    fn path(&self, library: Library) -> Option<PathBuf> {
        let name = match library {
            Library::Driver => c"cuDriverGetVersion",
            Library::Nvrtc => c"nvrtcVersion",
            Library::Cublas => c"cublasGetProperty",
            Library::Nccl => c"ncclGetVersion",
        };
        // SAFETY: the library is open, and the name a text of C.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: the symbol is an address in the library; `info` is there to be written.
        let found = unsafe { libc::dladdr(symbol, &mut info) } != 0 && !info.dli_fname.is_null();
        found
            // SAFETY: dladdr has found the file, whose name is a text of C that lives as long as the library is open.
            .then(|| PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes())))
            .map(|file| std::fs::canonicalize(&file).unwrap_or(file))
    }

    /// Keeps the library open to the end of the process.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `open` has opened the library, and nothing but this closes it, once.
        unsafe { libc::dlclose(self.0) };
    }
}

/// Folders of libcuda where the loader need not look: of Kubernetes, WSL, NixOS and Apptainer. The last one is a toolkit's, which is for an older
/// driver in the kernel and does not fit every one.
const DRIVER_FOLDERS: [&str; 5] =
    ["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/.singularity.d/libs", "/usr/local/cuda/compat"];

fn search(library: Library) -> std::result::Result<Found, String> {
    let driver = match library {
        Library::Driver | Library::Nccl => None,
        _ => find(Library::Driver).ok().map(|driver| driver.version),
    };
    let names = cudarc::get_lib_name_candidates(library.stem());
    let elsewhere = library.other_names().iter().map(ToString::to_string).chain(places(library));
    let (mut opened, mut refused) = (0, Vec::new());
    for (place, name) in names.iter().cloned().chain(elsewhere).enumerate() {
        let Some(handle) = CString::new(name.as_str()).ok().and_then(|name| Handle::open(&name)) else { continue };
        opened += 1;
        let (Some(version), Some(path)) = (library.version(&handle), handle.path(library)) else { continue };
        if let Some(why) = library.unfit(version, driver) {
            refused.push(format!("{why}, found {version} at {}", path.display()));
            continue;
        }
        // cudarc takes the first of its names that opens.
        if (place >= names.len() || opened > 1)
            && let Err(cause) = take(library, &path)
        {
            return Err(format!(
                "expected {wanted}, found {} {version} at {path}, which goes by another name and cannot be given it here ({cause}); run \
                 ln -s {path} {wanted} in a folder, and put that folder into LD_LIBRARY_PATH",
                library.name(),
                wanted = names[0],
                path = path.display(),
            ));
        }
        handle.keep();
        return Ok(Found { path, version });
    }
    refused.dedup();
    match refused.first() {
        Some(why) => Err(format!("{why}; {}", library.remedy())),
        None => Err(format!("expected {} (lib{}.so), found none; {}", library.name(), library.stem(), library.remedy())),
    }
}

/// Lets cudarc open the file `path` as this library, if it has not opened another one already.
///
/// # Errors
/// The system's error where it does not open the file, or cannot give it another name.
pub fn take(library: Library, path: &Path) -> std::io::Result<()> {
    companions(path);
    alias(&format!("lib{}.so", library.stem()), path)
}

/// Opens libnvrtc-builtins in the library's folder: NVRTC opens that file by its name alone, and the loader looks in other folders.
fn companions(library: &Path) {
    for file in library.parent().map(|folder| files(folder, "libnvrtc-builtins.so")).unwrap_or_default() {
        if let Some(handle) = CString::new(file.as_os_str().as_encoded_bytes()).ok().and_then(|name| Handle::open(&name)) {
            handle.keep();
        }
    }
}

/// Files of the library in the folders where containers have the driver, or else of toolkits and of NVIDIA's Python packages, newest names first.
fn places(library: Library) -> Vec<String> {
    let folders = if library == Library::Driver { DRIVER_FOLDERS.map(PathBuf::from).to_vec() } else { toolkit_folders() };
    let name = format!("lib{}.so", library.stem());
    folders.iter().flat_map(|folder| files(folder, &name)).filter_map(|file| file.into_os_string().into_string().ok()).collect()
}

/// Folders of toolkits and of NVIDIA's Python packages.
fn toolkit_folders() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut folders = Vec::new();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| set(name))
        .chain([PathBuf::from("/usr/local/cuda")])
        .chain(files(Path::new("/usr/local"), "cuda-"));
    for toolkit in toolkits {
        folders.extend([toolkit.join("lib64"), toolkit.join("lib")]);
    }
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| set(name)).chain(set("HOME").map(|home| home.join(".local")));
    for prefix in prefixes.chain(["/usr/local", "/usr", "/opt/conda", "/opt/venv"].map(PathBuf::from)) {
        folders.push(prefix.join("lib"));
        for python in files(&prefix.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                folders.extend(files(&python.join(packages).join("nvidia"), "").into_iter().map(|package| package.join("lib")));
            }
        }
    }
    folders
}

/// Files of a folder whose names begin like this, last names first; none where there is no such folder.
fn files(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(begin.as_bytes())).map(|entry| entry.path()).collect();
    names.sort_by(|a, b| b.cmp(a));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_nvidia_writes_them_and_compared() {
        assert_eq!(Version(12, 8, 0).to_string(), "12.8");
        assert_eq!(Version(2, 26, 4).to_string(), "2.26.4");
        let driver = Some(Version(12, 4, 0));
        assert_eq!(Library::Nvrtc.unfit(Version(12, 8, 0), driver), None);
        assert!(Library::Nvrtc.unfit(Version(13, 0, 0), driver).is_some_and(|why| why.contains("12.4")));
        assert!(Library::Nvrtc.unfit(Version(11, 0, 0), None).is_some_and(|why| why.contains("11.4")));
        assert_eq!(Library::Cublas.unfit(Version(12, 8, 4), driver), None);
        assert!(Library::Cublas.unfit(Version(13, 0, 0), driver).is_some());
        assert!(Library::Nccl.unfit(Version(2, 10, 3), driver).is_some());
    }
}

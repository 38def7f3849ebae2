//! The kernels: their source, compiled by NVRTC for the GPU found and kept in the user's cache.

use std::ffi::CString;

use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::{Ptx, sys};

use super::cache::{Cache, hexadecimal};
use super::check::{Doing, refuse};
use super::gpu::{Arithmetic, Gpu};
use super::launch::{self, Declaration, Kernels, MapShape, constant_assertions};
use super::layer::{self, lowered};
use super::libraries::{Library, find as find_library};
use crate::network::Network;
use crate::{Error, Result};

const FILES: [(&str, &str); 11] = [
    ("common.cuh", include_str!("../../../kernels/common.cuh")),
    ("gather.cu", include_str!("../../../kernels/gather.cu")),
    ("convolution.cu", include_str!("../../../kernels/convolution.cu")),
    ("product.cuh", include_str!("../../../kernels/product.cuh")),
    ("forward.cu", include_str!("../../../kernels/forward.cu")),
    ("data_gradient.cu", include_str!("../../../kernels/data_gradient.cu")),
    ("filter_gradient.cu", include_str!("../../../kernels/filter_gradient.cu")),
    ("plain.cu", include_str!("../../../kernels/plain.cu")),
    ("im2col.cu", include_str!("../../../kernels/im2col.cu")),
    ("head.cu", include_str!("../../../kernels/head.cu")),
    ("update.cu", include_str!("../../../kernels/update.cu")),
];

/// All kernels.
fn declarations() -> impl Iterator<Item = &'static Declaration> {
    launch::KERNELS.into_iter().chain(layer::KERNELS).flatten()
}

/// C++ to stand behind the kernels: it does not compile unless structs and constants that both sides have are the same on both.
fn assertions() -> String {
    let same = "template <typename A, typename B> struct Same { enum { value = 0 }; };\n\
                template <typename A> struct Same<A, A> { enum { value = 1 }; };\n";
    [same, &launch::layouts(), &layer::layouts(), &constant_assertions()].concat()
}

/// All of `kernels/`, with those of a network's layers, as one program: what NVRTC is given.
pub fn source(network: &Network, arithmetic: Arithmetic) -> String {
    let network = &lowered(network);
    let map: Vec<_> = MapShape::new(network.maps[0]).fields().into_iter().map(|(_, number)| number).collect();
    let constants = format!("#define CLASSES {}\n#define IMAGE_MAP {}\n", network.classes, map.join(", "));
    let files: String = FILES.iter().map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect();
    let layers = layer::source(network, arithmetic != Arithmetic::Single);
    format!("{constants}{files}#line 1 \"layers\"\n{layers}#line 1 \"layouts\"\n{}", assertions())
}

/// The kernels for a GPU and a network, which multiply by `arithmetic`: from the cache, or compiled.
pub(super) fn load(gpu: &Gpu, network: &Network, arithmetic: Arithmetic, cache: Option<&Cache>) -> Result<Kernels> {
    let wanted = Wanted::of(network, arithmetic, gpu.capability)?;
    let kept = cache.and_then(|cache| cache.read(&wanted.file));
    if let Some(kernels) = kept.and_then(|code| find(gpu, wanted.target.image(code), &wanted.source).ok()) {
        return Ok(kernels);
    }
    let code = wanted.compiled()?;
    let kernels = find(gpu, wanted.target.image(code.clone()), &wanted.source)?;
    if let Some(cache) = cache {
        // A cache that cannot be written costs the next start some seconds, and is no reason to stop this one.
        let _ = cache.keep(&wanted.file, &code);
    }
    Ok(kernels)
}

/// Compiles a network's kernels into the user's cache, for a GPU that need not be here; the name of the file that the program takes on such a GPU.
///
/// # Errors
/// [`crate::Error::Device`] where there is no NVRTC, it does not compile them, or the cache cannot be used.
pub fn compile_ahead(network: &Network, arithmetic: Arithmetic, capability: (i32, i32)) -> Result<String> {
    find_library(Library::Nvrtc)?;
    let cache = Cache::open()
        .unwrap_or_else(|| Err("expected XDG_CACHE_HOME or HOME to name a folder, found neither".to_owned()))
        .map_err(refuse)?;
    let wanted = Wanted::of(network, arithmetic, capability)?;
    if cache.read(&wanted.file).is_none() {
        let code = wanted.compiled()?;
        cache.keep(&wanted.file, &code).map_err(|cause| refuse(format!("compiled kernels cannot be kept: {cause}")))?;
    }
    Ok(wanted.file)
}

/// A request to NVRTC, and the name of its answer in the cache.
struct Wanted {
    capability: (i32, i32),
    source: String,
    target: Target,
    options: Vec<String>,
    file: String,
}

impl Wanted {
    fn of(network: &Network, arithmetic: Arithmetic, capability: (i32, i32)) -> Result<Wanted> {
        let known = architectures().map_err(|error| refused(capability, &format!("{error:?}")))?;
        let target = Target::of(capability, &known).ok_or_else(|| refused(capability, "it knows no architecture as old as this one"))?;
        let source = source(network, arithmetic);
        let mut options = vec![target.option(), "--std=c++17".to_owned()];
        options.extend(arithmetic.definition().map(str::to_owned));
        let (major, minor) = version();
        let key = hexadecimal(format!("{major}.{minor}\n{}\n{source}", options.join(" ")).as_bytes());
        Ok(Wanted { capability, source, target, options, file: format!("{key}.{}", target.extension()) })
    }

    fn compiled(&self) -> Result<Vec<u8>> {
        compile(&self.source, &self.options, self.target).map_err(|why| refused(self.capability, &why))
    }
}

fn refused(capability: (i32, i32), why: &str) -> Error {
    let (major, minor) = version();
    refuse(format!(
        "expected NVRTC {major}.{minor} to compile the kernels for a GPU of compute capability {}.{}, but it says: {why}; install the NVRTC of a \
         CUDA release that knows this GPU",
        capability.0, capability.1
    ))
}

/// NVRTC's version: major, minor.
fn version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: NVRTC writes both numbers into variables that are there. (`Cuda::open` or `compile_ahead` has asked whether it is there, without which
    // cudarc would panic.)
    let _ = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    (major, minor)
}

/// Architecture that NVRTC compiles for, as a number: 90 for compute capability 9.0.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    /// The GPU's own: machine code, which needs no compiler of the driver.
    Machine(i32),
    /// An older one, for a GPU that this NVRTC does not know: PTX, which the driver compiles.
    Ptx(i32),
}

impl Target {
    /// The target for a GPU where NVRTC knows these architectures; none where it knows only newer ones.
    fn of(capability: (i32, i32), known: &[i32]) -> Option<Target> {
        let own = 10 * capability.0 + capability.1;
        let newest = known.iter().copied().filter(|&architecture| architecture <= own).max()?;
        Some(if newest == own { Target::Machine(own) } else { Target::Ptx(newest) })
    }

    fn option(self) -> String {
        match self {
            Target::Machine(architecture) => format!("--gpu-architecture=sm_{architecture}"),
            Target::Ptx(architecture) => format!("--gpu-architecture=compute_{architecture}"),
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Target::Machine(_) => "cubin",
            Target::Ptx(_) => "ptx",
        }
    }

    /// Compiled code as the driver takes it.
    fn image(self, code: Vec<u8>) -> Ptx {
        match self {
            Target::Machine(_) => Ptx::from_binary(code),
            // NVRTC's text ends with a zero byte.
            Target::Ptx(_) => Ptx::from_src(String::from_utf8_lossy(&code).trim_end_matches('\0').to_owned()),
        }
    }
}

/// The architectures that NVRTC knows, 90 for compute capability 9.0.
///
/// # Errors
/// NVRTC's.
pub fn architectures() -> std::result::Result<Vec<i32>, NvrtcError> {
    let mut count = 0;
    // SAFETY: NVRTC writes the number into a variable that is there.
    unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) }.result()?;
    let mut known = vec![0; count.max(0) as usize];
    // SAFETY: NVRTC writes as many numbers as it has said, for which `known` has room.
    unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result()?;
    Ok(known)
}

/// Compiled code, or what NVRTC says of the source.
fn compile(source: &str, options: &[String], target: Target) -> std::result::Result<Vec<u8>, String> {
    let source = CString::new(source).map_err(|_| "the source has a zero byte")?;
    let program = result::create_program(&source, Some(c"kernels")).map_err(|error| format!("{error:?}"))?;
    // SAFETY: the program lives until it is destroyed below; buffers have the sizes that NVRTC says.
    let code = unsafe {
        let compiled = result::compile_program(program, options).map_err(|error| {
            let log = result::get_program_log(program).unwrap_or_default();
            let log: Vec<u8> = log.into_iter().map(|byte| byte as u8).take_while(|&byte| byte != 0).collect();
            format!("{error:?}: {}", String::from_utf8_lossy(&log).trim())
        });
        compiled.and_then(|()| {
            let code = match target {
                Target::Machine(_) => machine_code(program),
                Target::Ptx(_) => result::get_ptx(program).map(|text| text.into_iter().map(|byte| byte as u8).collect()),
            };
            code.map_err(|error| format!("{error:?}"))
        })
    };
    // SAFETY: the program was made above, and is not used any more.
    let _ = unsafe { result::destroy_program(program) };
    code
}

/// The machine code of a program.
///
/// # Safety
/// The program lives, and has been compiled for a real architecture.
unsafe fn machine_code(program: sys::nvrtcProgram) -> std::result::Result<Vec<u8>, NvrtcError> {
    let mut bytes = 0;
    // SAFETY: the caller vouches for the program; NVRTC writes the size into a variable that is there.
    unsafe { sys::nvrtcGetCUBINSize(program, &mut bytes) }.result()?;
    let mut code = vec![0_u8; bytes];
    // SAFETY: the caller vouches for the program; `code` has as many bytes as NVRTC has said.
    unsafe { sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()) }.result()?;
    Ok(code)
}

fn find(gpu: &Gpu, image: Ptx, source: &str) -> Result<Kernels> {
    let module = gpu
        .context
        .load_module(image)
        .doing("load the kernels (a driver older than the CUDA release of NVRTC cannot: update the driver, or install an older NVRTC)")?;
    Kernels::new(&module, gpu.stream.clone(), source, declarations())
}

#[cfg(test)]
mod tests;

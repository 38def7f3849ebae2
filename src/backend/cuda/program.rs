//! The kernels: their source, compiled by NVRTC for the GPU found and kept in the user's cache.

use std::io::Write;
use std::path::PathBuf;

use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts, sys};
use sha2::{Digest, Sha256};

use super::check::{Doing, refuse};
use super::gpu::Gpu;
use super::launch::{Kernels, layout_assertions};
use crate::Result;

const FILES: [(&str, &str); 6] = [
    ("common.cuh", include_str!("../../../kernels/common.cuh")),
    ("gather.cu", include_str!("../../../kernels/gather.cu")),
    ("convolution.cu", include_str!("../../../kernels/convolution.cu")),
    ("im2col.cu", include_str!("../../../kernels/im2col.cu")),
    ("head.cu", include_str!("../../../kernels/head.cu")),
    ("update.cu", include_str!("../../../kernels/update.cu")),
];

/// All of `kernels/` as one program: what NVRTC is given.
pub fn source() -> String {
    let files: String = FILES.iter().map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect();
    format!("{files}#line 1 \"layouts\"\n{}", layout_assertions())
}

/// The kernels for a GPU, with products in TF32 where it has them: from the cache, or compiled.
pub(super) fn load(gpu: &Gpu) -> Result<Kernels> {
    let (name, capability) = (&gpu.name, gpu.capability);
    let source = source();
    let mut options = vec![format!("--gpu-architecture=compute_{}{}", capability.0, capability.1), "--std=c++17".to_owned()];
    options.extend(gpu.tf32.then(|| "-DUSE_TF32=1".to_owned()));
    let (mut major, mut minor) = (0, 0);
    // The caller has asked whether NVRTC is there.
    let _ = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    // The GPU's name takes part, because a stand-in for a GPU has an NVRTC of its own.
    let key = Sha256::digest(format!("{major}.{minor}\n{name}\n{}\n{source}", options.join(" ")));
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let file = cache_folder().map(|folder| folder.join(format!("{key}.ptx")));
    let cached = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    // A damaged file is compiled anew; text with a zero byte is none.
    if let Some(kernels) = cached.filter(|text| !text.contains('\0')).and_then(|text| find(gpu, Ptx::from_src(text)).ok()) {
        return Ok(kernels);
    }
    let compile = CompileOptions { options, name: Some("kernels".into()), ..CompileOptions::default() };
    let compiled = compile_ptx_with_opts(&source, compile).map_err(|cause| {
        let log = match &cause {
            CompileError::CompileError { log, nvrtc, .. } => format!("{nvrtc:?}: {}", log.to_string_lossy().trim()),
            other => format!("{other:?}"),
        };
        refuse(format!(
            "expected NVRTC {major}.{minor} to compile the kernels for {name} (compute capability {}.{}), but it says: {log}; install the NVRTC \
             of a CUDA release that knows this GPU",
            capability.0, capability.1
        ))
    })?;
    let text = compiled.to_src();
    let kernels = find(gpu, compiled)?;
    if let Some(file) = file {
        // A cache that cannot be written costs the next start a second, and is no reason to stop this one.
        let _ = keep(&file, &text);
    }
    Ok(kernels)
}

fn find(gpu: &Gpu, image: Ptx) -> Result<Kernels> {
    let module = gpu
        .context
        .load_module(image)
        .doing("load the kernels (a driver older than the CUDA release of NVRTC cannot: update the driver, or install an older NVRTC)")?;
    Kernels::new(&module, gpu.stream.clone())
}

/// Where compiled kernels are kept: `dps` in the user's cache folder, if there is one.
fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("dps"))
}

/// Writes a file that other ranks may be reading or writing at the same time.
fn keep(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(text.as_bytes())?;
    temporary.persist(file)?;
    Ok(())
}

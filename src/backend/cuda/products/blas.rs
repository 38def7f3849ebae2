//! cuBLAS on a GPU's stream: its start, its memory and its call.

use cudarc::cublas::result::{CublasError, create_handle, destroy_handle, gemm_strided_batched_ex, set_stream};
use cudarc::cublas::sys;
use cudarc::driver::CudaSlice;

use super::matrix::{Operand, Product};
use crate::Result;
use crate::backend::cuda::check::refuse;
use crate::backend::cuda::gpu::Gpu;
use crate::backend::cuda::libraries::{Library, find};
use crate::backend::cuda::pointer::at_mut;

/// Patches and sums may take a 1/`SCRATCH_PART` share of the GPU's memory, at most `MOST_SCRATCH` bytes. The share is of all memory, not of the free
/// part: the share decides how images are cut into chunks, and a chunk's size takes part in which kernels cuBLAS chooses.
const SCRATCH_PART: usize = 32;
const MOST_SCRATCH: usize = 512 << 20;

/// Fewest bytes of the scratch memory: enough for an image of each layer of Simple-CNN and ResNet-8.
pub(super) const LEAST_SCRATCH: usize = 1 << 20;

/// Memory of cuBLAS's own, as its documentation advises for compute capability 9.0. Given to it here: else it would allocate, which a
/// capture may not, and its results need not be the same in every run.
const WORKSPACE: usize = 32 << 20;

/// Most products of one call: a dimension of its grids.
const MOST_PRODUCTS: usize = 65_535;

/// cuBLAS on a GPU's stream, and the memory it works in.
pub(in crate::backend::cuda) struct Blas {
    handle: sys::cublasHandle_t,
    compute: sys::cublasComputeType_t,
    /// A chunk's patches, and behind them its sums or their gradient.
    pub(super) scratch: CudaSlice<f32>,
    _workspace: CudaSlice<u8>,
    /// Version and precision of cuBLAS, as results name them.
    pub description: String,
}

fn check(outcome: std::result::Result<(), CublasError>, doing: &str) -> Result<()> {
    outcome.map_err(|CublasError(status)| {
        refuse(format!(
            "expected cuBLAS to {doing}, but it says {status:?}; look at nvidia-smi and the log, then run the same command again to \
             continue, or set execution.products = \"fused\""
        ))
    })
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: `new` has made the handle, which nothing else frees and nobody uses any more. Nothing can be done about a failure.
        let _ = unsafe { destroy_handle(self.handle) };
    }
}

impl Blas {
    /// cuBLAS with at most `limit` bytes for patches and sums, but at least `LEAST_SCRATCH`; a layer whose image needs more is an error of `forward`
    /// and `backward`.
    pub fn new(gpu: &Gpu, limit: usize) -> Result<Blas> {
        if gpu.tf32 && std::env::var_os("NVIDIA_TF32_OVERRIDE").is_some_and(|value| value == "0") {
            return Err(refuse("expected leave to use TF32, found NVIDIA_TF32_OVERRIDE=0; unset it, or set execution.tf32 = false"));
        }
        let workspace = gpu.uninitialised(WORKSPACE)?;
        let scratch = gpu.uninitialised(limit.min(gpu.memory()? as usize / SCRATCH_PART).clamp(LEAST_SCRATCH, MOST_SCRATCH) / 4)?;
        // Pedantic is fp32 and nothing else, whatever a newer cuBLAS or the environment would have instead.
        let (compute, precision) = match gpu.tf32 {
            true => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32, "TF32"),
            false => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC, "fp32"),
        };
        let mut handle = std::ptr::null_mut();
        check(create_handle().map(|made| handle = made), "start")?;
        let description = format!("products by cuBLAS {} in {precision}", find(Library::Cublas)?.version);
        let blas = Blas { handle, compute, scratch, _workspace: workspace, description };
        // The stream first: choosing one takes a workspace away.
        // SAFETY: the handle was just made, and `blas.scratch` keeps the stream until the handle is destroyed.
        check(unsafe { set_stream(handle, gpu.stream.cu_stream().cast()) }, "take a stream")?;
        let pointer = at_mut(&blas._workspace, 0).address() as *mut std::ffi::c_void;
        // SAFETY: the memory has as many bytes, and `blas` keeps it as long as the handle.
        check(unsafe { sys::cublasSetWorkspace_v2(handle, pointer, WORKSPACE) }.result(), "take memory")?;
        Ok(blas)
    }

    /// c = a b, or c += a b, of `[rows, columns, terms]`, for each of `[lanes, groups]`.
    ///
    /// # Safety
    /// There is memory for so many matrices of these sizes.
    pub(super) unsafe fn multiply(
        &self,
        [rows, columns, terms]: [usize; 3],
        [lanes, groups]: [usize; 2],
        a: Operand,
        b: Operand,
        c: Product,
        add: bool,
    ) -> Result<()> {
        let even = [a, b, c.operand()].iter().all(|matrix| matrix.lane == groups * matrix.group);
        // Calls of how many products, and whether a product's neighbour is the next group's.
        let (calls, count, by_group) = if even && lanes * groups <= MOST_PRODUCTS {
            (1, lanes * groups, true)
        } else if lanes >= groups {
            (groups, lanes, false)
        } else {
            (lanes, groups, true)
        };
        let (one, zero) = (1.0_f32, 0.0_f32);
        let [alpha, beta] = [&one, if add { &one } else { &zero }].map(|factor| std::ptr::from_ref(factor).cast());
        let stride = |matrix: Operand| if by_group { matrix.group } else { matrix.lane } as i64;
        for call in 0..calls {
            let place = |matrix: Operand| matrix.at.offset(call * if by_group { matrix.lane } else { matrix.group }).address();
            // cuBLAS stores matrices by columns, dps by rows. The product a b by rows is the product b a by columns, so the operands change places.
            // SAFETY: the caller vouches for memory for so many matrices of these sizes; the factors are there, and read by the host.
            let outcome = unsafe {
                gemm_strided_batched_ex(
                    self.handle,
                    b.operation(),
                    a.operation(),
                    columns as i32,
                    rows as i32,
                    terms as i32,
                    alpha,
                    place(b) as *const _,
                    sys::cudaDataType::CUDA_R_32F,
                    b.row as i32,
                    stride(b),
                    place(a) as *const _,
                    sys::cudaDataType::CUDA_R_32F,
                    a.row as i32,
                    stride(a),
                    beta,
                    place(c.operand()) as *mut _,
                    sys::cudaDataType::CUDA_R_32F,
                    c.row as i32,
                    stride(c.operand()),
                    count as i32,
                    self.compute,
                    sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            };
            check(outcome, "multiply")?;
        }
        Ok(())
    }
}

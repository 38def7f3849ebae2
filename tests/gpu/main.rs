//! The GPU back end on machines without a GPU: NVIDIA's compiler takes its kernels, and programs run through the stand-in of tests/cuda-double.

#[cfg(all(feature = "cuda", feature = "mpi"))]
mod cuda_backend;
#[cfg(feature = "cuda")]
mod cuda_double;
#[cfg(all(feature = "cuda", feature = "mpi"))]
mod cuda_nccl;
#[cfg(feature = "cuda")]
mod kernels_compile;
#[cfg(feature = "cuda")]
mod ptx;
#[path = "../support/mod.rs"]
mod support;

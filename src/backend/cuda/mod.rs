//! The GPU back end: a rank's NVIDIA GPU trains its lanes.
//!
//! The data set lies on the device, as bytes where the images are bytes; batches, masks, losses, the step counter and the sampler's
//! positions live there too, so that steps follow each other without the host. Kernels (`kernels/`) take all lanes at once and are compiled for the
//! GPU found. Nothing here falls back to another device, but for Hessian products, which the host computes; and nothing panics because a
//! library is missing: every call that opens one comes after the question whether it is there.

mod alias;
mod buffers;
mod cache;
mod check;
mod dataset;
mod device;
mod engine;
mod evaluation;
mod exchange;
mod gpu;
pub mod gpus;
mod gradients;
mod lanes;
mod launch;
mod layer;
pub mod libraries;
mod micro_batch;
mod model;
pub mod nccl;
mod partition;
mod pointer;
mod products;
mod program;
mod scores;
mod sharing;
mod step;
mod workspace;

pub use device::Cuda;
pub use engine::CudaBackend;
pub use gpu::Arithmetic;
pub use layer::kernels;
pub use program::{architectures, compile_ahead, source};

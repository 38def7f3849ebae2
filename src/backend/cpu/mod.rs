//! The CPU back end: the default, and what the GPU is compared with.
//!
//! The folder `layer` has a room for each kind of layer, over kernels (`convolution`, `pooled`, `sparse`, `kept_matrix.rs`, `tile.rs`,
//! `winograd.rs`). A plan (`plan.rs`) is the layers of a lane; `worker` sends images through them, `engine` shares the work among threads.
//! Kernels are vectorised for the processor found (`vector_unit.rs`, `simd.rs`); threads share lanes where there are enough of them and the
//! leaves of a batch where there are not. The same bits come out whatever the processor, the threads and the ranks, because every sum
//! has one order (`tile.rs`, `winograd.rs`, `pooled` and `sparse` for a leaf, `comm::Leaves` for a batch). No ranks are known here but through a
//! [`Communicator`](crate::comm::Communicator).

mod bounds;
mod check;
mod convolution;
mod dense;
mod description;
mod engine;
mod epilogue;
mod floats;
mod kept_matrix;
mod lane;
mod layer;
mod memory;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod peak;
mod physical;
mod plan;
mod pooled;
mod pruned;
mod simd;
mod sparse;
mod tangents;
mod taps;
mod tile;
mod vector_unit;
mod winograd;
mod worker;

#[cfg(feature = "cuda")]
pub(super) use check::check as check_network;
pub use description::kernels;
pub use engine::{Cpu, CpuBackend, SHARING};
pub use lane::Lane;
pub use memory::Wave;
pub use peak::peak_flop;
pub use physical::Physical;
pub use vector_unit::VectorUnit;

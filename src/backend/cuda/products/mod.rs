//! The network's products by cuBLAS, in place of the fused kernels (kernels/im2col.cu says what was measured).
//!
//! The matrices of all lanes are a strided batch: a micro-batch's weights follow each other in the order of its lanes, so that no array of
//! pointers has to be built on the device or kept for a graph. An evaluation of some lanes copies theirs together: 250 KB a lane, for the
//! hundreds of images that it looks at.
//!
//! Reproducibility: cuBLAS chooses its kernels by the sizes of the matrices and of the strided batch, so a lane's bits depend on how many lanes are
//! beside it. The same lanes on the same GPU with the same cuBLAS have the same bits in every run, because there is one stream with its own workspace
//! (cuBLAS's documentation, "Results reproducibility"). Filter gradients are summed over the same leaves of the batch as the fused
//! kernels'.

mod blas;
mod matrix;
mod passes;

pub(super) use blas::Blas;
pub(super) use passes::{ForwardOutputs, InputGradient};

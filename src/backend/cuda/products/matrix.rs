//! The matrices of all lanes, as cuBLAS is told of them.

use cudarc::cublas::sys;

use crate::backend::cuda::pointer::{ConstPointer, MutPointer};

/// A matrix of each lane, or of each group of each lane, in rows; strides are in floats.
#[derive(Clone, Copy)]
pub(super) struct Matrix<P> {
    pub(super) at: P,
    /// Floats of a row.
    pub(super) row: usize,
    pub(super) lane: usize,
    pub(super) group: usize,
    /// Stored with rows and columns exchanged.
    pub(super) transposed: bool,
}

/// A matrix that is read.
pub(super) type Operand<'a> = Matrix<ConstPointer<'a, f32>>;

/// A matrix that is written.
pub(super) type Product<'a> = Matrix<MutPointer<'a, f32>>;

impl<P: Copy> Matrix<P> {
    pub(super) fn new(at: P, row: usize, lane: usize, group: usize) -> Matrix<P> {
        Matrix { at, row, lane, group, transposed: false }
    }

    pub(super) fn transposed(self) -> Matrix<P> {
        Matrix { transposed: true, ..self }
    }

    /// Matrices of this layout at another place.
    pub(super) fn with<Q>(self, at: Q) -> Matrix<Q> {
        let Matrix { row, lane, group, transposed, .. } = self;
        Matrix { at, row, lane, group, transposed }
    }

    pub(super) fn operation(&self) -> sys::cublasOperation_t {
        if self.transposed { sys::cublasOperation_t::CUBLAS_OP_T } else { sys::cublasOperation_t::CUBLAS_OP_N }
    }
}

impl<'a> Product<'a> {
    /// This matrix, to read from.
    pub(super) fn operand(self) -> Operand<'a> {
        self.with(self.at.into_const())
    }
}

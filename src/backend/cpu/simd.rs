//! Vectors of floats in three widths, behind one trait.
//!
//! Every kernel keeps each output's sum in one chain of fused multiply-adds over the same terms in the same order; vectors run across
//! outputs, never along a sum. So all widths give the same bits.

/// A vector unit. Every method is unsafe: the caller must have made sure that the processor has it, and that pointers are valid for
/// [`Simd::WIDTH`] floats.
#[allow(clippy::missing_safety_doc)]
pub(super) trait Simd: Copy {
    /// `WIDTH` floats.
    type Vector: Copy;
    /// Floats a vector.
    const WIDTH: usize;
    unsafe fn splat(value: f32) -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn store(to: *mut f32, value: Self::Vector);
    /// a · b + c, rounded once.
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

/// AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512;

/// AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2;

/// Plain Rust, for the compiler to vectorise (NEON on 64-bit ARM).
#[derive(Clone, Copy)]
pub(super) struct Portable;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, Simd};
    use std::arch::x86_64::*;

    impl Simd for Avx512 {
        type Vector = __m512;
        const WIDTH: usize = 16;
        #[inline(always)]
        unsafe fn splat(value: f32) -> __m512 {
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, value: __m512) {
            unsafe { _mm512_storeu_ps(to, value) }
        }
        #[inline(always)]
        unsafe fn multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 {
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
    }

    impl Simd for Avx2 {
        type Vector = __m256;
        const WIDTH: usize = 8;
        #[inline(always)]
        unsafe fn splat(value: f32) -> __m256 {
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, value: __m256) {
            unsafe { _mm256_storeu_ps(to, value) }
        }
        #[inline(always)]
        unsafe fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
    }
}

impl Simd for Portable {
    type Vector = [f32; 8];
    const WIDTH: usize = 8;
    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 8] {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 8] {
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [f32; 8]) {
        unsafe { to.cast::<[f32; 8]>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn multiply_add(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
}

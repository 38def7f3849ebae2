//! Vectors of floats in two widths, by four units, behind one trait.
//!
//! A kernel gives each output's sum one order of terms on every unit, mostly one chain of fused multiply-adds; vectors run across outputs, never
//! along a sum (a gradient in sub-maps is sixteen sums, added up in the end). So all widths give the same bits.

/// A vector unit that this processor has: the types of units that not every processor has are private to this module, and code meets them as a type
/// parameter of [`Kernel::run`] alone, which [`run_avx512`] and [`run_avx2`] begin where the processor was asked. So arithmetic is safe. Methods that
/// take addresses are not.
pub(super) trait Simd: Copy {
    /// Runs a kernel as a function of its own, compiled for this unit: a kernel that several others use is there once.
    fn call<K: Kernel>(kernel: K);
    /// `WIDTH` floats.
    type Vector: Copy;
    /// Floats a vector.
    const WIDTH: usize;
    fn splat(value: f32) -> Self::Vector;
    fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a - b.
    fn subtract(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn multiply(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a · b + c, rounded once.
    fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The floats where `other` is above zero, zero elsewhere.
    fn where_positive(value: Self::Vector, other: Self::Vector) -> Self::Vector;
    /// Zero in place of what is not above zero; a NaN stays a NaN.
    fn relu(value: Self::Vector) -> Self::Vector;
    /// Per float, the largest of four and zero, and which it was, as an integer: 0 … 3, or [`DEAD`] where none is above zero. Ties go to
    /// the first; a NaN wins over everything after it, and so is seen in the loss.
    fn largest(candidates: [Self::Vector; 4]) -> (Self::Vector, Self::Vector);
    /// A bit for each float, the first one lowest: 1 unless it is zero.
    fn not_zero(value: Self::Vector) -> u32;
    /// `WIDTH` floats from an address on.
    ///
    /// # Safety
    /// `from` is valid for reads of `WIDTH` floats.
    unsafe fn load(from: *const f32) -> Self::Vector;
    /// Writes `WIDTH` floats from an address on.
    ///
    /// # Safety
    /// `to` is valid for writes of `WIDTH` floats.
    unsafe fn store(to: *mut f32, value: Self::Vector);
    /// The floats where the mask is all ones, zero where it is zero.
    ///
    /// # Safety
    /// `mask` is valid for reads of `WIDTH` words.
    unsafe fn keep(value: Self::Vector, mask: *const u32) -> Self::Vector;
    /// Writes a vector of small integers as `WIDTH` bytes.
    ///
    /// # Safety
    /// `to` is valid for writes of `WIDTH` bytes.
    unsafe fn store_bytes(to: *mut u8, integers: Self::Vector);
    /// Reads `WIDTH` bytes as a vector of integers.
    ///
    /// # Safety
    /// `from` is valid for reads of `WIDTH` bytes.
    unsafe fn load_bytes(from: *const u8) -> Self::Vector;
    /// Per float, the one of `table`'s four floats that the integer's two low bits name.
    ///
    /// # Safety
    /// `table` is valid for reads of four floats.
    unsafe fn select(table: *const f32, integers: Self::Vector) -> Self::Vector;
    /// `to[j · to_stride + i]` = `from(i)[j]`, `WIDTH` × `WIDTH` floats.
    ///
    /// # Safety
    /// `from(i)` is valid for reads of `WIDTH` floats, and `to + j · to_stride` for writes of as many, for all i and j below `WIDTH`.
    unsafe fn transpose(from: impl Fn(usize) -> *const f32, to: *mut f32, to_stride: usize);
}

/// Code compiled once for each vector unit. Everything it calls must be `#[inline(always)]`, or it is compiled for none of them;
/// what is large and used by several goes through [`Simd::call`] instead.
pub(super) trait Kernel {
    /// Runs the kernel by the vector unit `S`. A kernel checks the lengths that its addresses rely on. A kernel that relies on more than lengths is
    /// made by an unsafe function, or only inside the folder whose code meets the further conditions.
    fn run<S: Simd>(self);
}

/// Choice of [`Simd::largest`] where none of the four is above zero.
pub(super) const DEAD: u8 = 4;

/// AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512;

/// AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2;

/// Plain Rust, for the compiler to vectorise.
#[derive(Clone, Copy)]
pub(super) struct Portable;

/// Methods of a unit that compute with vectors alone.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! arithmetic {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        $(
            #[inline(always)]
            fn $name($($argument: $type),*) -> $result {
                // SAFETY: the intrinsics want nothing but the unit, and whoever names its type has begun on a processor that has it.
                unsafe { $body }
            }
        )*
    };
}

/// Methods of a unit that take addresses.
macro_rules! at_addresses {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller vouches for the addresses (the method's `# Safety`); intrinsics want the unit too, and whoever names its type
                // has begun on a processor that has it.
                unsafe { $body }
            }
        )*
    };
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
pub(super) use {arithmetic, at_addresses};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, Avx512, DEAD, Kernel, Simd};
    use std::arch::x86_64::*;

    impl Simd for Avx512 {
        type Vector = __m512;
        const WIDTH: usize = 16;
        #[inline]
        fn call<K: Kernel>(kernel: K) {
            // SAFETY: whoever names this type has begun on a processor that has the unit.
            unsafe { super::run_avx512(kernel) }
        }
        arithmetic! {
            fn splat(value: f32) -> __m512 {
                _mm512_set1_ps(value)
            }
            fn add(a: __m512, b: __m512) -> __m512 {
                _mm512_add_ps(a, b)
            }
            fn subtract(a: __m512, b: __m512) -> __m512 {
                _mm512_sub_ps(a, b)
            }
            fn multiply(a: __m512, b: __m512) -> __m512 {
                _mm512_mul_ps(a, b)
            }
            fn multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 {
                _mm512_fmadd_ps(a, b, c)
            }
            fn where_positive(value: __m512, other: __m512) -> __m512 {
                _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(other, _mm512_setzero_ps()), value)
            }
            fn relu(value: __m512) -> __m512 {
                _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLE_UQ>(value, _mm512_setzero_ps()), value)
            }
            fn largest(candidates: [__m512; 4]) -> (__m512, __m512) {
                let (mut best, mut which) = (_mm512_setzero_ps(), _mm512_set1_epi32(i32::from(DEAD)));
                for (index, value) in candidates.into_iter().enumerate() {
                    let ordered = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(best, best);
                    let better = _mm512_mask_cmp_ps_mask::<_CMP_NLE_UQ>(ordered, value, best);
                    best = _mm512_mask_mov_ps(best, better, value);
                    which = _mm512_mask_mov_epi32(which, better, _mm512_set1_epi32(index as i32));
                }
                (best, _mm512_castsi512_ps(which))
            }
            fn not_zero(value: __m512) -> u32 {
                u32::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(value, _mm512_setzero_ps()))
            }
        }
        at_addresses! {
            fn load(from: *const f32) -> __m512 {
                _mm512_loadu_ps(from)
            }
            fn store(to: *mut f32, value: __m512) {
                _mm512_storeu_ps(to, value)
            }
            fn keep(value: __m512, mask: *const u32) -> __m512 {
                _mm512_and_ps(value, _mm512_loadu_ps(mask.cast()))
            }
            fn store_bytes(to: *mut u8, integers: __m512) {
                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(_mm512_castps_si512(integers)))
            }
            fn load_bytes(from: *const u8) -> __m512 {
                _mm512_castsi512_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())))
            }
            fn select(table: *const f32, integers: __m512) -> __m512 {
                _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(table)), _mm512_castps_si512(integers))
            }
            fn transpose(from: impl Fn(usize) -> *const f32, to: *mut f32, to_stride: usize) {
                let zero = _mm512_setzero_ps();
                let (mut pairs, mut quads) = ([zero; 16], [zero; 16]);
                for i in (0..16).step_by(2) {
                    let (a, b) = (_mm512_loadu_ps(from(i)), _mm512_loadu_ps(from(i + 1)));
                    (pairs[i], pairs[i + 1]) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                }
                // Lane l of quads[4k + j] has column 4l + j of rows 4k … 4k + 3.
                for k in (0..16).step_by(4) {
                    for j in 0..2 {
                        let (a, b) = (_mm512_castps_pd(pairs[k + j]), _mm512_castps_pd(pairs[k + 2 + j]));
                        quads[k + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                        quads[k + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
                    }
                }
                for j in 0..4 {
                    let even = _mm512_shuffle_f32x4::<0x88>(quads[j], quads[4 + j]);
                    let odd = _mm512_shuffle_f32x4::<0xdd>(quads[j], quads[4 + j]);
                    let more_even = _mm512_shuffle_f32x4::<0x88>(quads[8 + j], quads[12 + j]);
                    let more_odd = _mm512_shuffle_f32x4::<0xdd>(quads[8 + j], quads[12 + j]);
                    _mm512_storeu_ps(to.add(j * to_stride), _mm512_shuffle_f32x4::<0x88>(even, more_even));
                    _mm512_storeu_ps(to.add((4 + j) * to_stride), _mm512_shuffle_f32x4::<0x88>(odd, more_odd));
                    _mm512_storeu_ps(to.add((8 + j) * to_stride), _mm512_shuffle_f32x4::<0xdd>(even, more_even));
                    _mm512_storeu_ps(to.add((12 + j) * to_stride), _mm512_shuffle_f32x4::<0xdd>(odd, more_odd));
                }
            }
        }
    }

    impl Simd for Avx2 {
        type Vector = __m256;
        const WIDTH: usize = 8;
        #[inline]
        fn call<K: Kernel>(kernel: K) {
            // SAFETY: whoever names this type has begun on a processor that has the unit.
            unsafe { super::run_avx2(kernel) }
        }
        arithmetic! {
            fn splat(value: f32) -> __m256 {
                _mm256_set1_ps(value)
            }
            fn add(a: __m256, b: __m256) -> __m256 {
                _mm256_add_ps(a, b)
            }
            fn subtract(a: __m256, b: __m256) -> __m256 {
                _mm256_sub_ps(a, b)
            }
            fn multiply(a: __m256, b: __m256) -> __m256 {
                _mm256_mul_ps(a, b)
            }
            fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
                _mm256_fmadd_ps(a, b, c)
            }
            fn where_positive(value: __m256, other: __m256) -> __m256 {
                _mm256_and_ps(value, _mm256_cmp_ps::<_CMP_GT_OQ>(other, _mm256_setzero_ps()))
            }
            fn relu(value: __m256) -> __m256 {
                _mm256_and_ps(value, _mm256_cmp_ps::<_CMP_NLE_UQ>(value, _mm256_setzero_ps()))
            }
            fn largest(candidates: [__m256; 4]) -> (__m256, __m256) {
                let integer = |value: i32| _mm256_castsi256_ps(_mm256_set1_epi32(value));
                let (mut best, mut which) = (_mm256_setzero_ps(), integer(DEAD.into()));
                for (index, value) in candidates.into_iter().enumerate() {
                    let ordered = _mm256_cmp_ps::<_CMP_ORD_Q>(best, best);
                    let better = _mm256_and_ps(ordered, _mm256_cmp_ps::<_CMP_NLE_UQ>(value, best));
                    best = _mm256_blendv_ps(best, value, better);
                    which = _mm256_blendv_ps(which, integer(index as i32), better);
                }
                (best, which)
            }
            fn not_zero(value: __m256) -> u32 {
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(value, _mm256_setzero_ps())) as u32
            }
        }
        at_addresses! {
            fn load(from: *const f32) -> __m256 {
                _mm256_loadu_ps(from)
            }
            fn store(to: *mut f32, value: __m256) {
                _mm256_storeu_ps(to, value)
            }
            fn keep(value: __m256, mask: *const u32) -> __m256 {
                _mm256_and_ps(value, _mm256_loadu_ps(mask.cast()))
            }
            fn store_bytes(to: *mut u8, integers: __m256) {
                let integers = _mm256_castps_si256(integers);
                let words = _mm_packus_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256::<1>(integers));
                _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
            }
            fn load_bytes(from: *const u8) -> __m256 {
                _mm256_castsi256_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())))
            }
            fn select(table: *const f32, integers: __m256) -> __m256 {
                _mm256_permutevar_ps(_mm256_broadcast_ps(&*table.cast()), _mm256_castps_si256(integers))
            }
            fn transpose(from: impl Fn(usize) -> *const f32, to: *mut f32, to_stride: usize) {
                let zero = _mm256_setzero_ps();
                let (mut pairs, mut quads) = ([zero; 8], [zero; 8]);
                for i in (0..8).step_by(2) {
                    let (a, b) = (_mm256_loadu_ps(from(i)), _mm256_loadu_ps(from(i + 1)));
                    (pairs[i], pairs[i + 1]) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                }
                for k in (0..8).step_by(4) {
                    for j in 0..2 {
                        let (a, b) = (_mm256_castps_pd(pairs[k + j]), _mm256_castps_pd(pairs[k + 2 + j]));
                        quads[k + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
                        quads[k + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
                    }
                }
                for j in 0..4 {
                    _mm256_storeu_ps(to.add(j * to_stride), _mm256_permute2f128_ps::<0x20>(quads[j], quads[4 + j]));
                    _mm256_storeu_ps(to.add((4 + j) * to_stride), _mm256_permute2f128_ps::<0x31>(quads[j], quads[4 + j]));
                }
            }
        }
    }
}

impl Simd for Portable {
    type Vector = [f32; 8];
    const WIDTH: usize = 8;
    #[inline(never)]
    fn call<K: Kernel>(kernel: K) {
        kernel.run::<Portable>()
    }
    #[inline(always)]
    fn splat(value: f32) -> [f32; 8] {
        [value; 8]
    }
    #[inline(always)]
    fn add(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn subtract(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn multiply(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn multiply_add(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn where_positive(value: [f32; 8], other: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if other[i] > 0.0 { value[i] } else { 0.0 })
    }
    #[inline(always)]
    fn relu(value: [f32; 8]) -> [f32; 8] {
        value.map(|value| if value <= 0.0 { 0.0 } else { value })
    }
    #[inline(always)]
    fn largest(candidates: [[f32; 8]; 4]) -> ([f32; 8], [f32; 8]) {
        let (mut best, mut which) = ([0.0_f32; 8], [f32::from_bits(DEAD.into()); 8]);
        for (index, value) in candidates.iter().enumerate() {
            for i in 0..8 {
                #[allow(clippy::neg_cmp_op_on_partial_ord)]
                let better = !(value[i] <= best[i]) & !best[i].is_nan();
                best[i] = if better { value[i] } else { best[i] };
                which[i] = if better { f32::from_bits(index as u32) } else { which[i] };
            }
        }
        (best, which)
    }
    #[inline(always)]
    fn not_zero(value: [f32; 8]) -> u32 {
        value.iter().enumerate().map(|(i, &value)| u32::from(value != 0.0) << i).sum()
    }
    // Addresses may be unaligned.
    at_addresses! {
        fn load(from: *const f32) -> [f32; 8] {
            from.cast::<[f32; 8]>().read_unaligned()
        }
        fn store(to: *mut f32, value: [f32; 8]) {
            to.cast::<[f32; 8]>().write_unaligned(value)
        }
        fn keep(value: [f32; 8], mask: *const u32) -> [f32; 8] {
            std::array::from_fn(|i| f32::from_bits(value[i].to_bits() & *mask.add(i)))
        }
        fn store_bytes(to: *mut u8, integers: [f32; 8]) {
            to.cast::<[u8; 8]>().write_unaligned(integers.map(|integer| integer.to_bits() as u8))
        }
        fn load_bytes(from: *const u8) -> [f32; 8] {
            from.cast::<[u8; 8]>().read_unaligned().map(|byte| f32::from_bits(byte.into()))
        }
        fn select(table: *const f32, integers: [f32; 8]) -> [f32; 8] {
            integers.map(|integer| *table.add((integer.to_bits() & 3) as usize))
        }
        fn transpose(from: impl Fn(usize) -> *const f32, to: *mut f32, to_stride: usize) {
            for i in 0..8 {
                let row = from(i);
                for j in 0..8 {
                    *to.add(j * to_stride + i) = *row.add(j);
                }
            }
        }
    }
}

/// Runs a kernel by AVX-512.
///
/// # Safety
/// The processor has these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
#[inline(never)]
pub(super) fn run_avx512<K: Kernel>(kernel: K) {
    kernel.run::<Avx512>()
}

/// Runs a kernel by AVX2.
///
/// # Safety
/// The processor has these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(super) fn run_avx2<K: Kernel>(kernel: K) {
    kernel.run::<Avx2>()
}

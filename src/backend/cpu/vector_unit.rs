//! Which vector unit the kernels use, found at run time.

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon::Neon;
use super::simd::{Kernel, Portable, Simd};
#[cfg(target_arch = "x86_64")]
use super::simd::{run_avx2, run_avx512};

/// A vector unit of this processor with kernels of its own: nobody but [`VectorUnit::available`] makes one of another kind than
/// [`VectorUnit::PORTABLE`]. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorUnit(Kind);

/// The units that there are kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 16 floats.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 8 floats with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 8 floats in two registers.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    /// Whatever the compiler makes of plain Rust.
    Portable,
}

impl VectorUnit {
    /// Whatever the compiler makes of plain Rust: every processor has it.
    pub const PORTABLE: VectorUnit = VectorUnit(Kind::Portable);

    /// Every unit this processor has, widest first.
    pub fn available() -> Vec<VectorUnit> {
        let mut units = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("avx2") && has!("fma") {
                units.push(VectorUnit(Kind::Avx512));
            }
            if has!("avx2") && has!("fma") {
                units.push(VectorUnit(Kind::Avx2));
            }
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        units.push(VectorUnit(Kind::Neon));
        units.push(VectorUnit::PORTABLE);
        units
    }

    /// The widest unit this processor has.
    pub fn best() -> VectorUnit {
        VectorUnit::available()[0]
    }

    /// The unit's name in messages and results.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Kind::Neon => "NEON",
            Kind::Portable => "portable",
        }
    }

    /// Runs a kernel on this unit.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the field is private, and `available`, which alone makes this kind, has asked the processor for all that AVX-512 kernels use.
            Kind::Avx512 => unsafe { run_avx512(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the field is private, and `available`, which alone makes this kind, has asked the processor for AVX2 and FMA.
            Kind::Avx2 => unsafe { run_avx2(kernel) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Kind::Neon => Neon::call(kernel),
            Kind::Portable => Portable::call(kernel),
        }
    }
}

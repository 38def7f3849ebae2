//! Which vector unit the kernels use, found at run time.

#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Kernel, Portable, Simd};

/// The vector units with kernels of their own. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorUnit {
    /// 16 floats.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 8 floats with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the compiler makes of plain Rust.
    Portable,
}

impl VectorUnit {
    /// Every unit this processor has, widest first.
    pub fn available() -> Vec<VectorUnit> {
        let mut units = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if ["avx512f", "avx512bw", "avx512dq", "avx512vl"].iter().all(|&feature| has(feature)) && has("fma") {
                units.push(VectorUnit::Avx512);
            }
            if has("avx2") && has("fma") {
                units.push(VectorUnit::Avx2);
            }
        }
        units.push(VectorUnit::Portable);
        units
    }

    /// The widest unit this processor has.
    pub fn best() -> VectorUnit {
        VectorUnit::available()[0]
    }

    /// Its name in messages and results.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            VectorUnit::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            VectorUnit::Avx2 => "AVX2",
            VectorUnit::Portable => "portable",
        }
    }

    /// Runs a kernel on this unit.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // A unit is only ever made by `available`, which asked the processor.
        match self {
            #[cfg(target_arch = "x86_64")]
            VectorUnit::Avx512 => unsafe { Avx512::call(kernel) },
            #[cfg(target_arch = "x86_64")]
            VectorUnit::Avx2 => unsafe { Avx2::call(kernel) },
            VectorUnit::Portable => unsafe { Portable::call(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has(feature: &str) -> bool {
    match feature {
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512dq" => is_x86_feature_detected!("avx512dq"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        "avx2" => is_x86_feature_detected!("avx2"),
        "fma" => is_x86_feature_detected!("fma"),
        other => unreachable!("no question about {other}"),
    }
}

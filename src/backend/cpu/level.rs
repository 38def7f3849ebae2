//! Which vector unit the kernels use, found at run time.

#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};
use super::simd::{Kernel, Portable, Simd};

/// The vector units with kernels of their own. All give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// 16 floats.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 8 floats with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the compiler makes of plain Rust.
    Portable,
}

impl Level {
    /// Every level this processor has, widest first.
    pub fn available() -> Vec<Level> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if ["avx512f", "avx512bw", "avx512dq", "avx512vl"].iter().all(|&feature| has(feature)) && has("fma") {
                levels.push(Level::Avx512);
            }
            if has("avx2") && has("fma") {
                levels.push(Level::Avx2);
            }
        }
        levels.push(Level::Portable);
        levels
    }

    /// The widest level this processor has.
    pub fn best() -> Level {
        Level::available()[0]
    }

    /// Its name in messages and results.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "AVX2",
            Level::Portable => "portable",
        }
    }

    /// Runs a kernel on this level.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // A level is only ever made by `available`, which asked the processor.
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { Avx512::call(kernel) },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { Avx2::call(kernel) },
            Level::Portable => unsafe { Portable::call(kernel) },
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

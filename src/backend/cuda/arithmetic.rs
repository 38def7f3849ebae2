//! How the fused kernels multiply.

/// How the fused kernels multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// In 32 bits.
    Single,
    /// On tensor cores, factors rounded to TF32's 11 significant bits.
    Tf32,
    /// On tensor cores, each factor split into two TF32 numbers: about as exact as in 32 bits.
    Split,
}

impl Arithmetic {
    /// What NVRTC defines for it: `kernels/product.cuh` says what it means.
    pub fn definition(self) -> Option<&'static str> {
        match self {
            Arithmetic::Single => None,
            Arithmetic::Tf32 => Some("-DTENSOR_PRODUCTS=1"),
            Arithmetic::Split => Some("-DTENSOR_PRODUCTS=3"),
        }
    }
}

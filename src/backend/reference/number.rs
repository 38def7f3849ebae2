//! Numbers of the reference: floats of two widths, and either of them with its derivative along a direction.

use std::ops::{Add, Div, Mul, Sub};

/// A number that the reference computes with.
pub trait Number: Copy + From<f32> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// The number itself, without a derivative, for comparisons; exact.
    fn value(self) -> f64;

    /// eˣ, by libm, which gives the same bits on every machine.
    fn exp(self) -> Self;

    /// The natural logarithm, by libm.
    fn ln(self) -> Self;

    /// The square root, rounded once.
    fn sqrt(self) -> Self;

    /// max(x, 0). A NaN stays a NaN, so that it is seen in the loss.
    fn rectified(self) -> Self {
        if self.value() <= 0.0 { Self::from(0.0) } else { self }
    }
}

/// Makes a float a number.
macro_rules! float {
    ($float:ty, $exp:path, $ln:path) => {
        impl Number for $float {
            fn value(self) -> f64 {
                self.into()
            }
            fn exp(self) -> $float {
                $exp(self)
            }
            fn ln(self) -> $float {
                $ln(self)
            }
            fn sqrt(self) -> $float {
                self.sqrt()
            }
        }
    };
}

float!(f32, libm::expf, libm::logf);
float!(f64, libm::exp, libm::log);

/// A dual number: a value and its derivative along a direction. Arithmetic follows the rules of differentiation.
#[derive(Debug, Clone, Copy)]
pub struct Dual<T> {
    /// The value.
    pub value: T,
    /// Derivative of the number.
    pub slope: T,
}

impl<T: Number> From<f32> for Dual<T> {
    /// A constant.
    fn from(value: f32) -> Dual<T> {
        Dual { value: value.into(), slope: T::from(0.0) }
    }
}

/// Gives dual numbers an operator: its value is that of the values, its slope as stated.
macro_rules! operator {
    ($operator:ident, $name:ident, |$a:ident, $b:ident, $value:ident| $slope:expr) => {
        impl<T: Number> $operator for Dual<T> {
            type Output = Dual<T>;
            fn $name(self, $b: Dual<T>) -> Dual<T> {
                let ($a, $value) = (self, self.value.$name($b.value));
                Dual { value: $value, slope: $slope }
            }
        }
    };
}

operator!(Add, add, |a, b, _value| a.slope + b.slope);
operator!(Sub, sub, |a, b, _value| a.slope - b.slope);
operator!(Mul, mul, |a, b, _value| a.slope * b.value + a.value * b.slope);
operator!(Div, div, |a, b, value| (a.slope - value * b.slope) / b.value);

impl<T: Number> Number for Dual<T> {
    fn value(self) -> f64 {
        self.value.value()
    }

    fn exp(self) -> Dual<T> {
        let value = self.value.exp();
        Dual { value, slope: value * self.slope }
    }

    fn ln(self) -> Dual<T> {
        Dual { value: self.value.ln(), slope: self.slope / self.value }
    }

    fn sqrt(self) -> Dual<T> {
        let value = self.value.sqrt();
        Dual { value, slope: self.slope / (value + value) }
    }
}
